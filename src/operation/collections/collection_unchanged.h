/* collection_unchanged: collections of which nothing has changed since a token, as this worker has read it
 * from the database.
 *
 * The database said that the collection has no change by the transaction `from` or a later one.  As long as
 * no commit has moved the slot of its class (slots.h), that holds for every token from there on, and the
 * answer needs no query.  The table has a constant size. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_UNCHANGED_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_UNCHANGED_H

#include "operation/collections/collection_request.h"

struct collection_unchanged;

struct collection_unchanged *collection_unchanged_create(void) __attribute__((returns_nonnull));
void collection_unchanged_destroy(struct collection_unchanged *unchanged); /* NULL is allowed */

/* Has nothing changed since the token of the request?  Then its synchronisation has begun, and its only page
 * is empty.  `proof_r`: for collection_unchanged_note, taken before the query. */
MUST_USE bool collection_unchanged_find(const struct attempt *attempt, struct collection_request *request,
                                        struct newest_proof *proof_r);
/* Remembers the page of the request, if it is the only one and has nothing. */
void collection_unchanged_note(const struct attempt *attempt, const struct collection_request *request,
                               const struct newest_proof *proof, const struct collection_page *page);

#endif
