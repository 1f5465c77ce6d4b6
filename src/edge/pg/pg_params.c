/* pg_params: parameters in PostgreSQL's binary format, and faults for its error codes.  Needs no libpq. */
#include "edge/pg/pg_params.h"

#include <endian.h>
#include <string.h>

#include "edge/pg/pg.h"

enum { OID_BOOL = 16, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };
enum { ARRAY_HEAD = 20, ARRAY_EMPTY_HEAD = 12 };

/* Leaves room below the server's limit of 1 GiB for the message around the values. */
static const size_t message_limit = (size_t)1000 * 1024 * 1024;

enum { ROOM_AT_FIRST = 16 };

static void set_room(struct pg_params *params, int room)
{
    const char **values = ARENA_ROOM(params->arena, const char *, (size_t)room);
    int *lengths = ARENA_ROOM(params->arena, int, (size_t)room);
    if (params->count) {
        memcpy(values, params->values, (size_t)params->count * sizeof *values);
        memcpy(lengths, params->lengths, (size_t)params->count * sizeof *lengths);
    }
    params->values = values;
    params->lengths = lengths;
    params->room = room;
}

void pg_params_start(struct pg_params *params, struct arena *arena)
{
    *params = (struct pg_params){.arena = arena};
}

struct pg_params *pg_params_copy(const struct pg_params *params)
{
    struct pg_params *copy = ARENA_ROOM(params->arena, struct pg_params, 1);
    *copy = *params;
    if (params->room)
        set_room(copy, params->room);
    return copy;
}

static void pg_params_add_value(struct pg_params *params, const void *value, size_t size)
{
    assert(params->count < PG_PARAMETERS_MAX);
    if (params->count == params->room)
        set_room(params, params->room ? 2 * params->room : ROOM_AT_FIRST);
    params->values[params->count] = value;
    params->lengths[params->count] =
        size <= message_limit ? (int)size : 0; /* too large: refused by pg_params_fit */
    params->count++;
    params->bytes += size;
}

static char *put_i32(char *at, int32_t value)
{
    uint32_t wire = htobe32((uint32_t)value);
    memcpy(at, &wire, sizeof wire);
    return at + sizeof wire;
}

static char *put_i64(char *at, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);
    memcpy(at, &wire, sizeof wire);
    return at + sizeof wire;
}

/* Allocates an array of `body` bytes of elements after its header, adds it and returns where the elements
 * go. */
static char *start_array(struct pg_params *params, int32_t oid, bool has_null, size_t count, size_t body)
{
    size_t size = count ? ARRAY_HEAD + body : ARRAY_EMPTY_HEAD;
    char *at = arena_alloc(params->arena, size);
    pg_params_add_value(params, at, size);
    at = put_i32(at, count ? 1 : 0); /* dimensions */
    at = put_i32(at, has_null);
    at = put_i32(at, oid);
    if (!count)
        return at;
    assert(count <= INT32_MAX);
    at = put_i32(at, (int32_t)count);
    return put_i32(at, 1); /* lower bound */
}

void pg_params_add_i64(struct pg_params *params, int64_t value)
{
    char *wire = arena_alloc(params->arena, sizeof value);
    put_i64(wire, value);
    pg_params_add_value(params, wire, sizeof value);
}

void pg_params_add_i32(struct pg_params *params, int32_t value)
{
    char *wire = arena_alloc(params->arena, sizeof value);
    put_i32(wire, value);
    pg_params_add_value(params, wire, sizeof value);
}

void pg_params_add_f64(struct pg_params *params, double value)
{
    int64_t bits;
    static_assert(sizeof bits == sizeof value, "a double has the size of PostgreSQL's float8");
    memcpy(&bits, &value, sizeof bits);
    pg_params_add_i64(params, bits);
}

void pg_params_add_text(struct pg_params *params, struct bytes text)
{
    pg_params_add_value(params, text.data, text.data ? text.size : 0);
}

void pg_params_add_i64_array(struct pg_params *params, const int64_t *values, size_t count)
{
    char *at = start_array(params, OID_INT8, false, count, count * (4 + sizeof *values));
    for (size_t i = 0; i < count; i++)
        at = put_i64(put_i32(at, sizeof *values), values[i]);
}

void pg_params_add_i32_array(struct pg_params *params, const int32_t *values, size_t count)
{
    char *at = start_array(params, OID_INT4, false, count, count * (4 + sizeof *values));
    for (size_t i = 0; i < count; i++)
        at = put_i32(put_i32(at, sizeof *values), values[i]);
}

void pg_params_add_bool_array(struct pg_params *params, const bool *values, size_t count)
{
    char *at = start_array(params, OID_BOOL, false, count, count * (4 + 1));
    for (size_t i = 0; i < count; i++) {
        at = put_i32(at, 1);
        *at++ = values[i];
    }
}

void pg_params_add_text_array(struct pg_params *params, const struct bytes *values, size_t count)
{
    size_t body = 4 * count;
    bool has_null = false;
    for (size_t i = 0; i < count; i++) {
        body += values[i].data ? values[i].size : 0;
        has_null |= !values[i].data;
    }
    if (body > message_limit) { /* do not allocate it */
        pg_params_add_value(params, NULL, body);
        return;
    }
    char *at = start_array(params, OID_TEXT, has_null, count, body);
    for (size_t i = 0; i < count; i++) {
        if (!values[i].data) {
            at = put_i32(at, -1);
            continue;
        }
        at = put_i32(at, (int32_t)values[i].size);
        if (values[i].size)
            memcpy(at, values[i].data, values[i].size);
        at += values[i].size;
    }
}

void pg_params_add_same(struct pg_params *params, const struct pg_params *other, int index)
{
    assert(index >= 0 && index < other->count);
    pg_params_add_value(params, other->values[index], (size_t)other->lengths[index]);
}

void pg_params_add(struct pg_params *params, const struct pg_value *values, size_t count)
{
    for (const struct pg_value *value = values; value < values + count; value++)
        switch (value->kind) {
        case PG_VALUE_I64:
            pg_params_add_i64(params, value->integer);
            break;
        case PG_VALUE_I32:
            pg_params_add_i32(params, (int32_t)value->integer);
            break;
        case PG_VALUE_F64:
            pg_params_add_f64(params, value->real);
            break;
        case PG_VALUE_TEXT:
            pg_params_add_text(params, value->text);
            break;
        case PG_VALUE_I64S:
            pg_params_add_i64_array(params, value->array.data, value->array.count);
            break;
        case PG_VALUE_I32S:
            pg_params_add_i32_array(params, value->array.data, value->array.count);
            break;
        case PG_VALUE_TEXTS:
            pg_params_add_text_array(params, value->array.data, value->array.count);
            break;
        }
}

struct pg_params *pg_params_of(struct arena *arena, const struct pg_value *values, size_t count)
{
    struct pg_params *params = ARENA_ROOM(arena, struct pg_params, 1);
    pg_params_start(params, arena);
    if (count)
        set_room(params, (int)count);
    pg_params_add(params, values, count);
    return params;
}

/* --- parameters that were added --- */

static void set_value(struct pg_params *params, int index, const struct pg_params *other)
{
    assert(index >= 0 && index < params->count && other->count == 1);
    params->bytes += other->bytes - (size_t)params->lengths[index];
    params->values[index] = other->values[0];
    params->lengths[index] = other->lengths[0];
}

void pg_params_set_text(struct pg_params *params, int index, struct bytes text)
{
    struct pg_params one;
    pg_params_start(&one, params->arena);
    pg_params_add_text(&one, text);
    set_value(params, index, &one);
}

void pg_params_set_text_array(struct pg_params *params, int index, const struct bytes *values, size_t count)
{
    struct pg_params one;
    pg_params_start(&one, params->arena);
    pg_params_add_text_array(&one, values, count);
    set_value(params, index, &one);
}

struct bytes pg_params_text(const struct pg_params *params, int index)
{
    assert(index >= 0 && index < params->count);
    return (struct bytes){params->values[index], (size_t)params->lengths[index]};
}

static int32_t take_i32(const char **at)
{
    uint32_t wire;
    memcpy(&wire, *at, sizeof wire);
    *at += sizeof wire;
    return (int32_t)be32toh(wire);
}

struct bytes *pg_params_text_array(const struct pg_params *params, int index, size_t *count_r)
{
    assert(index >= 0 && index < params->count && params->lengths[index] >= ARRAY_EMPTY_HEAD);
    const char *at = params->values[index];
    bool has_elements = take_i32(&at) != 0;
    at += 2 * sizeof(int32_t);
    *count_r = has_elements ? (size_t)take_i32(&at) : 0;
    at += has_elements ? sizeof(int32_t) : 0;
    struct bytes *texts = ARENA_ARRAY(params->arena, struct bytes, *count_r);
    for (size_t i = 0; i < *count_r; i++) {
        int32_t size = take_i32(&at);
        texts[i] = size < 0 ? NO_BYTES : (struct bytes){at, (size_t)size};
        at += size < 0 ? 0 : size;
    }
    return texts;
}

bool pg_params_fit(const struct pg_params *params)
{
    return params->bytes <= message_limit;
}

enum fault pg_fault_of_sqlstate(const char *sqlstate)
{
    static const struct {
        const char *start; /* a whole SQLSTATE, or its class */
        enum fault fault;
    } meanings[] = {
        {"40001", FAULT_STALE},     /* serialization_failure */
        {"40P01", FAULT_STALE},     /* deadlock_detected */
        {"55P03", FAULT_STALE},     /* lock_not_available: lock_timeout */
        {"57014", FAULT_XTIME},     /* query_canceled: statement_timeout */
        {"53100", FAULT_XFULL},     /* disk_full */
        {"53300", FAULT_XAWAY},     /* too_many_connections */
        {"25006", FAULT_XAWAY},     /* read_only_sql_transaction: the server has become a standby */
        {"3D000", FAULT_ODATABASE}, /* invalid_catalog_name */
        {"08", FAULT_XAWAY},        /* connection exceptions */
        {"57P", FAULT_XAWAY},       /* shutdown, crash, cannot connect now */
    };
    for (size_t i = 0; i < COUNT_OF(meanings); i++)
        if (strncmp(sqlstate, meanings[i].start, strlen(meanings[i].start)) == 0)
            return meanings[i].fault;
    return FAULT_XDATABASE;
}
