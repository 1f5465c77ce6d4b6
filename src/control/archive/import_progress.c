/* import_progress: the one row of the table of this name. */
#include "control/archive/import_progress.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_keys.h"

bool import_progress_lock(struct control *control, struct pg *pg)
{
    struct pg_result *row;
    if (!control_query(control, pg, "excluding other imports",
                       "select pg_try_advisory_lock(hashtextextended('stampd import', 0))", NULL, &row))
        return false;
    if (!pg_get_bool(row, 0, 0))
        message_print("another import into this namespace is under way");
    return pg_get_bool(row, 0, 0);
}

static bool read_sum(struct arena *arena, struct bytes text, struct archive_sum *sum_r)
{
    struct json *root;
    *sum_r = (struct archive_sum){0};
    return !text.size || (json_is_tree(arena, text, 4, 4, &root) && archive_sum_read(root, sum_r));
}

bool import_progress_read(struct control *control, struct pg *pg, bool *is_there_r,
                          struct import_progress *progress_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, "reading the progress of an import",
                       "select identity, is_merge, state, members, sum from stampd.import_progress", NULL,
                       &row))
        return false;
    *is_there_r = pg_rows(row) > 0;
    if (!*is_there_r)
        return true;
    struct bytes identity = pg_get_text(row, 0, 0);
    int64_t state = pg_get_i64(row, 0, 2);
    *progress_r = (struct import_progress){
        .identity = arena_copy(control->arena, identity.data, identity.size),
        .is_merge = pg_get_bool(row, 0, 1),
        .state = state >= NS_ON && state <= NS_GONE ? (enum ns_state)state : NS_OFF,
        .members = pg_get_i64(row, 0, 3),
    };
    if (read_sum(control->arena, pg_get_text(row, 0, 4), &progress_r->sum))
        return true;
    return message_refuse("the record of the interrupted import is malformed; import --abandon removes it");
}

enum import_beginning import_progress_take(struct control *control, struct pg *pg, const char *code,
                                           struct import_progress *progress)
{
    struct import_progress former;
    bool is_there;
    if (!import_progress_lock(control, pg) || !import_progress_read(control, pg, &is_there, &former))
        return IMPORT_REFUSED;
    bool is_kind = is_there && former.is_merge == progress->is_merge,
         is_same = is_kind && strcmp(former.identity, progress->identity) == 0,
         is_replaced = is_kind && !is_same && !former.members;
    if (is_replaced) {
        progress->state = former.state; /* it may have switched the namespace off */
        printf("%s: another import was interrupted before it had stored a document; this one takes its "
               "place\n",
               code);
    }
    if (!is_there || is_replaced)
        return !progress->is_merge ||
                       ns_keys_refuse(control, pg,
                                      "import --merge, import-csv, import-couchdb, import-firestore")
                   ? IMPORT_NEW
                   : IMPORT_REFUSED;
    if (!is_same) {
        message_print("an import of another archive or file, or with other options, was interrupted: "
                      "complete it, or %s "
                      "with import --abandon %s",
                      former.is_merge ? "give it up; what it has stored stays," : "remove what it has stored",
                      code);
        return IMPORT_REFUSED;
    }
    *progress = former;
    printf("%s: going on with the interrupted import\n", code);
    return IMPORT_RESUMED;
}

bool import_progress_begin(struct control *control, struct pg *pg, const struct import_progress *progress)
{
    struct pg_result *row;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(progress->identity)),
                                               PG_I64(progress->is_merge), PG_I64(progress->state));
    return control_query(control, pg, "recording the import",
                         "insert into stampd.import_progress (identity, is_merge, state)"
                         " values ($1::text, $2::bigint <> 0, $3::bigint)"
                         " on conflict (one) do update set identity = excluded.identity",
                         params, &row);
}

bool import_progress_move(struct pg *pg, struct import_progress *progress)
{
    static const struct pg_statement move = {
        "import_move", "update stampd.import_progress set members = $1::bigint, sum = $2::text", 2};
    struct arena *arena = arena_create("progress");
    struct builder json = {0};
    builder_add_text(&json, "{");
    archive_sum_write(&progress->sum, &json);
    builder_add_text(&json, "}");
    bool is_done =
        (progress->is_prepared || pg_prepare(pg, &move, 1) == FAULT_NONE) &&
        pg_run(pg, &move, PG_PARAMS(arena, PG_I64(progress->members), PG_TEXT(builder_bytes(&json))), NULL) ==
            FAULT_NONE;
    progress->is_prepared = is_done;
    if (!is_done)
        message_print("recording the progress: %s", pg_message(pg));
    arena_destroy(arena);
    builder_free(&json);
    return is_done;
}

bool import_progress_end(struct pg *pg)
{
    /* What came has no thumbnails yet. */
    return control_execute(pg, "ending the import",
                           "with ended as (delete from stampd.import_progress)"
                           " update stampd.thumbnail_sweep set began = 0, class = null, id = null");
}

/* --- following --- */

static const char follows[] = "follows ";

bool import_progress_follow(struct control *control, struct pg *pg, const struct archive_contents *contents)
{
    struct pg_result *row;
    const char *identity = archive_identity(control->arena, contents);
    return control_query(
        control, pg, "recording the progress", "update stampd.import_progress set identity = $1::text",
        PG_PARAMS(control->arena, PG_TEXT(bytes_of(arena_printf(control->arena, "%s%s", follows, identity)))),
        &row);
}

const char *import_progress_followed(const struct import_progress *progress)
{
    size_t size = sizeof follows - 1;
    return strncmp(progress->identity, follows, size) == 0 ? progress->identity + size : NULL;
}

bool import_progress_open(struct pg *pg)
{
    return control_execute(pg, "recording the progress",
                           "update stampd.import_progress set identity = 'opens'");
}

bool import_progress_opens(const struct import_progress *progress)
{
    return strcmp(progress->identity, "opens") == 0;
}
