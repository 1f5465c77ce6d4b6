/* find_where: reads the conditions of `find`: `where`, with its groups, and those on the document. */
#ifndef STAMPD_OPERATION_DOCUMENTS_FIND_WHERE_H
#define STAMPD_OPERATION_DOCUMENTS_FIND_WHERE_H

#include "model/schema/search.h"
#include "operation/reader.h"

/* The names of the tests. */
extern const char *const find_where_tests[SEARCH_TESTS];

/* Sets the branches of a search whose class and item are known; an error is recorded in the reply. */
MUST_USE enum fault find_where_read(const struct reader *reader, const struct json *param,
                                    struct search *search);
/* The field of this name of the search's item, which is ready.  FAULT_NFIELD, FAULT_OBUILDING: recorded. */
MUST_USE enum fault find_where_field(const struct reader *reader, const struct search *search,
                                     struct bytes name, const struct schema_field **field_r);
/* FAULT_NFIELD, recorded; `field` NO_BYTES: it is about the item. */
enum fault find_where_refuse_name(const struct reader *reader, struct bytes class, struct bytes item,
                                  struct bytes field);

#endif
