/* resealing: items are read under the locks of their documents, taken in the order of all writers. */
#include "store/documents/resealing.h"

#include "store/documents/store_shown.h"

static const struct pg_statement statements[] = {
    {"resealing_lock",
     "select class, id from (select class, id from stampd.doc where (class, id) > ($1, $2)"
     " and ($3 = '' or class = $3) order by class, id limit $4::int for no key update) d",
     4},
    {"resealing_items",
     "select i.class, i.id, i.iclass, i.key, i.raw, i.content from unnest($1::text[], $2::text[]) d(class, "
     "id)"
     " cross join lateral (select * from stampd.item t where t.class = d.class and t.id = d.id"
     " and t.content is not null offset 0) i",
     2},
    {"resealing_store",
     "update stampd.item i set content = u.content"
     " from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) u(class, id, iclass, key, "
     "content)"
     " where i.class = u.class and i.id = u.id and i.iclass = u.iclass and i.key = u.key returning 1",
     5},
};
enum { LOCK, ITEMS, STORE };
enum { CLASS, ID, ICLASS, KEY, RAW, CONTENT };
enum { STORED = 5 };

enum fault resealing_prepare(struct pg *pg)
{
    return pg_prepare(pg, statements, COUNT_OF(statements));
}

/* `content` becomes what is to be stored. */
static enum fault seal_again(struct resealing *resealing, struct arena *arena, struct item_place *place,
                             struct bytes *content, bool *has_changed_r)
{
    const struct data_keys *keys = resealing->keys;
    int64_t id = sealing_key_id(*content);
    if (!data_keys_open_id(keys, arena, place->class, &place->id) ||
        !data_keys_open_item(keys, arena, place, content)) {
        resealing->problem =
            arena_printf(resealing->kept, "%.*s/%.*s: an item was altered, or is of another place",
                         (int)place->class.size, place->class.data, (int)place->id.size, place->id.data);
        return FAULT_BCONTENT;
    }
    struct bytes shown = place->shown;
    store_shown_add(keys, arena, resealing->schema, place, *content);
    *has_changed_r = id != keys->keys[keys->count - 1].id || !bytes_equal(shown, place->shown);
    if (*has_changed_r)
        *content = data_keys_seal_content(keys, arena, place, *content);
    return FAULT_NONE;
}

static enum fault store_resealing(struct resealing *resealing, struct pg *pg, struct arena *arena,
                                  const struct pg_result *rows)
{
    struct bytes *columns[STORED];
    size_t count = 0;
    for (size_t i = 0; i < STORED; i++)
        columns[i] = ARENA_ARRAY(arena, struct bytes, (size_t)pg_rows(rows));
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes key = pg_get_text(rows, row, KEY), content = pg_get_text(rows, row, CONTENT);
        struct item_place place = {pg_get_text(rows, row, CLASS),  pg_get_text(rows, row, ID),
                                   pg_get_text(rows, row, ICLASS), key,
                                   pg_get_bool(rows, row, RAW),    BYTES("")};
        bool has_changed = false;
        enum fault fault = seal_again(resealing, arena, &place, &content, &has_changed);
        if (fault)
            return fault;
        if (!has_changed)
            continue;
        columns[0][count] = place.class;
        columns[1][count] = pg_get_text(rows, row, ID);
        columns[2][count] = place.iclass;
        columns[3][count] = key;
        columns[4][count++] = content;
    }
    struct pg_params params;
    struct pg_result *stored;
    if (!count)
        return FAULT_NONE;
    pg_params_start(&params, arena);
    for (size_t i = 0; i < STORED; i++)
        pg_params_add_text_array(&params, columns[i], count);
    enum fault fault = pg_run(pg, &statements[STORE], &params, &stored);
    if (!fault)
        resealing->items += (int64_t)count;
    return fault;
}

static enum fault run_resealing(struct resealing *resealing, struct pg *pg, struct arena *arena,
                                int32_t batch, struct pg_result **locked_r)
{
    struct pg_params params;
    struct pg_result *items;
    pg_params_start(&params, arena);
    PG_PARAMS_ADD(&params, PG_TEXT(resealing->class.data ? resealing->class : BYTES("")),
                  PG_TEXT(resealing->id.data ? resealing->id : BYTES("")),
                  PG_TEXT(resealing->only.data ? resealing->only : BYTES("")), PG_I32(batch));
    enum fault fault = pg_run(pg, &statements[LOCK], &params, locked_r);
    if (fault || !pg_rows(*locked_r))
        return fault;
    size_t count = (size_t)pg_rows(*locked_r);
    struct bytes *names[2];
    pg_params_start(&params, arena);
    for (int column = 0; column < 2; column++) {
        names[column] = ARENA_ARRAY(arena, struct bytes, count);
        for (size_t i = 0; i < count; i++)
            names[column][i] = pg_get_text(*locked_r, (int)i, column);
        pg_params_add_text_array(&params, names[column], count);
    }
    return FAULT_FIRST(pg_run(pg, &statements[ITEMS], &params, &items),
                       store_resealing(resealing, pg, arena, items));
}

enum fault resealing_run(struct resealing *resealing, struct pg *pg, struct arena *arena, int32_t batch)
{
    struct pg_result *locked = NULL;
    const int64_t items = resealing->items;
    enum fault fault =
        FAULT_FIRST(pg_execute(pg, "begin"), run_resealing(resealing, pg, arena, batch, &locked),
                    pg_execute(pg, "commit"));
    if (fault) {
        resealing->items = items;
        return pg_execute(pg, "rollback") ? FAULT_XAWAY : fault;
    }
    const int rows = pg_rows(locked);
    resealing->is_done = rows == 0;
    resealing->documents += rows;
    if (rows) {
        resealing->class = arena_keep(resealing->kept, pg_get_text(locked, rows - 1, CLASS));
        resealing->id = arena_keep(resealing->kept, pg_get_text(locked, rows - 1, ID));
    }
    return FAULT_NONE;
}
