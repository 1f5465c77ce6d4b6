/* foreign_import: the two passes over the file. */
#include "control/foreign/foreign_import.h"

#include <stdio.h>
#include <string.h>

#include "control/archive/archive_batch.h"
#include "control/documents/progress.h"
#include "control/foreign/foreign_ids.h"
#include "control/foreign/foreign_reader.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"

enum { BATCH_DOCUMENTS = 500, BATCH_BYTES = 1 << 20, PROBLEMS_SHOWN = 20 };

struct foreign_import {
    struct control *control;
    const struct foreign_import_options *options;
    struct bytes members;           /* for the program that reads */
    char of[CRYPTO_SHA256_HEX + 1]; /* of those that decide what is stored */
    struct foreign_reader reader;
    struct progress progress;
    int64_t right, wrong, left_out; /* of this pass */
    int64_t replaced;               /* right ones whose id comes again; while storing not among `right` */
    struct foreign_ids ids;
    int64_t shown, summed_up; /* of the wrong ones: printed, and in the notes */
    /* while storing */
    bool stores;
    struct ns_target target;
    struct import_progress done; /* members: documents stored */
    struct archive_batch *batch;
    struct importer_files *files; /* NULL: the kind has none */
    struct builder lines;
    int64_t batch_count;
};

/* --- documents --- */

static void foreign_import_report(struct foreign_import *import, const char *problem)
{
    const struct foreign_reader *reader = &import->reader;
    progress_clear(&import->progress);
    if (reader->last_line > reader->line)
        message_print("%s:%lld: %s (the row goes on to line %lld)", reader->path, (long long)reader->line,
                      problem, (long long)reader->last_line);
    else
        message_print("%s:%lld: %s", reader->path, (long long)reader->line, problem);
}

/* The first ones are printed, while they are checked. */
static void take_wrong(struct foreign_import *import, const char *problem)
{
    if (!problem)
        import->summed_up++;
    else if (!import->stores && import->shown < PROBLEMS_SHOWN) {
        foreign_import_report(import, problem);
        import->shown++;
    }
}

static bool foreign_import_store(struct foreign_import *import)
{
    if (!import->batch_count)
        return true;
    import->done.members += import->batch_count;
    import->batch_count = 0;
    bool is_stored = archive_batch_read(import->batch, builder_bytes(&import->lines), false) &&
                     archive_merge_run(import->target.pg, import->batch, false, &import->done);
    builder_clear(&import->lines, 2 * BATCH_BYTES);
    return is_stored;
}

/* Documents that an interrupted import has stored are only checked. */
static bool is_to_be_stored(const struct foreign_import *import)
{
    return import->stores && import->right >= import->done.members + import->batch_count;
}

static bool foreign_import_keep(struct foreign_import *import, size_t before, bool is_stored)
{
    import->right++;
    if (!is_stored) {
        import->lines.size = before;
        return true;
    }
    import->batch_count++;
    return (import->batch_count < BATCH_DOCUMENTS && import->lines.size < BATCH_BYTES) ||
           foreign_import_store(import);
}

/* Of several documents with one id the last is stored.  Is this one of the others? */
static bool is_replaced(struct foreign_import *import)
{
    const struct bytes id = import->reader.id;
    if (!import->options->kind->has_repeats)
        return false;
    if (import->stores)
        return !foreign_ids_is_last(&import->ids, id);
    foreign_ids_add(&import->ids, id);
    return false;
}

static bool take_document(struct foreign_import *import, size_t before, bool is_stored)
{
    if (!is_replaced(import))
        return foreign_import_keep(import, before, is_stored);
    import->lines.size = before;
    return true;
}

static bool foreign_import_read_all(struct foreign_import *import)
{
    struct foreign_reader *reader = &import->reader;
    enum foreign_event event;
    progress_start(&import->progress, 0, reader->size);
    do {
        const char *problem = NULL;
        size_t before = import->lines.size;
        bool is_stored = is_to_be_stored(import);
        event = foreign_reader_next(reader, is_stored ? import->files : NULL, import->right + 1,
                                    &import->lines, &problem);
        if (event == FOREIGN_DOCUMENT && !take_document(import, before, is_stored))
            return false;
        import->left_out += event == FOREIGN_LEFT_OUT;
        import->wrong += event == FOREIGN_WRONG;
        if (event == FOREIGN_WRONG)
            take_wrong(import, problem);
        else if (event == FOREIGN_FAILED && problem)
            foreign_import_report(import, problem);
        progress_show(&import->progress, import->right, reader->offset);
    } while (event != FOREIGN_END && event != FOREIGN_FAILED);
    return event == FOREIGN_END;
}

/* One pass over the file. */
static bool foreign_import_pass(struct foreign_import *import)
{
    const struct foreign_import_options *options = import->options;
    import->right = import->wrong = import->left_out = import->shown = import->summed_up = 0;
    if (!foreign_reader_open(&import->reader, import->control, options->kind->program, options->path,
                             import->members))
        return false;
    const bool is_read = foreign_import_read_all(import);
    progress_clear(&import->progress);
    if (is_read && !import->stores)
        foreign_reader_print_notes(&import->reader);
    foreign_reader_close(&import->reader);
    return is_read;
}

bool foreign_import_compose(struct control *control, const struct foreign_import_options *options,
                            struct bytes *members_r, char of_r[CRYPTO_SHA256_HEX + 1])
{
    struct bytes mapping = NO_BYTES;
    struct builder json = {0};
    if (options->mapping && !control_read_file(control->arena, options->mapping, &mapping))
        return false;
    if (mapping.data && !bytes_is_utf8(mapping))
        return message_refuse("%s: not valid UTF-8", options->mapping);
    builder_printf(&json, "\"own\":%s", options->own ? options->own : "null");
    if (options->class)
        json_add_text(&json, ",\"class\":", bytes_of(options->class));
    if (mapping.data)
        json_add_text(&json, ",\"mapping\":", mapping);
    if (of_r)
        crypto_sha256_hex(builder_bytes(&json), of_r);
    json_add_text(&json, ",\"name\":", bytes_of(options->mapping ? options->mapping : options->command));
    builder_add_text(&json, ",");
    *members_r = builder_take(&json, control->arena);
    return true;
}

/* --- the passes --- */

/* The first pass; false: the import ends here. */
static bool foreign_import_check(struct foreign_import *import)
{
    const char *path = import->options->path;
    if (!foreign_import_pass(import))
        return false;
    import->replaced = foreign_ids_settle(&import->ids);
    if (import->replaced)
        message_print("%s: %lld %s have the id of a later one, which is stored in their place", path,
                      (long long)import->replaced, import->options->kind->unit);
    if (import->wrong > import->shown + import->summed_up)
        message_print("%s: and %lld more", path,
                      (long long)(import->wrong - import->shown - import->summed_up));
    if (import->options->is_dry_run || !import->wrong || import->options->skips_wrong)
        return true;
    return message_refuse(
        "%s: %lld %s are right, %lld wrong; nothing was stored (--skip-wrong leaves out the wrong ones)",
        path, (long long)import->right, import->options->kind->unit, (long long)import->wrong);
}

/* The same file, with the same options. */
static const char *identify(struct foreign_import *import)
{
    return arena_printf(import->control->arena, "%s %s %s", import->options->kind->name,
                        import->reader.digest, import->of);
}

static bool begin_foreign_import(struct foreign_import *import)
{
    const char *code = import->options->code;
    if (!ns_registry_connect(import->control, code, &import->target))
        return false;
    import->done = (struct import_progress){
        .identity = identify(import), .is_merge = true, .state = import->target.conf->state};
    enum import_beginning beginning =
        import->options->kind->attaches && !ns_keys_refuse(import->control, import->target.pg, "attachments")
            ? IMPORT_REFUSED
            : import_progress_take(import->control, import->target.pg, code, &import->done);
    return beginning == IMPORT_RESUMED ||
           (beginning == IMPORT_NEW &&
            import_progress_begin(import->control, import->target.pg, &import->done));
}

static bool store_all(struct foreign_import *import)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    memcpy(digest, import->reader.digest, sizeof digest);
    import->stores = true;
    import->batch = archive_batch_create(import->control, import->target.pg, import->options->kind->attaches);
    import->files =
        import->options->kind->attaches ? importer_files_open(import->control, &import->target) : NULL;
    bool is_stored = (import->files || !import->options->kind->attaches) && foreign_import_pass(import) &&
                     foreign_import_store(import);
    importer_files_close(import->files);
    archive_batch_destroy(import->batch);
    if (is_stored && strcmp(digest, import->reader.digest) != 0)
        return message_refuse("%s was altered while it was imported", import->options->path);
    return is_stored && import_progress_end(import->target.pg);
}

static void foreign_import_sum_up(const struct foreign_import *import)
{
    const char *unit = import->options->kind->unit;
    int64_t written = import->done.sum.documents;
    const char *replaced = import->replaced
                               ? arena_printf(import->control->arena, "%lld replaced by later ones; ",
                                              (long long)import->replaced)
                               : "";
    if (import->options->is_dry_run)
        printf("%s: %lld %s are right, %lld wrong; nothing was stored\n", import->options->path,
               (long long)import->right, unit, (long long)import->wrong);
    else
        printf("%s: %lld %s: %lld documents written, %lld unchanged; %s%lld wrong %s left out\n",
               import->options->code, (long long)(import->right + import->replaced), unit, (long long)written,
               (long long)(import->right - written), replaced, (long long)import->wrong, unit);
}

bool foreign_import_begin(struct control *control, const struct command *command,
                          const struct option_line *lines, size_t count, int argc, char **argv,
                          struct foreign_import_options *options)
{
    char **words = options_read(control, command, lines, count, argc, argv);
    if (!words)
        return false;
    control->status = CONTROL_WRONG;
    options->command = command->name;
    options->code = words[0];
    options->path = words[1];
    if (strcmp(options->code, "z") == 0)
        message_print("%s: z has the configurations of the other namespaces", command->name);
    else if (strcmp(options->path, "-") == 0)
        message_print("%s: it is read twice, to check it first; expected a file", command->name);
    else if (!control_load_settings(control))
        control->status = CONTROL_FAILED;
    else
        return true;
    return false;
}

bool foreign_import_run(struct control *control, const struct foreign_import_options *options)
{
    struct foreign_import import = {.control = control, .options = options};
    bool is_done = foreign_import_compose(control, options, &import.members, import.of) &&
                   foreign_import_check(&import) &&
                   (options->is_dry_run || (begin_foreign_import(&import) && store_all(&import)));
    builder_free(&import.lines);
    foreign_ids_free(&import.ids);
    if (is_done)
        foreign_import_sum_up(&import);
    return is_done && !import.wrong;
}
