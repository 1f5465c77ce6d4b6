/* openapi_content: the JSON Schema of an item's content (validation.md) as a part of a larger document.
 *
 * References of a schema begin at its own root.  In the larger document they have to begin at its root, so
 * they are rewritten; anchors, which tools look for in the whole document, become pointers. */
#ifndef STAMPD_OPERATION_OPENAPI_OPENAPI_CONTENT_H
#define STAMPD_OPERATION_OPENAPI_OPENAPI_CONTENT_H

#include "base/builder.h"

/* Appends the members of the schema, a JSON text that was accepted with the declaration, each with a comma
 * before it; `place`: the URI of the object that they are appended to, "#/…".  Nothing is appended for
 * `true`. */
void openapi_content_add(struct bytes schema, const char *place, struct builder *body);

#endif
