/* collection_judged: answers of `collection` where rules decide: what is found is judged document by
 * document, and what has left is sent to callers that could see it (operation/judge/sight.h). */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_JUDGED_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_JUDGED_H

#include "operation/collections/collection.h"

/* A page. */
MUST_USE enum fault collection_judged_answer(struct attempt *attempt, const struct reader *reader,
                                             struct collection_request *request);
/* The whole collection, page after page. */
MUST_USE enum fault collection_judged_stream(struct attempt *attempt, struct collection_request *request);

#endif
