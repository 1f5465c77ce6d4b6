/* pg_params: parameters of statements: arrays and numbers are encoded into the arena, texts are borrowed.
 *
 * PG_PARAMS writes the parameters of a statement in one place: PG_PARAMS(arena, PG_TEXT(id),
 * PG_I64(version)). Where their number is known only as they are collected, pg_params_start and
 * pg_params_add_… do the same. */
#ifndef STAMPD_EDGE_PG_PG_PARAMS_H
#define STAMPD_EDGE_PG_PG_PARAMS_H

#include "base/arena.h"
#include "base/bytes.h"

enum { PG_PARAMETERS_MAX = 240 }; /* a search with all its alternatives (model/schema/search.h) */
struct pg_params {
    struct arena *arena;
    int count, room;
    size_t bytes;        /* of all values */
    const char **values; /* in the arena, as are the lengths */
    int *lengths;
};

/* One value before it is encoded; only the macros below make them. */
struct pg_value {
    enum {
        PG_VALUE_I64,
        PG_VALUE_I32,
        PG_VALUE_F64,
        PG_VALUE_TEXT,
        PG_VALUE_I64S,
        PG_VALUE_I32S,
        PG_VALUE_TEXTS
    } kind;
    union {
        int64_t integer;
        double real;
        struct bytes text;
        struct {
            const void *data;
            size_t count;
        } array;
    };
};
#define PG_I64(value_) ((struct pg_value){.kind = PG_VALUE_I64, .integer = (value_)})
#define PG_I32(value_) ((struct pg_value){.kind = PG_VALUE_I32, .integer = (value_)})
#define PG_F64(value_) ((struct pg_value){.kind = PG_VALUE_F64, .real = (value_)})
/* Data NULL: null.  The text may be a literal of a struct, whose commas are part of it. */
#define PG_TEXT(...) ((struct pg_value){.kind = PG_VALUE_TEXT, .text = __VA_ARGS__})
#define PG_I64S(values_, count_)                                                                             \
    ((struct pg_value){.kind = PG_VALUE_I64S, .array = {PG_ARRAY_OF(int64_t, values_), (count_)}})
#define PG_I32S(values_, count_)                                                                             \
    ((struct pg_value){.kind = PG_VALUE_I32S, .array = {PG_ARRAY_OF(int32_t, values_), (count_)}})
#define PG_TEXTS(values_, count_)                                                                            \
    ((struct pg_value){.kind = PG_VALUE_TEXTS, .array = {PG_ARRAY_OF(struct bytes, values_), (count_)}})
#define PG_ARRAY_OF(type, values) (1 ? (values) : (const type *)0) /* of another type: a warning */

/* The parameters are in the arena too.  Without values: PG_NO_PARAMS. */
struct pg_params *pg_params_of(struct arena *arena, const struct pg_value *values, size_t count);
#define PG_PARAMS(arena, ...)                                                                                \
    pg_params_of((arena), (const struct pg_value[]){__VA_ARGS__},                                            \
                 sizeof((const struct pg_value[]){__VA_ARGS__}) / sizeof(struct pg_value))
#define PG_NO_PARAMS(arena) pg_params_of((arena), NULL, 0)
void pg_params_add(struct pg_params *params, const struct pg_value *values, size_t count);
#define PG_PARAMS_ADD(params, ...)                                                                           \
    pg_params_add((params), (const struct pg_value[]){__VA_ARGS__},                                          \
                  sizeof((const struct pg_value[]){__VA_ARGS__}) / sizeof(struct pg_value))
/* Parameters that can be added to and changed without a change of the others. */
struct pg_params *pg_params_copy(const struct pg_params *params);

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
