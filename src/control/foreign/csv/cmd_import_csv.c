/* cmd_import_csv: `stampctl import-csv`: options. */
#include "control/control.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "control/documents/input.h"
#include "control/foreign/csv/csv_mapping.h"
#include "control/foreign/csv/csv_record.h"
#include "control/foreign/foreign_import.h"
#include "control/message.h"
#include "edge/crypto/digest.h"

/* --- reading --- */

/* The records of a CSV file, with the lines at which they begin.
 *
 * Lines end with LF or CR LF, or all with CR; empty lines are skipped, as is a byte order mark.  Memory holds
 * one record.  Lines joined to records while a quoted field is open. */

struct csv_reader {
    struct input input;
    char separator; /* 0: none is named, before the header */
    struct digest *digest;
    struct arena *arena; /* of one record */
    struct builder text; /* of a record of several lines */
    int64_t line;        /* at which the last record begins; it ends at input.line */
};

enum csv_event { CSV_RECORD, CSV_WRONG, CSV_END, CSV_FAILED };

enum { RECORD_MOST = 16 << 20, KEEP = 1 << 20 };

/* A CR, if the first line of the file ends with one that no LF follows. */
static char find_line_end(int fd)
{
    char block[4096], last = 0;
    bool is_quoted = false;
    ssize_t got;
    for (off_t at = 0; at < RECORD_MOST && (got = pread(fd, block, sizeof block, at)) > 0; at += got)
        for (ssize_t i = 0; i < got; last = block[i++]) {
            if (!is_quoted && (last == '\r' || block[i] == '\n'))
                return block[i] == '\n' ? '\n' : '\r';
            is_quoted ^= block[i] == '"';
        }
    return last == '\r' && !is_quoted ? '\r' : '\n';
}

static void csv_reader_close(struct csv_reader *reader)
{
    input_close(&reader->input);
    digest_destroy(reader->digest);
    arena_destroy(reader->arena);
    builder_free(&reader->text);
}

/* `separator`: 0: that of the header.  On failure reports why. */
static bool csv_reader_open(struct csv_reader *reader, const char *path, char separator)
{
    *reader =
        (struct csv_reader){.separator = separator, .digest = digest_create(), .arena = arena_create("csv")};
    if (input_open(&reader->input, path, -1) && reader->input.size) {
        reader->input.line_most = RECORD_MOST;
        reader->input.line_end = find_line_end(reader->input.fd);
        return true;
    }
    message_print("%s: %s", path,
                  reader->input.fd < 0 ? strerror(errno) : "expected a file that is not empty");
    csv_reader_close(reader);
    return false;
}

static enum csv_event next_line(struct csv_reader *reader, struct bytes *line_r, const char **problem_r)
{
    enum input_result result = input_next(&reader->input, true, line_r);
    if (result == INPUT_END)
        return CSV_END;
    if (result != INPUT_LINE) {
        *problem_r = errno == EFBIG ? "a line of more than 16 MB" : strerror(errno);
        return CSV_FAILED;
    }
    digest_add(reader->digest, *line_r);
    digest_add(reader->digest, BYTES("\n"));
    if (reader->input.line == 1 && line_r->size >= 3 && memcmp(line_r->data, "\xEF\xBB\xBF", 3) == 0)
        *line_r = (struct bytes){line_r->data + 3, line_r->size - 3};
    return CSV_RECORD;
}

/* Appends the lines that belong to a record whose first line has an open field. */
static enum csv_event csv_reader_join(struct csv_reader *reader, struct bytes *text, const char **problem_r)
{
    enum csv_event event = CSV_RECORD;
    bool is_open = true;
    builder_clear(&reader->text, KEEP);
    builder_add_bytes(&reader->text, *text);
    while (is_open && event == CSV_RECORD) {
        struct bytes line;
        event = next_line(reader, &line, problem_r);
        if (event != CSV_RECORD)
            break;
        builder_add(&reader->text, &reader->input.line_end, 1);
        builder_add_bytes(&reader->text, line);
        is_open = csv_record_is_open(line, reader->separator, true);
        if (reader->text.size > RECORD_MOST) {
            *problem_r = "a quoted field is not closed within 16 MB";
            event = CSV_FAILED;
        }
    }
    *text = builder_bytes(&reader->text);
    return event == CSV_END ? CSV_RECORD : event; /* an open field is found by csv_record_read */
}

/* The next line that is not empty. */
static enum csv_event next_text(struct csv_reader *reader, struct bytes *text_r, const char **problem_r)
{
    enum csv_event event;
    do {
        event = next_line(reader, text_r, problem_r);
        reader->line = reader->input.line + (event == CSV_FAILED);
    } while (event == CSV_RECORD && (!text_r->size || bytes_equal(*text_r, BYTES("\r"))));
    return event;
}

/* The record that begins with this line, which `event` says was read. */
static enum csv_event csv_reader_finish(struct csv_reader *reader, enum csv_event event, struct bytes text,
                                        struct csv_record *record_r, const char **problem_r)
{
    if (event == CSV_RECORD && csv_record_is_open(text, reader->separator, false))
        event = csv_reader_join(reader, &text, problem_r);
    if (event != CSV_RECORD)
        return event;
    if (text.size && text.data[text.size - 1] == '\r')
        text.size--;
    return csv_record_read(reader->arena, text, reader->separator, record_r, problem_r) ? CSV_RECORD
                                                                                        : CSV_WRONG;
}

/* The record is valid until the next call.  CSV_WRONG: `problem_r` says why; reading may go on.
 * CSV_FAILED: `problem_r` says why the file cannot be read. */
static enum csv_event csv_reader_next(struct csv_reader *reader, struct csv_record *record_r,
                                      const char **problem_r)
{
    struct bytes text;
    arena_reset(reader->arena);
    enum csv_event event = next_text(reader, &text, problem_r);
    return csv_reader_finish(reader, event, text, record_r, problem_r);
}

/* The line sep=X, by which spreadsheets name the separator of a file; some write it in quotes. */
static bool is_sep(struct bytes text)
{
    size_t quote = text.size && *text.data == '"';
    return text.size >= quote + 4 && strncasecmp(text.data + quote, "sep=", 4) == 0;
}

static const char *obey_sep(struct csv_reader *reader, struct bytes text)
{
    if (text.data[text.size - 1] == '\r')
        text.size--;
    char c = text.size == 5 && *text.data != '"' ? text.data[4] : 0;
    if (!csv_record_is_separator(c))
        return "expected behind sep= one of comma, semicolon, tab, colon, blank or |, and nothing else";
    if (reader->separator && reader->separator != c)
        return "sep= names another separator than the mapping";
    reader->separator = c;
    return NULL;
}

/* Reads the first record, and decides which separator the file has; a line sep=X before it names one.
 * Otherwise as csv_reader_next. */
static enum csv_event csv_reader_header(struct csv_reader *reader, struct csv_record *record_r,
                                        const char **problem_r)
{
    struct bytes text;
    arena_reset(reader->arena);
    enum csv_event event = next_text(reader, &text, problem_r);
    if (event == CSV_RECORD && is_sep(text)) {
        const char *problem = obey_sep(reader, text);
        if (problem) {
            *problem_r = problem;
            return CSV_WRONG;
        }
        event = next_text(reader, &text, problem_r);
    }
    if (event == CSV_RECORD)
        reader->separator = csv_record_separator(reader->arena, text, reader->separator, problem_r);
    return event == CSV_RECORD && !reader->separator
               ? CSV_WRONG
               : csv_reader_finish(reader, event, text, record_r, problem_r);
}

/* At the end: the digest of what was read. */
static void csv_reader_digest(struct csv_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    digest_end_hex(reader->digest, hex_r);
}

/* --- the source --- */

/* A CSV file, one document a row (import-csv.md).  Records of the reader, written by the mapping. */

struct csv_source {
    struct foreign_source source; /* the first member */
    const char *class, *id;       /* NULL: those of the mapping */
    struct csv_reader reader;
    struct csv_mapping *mapping; /* of this pass */
    int64_t header_line;         /* at which the header ends */
    bool has_rows, is_joined;    /* is_joined: the header goes on over several lines */
};

static struct csv_source *of(struct foreign_source *source)
{
    return (struct csv_source *)source;
}

static void take_place(struct csv_source *csv)
{
    csv->source.line = csv->reader.line;
    csv->source.last_line = csv->reader.input.line;
    csv->source.offset = csv->reader.input.offset;
}

static bool csv_source_read_header(struct csv_source *csv, struct arena *arena)
{
    struct csv_record header;
    const char *problem = "expected a header, the names of the columns";
    if (csv_reader_header(&csv->reader, &header, &problem) == CSV_RECORD) {
        for (size_t i = 0; i < header.count; i++)
            header.fields[i] = arena_keep(arena, header.fields[i]);
        csv->header_line = csv->reader.input.line;
        csv->is_joined = csv->header_line > csv->reader.line;
        csv->has_rows = false;
        if (csv_mapping_bind(csv->mapping, &header, &problem))
            return true;
    }
    return message_refuse("%s:%lld: %s", csv->source.path, (long long)csv->reader.line, problem);
}

static bool open_csv(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct csv_source *csv = of(source);
    const char *problem;
    csv->mapping =
        csv_mapping_read(arena, &control->settings, source->mapping_text, csv->class, csv->id, &problem);
    if (!csv->mapping)
        return message_refuse("%s: %s", source->mapping_path ? source->mapping_path : "import-csv", problem);
    if (!csv_reader_open(&csv->reader, source->path, csv_mapping_separator(csv->mapping)))
        return false;
    source->size = csv->reader.input.size;
    if (csv_source_read_header(csv, arena))
        return true;
    csv_reader_close(&csv->reader);
    return false;
}

/* A header of several lines and nothing else is a quote that was forgotten. */
static enum foreign_event end_rows(struct csv_source *csv, const char **problem_r)
{
    csv_reader_digest(&csv->reader, csv->source.digest);
    if (csv->has_rows || !csv->is_joined)
        return FOREIGN_END;
    *problem_r = "no rows: a quoted field makes all lines one header";
    return FOREIGN_FAILED;
}

static enum foreign_event next_row(struct foreign_source *source, struct importer_files *files UNUSED,
                                   int64_t number, struct builder *lines, const char **problem_r)
{
    struct csv_source *csv = of(source);
    struct csv_record record;
    enum csv_event event = csv_reader_next(&csv->reader, &record, problem_r);
    take_place(csv);
    if (event == CSV_END)
        return end_rows(csv, problem_r);
    csv->has_rows = true;
    if (event != CSV_RECORD)
        return event == CSV_WRONG ? FOREIGN_WRONG : FOREIGN_FAILED;
    if (!csv_mapping_write(csv->mapping, csv->reader.arena, &record, number, lines, problem_r))
        return FOREIGN_WRONG;
    source->id = csv_mapping_id(csv->mapping, &record);
    return FOREIGN_DOCUMENT;
}

static void csv_source_sum_up(struct foreign_source *source)
{
    const struct csv_source *csv = of(source);
    if (!csv->has_rows)
        message_print("%s: the file ends after its header, on line %lld: it has no rows", source->path,
                      (long long)csv->header_line);
}

static void close_csv(struct foreign_source *source)
{
    csv_reader_close(&of(source)->reader);
}

static void csv_source_init(struct csv_source *csv, struct arena *arena, const char *class, const char *id)
{
    static const struct foreign_calls calls = {.kind = "csv",
                                               .unit = "rows",
                                               .open = open_csv,
                                               .next = next_row,
                                               .sum_up = csv_source_sum_up,
                                               .close = close_csv};
    *csv = (struct csv_source){.class = class, .id = id};
    csv->source.calls = &calls;
    csv->source.options = arena_printf(arena, "%s\n%s\n", class ? class : "", id ? id : "");
}

/* --- the command --- */

int control_import_csv(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "import-csv", "CODE FILE", "Store the rows of a CSV file as documents, one a row.",
        "The first line names the columns; commas separate them, or semicolons or tabs if it has no\n"
        "comma, or what a line sep=X before it names.  Without --mapping the first column is the id, and\n"
        "the others are texts in the item Main.  Every row is checked before the first is stored.\n"
        "Documents get exactly the items of their row; of several rows with one id the last is stored.\n"
        "A file can be imported again.  After an interruption run the same command again: it continues.\n");
    struct foreign_import_options options = {0};
    struct csv_source csv;
    const char *id = NULL;
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of the documents, if the mapping has none."),
        OPTION_TEXT("id", "COLUMN", &id, "The column with the ids of documents (default: the first)."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    csv_source_init(&csv, control->arena, options.class, id);
    return foreign_import_run(control, &options, &csv.source) ? CONTROL_DONE : CONTROL_FAILED;
}
