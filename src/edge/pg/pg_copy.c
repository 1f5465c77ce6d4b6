/* pg_copy: the binary COPY format, and the waits of a copy under way. */
#include "edge/pg/pg_copy.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "edge/pg/pg_private.h"

/* Signature, flags without oids, no extension (PostgreSQL's documentation, COPY, "Binary Format"). */
static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
enum { HEADER_SIZE = sizeof header - 1, FLAGS_SIZE = 8, PIECE = 1 << 20 };

struct copy {
    const char *what; /* NULL: none is under way */
    char *row;        /* libpq's; NULL: none */
    bool has_header;
};

static void end_copy(void *pointer)
{
    struct copy *copy = pointer;
    PQfreemem(copy->row);
    free(copy);
}

static struct copy *copy_of(struct pg *pg)
{
    return pg_state(pg, PG_USE_COPY, sizeof(struct copy), end_copy);
}

/* Waits until the socket is ready for one of the events, and reads what has arrived. */
static enum fault pg_copy_await(struct pg *pg, short events, int64_t deadline_ms, const char *what)
{
    struct pollfd socket = {.fd = PQsocket(pg_connection(pg)), .events = events};
    int64_t left_ms = deadline_ms - clock_monotonic_ms();
    int ready = poll(&socket, 1, left_ms < 0 ? 0 : left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
    if (ready == 0 && left_ms <= 0)
        return pg_note_silence(pg, what);
    if (ready < 0 && errno != EINTR)
        return pg_note_loss(pg, what);
    if (ready > 0 && (socket.revents & ~POLLOUT) && !PQconsumeInput(pg_connection(pg)))
        return pg_note_loss(pg, what);
    return FAULT_NONE;
}

/* --- out --- */

enum fault pg_copy_out(struct pg *pg, const char *sql)
{
    enum fault fault = pg_execute_text(pg, sql, PGRES_COPY_OUT, "copy out");
    if (fault)
        return fault;
    *copy_of(pg) = (struct copy){.what = "copy out"};
    pg_set_busy(pg, true);
    return FAULT_NONE;
}

static uint32_t take_u32(struct bytes *rest)
{
    uint32_t number;
    memcpy(&number, rest->data, sizeof number);
    rest->data += sizeof number;
    rest->size -= sizeof number;
    return be32toh(number);
}

/* False: this is not the format. */
static bool pg_copy_read_header(struct bytes *rest)
{
    if (rest->size < HEADER_SIZE || memcmp(rest->data, header, HEADER_SIZE - FLAGS_SIZE) != 0)
        return false;
    rest->data += HEADER_SIZE;
    rest->size -= HEADER_SIZE;
    return true;
}

static bool read_row(struct bytes rest, struct pg_copy_row *row_r)
{
    uint16_t count;
    if (rest.size < sizeof count)
        return false;
    memcpy(&count, rest.data, sizeof count);
    count = be16toh(count);
    rest.data += sizeof count;
    rest.size -= sizeof count;
    row_r->count = 0;
    if (count == UINT16_MAX) /* the trailer */
        return true;
    if (count > PG_COPY_FIELDS_MAX)
        return false;
    for (row_r->count = 0; row_r->count < count; row_r->count++) {
        if (rest.size < 4)
            return false;
        uint32_t size = take_u32(&rest);
        row_r->fields[row_r->count] = NO_BYTES;
        if (size == UINT32_MAX)
            continue;
        if (size > rest.size)
            return false;
        row_r->fields[row_r->count] = (struct bytes){rest.data, size};
        rest.data += size;
        rest.size -= size;
    }
    return row_r->count > 0 && rest.size == 0;
}

static enum fault end_rows(struct pg *pg, struct copy *copy)
{
    const char *what = copy->what;
    copy->what = NULL;
    pg_set_busy(pg, false);
    return pg_finish(pg, PGRES_COMMAND_OK, what);
}

enum fault pg_copy_next(struct pg *pg, struct pg_copy_row *row_r)
{
    struct copy *copy = copy_of(pg);
    int64_t deadline_ms = pg_answer_deadline_ms(pg);
    row_r->count = 0;
    assert(copy->what);
    for (;;) {
        PQfreemem(copy->row);
        copy->row = NULL;
        int size = PQgetCopyData(pg_connection(pg), &copy->row, 1);
        if (size == 0) {
            enum fault fault = pg_copy_await(pg, POLLIN, deadline_ms, copy->what);
            if (fault)
                return fault;
            continue;
        }
        if (size == -1)
            return end_rows(pg, copy);
        struct bytes rest = {copy->row, size < 0 ? 0 : (size_t)size};
        if (size < 0 || (!copy->has_header && !pg_copy_read_header(&rest)))
            return pg_note_loss(pg, copy->what);
        copy->has_header = true;
        if (rest.size && !read_row(rest, row_r))
            return pg_note_loss(pg, copy->what);
        if (row_r->count)
            return FAULT_NONE;
    }
}

int64_t pg_copy_i64(struct bytes field)
{
    uint64_t number = 0;
    if (field.size == sizeof number)
        memcpy(&number, field.data, sizeof number);
    return (int64_t)be64toh(number);
}

bool pg_copy_bool(struct bytes field)
{
    return field.size == 1 && *field.data != 0;
}

/* --- in --- */

static void add_u16(struct builder *rows, uint16_t number)
{
    number = htobe16(number);
    builder_add(rows, &number, sizeof number);
}

static void add_u32(struct builder *rows, uint32_t number)
{
    number = htobe32(number);
    builder_add(rows, &number, sizeof number);
}

void pg_copy_add_row(struct builder *rows, int count)
{
    add_u16(rows, (uint16_t)count);
}

void pg_copy_add_i64(struct builder *rows, int64_t value)
{
    uint64_t number = htobe64((uint64_t)value);
    add_u32(rows, sizeof number);
    builder_add(rows, &number, sizeof number);
}

void pg_copy_add_bool(struct builder *rows, bool value)
{
    char byte = value;
    add_u32(rows, 1);
    builder_add(rows, &byte, 1);
}

void pg_copy_add_text(struct builder *rows, struct bytes text)
{
    add_u32(rows, text.data ? (uint32_t)text.size : UINT32_MAX);
    builder_add_bytes(rows, text);
}

/* Sends what is waiting, and reads an error that the server reports meanwhile. */
static enum fault flush(struct pg *pg, int64_t deadline_ms, const char *what)
{
    for (;;) {
        int unsent = PQflush(pg_connection(pg));
        if (unsent == 0)
            return FAULT_NONE;
        if (unsent < 0)
            return pg_note_loss(pg, what);
        enum fault fault = pg_copy_await(pg, POLLIN | POLLOUT, deadline_ms, what);
        if (fault)
            return fault;
    }
}

static enum fault pg_copy_put(struct pg *pg, struct bytes text, const char *what)
{
    while (text.size) {
        size_t size = text.size < PIECE ? text.size : PIECE;
        int put = PQputCopyData(pg_connection(pg), text.data, (int)size);
        if (put < 0)
            return pg_note_loss(pg, what);
        enum fault fault = flush(pg, pg_answer_deadline_ms(pg), what);
        if (fault)
            return fault;
        if (put == 0) /* no room: the same piece again */
            continue;
        text.data += size;
        text.size -= size;
    }
    return FAULT_NONE;
}

enum fault pg_copy_in(struct pg *pg, const char *sql, struct bytes rows)
{
    static const char what[] = "copy in";
    uint16_t trailer = UINT16_MAX;
    enum fault fault =
        FAULT_FIRST(pg_execute_text(pg, sql, PGRES_COPY_IN, what),
                    pg_copy_put(pg, (struct bytes){header, HEADER_SIZE}, what), pg_copy_put(pg, rows, what),
                    pg_copy_put(pg, (struct bytes){(const char *)&trailer, sizeof trailer}, what));
    if (fault)
        return fault;
    if (PQputCopyEnd(pg_connection(pg), NULL) < 0)
        return pg_note_loss(pg, what);
    return pg_finish(pg, PGRES_COMMAND_OK, what);
}
