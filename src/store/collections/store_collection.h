/* store_collection: pages of a collection. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_COLLECTION_H
#define STAMPD_STORE_COLLECTIONS_STORE_COLLECTION_H

#include "model/document/document.h"
#include "store/store.h"

/* A page of a collection, in the order in which its members changed; true at one instant. */
struct collection_query {
    struct arena *arena;
    struct bytes class, name, value;
    size_t value_count;  /* how many values `value` has */
    int64_t transaction; /* changes written by it after `id`, and all changes written later */
    struct bytes id;
    bool with_departures;
    int64_t since, minute; /* `ended` lists those that expired after the one, up to the other */
    int32_t limit;
};
enum { COLLECTION_ENDED_MOST = 1000 };
struct collection_member {
    struct bytes id;
    int64_t version;     /* of the document, when it last changed or left */
    int64_t transaction; /* that wrote this */
    bool has_left;
};
struct collection_page {
    int64_t life;    /* transaction numbers are meaningful only within one life of the database */
    int64_t number;  /* of the declaration; 0: none */
    bool is_ready;   /* it has been filled */
    int64_t floor;   /* departures of this transaction and earlier ones may have been purged */
    int64_t horizon; /* all transactions before this one have ended, and this page covers them */
    int64_t next;    /* no transaction from this one on has begun */
    struct collection_member *members; /* an expired one has left */
    size_t count;
    bool has_more;
    struct collection_member *ended;
    size_t ended_count;
    bool has_ended_more; /* than COLLECTION_ENDED_MOST */
};
MUST_USE enum fault store_collection(struct store *store, int ns, const struct collection_query *query,
                                     struct collection_page *page_r);

#endif
