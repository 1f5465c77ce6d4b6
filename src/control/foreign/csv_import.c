/* csv_import: the two passes over the file. */
#include "control/foreign/csv_import.h"

#include <stdio.h>
#include <string.h>

#include "control/archive/archive_merge.h"
#include "control/foreign/csv_mapping.h"
#include "control/foreign/csv_reader.h"
#include "control/message.h"
#include "control/progress.h"

enum { BATCH_ROWS = 500, BATCH_BYTES = 1 << 20, PROBLEMS_SHOWN = 20 };

struct csv_import {
    struct control *control;
    const struct csv_import_options *options;
    struct bytes mapping_text;
    struct csv_reader reader;
    struct csv_mapping *mapping; /* of this pass */
    struct arena *arena;         /* of this pass: mapping and header */
    struct progress progress;
    int64_t rows, wrong; /* of this pass; rows: those that are right */
    char digest[CRYPTO_SHA256_HEX + 1];
    /* while storing */
    bool stores;
    struct ns_target target;
    struct import_progress done; /* members: rows stored */
    struct archive_batch *batch;
    struct builder lines;
    int64_t batch_rows;
};

/* --- rows --- */

static void report(struct csv_import *import, const char *problem)
{
    import->wrong++;
    if (import->stores || import->wrong > PROBLEMS_SHOWN)
        return;
    progress_clear(&import->progress);
    long long line = import->reader.line, last = import->reader.input.line;
    if (last > line)
        message_print("%s:%lld: %s (the row goes on to line %lld)", import->options->path, line, problem,
                      last);
    else
        message_print("%s:%lld: %s", import->options->path, line, problem);
}

static bool store(struct csv_import *import)
{
    if (!import->batch_rows)
        return true;
    import->done.members += import->batch_rows;
    import->batch_rows = 0;
    bool is_stored = archive_batch_read(import->batch, builder_bytes(&import->lines), false) &&
                     archive_merge_run(import->target.pg, import->batch, false, &import->done);
    builder_clear(&import->lines, 2 * BATCH_BYTES);
    return is_stored;
}

/* Rows that an interrupted import has stored are only checked. */
static bool take_row(struct csv_import *import, const struct csv_record *record)
{
    const char *problem;
    size_t before = import->lines.size;
    if (!csv_mapping_write(import->mapping, import->reader.arena, record, import->rows + 1, &import->lines,
                           &problem)) {
        report(import, problem);
        return true;
    }
    import->rows++;
    if (!import->stores || import->rows <= import->done.members) {
        import->lines.size = before;
        return true;
    }
    import->batch_rows++;
    return (import->batch_rows < BATCH_ROWS && import->lines.size < BATCH_BYTES) || store(import);
}

static bool read_header(struct csv_import *import)
{
    struct csv_record header;
    const char *problem = "expected a header, the names of the columns";
    enum csv_event event = csv_reader_next(&import->reader, &header, &problem);
    if (event == CSV_RECORD) {
        for (size_t i = 0; i < header.count; i++)
            header.fields[i] =
                (struct bytes){arena_copy(import->arena, header.fields[i].data, header.fields[i].size),
                               header.fields[i].size};
        if (csv_mapping_bind(import->mapping, &header, &problem))
            return true;
    }
    message_print("%s:%lld: %s", import->options->path, (long long)import->reader.line, problem);
    return false;
}

static bool read_rows(struct csv_import *import)
{
    struct csv_record record;
    const char *problem;
    enum csv_event event;
    progress_start(&import->progress, 0, import->reader.input.size);
    while ((event = csv_reader_next(&import->reader, &record, &problem)) == CSV_RECORD ||
           event == CSV_WRONG) {
        if (event == CSV_WRONG)
            report(import, problem);
        else if (!take_row(import, &record))
            return false;
        progress_show(&import->progress, import->rows, import->reader.input.offset);
    }
    progress_clear(&import->progress);
    if (event == CSV_FAILED)
        message_print("%s:%lld: %s", import->options->path, (long long)import->reader.line, problem);
    return event == CSV_END;
}

/* One pass over the file. */
static bool pass(struct csv_import *import)
{
    const struct csv_import_options *options = import->options;
    const char *problem;
    import->rows = import->wrong = 0;
    import->arena = arena_create("mapping");
    import->mapping = csv_mapping_read(import->arena, &import->control->settings, import->mapping_text,
                                       options->class, options->id, &problem);
    bool is_open = import->mapping &&
                   csv_reader_open(&import->reader, options->path, csv_mapping_separator(import->mapping));
    if (!import->mapping)
        message_print("%s: %s", options->mapping ? options->mapping : "import-csv", problem);
    bool is_read = is_open && read_header(import) && read_rows(import);
    if (is_read)
        csv_reader_digest(&import->reader, import->digest);
    progress_clear(&import->progress);
    if (is_open)
        csv_reader_close(&import->reader);
    arena_destroy(import->arena);
    return is_read;
}

/* --- the passes --- */

/* The first pass; false: the import ends here. */
static bool check(struct csv_import *import)
{
    const char *path = import->options->path;
    if (!pass(import))
        return false;
    if (import->wrong > PROBLEMS_SHOWN)
        message_print("%s: and %lld more", path, (long long)import->wrong - PROBLEMS_SHOWN);
    if (import->options->is_dry_run || !import->wrong || import->options->skips_wrong)
        return true;
    message_print(
        "%s: %lld rows are right, %lld wrong; nothing was stored (--skip-wrong leaves out the wrong "
        "ones)",
        path, (long long)import->rows, (long long)import->wrong);
    return false;
}

/* The same file, with the same options. */
static const char *identify(struct csv_import *import)
{
    const struct csv_import_options *options = import->options;
    char hex[CRYPTO_SHA256_HEX + 1];
    struct builder text = {0};
    builder_printf(&text, "%s\n%s\n", options->class ? options->class : "", options->id ? options->id : "");
    builder_add_bytes(&text, import->mapping_text);
    crypto_sha256_hex(builder_bytes(&text), hex);
    builder_free(&text);
    return arena_printf(import->control->arena, "csv %s %s", import->digest, hex);
}

static bool begin(struct csv_import *import)
{
    const char *code = import->options->code;
    if (!ns_registry_connect(import->control, code, &import->target))
        return false;
    import->done = (struct import_progress){
        .identity = identify(import), .is_merge = true, .state = import->target.conf->state};
    enum import_beginning beginning =
        import_progress_take(import->control, import->target.pg, code, &import->done);
    return beginning == IMPORT_RESUMED ||
           (beginning == IMPORT_NEW &&
            import_progress_begin(import->control, import->target.pg, &import->done));
}

static bool store_all(struct csv_import *import)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    memcpy(digest, import->digest, sizeof digest);
    import->stores = true;
    import->batch = archive_batch_create(import->control, import->target.pg, false);
    bool is_stored = pass(import) && store(import);
    archive_batch_destroy(import->batch);
    if (is_stored && strcmp(digest, import->digest) != 0) {
        message_print("%s was altered while it was imported", import->options->path);
        return false;
    }
    return is_stored && import_progress_end(import->target.pg);
}

static void sum_up(const struct csv_import *import)
{
    int64_t written = import->done.sum.documents;
    if (import->options->is_dry_run)
        printf("%s: %lld rows are right, %lld wrong; nothing was stored\n", import->options->path,
               (long long)import->rows, (long long)import->wrong);
    else
        printf("%s: %lld rows: %lld documents written, %lld unchanged; %lld wrong rows left out\n",
               import->options->code, (long long)import->rows, (long long)written,
               (long long)(import->rows - written), (long long)import->wrong);
}

bool csv_import_run(struct control *control, const struct csv_import_options *options)
{
    struct csv_import import = {.control = control, .options = options};
    if (options->mapping && !control_read_file(control->arena, options->mapping, &import.mapping_text))
        return false;
    bool is_done = check(&import) && (options->is_dry_run || (begin(&import) && store_all(&import)));
    builder_free(&import.lines);
    if (is_done)
        sum_up(&import);
    return is_done && !import.wrong;
}
