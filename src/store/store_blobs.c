/* store_blobs: digests travel as hexadecimal digits. */
#include "store/store_blobs.h"

#include "store/store_run.h"

/* Columns of BLOB_FIND and BLOB_REFERENCE. */
enum { FOUND_PLACE, FOUND_SIZE };
enum { REFERENCE_KEY, REFERENCE_MIME, REFERENCE_SIZE, REFERENCE_IS_LIVE };

enum fault store_blobs_touch(struct store *store, int ns, struct arena *arena,
                             const struct blob_digest *digest, int64_t size)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, blob_store_digits(arena, digest));
    pg_params_add_i64(&params, size);
    return store_run_statement(store, ns, STATEMENT_BLOB_TOUCH, &params, NULL);
}

enum fault store_blobs_claim(struct store *store, int ns, struct arena *arena,
                             const struct blob_digest *digest, struct bytes account)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, blob_store_digits(arena, digest));
    pg_params_add_text(&params, account);
    pg_params_add_i64(&params, BLOB_CLAIM_S);
    enum fault fault = store_run_statement(store, ns, STATEMENT_BLOB_CLAIM, &params, &row);
    return fault || pg_get_bool(row, 0, 0) ? fault : FAULT_NATTACHMENT;
}

enum fault store_blobs_find(struct store *store, int ns, struct arena *arena, struct bytes account,
                            const struct blob_digest *digests, size_t count, int64_t *sizes_r)
{
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    struct pg_params params;
    struct pg_result *rows;
    for (size_t i = 0; i < count; i++) {
        texts[i] = blob_store_digits(arena, &digests[i]);
        sizes_r[i] = -1;
    }
    pg_params_start(&params, arena);
    pg_params_add_text_array(&params, texts, count);
    pg_params_add_text(&params, account);
    enum fault fault = store_run_statement(store, ns, STATEMENT_BLOB_FIND, &params, &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++) {
        int64_t place = pg_get_i64(rows, row, FOUND_PLACE);
        if (place > 0 && (size_t)place <= count)
            sizes_r[place - 1] = pg_get_i64(rows, row, FOUND_SIZE);
    }
    return fault;
}

enum fault store_blobs_find_reference(struct store *store, int ns, struct arena *arena, struct bytes class,
                                      struct bytes id, const struct blob_digest *digest,
                                      struct blob_reference *reference_r)
{
    struct pg_params params;
    struct pg_result *row;
    *reference_r = (struct blob_reference){.key = NO_BYTES};
    pg_params_start(&params, arena);
    pg_params_add_text(&params, class);
    pg_params_add_text(&params, id);
    pg_params_add_text(&params, blob_store_digits(arena, digest));
    enum fault fault = store_run_statement(store, ns, STATEMENT_BLOB_REFERENCE, &params, &row);
    if (!fault && pg_rows(row))
        *reference_r = (struct blob_reference){.key = pg_get_text(row, 0, REFERENCE_KEY),
                                               .mime = pg_get_text(row, 0, REFERENCE_MIME),
                                               .size = pg_get_i64(row, 0, REFERENCE_SIZE),
                                               .is_live = pg_get_bool(row, 0, REFERENCE_IS_LIVE)};
    return fault;
}
