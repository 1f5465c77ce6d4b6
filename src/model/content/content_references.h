/* content_references: resolves $ref, and refuses cycles that never leave the value. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_REFERENCES_H
#define STAMPD_MODEL_CONTENT_CONTENT_REFERENCES_H

#include "model/content/content_compiling.h"

/* Resolves all $ref and refuses cycles that never leave the value. */
bool content_references_resolve(struct content_compiling *compiling);

#endif
