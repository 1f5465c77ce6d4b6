/* stored_id: a short table, searched for each statement where ids are encrypted. */
#include "store/stored_id.h"

#include <string.h>

#include "base/log.h"
#include "store/statements.h"

static const struct stored_id table[] = {
#define STORED_ID(statement, kind, class, id) {STATEMENT_##statement, STORED_ID_##kind, class, id},
#include "store/stored_id_table.h"
#undef STORED_ID
};

void stored_id_report(struct bytes class)
{
    char name[32] = "";
    memcpy(name, class.data, class.size < sizeof name ? class.size : sizeof name - 1);
    log_often(LOG_LEVEL_ERROR, name,
              "an id cannot be decrypted: it was altered, or is of another class class=%s", name);
}

/* The number of the statement; -1: of another list. */
static int stored_id_number_of(const struct stored_ids *ids, const struct pg_statement *statement)
{
    bool is_ours = statement >= ids->statements && statement < ids->statements + ids->statement_count;
    return is_ours ? (int)(statement - ids->statements) : -1;
}

/* --- parameters --- */

static void seal_array(const struct stored_ids *ids, struct pg_params *params, const struct stored_id *place)
{
    size_t count, class_count;
    struct bytes *list = pg_params_text_array(params, place->id - 1, &count), *classes = NULL,
                 class = NO_BYTES;
    if (place->kind == STORED_ID_EACH)
        classes = pg_params_text_array(params, place->class - 1, &class_count);
    else
        class = pg_params_text(params, place->class - 1);
    assert(!classes || class_count == count);
    for (size_t i = 0; i < count; i++)
        list[i] = data_keys_seal_id(ids->keys, params->arena, classes ? classes[i] : class, list[i]);
    pg_params_set_text_array(params, place->id - 1, list, count);
}

static void seal(const struct stored_ids *ids, struct pg_params *params, const struct stored_id *place)
{
    if (place->kind != STORED_ID_ONE) {
        seal_array(ids, params, place);
        return;
    }
    struct bytes class = pg_params_text(params, place->class - 1), id = pg_params_text(params, place->id - 1);
    pg_params_set_text(params, place->id - 1, data_keys_seal_id(ids->keys, params->arena, class, id));
}

const struct pg_params *stored_ids_send(const void *context, const struct pg_statement *statement,
                                        const struct pg_params *params)
{
    const struct stored_ids *ids = context;
    const int number = stored_id_number_of(ids, statement);
    struct pg_params *sent = NULL;
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->table[i].statement != number || ids->table[i].kind > STORED_ID_EACH)
            continue;
        if (!sent)
            sent = pg_params_copy(params);
        seal(ids, sent, &ids->table[i]);
    }
    return sent ? sent : params;
}

/* --- rows --- */

/* The class of the id in the row; NO_BYTES: there is none. */
static struct bytes class_of(const struct stored_id *place, const struct pg_params *params,
                             const struct pg_result *rows, int row, const struct bytes *classes, size_t count)
{
    switch (place->kind) {
    case STORED_ID_COLUMN:
        return pg_params_text(params, place->class - 1);
    case STORED_ID_NUMBERED: {
        int64_t number = pg_get_i64(rows, row, 0);
        return number >= 0 && (size_t)number < count ? classes[number] : NO_BYTES;
    }
    default:
        return pg_get_text(rows, row, place->class);
    }
}

static enum fault open_column(const struct stored_ids *ids, struct arena *arena,
                              const struct stored_id *place, const struct pg_params *params,
                              struct pg_result *rows)
{
    struct bytes *classes = NULL;
    size_t count = 0;
    if (place->kind == STORED_ID_NUMBERED)
        classes = pg_params_text_array(params, place->class - 1, &count);
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes class = class_of(place, params, rows, row, classes, count),
                     id = pg_get_text(rows, row, place->id), stored = id;
        if (!id.data || !class.data)
            continue;
        if (!data_keys_open_id(ids->keys, arena, class, &id)) {
            stored_id_report(class);
            return FAULT_BCONTENT;
        }
        if (id.data != stored.data)
            pg_translation_set(rows, row, place->id, id);
    }
    return FAULT_NONE;
}

static enum fault stored_id_receive(const void *context, const struct pg_statement *statement,
                                    const struct pg_params *params, struct pg_result *rows)
{
    const struct stored_ids *ids = context;
    const int number = stored_id_number_of(ids, statement);
    enum fault fault = FAULT_NONE;
    struct arena *arena = NULL;
    for (size_t i = 0; i < ids->count && !fault; i++) {
        if (ids->table[i].statement != number || ids->table[i].kind <= STORED_ID_EACH)
            continue;
        arena = arena ? arena : arena_create("ids");
        fault = open_column(ids, arena, &ids->table[i], params, rows);
    }
    if (arena)
        arena_destroy(arena);
    return fault;
}

/* --- use --- */

void stored_ids_use(struct stored_ids *ids, struct pg *pg)
{
    ids->translation = (struct pg_translation){ids, stored_ids_send, stored_id_receive};
    pg_translation_use(pg, data_keys_has_ids(ids->keys) ? &ids->translation : NULL);
}

struct stored_ids stored_ids_of_store(const struct data_keys *keys)
{
    return (struct stored_ids){keys, statements, STATEMENT_COUNT, table, COUNT_OF(table), {0}};
}

struct bytes stored_id_open_payload(const struct data_keys *keys, struct arena *arena, struct bytes payload)
{
    struct bytes id = payload;
    struct bytes class = bytes_cut(&id, '.'), stored = id;
    if (!data_keys_encrypts_ids(keys, class))
        return payload;
    if (!id.size || !data_keys_open_id(keys, arena, class, &id)) {
        stored_id_report(class);
        return BYTES("all");
    }
    assert(id.data != stored.data);
    return bytes_of(arena_printf(arena, "%.*s.%.*s", (int)class.size, class.data, (int)id.size, id.data));
}
