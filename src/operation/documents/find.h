/* find: parts of the operation find that others use. */
#ifndef STAMPD_OPERATION_DOCUMENTS_FIND_H
#define STAMPD_OPERATION_DOCUMENTS_FIND_H

#include "model/document/view.h"
#include "model/schema/search.h"
#include "operation/attempt.h"
#include "operation/reader.h"

/* How many documents the search finds that the caller may read: at most search->limit; or, has_more_r, at
 * least so many.  FAULT_ALIMIT, not recorded: it would look at more than limit_find_items. */
MUST_USE enum fault find_count(struct attempt *attempt, const struct search *search, int64_t *count_r,
                               bool *has_more_r);
/* What may be shown of an item that was found, if the document that it was found in is shown like this? */
bool find_is_shown(const struct search *search, const struct document *document, const struct view *view);
/* Records that FAULT_ALIMIT, at the member `where`. */
enum fault find_refuse_looks(const struct reader *reader);

#endif
