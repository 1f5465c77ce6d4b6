/* store_subscriptions: subscriptions in PostgreSQL: changing and reading them, and the matches that the
 * task `push` sends (subscriptions.md).  Matching is a part of store_commit. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_SUBSCRIPTIONS_H
#define STAMPD_STORE_COLLECTIONS_STORE_SUBSCRIPTIONS_H

#include "store/store.h"
#include "store/documents/store_commit.h"

/* The name of the operation whose tasks wake sessions. */
#define PUSH_OPERATION "push"
enum { PUSH_QUEUE = 3 }; /* unless task_queues sets another */

/* The push address of a session, as browsers give it. */
struct push_address {
    struct bytes endpoint, p256dh, auth; /* all three NO_BYTES: none */
};

struct subscription {
    int64_t version; /* stamp of its last change */
    int64_t until;   /* minute since 1970 in which it ends */
    struct bytes *definitions;
    size_t count;
    struct push_address push;
    struct bytes context; /* NO_BYTES: none */
    bool is_on_trial;     /* it ends early, unless its session returns in a later minute */
    /* Set by store_subscriptions_read: */
    bool is_vouched;                  /* declared with the administrator's key */
    struct bytes account, credential; /* of the caller that declared it, as in subscription_caller */
};

/* `by_session`: the session sent the request, so it has returned. `is_there_r` false: there is none, it has
 * expired, or it is another account's. */
MUST_USE enum fault store_subscriptions_read(struct store *store, int ns, struct arena *arena,
                                             struct bytes session, const struct subscription_caller *caller,
                                             bool by_session, struct subscription *subscription_r,
                                             bool *is_there_r);

struct subscription_change {
    bool may_create;
    bool is_whole;                    /* the definitions replace the present ones */
    const struct bytes *keys, *texts; /* of definitions to add, no key twice */
    const size_t *value_counts;       /* of each: how many values its key has */
    size_t count;
    const struct bytes *drops; /* keys */
    const size_t *drop_value_counts;
    size_t drop_count;
    const struct push_address *push; /* NULL: stays */
    const struct bytes *context;     /* NULL: stays */
    int64_t life;                    /* minutes from now; negative: at least that many */
    uint64_t client;                 /* the client (call.h); 0: not counted */
    struct subscription_caller caller;
    int64_t mosts[3]; /* subscriptions of its address, of its account, of the namespace; 0: any number */
};
/* At once, outside any commit; idempotent.  FAULT_ALIMIT: `limit_r` names the setting or quota.  FAULT_SRULE:
 * it would be new, but the session has one of another account. */
MUST_USE enum fault store_subscriptions_change(struct store *store, int ns, struct arena *arena,
                                               struct bytes session, const struct subscription_change *change,
                                               struct subscription *subscription_r, bool *is_there_r,
                                               const char **limit_r);
MUST_USE enum fault store_subscriptions_drop(struct store *store, int ns, struct arena *arena,
                                             struct bytes session, const struct subscription_caller *caller);

/* --- for the task --- */

struct matched_list {
    int64_t taking;                           /* its number, for store_subscriptions_forget_matched */
    const struct matched_definition *matched; /* versions: of the first commit since the last push */
    size_t count;
};
/* The matches to send to the session, taken by a claimed task.  They include those of every commit that
 * found the task waiting and so created no other.  Returns the same list until
 * store_subscriptions_forget_matched. */
MUST_USE enum fault store_subscriptions_take_matched(struct store *store, int ns, struct arena *arena,
                                                     struct bytes session, struct matched_list *list_r);
/* Ids of documents of the class after `after` whose version is at least this one, at most `most`. */
MUST_USE enum fault store_subscriptions_written(struct store *store, int ns, struct arena *arena,
                                                struct bytes class, struct bytes after, int64_t version,
                                                size_t most, struct bytes **ids_r, size_t *count_r);

/* A value of a collection, and a place in it. */
#define MEMBER_SEARCH_START "18446744073709551615"
struct member_search {
    struct bytes class, collection, value;
    size_t value_count;       /* how many `value` has */
    struct bytes keys;        /* its properties, Item.member, or Item: its keys, with spaces between */
    struct bytes id;          /* the document; of changes: of the last row, with its transaction */
    struct bytes transaction; /* at first MEMBER_SEARCH_START */
    int64_t since;            /* of changes: the earliest version */
};
/* are_members_r[i]: the document of searches[i] is a member. */
MUST_USE enum fault store_subscriptions_members(struct store *store, int ns, struct arena *arena,
                                                const struct member_search *searches, size_t count,
                                                bool *are_members_r);
struct changed_member {
    size_t search; /* of which search */
    struct bytes id, transaction;
    bool is_member; /* changed since its version */
};
/* The next rows of each collection, from the last transaction on, at most `most` of each; in the order of the
 * searches. */
MUST_USE enum fault store_subscriptions_changed(struct store *store, int ns, struct arena *arena,
                                                const struct member_search *searches, size_t count,
                                                size_t most, struct changed_member **changed_r,
                                                size_t *changed_count_r);
struct left_member {
    struct bytes id;
    struct bytes transaction;
    int64_t version; /* of the document when it left */
};
/* Documents that have left the collection in the transaction `from` or a later one, the last ones first,
 * those behind search->transaction and search->id. */
MUST_USE enum fault store_subscriptions_left(struct store *store, int ns, struct arena *arena,
                                             const struct member_search *search, int64_t from, size_t most,
                                             struct left_member **left_r, size_t *count_r);

/* The matches have been sent. */
MUST_USE enum fault store_subscriptions_forget_matched(struct store *store, int ns, struct arena *arena,
                                                       struct bytes session, int64_t taking);
/* The push address is gone: the session is no longer woken, unless it already has another address
 * (`is_gone_r` false). */
MUST_USE enum fault store_subscriptions_forget_push(struct store *store, int ns, struct arena *arena,
                                                    struct bytes session, struct bytes endpoint,
                                                    bool *is_gone_r);

#endif
