/* content_read: reads the keywords of content_keyword_table.h into the rules of a node. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_READ_H
#define STAMPD_MODEL_CONTENT_CONTENT_READ_H

#include "model/content/content_compiling.h"

/* Reads one keyword of a node into its rules. */
typedef bool content_keyword(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value);
/* NULL: not known. */
content_keyword *content_read_find(struct bytes name, bool is_raw);
/* All known keywords, separated by blanks. */
const char *content_read_names(bool is_raw);
/* Sorts what a node has of names, when all its keywords are read. */
void content_read_join_names(struct content_node *node);

#endif
