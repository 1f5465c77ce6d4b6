/* files_walk: pages of the table stampd.blob. */
#include "control/files/files_walk.h"

#include <string.h>

#include "control/message.h"

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
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, bytes_of(last));
    pg_params_add_i64(&params, PAGE);
    return control_query(walk->control, walk->target.pg, walk->target.conf->code,
                         "select encode(b.digest, 'hex'), b.size from stampd.blob b where b.digest > "
                         "decode($1, 'hex') and " USED " order by b.digest limit $2",
                         &params, rows_r);
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
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, walk->control->arena);
    pg_params_add_text(&params, bytes_of(entry->sha));
    bool is_read = control_query(
        walk->control, walk->target.pg, walk->target.conf->code,
        "select exists (select from stampd.blob_ref r where r.digest = decode($1, 'hex'))", &params, &row);
    *is_used_r = is_read && pg_get_bool(row, 0, 0);
    return is_read;
}
