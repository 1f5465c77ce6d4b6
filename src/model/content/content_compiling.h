/* content_compiling: the state of a compilation, which the readers of keywords share. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_COMPILING_H
#define STAMPD_MODEL_CONTENT_CONTENT_COMPILING_H

#include "model/content/content_node.h"

/* The state of a compilation. */
struct content_compiling {
    struct arena *arena;
    struct content_problem *problem;
    const struct json *root;
    struct content_node **nodes; /* all of them */
    size_t count, capacity;
    bool is_raw;
    struct content_budget budget;
    /* Compiles the subschema `source`; NULL: refused. */
    struct content_node *(*compile)(struct content_compiling *compiling, const struct json *source,
                                    const struct content_node *outer, const char *keyword, struct bytes name);
};

#endif
