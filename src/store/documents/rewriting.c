/* rewriting: contents are read under the locks of their documents, mutated as readers mutate them, and
 * stored in the same transaction. */
#include "store/documents/rewriting.h"

#include "model/document/mutation.h"

enum { ID, ICLASS, KEY, CONTENT, COUNTED };

enum fault rewriting_prepare(struct pg *pg, bool is_owner)
{
    static const struct pg_statement statements[2][3] = {
        {{"rewriting_items", "select id, iclass, key, content, counted from stampd.keep_items($1, $2::int)",
          2},
         {"rewriting_store", "select stampd.keep_store($1, $2::text[], $3::text[], $4::text[], $5::text[])",
          5},
         {"rewriting_end", "select stampd.keep_end($1)", 1}},
        {{"rewriting_items", "select id, iclass, key, content, counted from stampd.mutate_items($1, $2::int)",
          2},
         {"rewriting_store", "select stampd.mutate_store($1, $2::text[], $3::text[], $4::text[], $5::text[])",
          5},
         {"rewriting_end", "select stampd.mutate_end($1)", 1}},
    };
    return pg_prepare(pg, statements[is_owner], 3);
}

static enum fault run(struct pg *pg, const char *name, const struct pg_params *params,
                      struct pg_result **rows_r)
{
    return pg_run(pg, &(struct pg_statement){name, NULL, params->count}, params, rows_r);
}

static enum fault store_rewriting(struct pg *pg, struct arena *arena, const struct schema_class *class,
                                  const struct pg_result *rows)
{
    size_t count = 0, most = (size_t)pg_rows(rows);
    struct bytes *columns[4];
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        columns[i] = ARENA_ARRAY(arena, struct bytes, most);
    for (int row = 0; row < pg_rows(rows); row++) {
        if (pg_is_null(rows, row, ID))
            continue;
        struct bytes before = pg_get_text(rows, row, CONTENT);
        struct bytes after = mutation_apply(arena, class, pg_get_text(rows, row, ICLASS), before);
        if (bytes_equal(before, after))
            continue;
        columns[0][count] = pg_get_text(rows, row, ID);
        columns[1][count] = pg_get_text(rows, row, ICLASS);
        columns[2][count] = pg_get_text(rows, row, KEY);
        columns[3][count++] = after;
    }
    if (!count)
        return FAULT_NONE;
    struct pg_result *none;
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(class->name));
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        pg_params_add_text_array(params, columns[i], count);
    return run(pg, "rewriting_store", params, &none);
}

enum fault rewriting_run(struct pg *pg, struct arena *arena, const struct schema_class *class, int32_t batch,
                         int64_t *count_r)
{
    struct pg_result *rows = NULL;
    *count_r = 0;
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(class->name), PG_I32(batch));
    enum fault fault = FAULT_FIRST(pg_execute(pg, "begin"), run(pg, "rewriting_items", params, &rows),
                                   store_rewriting(pg, arena, class, rows), pg_execute(pg, "commit"));
    if (!fault)
        *count_r = pg_get_i64(rows, 0, COUNTED);
    else if (pg_execute(pg, "rollback"))
        return FAULT_XAWAY;
    return fault;
}

enum fault rewriting_end(struct pg *pg, struct arena *arena, struct bytes class)
{
    struct pg_result *none;
    return run(pg, "rewriting_end", PG_PARAMS(arena, PG_TEXT(class)), &none);
}
