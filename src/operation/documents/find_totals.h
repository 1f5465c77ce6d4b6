/* find_totals: `"want":{"sum","min","max","avg","by"}` of `find`. */
#ifndef STAMPD_OPERATION_DOCUMENTS_FIND_TOTALS_H
#define STAMPD_OPERATION_DOCUMENTS_FIND_TOTALS_H

#include "model/schema/search.h"
#include "operation/attempt.h"
#include "operation/reader.h"

/* Reads them for a search whose item is known; an error is recorded in the reply. */
MUST_USE enum fault find_totals_read(const struct reader *reader, const struct search *search,
                                     struct search_totals *totals_r);
/* Writes the answer.  `approved` NULL: of all that is found; else of these, and `has_more`: there are others.
 * FAULT_STALE: one of these has changed meanwhile. */
MUST_USE enum fault find_totals_write(struct attempt *attempt, const struct search *search,
                                      const struct search_totals *totals,
                                      const struct search_approved *approved, bool has_more);
/* The answer of a search that finds nothing, whatever fields the request names: they need not exist. */
MUST_USE enum fault find_totals_write_none(const struct reader *reader, struct builder *body);

#endif
