/* couch_reader: finds where rows end by their brackets; each byte is looked at once. */
#include "control/foreign/couch_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/foreign/couch_text.h"
#include "control/message.h"

enum { READ_SIZE = 256 << 10, ROW_MOST = 256 << 20, HEAD_MOST = 4096 };

static const char truncated[] = "the file ends inside its list of rows: it is truncated";

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

static bool take(struct couch_reader *reader, char expected, const char **problem_r)
{
    if (peek(reader, problem_r) != expected)
        return false;
    reader->start++;
    return true;
}

/* --- the file --- */

/* The members before "rows" are numbers, null, or a text without quotes. */
static bool find_rows(struct couch_reader *reader, const char **problem_r)
{
    static const char name[] = "\"rows\"";
    const char *found = NULL;
    *problem_r = "expected {\"total_rows\":…,\"rows\":[…]}, an answer of CouchDB to _all_docs";
    if (peek(reader, problem_r) != '{')
        return false;
    while (reader->buffer.size - reader->start < HEAD_MOST && read_more(reader, problem_r))
        ;
    size_t left = reader->buffer.size - reader->start;
    if (left)
        found = memmem(reader->buffer.data + reader->start, left < HEAD_MOST ? left : HEAD_MOST, name,
                       sizeof name - 1);
    if (!found)
        return false;
    reader->start = (size_t)(found - reader->buffer.data) + sizeof name - 1;
    return take(reader, ':', problem_r) && take(reader, '[', problem_r);
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
        if (find_rows(reader, &problem))
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

static enum couch_event take_row(struct couch_reader *reader, struct bytes *row_r, const char **problem_r)
{
    struct couch_scan scan = {0};
    size_t size = 0; /* of the row, so far; its place in the buffer changes */
    do {
        while (reader->start + size < reader->buffer.size)
            if (couch_scan_ends(&scan, reader->buffer.data[reader->start + size++])) {
                *row_r = (struct bytes){reader->buffer.data + reader->start, size};
                reader->start += size;
                reader->has_row = true;
                return COUCH_ROW;
            }
        if (size > ROW_MOST) {
            *problem_r = "a row of more than 256 MB";
            return COUCH_FAILED;
        }
    } while (read_more(reader, problem_r));
    return COUCH_FAILED;
}

static enum couch_event end(struct couch_reader *reader, const char **problem_r)
{
    if (take(reader, '}', problem_r) && !peek(reader, problem_r) && reader->start == reader->buffer.size)
        return COUCH_END;
    *problem_r = "expected nothing but } behind the list of rows";
    return COUCH_FAILED;
}

enum couch_event couch_reader_next(struct couch_reader *reader, struct bytes *row_r, const char **problem_r)
{
    *problem_r = truncated;
    if (take(reader, ']', problem_r))
        return end(reader, problem_r);
    if ((!reader->has_row || take(reader, ',', problem_r)) && peek(reader, problem_r) == '{')
        return take_row(reader, row_r, problem_r);
    if (reader->start < reader->buffer.size)
        *problem_r = "expected a row, an object, or the end of the list of rows";
    return COUCH_FAILED;
}

void couch_reader_digest(struct couch_reader *reader, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    digest_end_hex(reader->digest, hex_r);
}
