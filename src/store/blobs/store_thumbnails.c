/* store_thumbnails: facts about what is committed, each noted by a statement of its own. */
#include "store/blobs/store_thumbnails.h"

#include "blob/blob_sealed.h"
#include "store/blobs/store_blobs.h"
#include "store/store_run.h"

enum fault store_thumbnails_reasons(struct store *store, int ns, struct arena *arena,
                                    const struct blob_digest *digests, size_t count, struct bytes *reasons_r)
{
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    struct pg_result *rows;
    struct sealed_file_keys keys;
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    for (size_t i = 0; i < count; i++) {
        texts[i] = blob_sealed_digits(arena, &keys, &digests[i]);
        reasons_r[i] = NO_BYTES;
    }
    fault = store_run_statement(store, ns, STATEMENT_THUMBNAIL_REASONS,
                                PG_PARAMS(arena, PG_TEXTS(texts, count)), &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++) {
        int64_t place = pg_get_i64(rows, row, 0);
        if (place > 0 && (size_t)place <= count)
            reasons_r[place - 1] = pg_get_text(rows, row, 1);
    }
    return fault;
}

enum fault store_thumbnails_refuse(struct store *store, int ns, struct arena *arena,
                                   const struct blob_digest *digest, const char *reason)
{
    struct sealed_file_keys keys;
    return FAULT_FIRST(store_blobs_keys(store, ns, &keys),
                       store_run_statement(store, ns, STATEMENT_THUMBNAIL_REFUSE,
                                           PG_PARAMS(arena, PG_TEXT(blob_sealed_digits(arena, &keys, digest)),
                                                     PG_TEXT(bytes_of(reason))),
                                           NULL));
}

enum fault store_thumbnails_note(struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes id, struct bytes form, int64_t version)
{
    return store_run_statement(store, ns, STATEMENT_THUMBNAIL_NOTE,
                               PG_PARAMS(arena, PG_TEXT(class), PG_TEXT(id), PG_TEXT(form), PG_I64(version)),
                               NULL);
}

enum fault store_thumbnails_page(struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes form, struct bytes last, size_t most,
                                 struct thumbnails_page *page_r)
{
    struct pg_result *rows;
    enum fault fault = store_run_statement(
        store, ns, STATEMENT_THUMBNAIL_PAGE,
        PG_PARAMS(arena, PG_TEXT(class), PG_TEXT(form), PG_TEXT(last), PG_I64((int64_t)most)), &rows);
    if (fault)
        return fault;
    size_t count = (size_t)pg_rows(rows);
    *page_r = (struct thumbnails_page){ARENA_ARRAY(arena, struct bytes, count),
                                       ARENA_ARRAY(arena, bool, count), count};
    for (size_t i = 0; i < count; i++) {
        page_r->ids[i] = pg_get_text(rows, (int)i, 0);
        page_r->are_due[i] = pg_get_bool(rows, (int)i, 1);
    }
    return FAULT_NONE;
}

enum fault store_thumbnails_due(struct store *store, int ns, struct arena *arena, int64_t most_waiting,
                                bool *is_due_r)
{
    struct pg_result *row;
    enum fault fault =
        store_run_statement(store, ns, STATEMENT_THUMBNAIL_DUE, PG_PARAMS(arena, PG_I64(most_waiting)), &row);
    *is_due_r = !fault && pg_rows(row) && pg_get_bool(row, 0, 0);
    return fault;
}

enum fault store_thumbnails_sweep(struct store *store, int ns, struct arena *arena,
                                  struct thumbnails_sweep *sweep_r)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    *sweep_r = (struct thumbnails_sweep){0};
    enum fault fault = store_run_statement(store, ns, STATEMENT_THUMBNAIL_SWEEP, &params, &row);
    if (!fault && pg_rows(row))
        *sweep_r = (struct thumbnails_sweep){pg_get_i64(row, 0, 0), pg_get_i64(row, 0, 1),
                                             pg_get_text(row, 0, 2), pg_get_text(row, 0, 3)};
    return fault;
}

enum fault store_thumbnails_swept(struct store *store, int ns, struct arena *arena,
                                  const struct thumbnails_sweep *sweep, bool begins)
{
    return store_run_statement(store, ns, STATEMENT_THUMBNAIL_SWEPT,
                               PG_PARAMS(arena, PG_I64(sweep->number), PG_I64(sweep->began),
                                         PG_TEXT(sweep->class), PG_TEXT(sweep->id), PG_I64(begins)),
                               NULL);
}
