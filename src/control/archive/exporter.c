/* exporter: manifest, configuration, documents in pieces, digests. */
#include "control/archive/exporter.h"

#include <stdio.h>

#include "base/clock.h"
#include "control/archive/archive_reader.h"
#include "control/archive/exporter_files.h"
#include "control/message.h"
#include "control/documents/progress.h"
#include "model/document/stamp.h"

struct export
{
    struct control *control;
    const struct ns_target *target;
    const struct exporter_options *options;
    struct archive_filter filter;
    struct archive_contents former; /* of the archive to go on from */
    struct archive_writer *writer;
    struct exporter_report *report;
    struct progress progress;
};

/* --- what an incremental archive goes on from --- */

static bool go_on_from(struct export *export, const struct archive_contents *former)
{
    const char *path = export->options->since;
    struct arena *arena = export->control->arena;
    if (!bytes_equal(former->database, bytes_of(export->report->snapshot.database)))
        message_print("%s: of another database, or of a time before a restore: export all documents", path);
    else if (former->is_partial)
        message_print("%s: an archive of some documents only", path);
    else {
        export->filter.since_snapshot = arena_copy(arena, former->snapshot.data, former->snapshot.size);
        return true;
    }
    return false;
}

static bool find_since(struct export *export)
{
    const char *since = export->options->since;
    int64_t after;
    if (!since)
        return true;
    if (bytes_to_i64(bytes_of(since), &after)) {
        export->filter.since_version = after;
    } else {
        if (!archive_verify(export->control->arena, since, export->options->archive.key, false,
                            &export->former) ||
            !go_on_from(export, &export->former))
            return false;
        after = export->former.at;
    }
    /* What was deleted after that version and is purged already would be missing. */
    if (export->report->snapshot.floor <= after)
        return true;
    message_print("deletions up to %lld are purged, some of them after %lld: export all documents",
                  (long long)export->report->snapshot.floor, (long long)after);
    return false;
}

/* --- the manifest --- */

static void exporter_add_text(struct builder *json, const char *name, const char *text)
{
    builder_printf(json, ",\"%s\":", name);
    json_add_string(json, bytes_of(text));
}

static void exporter_add_words(struct builder *json, const char *name, const char *const *words, size_t count)
{
    if (!count)
        return;
    builder_printf(json, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        builder_add(json, ",", i > 0);
        json_add_string(json, bytes_of(words[i]));
    }
    builder_add_text(json, "]");
}

static bool write_manifest(struct export *export)
{
    const struct archive_snapshot *snapshot = &export->report->snapshot;
    const struct archive_filter *filter = &export->filter;
    struct builder json = {0};
    builder_printf(&json, "{\"format\":\"stampd archive\",\"version\":%d", ARCHIVE_VERSION);
    exporter_add_text(&json, "namespace", export->target->conf->code);
    exporter_add_text(&json, "state", namespace_state_word(export->target->conf->state));
    builder_printf(&json, ",\"at\":%lld,\"floor\":%lld", (long long)snapshot->at, (long long)snapshot->floor);
    exporter_add_text(&json, "snapshot", snapshot->snapshot);
    exporter_add_text(&json, "database", snapshot->database);
    if (filter->since_snapshot || filter->since_version) {
        builder_add_text(&json, ",\"since\":{");
        if (filter->since_snapshot) {
            builder_add_text(&json, "\"snapshot\":");
            json_add_string(&json, bytes_of(filter->since_snapshot));
        } else {
            builder_printf(&json, "\"version\":%lld", (long long)filter->since_version);
        }
        builder_add_text(&json, "}");
    }
    exporter_add_words(&json, "classes", filter->classes, filter->class_count);
    exporter_add_words(&json, "ids", filter->ids, filter->id_count);
    builder_add_text(&json, "}\n");
    bool is_done = archive_writer_add(export->writer, ARCHIVE_MANIFEST, builder_bytes(&json));
    builder_free(&json);
    return is_done;
}

/* --- lines --- */

/* Writes the lines of a database as members `folder/000001.jsonl`…; one without lines is left out. */
static bool write_lines(struct export *export, struct archive_rows *rows, const char *folder,
                        struct archive_sum *sum, bool is_shown)
{
    struct builder piece = {0};
    enum archive_rows_event event = ARCHIVE_ROWS_LINE;
    bool is_done = true;
    for (int number = 1; is_done && event == ARCHIVE_ROWS_LINE;) {
        event = archive_rows_next(rows, &piece, sum);
        if (event == ARCHIVE_ROWS_FAILED)
            break;
        if (event == ARCHIVE_ROWS_END ? piece.size > 0
                                      : (int64_t)piece.size >= export->options->piece_bytes) {
            char name[64];
            snprintf(name, sizeof name, "%s/%06d.jsonl", folder, number++);
            is_done = archive_writer_add(export->writer, name, builder_bytes(&piece));
            builder_clear(&piece, (size_t) export->options->piece_bytes * 2);
        }
        if (is_shown)
            progress_show(&export->progress, sum->documents + sum->deleted, sum->documents + sum->deleted);
    }
    builder_free(&piece);
    return is_done && event == ARCHIVE_ROWS_END;
}

static bool exporter_write_all(struct export *export, const struct archive_snapshot *snapshot,
                               const struct archive_filter *filter, const char *folder,
                               struct archive_sum *sum, bool is_shown)
{
    struct archive_rows *rows = NULL;
    bool is_done = archive_rows_open(export->control, snapshot, filter, &rows) &&
                   write_lines(export, rows, folder, sum, is_shown);
    archive_rows_close(rows);
    return is_done;
}

/* The documents of z about the namespace: of no archive of some documents only. */
static bool write_configuration(struct export *export)
{
    const struct archive_filter filter = {.configuration = export->target->conf->code};
    struct archive_snapshot snapshot;
    struct archive_sum sum = {0};
    return export->filter.class_count || export->filter.id_count ||
           (archive_rows_begin_snapshot(export->control, export->target->z,
                                        export->control->settings.z_database, &snapshot) &&
            exporter_write_all(export, &snapshot, &filter, "configuration", &sum, false));
}

static bool write_files(struct export *export)
{
    const struct exporter_files files = {.control = export->control,
                                         .database = export->target->conf->database,
                                         .snapshot = &export->report->snapshot,
                                         .filter = &export->filter,
                                         .writer = export->writer,
                                         .are_left_out = export->options->leaves_files,
                                         .former = &export->former.files,
                                         .other = &export->former.left_out};
    return exporter_files_write(&files, &export->report->files, &export->report->left_out);
}

static bool exporter_finish(struct export *export)
{
    struct builder members = {0};
    archive_sum_write(&export->report->sum, &members);
    builder_add_text(&members, ",");
    archive_files_write(&export->report->files, &members);
    bool is_done = archive_writer_finish(export->writer, builder_bytes(&members));
    builder_free(&members);
    export->report->bytes = archive_writer_size(export->writer);
    return is_done;
}

bool exporter_run(struct control *control, const struct ns_target *target,
                  const struct exporter_options *options, struct exporter_report *report_r)
{
    struct export export = {.control = control,
                            .target = target,
                            .options = options,
                            .filter = options->filter,
                            .report = report_r};
    *report_r = (struct exporter_report){0};
    if (!archive_rows_begin_snapshot(control, target->pg, target->conf->database, &report_r->snapshot) ||
        !find_since(&export))
        return false;
    progress_start(&export.progress, 0,
                   options->since || options->filter.class_count || options->filter.id_count
                       ? 0
                       : report_r->snapshot.document_rows);
    bool is_done =
        archive_writer_open(control->arena, &options->archive, &export.writer) && write_manifest(&export) &&
        write_configuration(&export) && write_files(&export) &&
        exporter_write_all(&export, &report_r->snapshot, &export.filter, "documents", &report_r->sum, true);
    progress_clear(&export.progress);
    is_done = is_done && exporter_finish(&export);
    archive_writer_close(export.writer);
    return is_done;
}
