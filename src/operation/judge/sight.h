/* sight: what a caller could see of a class when it was given a token, and what of it was taken away since.
 *
 * A token is bound to the digest of everything beside documents that decides: the account, its roles and
 * since when it has them, and the rules.  If the digest is another, the answer is complete.  If
 * it is the same, sight has changed through contents alone, and the database has recorded which documents the
 * caller has lost (store/collections/store_sight.h).  doc/explanation/sight.md proves that nothing is missed,
 * and nothing is disclosed. */
#ifndef STAMPD_OPERATION_JUDGE_SIGHT_H
#define STAMPD_OPERATION_JUDGE_SIGHT_H

#include "model/document/view.h"
#include "operation/attempt.h"
#include "store/collections/store_sight.h"

struct caller_sight {
    struct bytes class;
    struct bytes digest; /* SIGHT_DIGEST characters; empty: no rules apply to the caller */
    struct rules_sight rules;
    /* Set by sight_changes: */
    int64_t from;
    struct store_sight_changes changes;
};
enum { SIGHT_DIGEST = 32 };

/* Of documents that the caller may read or list, with the items of these classes; NULL: with all items. */
struct caller_sight sight_find(const struct attempt *attempt, struct bytes class, enum rules_right right,
                               const struct bytes *items, size_t count);
/* The one place that decides whether an answer may depend on what the schema declares.  May it, of classes of
 * items of a class, or of a collection of their members; `items` NULL, count 0: the schema does not declare
 * it?  If not, the answer is the same as of what is declared and empty (doc/reference/rules.md). */
bool sight_discloses(const struct call *call, struct bytes class, const struct bytes *items, size_t count);
/* The same of a change that sets such an item.  If not, the rules refuse the change. */
bool sight_discloses_writer(const struct attempt *attempt, struct bytes class, struct bytes item);
/* The same of a collection; NULL: it is not declared. */
struct schema_collection;
bool sight_discloses_collection(const struct attempt *attempt, struct bytes class,
                                const struct schema_collection *collection);

/* Before the first page of a complete answer: what the caller loses from now on is recorded.  If that is not
 * possible at the moment, the next answer is complete again. */
MUST_USE enum fault sight_follow(struct attempt *attempt, const struct caller_sight *sight);
/* After a page of changes was read: what was lost since the transaction.  is_known_r false: it is not known,
 * or it is so much that the answer shall be complete. */
MUST_USE enum fault sight_changes(struct attempt *attempt, struct caller_sight *sight, int64_t from,
                                  bool *is_known_r);

/* What was lost since the transaction, and whether the caller's memberships in teams have changed, in
 * sight->changes: for somebody who has no answer that could be complete.  is_known_r false: the rules were
 * not followed all the time; from now on they are. */
MUST_USE enum fault sight_losses(struct attempt *attempt, struct caller_sight *sight, int64_t from,
                                 bool *is_known_r);
/* For somebody who will ask so later: records what is lost from now on, wherever the rules look. */
MUST_USE enum fault sight_follow_rules(struct attempt *attempt);

/* Had the caller sight of the documents, which it sees now, before these versions? */
MUST_USE enum fault sight_was_before(struct attempt *attempt, const struct caller_sight *sight,
                                     const struct bytes *ids, const int64_t *versions, size_t count,
                                     bool *was_r);
/* Had it sight of the documents at these versions, and has lost it since? */
MUST_USE enum fault sight_was_lost(struct attempt *attempt, const struct caller_sight *sight,
                                   const struct bytes *ids, const int64_t *versions, size_t count,
                                   bool *was_r);
/* Has anything changed that the caller sees in these documents, which it sees under these views? */
MUST_USE enum fault sight_was_written(struct attempt *attempt, const struct caller_sight *sight,
                                      const struct document *const *documents, const struct view *views,
                                      size_t count, bool *was_r);

#endif
