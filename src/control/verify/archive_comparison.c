/* archive_comparison: two ordered lists of lines, merged. */
#include "control/verify/archive_comparison.h"

#include "control/archive/archive_line.h"
#include "control/archive/archive_rows.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/documents/progress.h"

struct compared {
    struct arena *arena; /* of the line of the namespace */
    struct arena *scratch;
    const struct archive_contents *contents;
    int64_t floor; /* of the namespace */
    struct archive_rows *rows;
    struct archive_sum sum;
    struct builder line; /* the next one of the namespace; empty: there are no more */
    struct archive_document document;
    struct archive_comparison *result;
};

static bool archive_comparison_take_row(struct compared *compared)
{
    const char *problem;
    builder_clear(&compared->line, 1 << 20);
    arena_reset(compared->arena);
    enum archive_rows_event event = archive_rows_next(compared->rows, &compared->line, &compared->sum);
    if (event != ARCHIVE_ROWS_LINE)
        return event == ARCHIVE_ROWS_END;
    struct bytes line = {compared->line.data, compared->line.size - 1};
    if (archive_line_read(compared->arena, line, &compared->document, &problem))
        return true;
    message_print("a document of the namespace cannot be read: %s", problem);
    return false;
}

static int archive_comparison_compare(const struct archive_header *one, const struct archive_header *other)
{
    int order = bytes_compare(one->class, other->class);
    return order ? order : bytes_compare(one->id, other->id);
}

/* A document of the namespace that the archive does not have. */
static void add_more(struct compared *compared)
{
    const struct archive_header *header = &compared->document.header;
    if (compared->contents->is_increment || compared->contents->is_partial)
        return;
    compared->result->more++;
    findings_add_document(&compared->result->findings, header->class, header->id, "is not in the archive");
}

static void add_missing(struct compared *compared, const struct archive_header *header)
{
    if (!header->ctime && header->version <= compared->floor)
        return; /* a deletion that was purged */
    compared->result->missing++;
    findings_add_document(&compared->result->findings, header->class, header->id, "is not in the namespace");
}

static bool compare_line(struct compared *compared, struct bytes line)
{
    struct archive_document document;
    const char *problem;
    struct archive_comparison *result = compared->result;
    if (!archive_line_read(compared->scratch, (struct bytes){line.data, line.size - 1}, &document, &problem))
        return false; /* it was verified */
    while (compared->line.size &&
           archive_comparison_compare(&compared->document.header, &document.header) < 0) {
        add_more(compared);
        if (!archive_comparison_take_row(compared))
            return false;
    }
    if (!compared->line.size ||
        archive_comparison_compare(&compared->document.header, &document.header) != 0) {
        add_missing(compared, &document.header);
        return true;
    }
    if (bytes_equal(builder_bytes(&compared->line), line)) {
        result->same++;
    } else {
        int64_t theirs = compared->document.header.version;
        result->other++;
        findings_add_document(&result->findings, document.header.class, document.header.id,
                              theirs > document.header.version ? "is newer in the namespace"
                              : theirs < document.header.version
                                  ? "is older in the namespace"
                                  : "has the same version and another content");
    }
    return archive_comparison_take_row(compared);
}

static bool compare_lines(struct compared *compared, struct bytes lines)
{
    while (lines.size) {
        const char *newline = memchr(lines.data, '\n', lines.size);
        struct bytes line = {lines.data, newline ? (size_t)(newline - lines.data) + 1 : lines.size};
        if (!compare_line(compared, line))
            return false;
        arena_reset(compared->scratch);
        lines = (struct bytes){lines.data + line.size, lines.size - line.size};
    }
    return true;
}

/* Its bytes are read by `verify --ns`, without an archive. */
static bool compare_file(struct archive_comparison *result, struct stored_files *store,
                         const struct blob_digest *digest, int64_t size)
{
    int64_t present;
    if (stored_files_measure(store, digest, &present)) {
        message_print("the files of attachments cannot be read");
        return false;
    }
    result->files++;
    if (present == size)
        return true;
    result->missing_files++;
    findings_add_file(&result->findings, digest,
                      present < 0 ? "is not in the namespace" : "has another size in the namespace");
    return true;
}

static bool compare_members(struct compared *compared, struct control *control, struct archive_reader *reader,
                            const char *database, const struct data_keys *keys)
{
    struct stored_files *store = stored_files_open(control, database);
    stored_files_set_keys(store, keys);
    struct builder bytes = {0};
    struct progress progress;
    struct blob_digest digest;
    struct bytes name;
    int64_t size = 0;
    bool is_done;
    progress_start(&progress, 0, compared->contents->document_bytes + compared->contents->files.bytes);
    while ((is_done = archive_reader_next(reader, &name, &bytes)) && name.data) {
        if (archive_files_read_name(name, &digest))
            is_done = compare_file(compared->result, store, &digest, archive_reader_file_size(reader));
        else if (archive_reader_has_documents(name))
            is_done = compare_lines(compared, builder_bytes(&bytes));
        if (!is_done)
            break;
        size += archive_reader_has_documents(name) ? (int64_t)bytes.size : archive_reader_file_size(reader);
        progress_show(&progress, compared->result->same + compared->result->other, size);
    }
    while (is_done && compared->line.size) {
        add_more(compared);
        is_done = archive_comparison_take_row(compared);
    }
    progress_clear(&progress);
    builder_free(&bytes);
    stored_files_close(store);
    return is_done;
}

bool archive_comparison_run(struct control *control, const struct ns_target *target, const char *path,
                            const struct archive_contents *contents, struct archive_comparison *comparison)
{
    const struct archive_filter all = {0};
    struct archive_snapshot snapshot;
    struct archive_reader *reader = NULL;
    struct compared compared = {.contents = contents, .result = comparison};
    struct data_keys *keys;
    if (!ns_keys_read(control, target->pg, &keys) ||
        !archive_rows_begin_snapshot(control, target->pg, target->conf->database, &snapshot))
        return false;
    compared.floor = snapshot.floor;
    compared.arena = arena_create("document of the namespace");
    compared.scratch = arena_create("document of the archive");
    bool is_done = archive_rows_open(control, &snapshot, &all, &compared.rows) &&
                   archive_comparison_take_row(&compared) && archive_reader_open(path, contents, &reader) &&
                   compare_members(&compared, control, reader, target->conf->database, keys);
    archive_reader_close(reader);
    archive_rows_close(compared.rows);
    arena_destroy(compared.arena);
    arena_destroy(compared.scratch);
    builder_free(&compared.line);
    return is_done && archive_rows_end_snapshot(&snapshot);
}
