/* schema_searches: reads the named searches of a declaration. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_SEARCHES_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_SEARCHES_H

#include "model/schema/schema_reader.h"

/* The member `searches` of the whole; absent: there are none. */
MUST_USE bool schema_searches_read(struct schema_reader *reader, struct schema_node root,
                                   struct schema *schema);

/* Reads a field for full text, {"text":["title","body"],"language":"english"}. */

/* Sets the type and the text of the field, whose name is known. */
MUST_USE bool schema_texts_read(struct schema_reader *reader, struct schema_node node,
                                struct schema_field *field);
/* Do both have the same words for the same contents?  NULL: no text. */
bool schema_texts_are_same(const struct schema_text *one, const struct schema_text *other);

#endif
