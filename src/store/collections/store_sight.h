/* store_sight: what callers have lost and gained of the documents of a class by their contents
 * (sql/0015_sight.sql, doc/explanation/sight.md). */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_SIGHT_H
#define STAMPD_STORE_COLLECTIONS_STORE_SIGHT_H

#include "model/rules/rules_sight.h"
#include "store/store.h"

enum { STORE_SIGHT_MOST = 1000 }; /* teams of a caller, documents lost at once */

/* Declares the places of the rules, called again: records since when they are followed.  In statements of
 * their own; FAULT_STALE: a long transaction is under way, or
 * this session reads a snapshot. */
MUST_USE enum fault store_sight_declare(struct store *store, int ns, struct arena *arena, int64_t mark,
                                        struct bytes places);

struct store_sight_query {
    struct arena *arena;
    struct bytes class, account;
    const struct rules_sight *sight;
    int64_t from; /* since this transaction */
};
struct store_sight_lost {
    struct bytes id;
    int64_t version; /* of the document, when it was last lost */
};
struct store_sight_changes {
    int64_t mark;  /* of the rules that are followed */
    int64_t since; /* they are followed since this transaction; 0: it is not known yet */
    int64_t floor; /* what was lost by this transaction and earlier ones may have been purged */
    bool has_changed_teams;
    bool has_more;            /* than STORE_SIGHT_MOST */
    struct bytes *principals; /* the caller's own, and its teams */
    size_t principal_count;
    struct store_sight_lost *lost;
    size_t lost_count;
};
MUST_USE enum fault store_sight_changes(struct store *store, int ns, const struct store_sight_query *query,
                                        struct store_sight_changes *changes_r);

/* Since which version of each document the caller has had one of its principals; 0: it has none now. */
MUST_USE enum fault store_sight_since(struct store *store, int ns, const struct store_sight_query *query,
                                      const struct store_sight_changes *changes, const struct bytes *ids,
                                      size_t count, int64_t *since_r);

/* Had the caller one of its principals in the document when it had this version, and has lost it since? */
MUST_USE enum fault store_sight_had(struct store *store, int ns, const struct store_sight_query *query,
                                    const struct store_sight_changes *changes, const struct bytes *ids,
                                    const int64_t *versions, size_t count, bool *had_r);

/* In which of the documents, of which these classes of items (joined by blanks) are hidden from the caller,
 * was something that it sees written, or did its relation to them change, since query->from? */
MUST_USE enum fault store_sight_written(struct store *store, int ns, const struct store_sight_query *query,
                                        const struct bytes *ids, const struct bytes *hidden, size_t count,
                                        bool *are_r);

#endif
