/* couch_reader: finds where rows end by their brackets; each byte is looked at once, but for the heads of
 * objects outside of lists. */
#include "control/foreign/couch/couch_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/foreign/couch/couch_text.h"
#include "control/message.h"

enum { READ_SIZE = 256 << 10, ROW_MOST = 256 << 20, HEAD_MOST = 4096 };

static const char truncated[] = "the file ends inside a list or an object: it is truncated";
static const char no_documents[] =
    "expected an answer of CouchDB to _all_docs, {\"total_rows\":…,\"rows\":[…]}, or documents: "
    "{\"docs\":[…]}, arrays of them, or one after the other";

/* --- bytes --- */

/* False: the end of the file, or `problem_r` says why it cannot be read. */
static bool read_more(struct couch_reader *reader, const char **problem_r)
{
    ssize_t got;
    if (reader->is_ended)
        return false;
    if (reader->start) {
        memmove(reader->buffer.data, reader->buffer.data + reader->start,
                reader->buffer.size - reader->start);
        reader->buffer.size -= reader->start;
        reader->start = 0;
    }
    char *room = builder_reserve(&reader->buffer, READ_SIZE);
    while ((got = read(reader->fd, room, READ_SIZE)) < 0 && errno == EINTR)
        ;
    reader->is_ended = got <= 0;
    reader->has_failed = got < 0;
    if (got < 0)
        *problem_r = strerror(errno);
    if (got <= 0)
        return false;
    digest_add(reader->digest, (struct bytes){room, (size_t)got});
    reader->buffer.size += (size_t)got;
    reader->offset += got;
    return true;
}

/* The next byte that is no blank, which stays; 0: none. */
static char peek(struct couch_reader *reader, const char **problem_r)
{
    do {
        for (; reader->start < reader->buffer.size; reader->start++) {
            char c = reader->buffer.data[reader->start];
            if (!strchr(" \t\r\n", c) || !c)
                return c;
        }
    } while (read_more(reader, problem_r));
    return 0;
}

static bool couch_reader_take(struct couch_reader *reader, char expected, const char **problem_r)
{
    if (peek(reader, problem_r) != expected)
        return false;
    reader->start++;
    return true;
}

/* --- the file --- */

/* Enters the list of the object that begins here.  False: it has none, so it is a document or a row. */
static bool enter_list(struct couch_reader *reader, const char **problem_r)
{
    while (reader->buffer.size - reader->start < HEAD_MOST && read_more(reader, problem_r))
        ;
    size_t left = reader->buffer.size - reader->start;
    struct bytes head = {reader->buffer.data + reader->start, left < HEAD_MOST ? left : HEAD_MOST};
    bool is_rows;
    size_t size = couch_text_list(head, &is_rows);
    if (!size || (is_rows && reader->has_values))
        return false;
    reader->start += size;
    reader->place = COUCH_IN_OBJECT;
    reader->is_answer = is_rows;
    reader->has_row = false;
    reader->has_values = true;
    return true;
}

bool couch_reader_open(struct couch_reader *reader, const char *path)
{
    struct stat status;
    const char *problem = NULL;
    *reader = (struct couch_reader){.fd = open(path, O_RDONLY | O_CLOEXEC), .digest = digest_create()};
    if (reader->fd < 0 || fstat(reader->fd, &status) != 0) {
        problem = strerror(errno);
    } else {
        reader->size = status.st_size;
        return true;
    }
    message_print("%s: %s", path, problem);
    couch_reader_close(reader);
    return false;
}

void couch_reader_close(struct couch_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    digest_destroy(reader->digest);
    builder_free(&reader->buffer);
}

/* --- rows --- */

static enum couch_event couch_reader_take_row(struct couch_reader *reader, struct bytes *row_r,
                                              const char **problem_r)
{
    struct couch_scan scan = {0};
    size_t size = 0; /* of the row, so far; its place in the buffer changes */
    do {
        while (reader->start + size < reader->buffer.size)
            if (couch_scan_ends(&scan, reader->buffer.data[reader->start + size++])) {
                *row_r = (struct bytes){reader->buffer.data + reader->start, size};
                reader->start += size;
                reader->has_row = reader->has_values = true;
                return COUCH_ROW;
            }
        if (size > ROW_MOST) {
            *problem_r = "a row of more than 256 MB";
            return COUCH_FAILED;
        }
    } while (read_more(reader, problem_r));
    return COUCH_FAILED;
}

static bool is_at_end(struct couch_reader *reader, const char **problem_r)
{
    return !peek(reader, problem_r) && reader->start == reader->buffer.size && !reader->has_failed;
}

/* Behind the bracket of a list.  COUCH_ROW: reading goes on. */
static enum couch_event leave_list(struct couch_reader *reader, const char **problem_r)
{
    bool is_closed = reader->place == COUCH_IN_ARRAY || couch_reader_take(reader, '}', problem_r);
    reader->place = COUCH_OUTSIDE;
    if (is_closed && !reader->is_answer)
        return COUCH_ROW;
    if (is_closed && is_at_end(reader, problem_r))
        return COUCH_END;
    *problem_r = "expected nothing but } behind the list of rows or documents";
    return COUCH_FAILED;
}

static enum couch_event next_in_list(struct couch_reader *reader, struct bytes *row_r, const char **problem_r)
{
    if ((!reader->has_row || couch_reader_take(reader, ',', problem_r)) && peek(reader, problem_r) == '{')
        return couch_reader_take_row(reader, row_r, problem_r);
    if (reader->start < reader->buffer.size)
        *problem_r = "expected a row or a document, an object, or the end of their list";
    return COUCH_FAILED;
}

static enum couch_event next_outside(struct couch_reader *reader, struct bytes *row_r, const char **problem_r)
{
    if (peek(reader, problem_r) == '{')
        return couch_reader_take_row(reader, row_r, problem_r);
    if (reader->has_values && is_at_end(reader, problem_r))
        return COUCH_END;
    if (!reader->has_failed)
        *problem_r = no_documents;
    return COUCH_FAILED;
}

enum couch_event couch_reader_next(struct couch_reader *reader, struct bytes *row_r, const char **problem_r)
{
    *problem_r = truncated;
    for (;;) {
        if (reader->place == COUCH_OUTSIDE && couch_reader_take(reader, '[', problem_r)) {
            reader->place = COUCH_IN_ARRAY;
            reader->has_row = false;
        }
        if (reader->place == COUCH_OUTSIDE &&
            (peek(reader, problem_r) != '{' || !enter_list(reader, problem_r)))
            return next_outside(reader, row_r, problem_r);
        if (!couch_reader_take(reader, ']', problem_r))
            return next_in_list(reader, row_r, problem_r);
        enum couch_event event = leave_list(reader, problem_r);
        if (event != COUCH_ROW)
            return event;
    }
}

void couch_reader_digest(struct couch_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    digest_end_hex(reader->digest, hex_r);
}
