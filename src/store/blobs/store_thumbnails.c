/* store_thumbnails: facts about what is committed, each noted by a statement of its own. */
#include "store/blobs/store_thumbnails.h"

#include "blob/blob_sealed.h"
#include "store/blobs/store_blobs.h"
#include "store/store_run.h"

enum fault store_thumbnails_reasons(struct store *store, int ns, struct arena *arena,
                                    const struct blob_digest *digests, size_t count, struct bytes *reasons_r)
{
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    struct pg_params params;
    struct pg_result *rows;
    struct sealed_file_keys keys;
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    for (size_t i = 0; i < count; i++) {
        texts[i] = blob_sealed_digits(arena, &keys, &digests[i]);
        reasons_r[i] = NO_BYTES;
    }
    pg_params_start(&params, arena);
    pg_params_add_text_array(&params, texts, count);
    fault = store_run_statement(store, ns, STATEMENT_THUMBNAIL_REASONS, &params, &rows);
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
    struct pg_params params;
    struct sealed_file_keys keys;
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, blob_sealed_digits(arena, &keys, digest));
    pg_params_add_text(&params, bytes_of(reason));
    return store_run_statement(store, ns, STATEMENT_THUMBNAIL_REFUSE, &params, NULL);
}

enum fault store_thumbnails_note(struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes id, struct bytes form, int64_t version)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, class);
    pg_params_add_text(&params, id);
    pg_params_add_text(&params, form);
    pg_params_add_i64(&params, version);
    return store_run_statement(store, ns, STATEMENT_THUMBNAIL_NOTE, &params, NULL);
}

enum fault store_thumbnails_page(struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes form, struct bytes last, size_t most,
                                 struct thumbnails_page *page_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, class);
    pg_params_add_text(&params, form);
    pg_params_add_text(&params, last);
    pg_params_add_i64(&params, (int64_t)most);
    enum fault fault = store_run_statement(store, ns, STATEMENT_THUMBNAIL_PAGE, &params, &rows);
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
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    pg_params_add_i64(&params, most_waiting);
    enum fault fault = store_run_statement(store, ns, STATEMENT_THUMBNAIL_DUE, &params, &row);
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
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_i64(&params, sweep->number);
    pg_params_add_i64(&params, sweep->began);
    pg_params_add_text(&params, sweep->class);
    pg_params_add_text(&params, sweep->id);
    pg_params_add_i64(&params, begins);
    return store_run_statement(store, ns, STATEMENT_THUMBNAIL_SWEPT, &params, NULL);
}
