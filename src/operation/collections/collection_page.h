/* collection_page: reads the next page of a synchronisation. */
#ifndef STAMPD_OPERATION_COLLECTIONS_COLLECTION_PAGE_H
#define STAMPD_OPERATION_COLLECTIONS_COLLECTION_PAGE_H

#include "operation/collections/collection_request.h"

/* If the client's state is too old, the request starts over: it is complete, and this is its first page. */
MUST_USE enum fault collection_page_read(struct attempt *attempt, const struct reader *reader,
                                         struct collection_request *request, struct collection_page *page);

#endif
