/* ns_keys: reads and adds the rows of the table data_key. */
#include "control/ns/ns_keys.h"

#include <stdio.h>

#include "base/clock.h"
#include "control/message.h"
#include "edge/crypto/crypto.h"
#include "seal/site_key.h"
#include "store/documents/resealing.h"

bool ns_keys_load_site(struct control *control)
{
    char problem[600];
    if (site_key_load(&control->settings, problem, sizeof problem))
        return true;
    return message_refuse("%s", problem);
}

bool ns_keys_need_site(struct control *control)
{
    if (!ns_keys_load_site(control))
        return false;
    if (*site_key_mark())
        return true;
    return message_refuse(
        "an encrypted namespace needs a site key: stampctl key new --site FILE, and setting "
        "site_key_file");
}

static bool ns_keys_query(struct control *control, struct pg *pg, struct pg_result **rows_r)
{
    return control_query(control, pg, "reading the data keys", data_keys_statement()->sql, NULL, rows_r);
}

static void ns_keys_release(void *keys)
{
    data_keys_free(keys);
}

bool ns_keys_read(struct control *control, struct pg *pg, struct data_keys **keys_r)
{
    struct pg_result *rows;
    const char *problem = "";
    struct data_keys *keys = *keys_r = ARENA_NEW(control->arena, struct data_keys);
    if (!ns_keys_query(control, pg, &rows))
        return false;
    if (!pg_rows(rows))
        return true;
    if (!ns_keys_load_site(control))
        return false;
    arena_defer(control->arena, ns_keys_release, keys);
    if (data_keys_take(keys, rows, &problem))
        return true;
    return message_refuse("%s", problem);
}

bool ns_keys_add(struct control *control, struct pg *pg, const char *id_classes)
{
    struct pg_result *rows;
    unsigned char secret[SEALING_KEY];
    if (!ns_keys_need_site(control) || !ns_keys_query(control, pg, &rows) ||
        !control_query(control, pg, "reading the name of the database", "select current_database()::text",
                       NULL, &rows))
        return false;
    struct bytes database = pg_get_text(rows, 0, 0);
    struct data_keys *keys;
    if (!ns_keys_read(control, pg, &keys))
        return false;
    int64_t id = keys->count ? keys->keys[keys->count - 1].id + 1 : 1;
    crypto_random(secret, sizeof secret);
    struct pg_params *params = PG_PARAMS(control->arena, PG_I64(id), PG_TEXT(bytes_of(site_key_mark())),
                                         PG_TEXT(site_key_wrap(control->arena, database, id, secret)));
    explicit_bzero(secret, sizeof secret);
    pg_params_add_text(params, bytes_of(id_classes));
    if (!control_query(control, pg, "adding a data key",
                       "select stampd.data_key_add($1::bigint, $2::text, $3::text, string_to_array($4, ' '))",
                       params, &rows))
        return false;
    if (!pg_get_bool(rows, 0, 0))
        message_print("another data key was added meanwhile: try again");
    return pg_get_bool(rows, 0, 0);
}

bool ns_keys_refuse(struct control *control, struct pg *pg, const char *what)
{
    struct pg_result *rows;
    if (!ns_keys_query(control, pg, &rows))
        return false;
    if (pg_rows(rows))
        message_print("%s: not available in an encrypted namespace", what);
    return !pg_rows(rows);
}

/* Under a lock, so that a key added meanwhile is not missed. */
bool ns_keys_wrap(struct control *control, struct pg *pg)
{
    enum { ID, SITE, WRAPPED, DATABASE };
    struct pg_result *rows, *changed;
    unsigned char secret[SEALING_KEY];
    bool is_done = ns_keys_load_site(control) &&
                   control_execute(pg, "wrapping the data keys", "begin; lock stampd.data_key") &&
                   ns_keys_query(control, pg, &rows);
    for (int row = 0; is_done && row < pg_rows(rows); row++) {
        int64_t id = pg_get_i64(rows, row, ID);
        struct bytes database = pg_get_text(rows, row, DATABASE);
        is_done = site_key_unwrap(control->arena, pg_get_text(rows, row, SITE), database, id,
                                  pg_get_text(rows, row, WRAPPED), secret);
        if (!is_done) {
            message_print("data key %lld cannot be unwrapped", (long long)id);
            break;
        }
        const struct pg_params *params =
            PG_PARAMS(control->arena, PG_I64(id), PG_TEXT(bytes_of(site_key_mark())),
                      PG_TEXT(site_key_wrap(control->arena, database, id, secret)));
        is_done = control_query(control, pg, "wrapping the data keys",
                                "update stampd.data_key set site = $2::text, wrapped = $3::text"
                                " where id = $1::bigint returning id",
                                params, &changed);
    }
    explicit_bzero(secret, sizeof secret);
    return is_done && control_execute(pg, "wrapping the data keys", "commit");
}

enum { RESEAL_BATCH = 100, RESEAL_PAUSE_MS = 20, REPORT_EVERY_MS = 5000 };

bool ns_keys_reseal(struct control *control, struct pg *pg, const struct data_keys *keys,
                    const struct schema *schema, struct bytes class)
{
    static const char what[] = "encrypting the documents again";
    struct resealing resealing = {.keys = keys, .schema = schema, .only = class, .kept = control->arena};
    struct arena *arena = arena_create("resealing");
    int64_t reported_ms = clock_monotonic_ms();
    enum fault fault = resealing_prepare(pg);
    while (!fault && !resealing.is_done) {
        fault = resealing_run(&resealing, pg, arena, RESEAL_BATCH);
        if (fault == FAULT_STALE) { /* a lock was not available in time: retry */
            fault = FAULT_NONE;
            clock_sleep_ms(RESEAL_PAUSE_MS);
        }
        if (clock_monotonic_ms() - reported_ms >= REPORT_EVERY_MS) {
            reported_ms = clock_monotonic_ms();
            fprintf(stderr, "  %lld documents\n", (long long)resealing.documents);
        }
        arena_reset(arena);
    }
    arena_destroy(arena);
    if (fault)
        message_print("%s: %s", what, resealing.problem ? resealing.problem : pg_message(pg));
    else
        printf("items encrypted again: %lld, of %lld documents\n", (long long)resealing.items,
               (long long)resealing.documents);
    return !fault && control_execute(pg, what, "deallocate all");
}
