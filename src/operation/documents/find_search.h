/* find_search: reads the argument of `find` (protocol.md). */
#ifndef STAMPD_OPERATION_DOCUMENTS_FIND_SEARCH_H
#define STAMPD_OPERATION_DOCUMENTS_FIND_SEARCH_H

#include "model/schema/search.h"
#include "operation/cursor.h"
#include "operation/reader.h"

enum { FIND_MEMBERS_MOST = 32 /* that are wanted */ };

/* Does the search cost what it takes: is it the administrator's, or of a task that no client requested? */
bool find_search_is_free(const struct call *call);
/* Reads the search, with the place where its page begins; an error is recorded in the reply. */
MUST_USE enum fault find_search_read(struct attempt *attempt, const struct reader *reader,
                                     struct search *search);
/* Of another operation: the same search (`c`, `i`, `where`, `id`, `v`, `ct` of its argument, whose other
 * members it has read) for all items, in the order of ids and keys, `limit` at once. */
MUST_USE enum fault find_search_read_items(struct attempt *attempt, const struct reader *reader,
                                           int32_t limit, struct search *search);
/* What a cursor of the search is bound to, and the row that it consists of: where the search is. */
struct bytes find_search_question(const struct call *call, const struct search *search);
struct cursor_row find_search_row(const struct search *search);

#endif
