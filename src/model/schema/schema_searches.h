/* schema_searches: reads the named searches of a declaration. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_SEARCHES_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_SEARCHES_H

#include "model/schema/schema_reader.h"

/* The member `searches` of the whole; absent: there are none. */
MUST_USE bool schema_searches_read(struct schema_reader *reader, struct schema_node root,
                                   struct schema *schema);

#endif
