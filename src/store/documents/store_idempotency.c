/* store_idempotency: answers kept under an Idempotency-Key: found, written by the commit of their operation,
 * purged.
 */
#include "store/documents/store_idempotency.h"

#include "model/document/stamp.h"
#include "store/documents/commit_part.h"
#include "store/store_run.h"
#include "store/store_sealing.h"

/* Columns of IDEMPOTENCY_FIND. */
enum { DIGEST, MIME, ANSWER, VERSION, VERSIONS_AFTER };

/* Answers stored before this time are too old. */
static int64_t oldest(const struct store *store, int64_t now)
{
    return stamp_add_ms(now, -1000 * store_settings(store)->idempotency_s);
}

/* What an answer is sealed for: its row, whose key is that of one account. */
static struct sealing_place store_idempotency_place_of(struct arena *arena,
                                                       const struct idempotency *idempotency)
{
    const struct bytes parts[] = {BYTES("answer"), idempotency->account, idempotency->key,
                                  idempotency->digest, idempotency->mime};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

/* They name documents. */
static struct sealing_place place_of_versions(struct arena *arena, const struct idempotency *idempotency)
{
    const struct bytes parts[] = {BYTES("versions after"), idempotency->account, idempotency->key,
                                  idempotency->digest, idempotency->mime};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

int64_t store_idempotency_purge_s(const struct settings *settings)
{
    return settings->idempotency_s + settings->limit_operation_s + settings->dhop_future_ms / 1000 + 1;
}

enum fault store_idempotency_find(struct store *store, int ns, struct arena *arena,
                                  struct idempotency *idempotency, bool *found_r)
{
    struct pg_result *row = NULL;
    *found_r = false;
    enum fault fault =
        store_run_statement(store, ns, STATEMENT_IDEMPOTENCY_FIND,
                            PG_PARAMS(arena, PG_TEXT(idempotency->account), PG_TEXT(idempotency->key),
                                      PG_I64(oldest(store, idempotency->now))),
                            &row);
    if (!fault && pg_rows(row))
        fault = store_run_proof(store, ns, arena);
    if (fault || !pg_rows(row))
        return fault;
    idempotency->digest = pg_get_text(row, 0, DIGEST);
    idempotency->mime = pg_get_text(row, 0, MIME);
    idempotency->answer = pg_get_text(row, 0, ANSWER);
    idempotency->version = pg_get_i64(row, 0, VERSION);
    idempotency->versions_after = pg_get_text(row, 0, VERSIONS_AFTER);
    *found_r = true;
    struct sealing_place place = store_idempotency_place_of(arena, idempotency);
    fault = store_sealing_open_text(store, ns, arena, place, &idempotency->answer);
    place = place_of_versions(arena, idempotency);
    return fault ? fault : store_sealing_open_text(store, ns, arena, place, &idempotency->versions_after);
}

/* --- parts of a commit --------------------------------------------------------------------------- */

static enum fault plan_answer(struct commit_run *run)
{
    const struct idempotency *idempotency = run->commit->idempotency;
    const struct data_keys *keys = store_sealing_keys(run->store, run->ns);
    if (!idempotency)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_IDEMPOTENCY]);
    PG_PARAMS_ADD(
        params, PG_TEXT(idempotency->account), PG_TEXT(idempotency->key), PG_TEXT(idempotency->digest),
        PG_TEXT(idempotency->mime),
        PG_TEXT(data_keys_seal_text(keys, run->arena, store_idempotency_place_of(run->arena, idempotency),
                                    idempotency->answer)),
        PG_I64(idempotency->version), PG_I64(stamp_now()), PG_I64(oldest(run->store, idempotency->now)));
    struct bytes after = idempotency->versions_after.data ? idempotency->versions_after : BYTES("");
    pg_params_add_text(
        params, data_keys_seal_text(keys, run->arena, place_of_versions(run->arena, idempotency), after));
    return FAULT_NONE;
}

const struct commit_part commit_part_idempotency = {.plan = plan_answer};

static enum fault plan_purge(struct commit_run *run)
{
    if (run->commit->idempotency)
        pg_params_add_i64(
            commit_part_add(run, &statements[STATEMENT_IDEMPOTENCY_PURGE]),
            stamp_add_ms(stamp_now(), -1000 * store_idempotency_purge_s(store_settings(run->store))));
    return FAULT_NONE;
}

const struct commit_part commit_part_old_answers = {.plan = plan_purge};
