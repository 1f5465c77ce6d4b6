/* store_once: answers kept under an Idempotency-Key: found, written by the commit of their operation, purged.
 */
#include "document/store.h"

#include "document/stamp.h"
#include "document/statements.h"
#include "document/store_private.h"

/* Columns of ONCE_FIND. */
enum { DIGEST, MIME, ANSWER, VERSION, STANDINGS };

/* What was kept before is too old. */
static int64_t oldest(const struct store *store, int64_t now)
{
    return stamp_add_ms(now, -1000 * store->settings->idempotency_s);
}

int64_t store_once_purge_s(const struct settings *settings)
{
    return settings->idempotency_s + settings->limit_operation_s + settings->dhop_future_ms / 1000 + 1;
}

enum fault store_find_once(struct store *store, int space, struct arena *arena, struct once *once,
                           bool *found_r)
{
    struct pg_params params;
    struct pg_result *row = NULL;
    enum fault fault;
    int attempt = 0;
    *found_r = false;
    pg_params_start(&params, arena);
    pg_add_text(&params, once->account);
    pg_add_text(&params, once->key);
    pg_add_i64(&params, oldest(store, once->now));
    do {
        struct pg *pg;
        fault = store_use(store, space, &pg);
        if (!fault)
            fault = pg_run(pg, &statements[STATEMENT_ONCE_FIND], &params, &row);
    } while (store_reads_again(store, space, fault, attempt++));
    if (fault || !pg_rows(row))
        return fault;
    once->digest = pg_get_text(row, 0, DIGEST);
    once->mime = pg_get_text(row, 0, MIME);
    once->answer = pg_get_text(row, 0, ANSWER);
    once->version = pg_get_i64(row, 0, VERSION);
    once->standings = pg_get_text(row, 0, STANDINGS);
    *found_r = true;
    return FAULT_NONE;
}

void store_add_once(struct once_params *params, const struct store *store, struct arena *arena,
                    const struct once *once)
{
    int64_t now = stamp_now();
    pg_params_start(&params->keep, arena);
    pg_add_text(&params->keep, once->account);
    pg_add_text(&params->keep, once->key);
    pg_add_text(&params->keep, once->digest);
    pg_add_text(&params->keep, once->mime);
    pg_add_text(&params->keep, once->answer);
    pg_add_i64(&params->keep, once->version);
    pg_add_i64(&params->keep, now);
    pg_add_i64(&params->keep, oldest(store, once->now));
    pg_add_text(&params->keep, once->standings.data ? once->standings : BYTES(""));
    pg_params_start(&params->purge, arena);
    pg_add_i64(&params->purge, stamp_add_ms(now, -1000 * store_once_purge_s(store->settings)));
}
