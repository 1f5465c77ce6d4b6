/* files_place: the row of stampd.blob_place, and counts of the rows of files. */
#include "control/files/files_place.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "blob/object_stores.h"

static const char DIRECTORY[] = "directory";

/* --- stores of the settings --- */

static const char *files_place_keep(struct control *control, const char *text)
{
    return text ? arena_copy(control->arena, text, strlen(text)) : NULL;
}

bool files_place_find(struct control *control, const char *name, struct object_store_place *place_r)
{
    char problem[400];
    const struct object_store_place *place = NULL;
    struct object_stores *stores =
        object_stores_open(control->settings.object_stores_file, problem, sizeof problem);
    bool is_found = stores && object_stores_find(stores, name, &place, problem, sizeof problem);
    if (is_found)
        *place_r = (struct object_store_place){
            .endpoint = files_place_keep(control, place->endpoint),
            .bucket = files_place_keep(control, place->bucket),
            .region = files_place_keep(control, place->region),
            .prefix = files_place_keep(control, place->prefix),
            .key_id = files_place_keep(control, place->key_id),
            .secret_key = files_place_keep(control, place->secret_key),
            .ca_file = files_place_keep(control, place->ca_file),
            .is_path_style = place->is_path_style,
        };
    else
        message_print("%s", problem);
    object_stores_close(stores);
    return is_found;
}

/* --- the command --- */

static const char *shown(struct arena *arena, struct bytes store)
{
    return store.size ? arena_copy(arena, store.data, store.size) : DIRECTORY;
}

static bool files_place_show(struct control *control, const struct ns_target *target)
{
    struct pg_result *rows;
    const char *code = target->conf->code;
    if (!control_query(control, target->pg, code, "select store from stampd.blob_place where one", NULL,
                       &rows))
        return false;
    printf("%s: files belong in: %s\n", code, shown(control->arena, pg_get_text(rows, 0, 0)));
    if (!control_query(control, target->pg, code,
                       "select store, files, bytes from stampd.blob_place_counts()", NULL, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++)
        printf("%s: %s: %lld files, %lld bytes\n", code, shown(control->arena, pg_get_text(rows, row, 0)),
               (long long)pg_get_i64(rows, row, 1), (long long)pg_get_i64(rows, row, 2));
    if (!control_query(control, target->pg, code,
                       "select store, count(*) from stampd.blob_left group by store order by store", NULL,
                       &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++)
        printf("%s: %s: %lld objects are to be removed\n", code,
               shown(control->arena, pg_get_text(rows, row, 0)), (long long)pg_get_i64(rows, row, 1));
    return true;
}

static bool files_place_set(struct control *control, const struct ns_target *target, const char *store)
{
    struct object_store_place place;
    struct pg_result *row;
    bool is_directory = strcmp(store, DIRECTORY) == 0;
    if (!is_directory && !files_place_find(control, store, &place))
        return false;
    return control_query(control, target->pg, target->conf->code, "select stampd.blob_place_set($1)",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(is_directory ? "" : store))), &row);
}

int files_place(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "files place", "CODE [STORE]",
        "Show where the files of a namespace belong and where they are, or set it.",
        "STORE is an object store, or the word directory.  The server moves the files while it serves "
        "them.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct ns_target target;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return ns_registry_connect(control, words[0], &target) &&
                   (!words[1] || files_place_set(control, &target, words[1])) &&
                   files_place_show(control, &target)
               ? CONTROL_DONE
               : CONTROL_FAILED;
}

/* --- files walk --- */

enum { PAGE = 5000 };
enum { TOTAL_FILES, TOTAL_BYTES };
enum { ROW_DIGEST, ROW_SIZE };

/* A file that nothing has may be incomplete, or about to be removed. */
#define USED "exists (select from stampd.blob_ref r where r.digest = b.digest)"

bool files_walk_open(struct files_listing *walk, struct control *control, const char *code)
{
    struct pg_result *row;
    *walk = (struct files_listing){.control = control};
    if (!ns_registry_connect(control, code, &walk->target) ||
        !control_query(control, walk->target.pg, code,
                       "select count(*), coalesce(sum(b.size), 0)::bigint from stampd.blob b where " USED,
                       NULL, &row))
        return false;
    walk->files = pg_get_i64(row, 0, TOTAL_FILES);
    walk->bytes = pg_get_i64(row, 0, TOTAL_BYTES);
    progress_start(&walk->progress, 0, walk->bytes);
    walk->progress.unit = "files";
    return true;
}

/* The files after `last`, "" at first. */
static bool files_walk_read_page(struct files_listing *walk, struct arena *arena, const char *last,
                                 struct pg_result **rows_r)
{
    const struct pg_params *params = PG_PARAMS(arena, PG_TEXT(bytes_of(last)), PG_I64(PAGE));
    return control_query(walk->control, walk->target.pg, walk->target.conf->code,
                         "select encode(b.digest, 'hex'), b.size from stampd.blob b where b.digest > "
                         "decode($1, 'hex') and " USED " order by b.digest limit $2",
                         params, rows_r);
}

bool files_walk_run(struct files_listing *walk, bool (*visit)(void *context, const struct files_entry *entry),
                    void *context)
{
    struct arena *arena = arena_create("files");
    struct files_entry entry = {.sha = ""};
    struct pg_result *rows = NULL;
    bool is_fine = true;
    for (int count = PAGE; is_fine && count == PAGE;) {
        arena_reset(arena);
        is_fine = files_walk_read_page(walk, arena, entry.sha, &rows);
        count = is_fine ? pg_rows(rows) : 0;
        for (int row = 0; row < count && is_fine; row++) {
            is_fine = blob_store_read_digest(pg_get_text(rows, row, ROW_DIGEST), &entry.digest);
            blob_store_write_digest(&entry.digest, entry.sha);
            entry.size = pg_get_i64(rows, row, ROW_SIZE);
            is_fine = is_fine && visit(context, &entry);
            walk->seen += entry.size;
            progress_show(&walk->progress, ++walk->visited, walk->seen);
        }
    }
    progress_clear(&walk->progress);
    arena_destroy(arena);
    return is_fine;
}

bool files_walk_is_used(struct files_listing *walk, const struct files_entry *entry, bool *is_used_r)
{
    struct pg_result *row;
    const struct pg_params *params = PG_PARAMS(walk->control->arena, PG_TEXT(bytes_of(entry->sha)));
    bool is_read = control_query(
        walk->control, walk->target.pg, walk->target.conf->code,
        "select exists (select from stampd.blob_ref r where r.digest = decode($1, 'hex'))", params, &row);
    *is_used_r = is_read && pg_get_bool(row, 0, 0);
    return is_read;
}
