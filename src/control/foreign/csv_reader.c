/* csv_reader: lines joined to records while a quoted field is open. */
#include "control/foreign/csv_reader.h"

#include <errno.h>
#include <string.h>

#include "control/message.h"

enum { RECORD_MOST = 16 << 20, KEEP = 1 << 20 };

bool csv_reader_open(struct csv_reader *reader, const char *path, char separator)
{
    *reader =
        (struct csv_reader){.separator = separator, .digest = digest_create(), .arena = arena_create("csv")};
    if (input_open(&reader->input, path, -1) && reader->input.size) {
        reader->input.line_most = RECORD_MOST;
        return true;
    }
    message_print("%s: %s", path,
                  reader->input.fd < 0 ? strerror(errno) : "expected a file that is not empty");
    csv_reader_close(reader);
    return false;
}

void csv_reader_close(struct csv_reader *reader)
{
    input_close(&reader->input);
    digest_destroy(reader->digest);
    arena_destroy(reader->arena);
    builder_free(&reader->text);
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
static enum csv_event join(struct csv_reader *reader, struct bytes *text, const char **problem_r)
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
        builder_add_text(&reader->text, "\n");
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

enum csv_event csv_reader_next(struct csv_reader *reader, struct csv_record *record_r, const char **problem_r)
{
    struct bytes text;
    enum csv_event event;
    arena_reset(reader->arena);
    do {
        event = next_line(reader, &text, problem_r);
        reader->line = reader->input.line + (event == CSV_FAILED);
    } while (event == CSV_RECORD && (!text.size || bytes_equal(text, BYTES("\r"))));
    if (event == CSV_RECORD && csv_record_is_open(text, reader->separator, false))
        event = join(reader, &text, problem_r);
    if (event != CSV_RECORD)
        return event;
    if (text.size && text.data[text.size - 1] == '\r')
        text.size--;
    return csv_record_read(reader->arena, text, reader->separator, record_r, problem_r) ? CSV_RECORD
                                                                                        : CSV_WRONG;
}

void csv_reader_digest(struct csv_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    digest_end_hex(reader->digest, hex_r);
}
