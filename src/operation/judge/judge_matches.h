/* judge_matches: which matches of a commit with the definitions of a subscription (subscriptions.md) the
 * caller may know of: in an answer after the commit, and in a push message. */
#ifndef STAMPD_OPERATION_JUDGE_JUDGE_MATCHES_H
#define STAMPD_OPERATION_JUDGE_JUDGE_MATCHES_H

#include "model/schema/definition.h"
#include "model/schema/schema.h"
#include "operation/attempt.h"
#include "store/documents/store_commit.h"

/* Each is judged by the newest documents: the caller must be able to read one that was written since the
 * version of the match (of a class or collection: also to list it; a member of the collection of which it
 * sees the properties), and to see something that is not older.  versions_r[i]: the version that it sees;
 * 0: it may not know of it.  Of a definition in several matches, which are neighbours, the first result is
 * that of the others.  A deletion is known to those who see each document of the class; other departures
 * are found by judge_losses.  Where the caller may know of each change of a class, all its matches remain. */
MUST_USE enum fault judge_matches(struct attempt *attempt, const struct matched_definition *matches,
                                  size_t count, int64_t *versions_r);

/* The collection of the definition, if it is still declared with so many properties; NULL: it is not. */
const struct schema_collection *judge_matches_find_collection(const struct schema *schema,
                                                              const struct definition *definition);

#endif
