/* find_marks: excerpts of what was found by words (protocol.md, "Excerpts"). */
#ifndef STAMPD_OPERATION_DOCUMENTS_FIND_MARKS_H
#define STAMPD_OPERATION_DOCUMENTS_FIND_MARKS_H

#include "model/schema/search.h"
#include "operation/attempt.h"
#include "operation/reader.h"
#include "store/collections/store_search.h"

enum {
    FIND_MARKS_LIMIT_STANDARD = 20, /* items of a page with excerpts */
    FIND_MARKS_LIMIT_MOST = 50
};

/* Reads the member `marks` of a search whose conditions are known; an error is recorded in the reply. */
MUST_USE enum fault find_marks_read(const struct reader *reader, struct search *search);

/* The excerpts of items that the caller may read: a JSON object for each, of the members that have some. */
MUST_USE enum fault find_marks_make(struct attempt *attempt, const struct search *search,
                                    const struct search_found *const *found, size_t count,
                                    struct bytes *marks_r);

#endif
