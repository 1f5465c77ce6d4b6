/* fcgi_input: reads the records of a request.
 *
 * A read takes what has arrived, up to the room that there is: mostly the whole request.  Parameters are used
 * where they lie.  Only the body may follow them there, so what is received later never moves them. */
#include "edge/fcgi_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"

enum {
    ROOM_FIRST = 64 << 10,
    ROOM_MOST = 512 << 10, /* nginx refuses heads that are much shorter */
    ROOM_OF_BODY = 16 << 10,
    DIRECT_LEAST =
        4 << 10, /* so much of a body is received where it is wanted, if nothing of it is here yet */
    BEGIN_BYTES = 8,
};

/* --- bytes --- */

/* False: nothing came in time. */
static bool wait_for_more(struct fcgi_input *input)
{
    struct pollfd events = {.fd = input->fd, .events = POLLIN};
    int64_t now_ms = clock_monotonic_ms();
    if (!input->until_ms)
        input->until_ms = now_ms + input->timeout_ms;
    if (now_ms >= input->until_ms)
        return false;
    int count = poll(&events, 1, (int)(input->until_ms - now_ms));
    return count > 0 || (count < 0 && errno == EINTR);
}

/* 0: the peer has closed the connection, or sends nothing in time. */
static size_t receive(struct fcgi_input *input, char *room, size_t size)
{
    for (;;) {
        ssize_t got = recv(input->fd, room, size, MSG_DONTWAIT);
        if (got >= 0)
            return (size_t)got;
        if (errno != EINTR && (errno != EAGAIN || !wait_for_more(input)))
            return 0;
    }
}

/* False: that is more than a head may have. */
static bool grow(struct fcgi_input *input, size_t capacity)
{
    size_t new = input->capacity ? input->capacity : ROOM_FIRST;
    while (new < capacity)
        new *= 2;
    if (new > ROOM_MOST)
        return false;
    if (new > input->capacity) {
        char *room = realloc(input->room, new);
        if (!room)
            log_fatal("out of memory fcgi bytes=%zu", new);
        input->room = room;
        input->capacity = new;
    }
    return true;
}

/* Room for `size` bytes from `next` on, and at least one more than have arrived. */
static bool make_room(struct fcgi_input *input, size_t size)
{
    if (input->capacity - input->next >= size && input->capacity > input->end)
        return true;
    if (input->next > input->kept) {
        memmove(input->room + input->kept, input->room + input->next, input->end - input->next);
        input->end -= input->next - input->kept;
        input->next = input->kept;
    }
    return grow(input, input->kept + size);
}

/* At least `size` bytes are there to be looked at. */
static bool fill(struct fcgi_input *input, size_t size)
{
    while (input->end - input->next < size) {
        if (input->next == input->end)
            input->next = input->end = input->kept;
        if (!make_room(input, size))
            return false;
        size_t got = receive(input, input->room + input->end, input->capacity - input->end);
        if (!got)
            return false;
        input->end += got;
    }
    return true;
}

/* --- records --- */

struct fcgi_record {
    int type, id;
    size_t size, padding;
};

static bool read_record(struct fcgi_input *input, struct fcgi_record *record_r)
{
    struct fcgi_header header;
    if (!fill(input, sizeof header))
        return false;
    memcpy(&header, input->room + input->next, sizeof header);
    input->next += sizeof header;
    *record_r = (struct fcgi_record){.type = header.type,
                                     .id = header.id[0] << 8 | header.id[1],
                                     .size = (size_t)(header.size[0] << 8 | header.size[1]),
                                     .padding = header.padding};
    return header.version == FCGI_VERSION;
}

static bool read_begin(struct fcgi_input *input)
{
    struct fcgi_record record;
    if (!read_record(input, &record) || record.type != FCGI_BEGIN_REQUEST || record.size != BEGIN_BYTES ||
        !fill(input, record.size + record.padding))
        return false;
    const unsigned char *begin = (const unsigned char *)input->room + input->next;
    input->id = record.id;
    input->keeps_connection = begin[2] & FCGI_KEEPS_CONNECTION;
    input->next += record.size + record.padding;
    return (begin[0] << 8 | begin[1]) == FCGI_RESPONDER;
}

/* The contents of the records, one behind the other: where they begin; they end at `kept`. */
static bool gather_parameters(struct fcgi_input *input, size_t *start_r)
{
    struct fcgi_record record;
    bool is_first = true;
    do {
        if (!read_record(input, &record) || record.type != FCGI_PARAMS || record.id != input->id ||
            !fill(input, record.size + record.padding))
            return false;
        if (is_first)
            *start_r = input->kept = input->next;
        else
            memmove(input->room + input->kept, input->room + input->next, record.size);
        is_first = false;
        input->kept += record.size;
        input->next += record.size + record.padding;
    } while (record.size);
    return grow(input, input->kept + ROOM_OF_BODY);
}

/* --- parameters --- */

/* A tag of a name, its length and last byte, so that few names are compared in full. */
static inline uint16_t tag_of(struct bytes name)
{
    return (uint16_t)(name.size << 8 | (name.size ? (unsigned char)name.data[name.size - 1] : 0));
}

/* One of 64 bits.  Most parameters that are looked for are absent, and most of those have a bit that no
 * parameter of the request has. */
static inline uint64_t bit_of(uint16_t tag)
{
    return UINT64_C(1) << ((tag ^ tag >> 8) & 63);
}

/* A byte, or four of which the first has its highest bit set. */
static bool read_size(const unsigned char **at, const unsigned char *end, size_t *size_r)
{
    const unsigned char *from = *at;
    bool is_long = from < end && from[0] & 0x80;
    if (end - from < (is_long ? 4 : 1))
        return false;
    *size_r =
        is_long ? (size_t)(from[0] & 0x7f) << 24 | (size_t)(from[1] << 16 | from[2] << 8 | from[3]) : from[0];
    *at = from + (is_long ? 4 : 1);
    return true;
}

/* Behind a value there are the sizes of the next name and value, or a record that was read: room for a NUL.
 */
static bool list_parameters(struct fcgi_input *input, size_t start)
{
    const unsigned char *at = (const unsigned char *)input->room + start,
                        *end = (const unsigned char *)input->room + input->kept;
    int count = 0;
    input->bits = 0;
    for (size_t name_size, value_size; at < end; count++) {
        char *past = input->room + (at - (const unsigned char *)input->room);
        if (!read_size(&at, end, &name_size) || !read_size(&at, end, &value_size) ||
            (size_t)(end - at) < name_size || (size_t)(end - at) - name_size < value_size ||
            count == PARAMETERS_MOST)
            return false;
        if (count)
            *past = '\0';
        struct bytes name = {(const char *)at, name_size};
        input->tags[count] = tag_of(name);
        input->bits |= bit_of(input->tags[count]);
        input->parameters[count] = (struct parameter){name, {name.data + name_size, value_size}};
        at += name_size + value_size;
    }
    if (count) /* otherwise no record was read behind them */
        input->room[input->kept] = '\0';
    input->parameter_count = count;
    return true;
}

struct bytes fcgi_input_parameter(const struct fcgi_input *input, const char *name)
{
    struct bytes wanted = bytes_of(name);
    uint16_t tag = tag_of(wanted);
    if (!(input->bits & bit_of(tag)))
        return NO_BYTES;
    for (int i = 0; i < input->parameter_count; i++)
        if (input->tags[i] == tag && bytes_equal(input->parameters[i].name, wanted))
            return input->parameters[i].value;
    return NO_BYTES;
}

/* --- head and body --- */

bool fcgi_input_begin(struct fcgi_input *input, int fd)
{
    size_t start = 0;
    input->fd = fd;
    input->until_ms = 0;
    input->state = INPUT_OPEN;
    input->kept = input->next = input->end = input->content = input->padding = 0;
    return read_begin(input) && gather_parameters(input, &start) && list_parameters(input, start);
}

/* The empty record ends the body. */
static enum input begin_record(struct fcgi_input *input)
{
    struct fcgi_record record;
    if (!fill(input, input->padding))
        return INPUT_BROKEN;
    input->next += input->padding;
    input->padding = 0;
    if (!read_record(input, &record) || record.type != FCGI_STDIN || record.id != input->id)
        return INPUT_BROKEN; /* FCGI_ABORT_REQUEST: nginx has given up */
    input->content = record.size;
    input->padding = record.padding;
    if (record.size)
        return INPUT_OPEN;
    if (!fill(input, record.padding))
        return INPUT_BROKEN;
    input->next += record.padding;
    return INPUT_WHOLE;
}

/* Some bytes of the present record; 0: none come. */
static size_t read_some(struct fcgi_input *input, char *room, size_t size)
{
    size_t most = size < input->content ? size : input->content;
    if (input->next == input->end && most >= DIRECT_LEAST)
        return receive(input, room, most);
    if (!fill(input, 1))
        return 0;
    size_t here = input->end - input->next, got = most < here ? most : here;
    memcpy(room, input->room + input->next, got);
    input->next += got;
    return got;
}

size_t fcgi_input_read(struct fcgi_input *input, char *room, size_t size)
{
    size_t done = 0;
    while (done < size && input->state == INPUT_OPEN) {
        if (!input->content) {
            input->state = begin_record(input);
            continue;
        }
        size_t got = read_some(input, room + done, size - done);
        if (!got)
            input->state = INPUT_BROKEN;
        input->content -= got;
        done += got;
    }
    return done;
}

void fcgi_input_free(struct fcgi_input *input)
{
    free(input->room);
}
