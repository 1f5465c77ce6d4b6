/* pg_params: parameters of statements: arrays and numbers are encoded into the arena, texts are borrowed. */
#ifndef STAMPD_EDGE_PG_PG_PARAMS_H
#define STAMPD_EDGE_PG_PG_PARAMS_H

#include "base/arena.h"
#include "base/bytes.h"

enum { PG_PARAMETERS_MAX = 240 }; /* a search with all its alternatives (model/schema/search.h) */
struct pg_params {
    struct arena *arena;
    int count;
    size_t bytes; /* of all values */
    const char *values[PG_PARAMETERS_MAX];
    int lengths[PG_PARAMETERS_MAX];
};
void pg_params_start(struct pg_params *params, struct arena *arena);
void pg_params_add_i64(struct pg_params *params, int64_t value);
void pg_params_add_i32(struct pg_params *params, int32_t value);
void pg_params_add_f64(struct pg_params *params, double value);
void pg_params_add_text(struct pg_params *params, struct bytes text); /* data NULL: null */
void pg_params_add_i64_array(struct pg_params *params, const int64_t *values, size_t count);
void pg_params_add_i32_array(struct pg_params *params, const int32_t *values, size_t count);
void pg_params_add_text_array(struct pg_params *params, const struct bytes *values,
                              size_t count); /* data NULL: null */
void pg_params_add_bool_array(struct pg_params *params, const bool *values, size_t count);
/* Adds parameter `index` (from 0) of another statement, encoded once for both. */
void pg_params_add_same(struct pg_params *params, const struct pg_params *other, int index);
/* Replaces parameter `index` (from 0) by an own one, in the arena. */
void pg_params_set_text(struct pg_params *params, int index, struct bytes text);
void pg_params_set_text_array(struct pg_params *params, int index, const struct bytes *values, size_t count);
/* A parameter that was added as a text, or as an array of texts: slices of its values. */
struct bytes pg_params_text(const struct pg_params *params, int index);
struct bytes *pg_params_text_array(const struct pg_params *params, int index, size_t *count_r);
/* PostgreSQL accepts less than 1 GiB in one message; parameters that do not fit must not be sent in a
 * pipeline. */
MUST_USE bool pg_params_fit(const struct pg_params *params);

#endif
