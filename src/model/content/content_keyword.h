/* content_keyword: finds the reader of a keyword. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_H
#define STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_H

#include "model/content/content_compiling.h"

/* Reads one keyword of a node into its rules. */
typedef bool content_keyword(struct content_compiling *compiling, struct content_node *node,
                             const struct json *value);
/* NULL: not known. */
content_keyword *content_keyword_find(struct bytes name, bool is_raw);
/* All known keywords, separated by blanks. */
const char *content_keyword_names(bool is_raw);

#endif
