/* resp: lines that end in CR and LF, and texts with their sizes before them. */
#include "journal/resp/resp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

enum { PLACES_FIRST = 8, KEPT_BYTES = 4096 };

/* --- reading --- */

static enum resp_reading refuse(struct resp_reader *reader, const char *problem)
{
    reader->problem = problem;
    return RESP_MALFORMED;
}

static void add_place(struct resp_reader *reader, size_t at, size_t size)
{
    if (reader->count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : PLACES_FIRST;
        struct resp_place *places = realloc(reader->places, capacity * sizeof *places);
        if (!places)
            log_fatal("out of memory reading a request");
        reader->places = places;
        reader->capacity = capacity;
    }
    reader->places[reader->count++] = (struct resp_place){(uint32_t)at, (uint32_t)size};
}

bool resp_to_integer(struct bytes text, int64_t *number_r)
{
    bool is_negative = text.size && text.data[0] == '-';
    size_t at = is_negative;
    uint64_t number = 0, most = (uint64_t)INT64_MAX + is_negative;
    if (at == text.size || (text.data[at] == '0' && text.size > 1))
        return false;
    for (; at < text.size; at++) {
        unsigned digit = (unsigned)(text.data[at] - '0');
        if (digit > 9 || number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *number_r = is_negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

/* The number behind a mark, with the end of its line. */
static enum resp_reading read_number(struct resp_reader *reader, struct bytes bytes, const char *problem,
                                     int64_t *number_r)
{
    const char *text = bytes.data + reader->at + 1;
    size_t left = bytes.size - reader->at - 1, most = left < RESP_NUMBER_MOST ? left : RESP_NUMBER_MOST;
    size_t size = 0; /* a few digits: quicker than a call of memchr */
    while (size < most && text[size] != '\r')
        size++;
    if (size == most)
        return left < RESP_NUMBER_MOST ? RESP_PARTIAL : refuse(reader, problem);
    if (!resp_to_integer((struct bytes){text, size}, number_r))
        return refuse(reader, problem);
    if (size + 1 == left)
        return RESP_PARTIAL;
    if (text[size + 1] != '\n')
        return refuse(reader, "expected LF");
    reader->at += size + 3;
    return RESP_WHOLE;
}

static enum resp_reading read_bulk(struct resp_reader *reader, struct bytes bytes,
                                   const struct resp_limits *limits)
{
    if (reader->size < 0) {
        int64_t size = 0;
        if (reader->at == bytes.size)
            return RESP_PARTIAL;
        if (bytes.data[reader->at] != '$')
            return refuse(reader, "expected '$'");
        enum resp_reading reading = read_number(reader, bytes, "invalid bulk length", &size);
        if (reading != RESP_WHOLE)
            return reading;
        if (size < 0 || (uint64_t)size > limits->word || reader->at + (size_t)size > limits->all)
            return refuse(reader, "invalid bulk length");
        reader->size = size;
    }
    size_t size = (size_t)reader->size;
    if (bytes.size - reader->at < size + 2)
        return RESP_PARTIAL;
    const char *end = bytes.data + reader->at + size;
    if (end[0] != '\r' || end[1] != '\n')
        return refuse(reader, "expected CR and LF");
    add_place(reader, reader->at, size);
    reader->at += size + 2;
    reader->size = -1;
    reader->left--;
    return RESP_WHOLE;
}

/* --- lines --- */

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == 0;
}

static int hex_digit(char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *place = byte ? strchr(digits, byte | 0x20) : NULL;
    return place && (byte >= 'A' || (byte >= '0' && byte <= '9')) ? (int)(place - digits) : -1;
}

/* A byte behind a backslash within double quotes; how many were used. */
static size_t unescape(struct bytes rest, char *byte_r)
{
    static const char names[] = "nrtba", bytes[] = "\n\r\t\b\a";
    const char *name = strchr(names, rest.data[0]);
    if (rest.size > 2 && rest.data[0] == 'x' && hex_digit(rest.data[1]) >= 0 &&
        hex_digit(rest.data[2]) >= 0) {
        *byte_r = (char)(hex_digit(rest.data[1]) * 16 + hex_digit(rest.data[2]));
        return 3;
    }
    *byte_r = name && *name ? bytes[name - names] : rest.data[0];
    return 1;
}

/* Up to the closing quote; false: there is none, or something follows it. */
static bool read_quoted(struct bytes *rest, char quote, struct builder *line)
{
    rest->data++;
    rest->size--;
    while (rest->size && rest->data[0] != quote) {
        char byte = rest->data[0];
        size_t used = 1;
        if (byte == '\\' && rest->size > 1 && quote == '"')
            used += unescape((struct bytes){rest->data + 1, rest->size - 1}, &byte);
        else if (byte == '\\' && rest->size > 1 && rest->data[1] == '\'')
            byte = rest->data[used++];
        builder_add(line, &byte, 1);
        rest->data += used;
        rest->size -= used;
    }
    if (!rest->size || (rest->size > 1 && !is_blank(rest->data[1])))
        return false;
    rest->data++;
    rest->size--;
    return true;
}

static enum resp_reading split_line(struct resp_reader *reader, struct bytes rest,
                                    const struct resp_limits *limits)
{
    reader->is_line = true;
    for (;;) {
        while (rest.size && is_blank(rest.data[0])) {
            rest.data++;
            rest.size--;
        }
        if (!rest.size)
            return RESP_WHOLE;
        size_t start = reader->line.size;
        if (reader->count == limits->words)
            return refuse(reader, "too many words in a line");
        while (rest.size && !is_blank(rest.data[0])) {
            if (rest.data[0] == '"' || rest.data[0] == '\'') {
                if (!read_quoted(&rest, rest.data[0], &reader->line))
                    return refuse(reader, "unbalanced quotes in request");
                break;
            }
            builder_add(&reader->line, rest.data, 1);
            rest.data++;
            rest.size--;
        }
        if (reader->line.size - start > limits->word)
            return refuse(reader, "too big inline request");
        add_place(reader, start, reader->line.size - start);
    }
}

static enum resp_reading read_line(struct resp_reader *reader, struct bytes bytes,
                                   const struct resp_limits *limits)
{
    size_t most = limits->all < RESP_LINE_MOST ? limits->all : RESP_LINE_MOST;
    const char *end = memchr(bytes.data, '\n', bytes.size < most ? bytes.size : most);
    if (!end)
        return bytes.size < most ? RESP_PARTIAL : refuse(reader, "too big inline request");
    reader->at = (size_t)(end - bytes.data) + 1;
    return split_line(reader, (struct bytes){bytes.data, reader->at - 1}, limits);
}

enum resp_reading resp_read(struct resp_reader *reader, struct bytes bytes, const struct resp_limits *limits)
{
    enum resp_reading reading = RESP_WHOLE;
    reader->base = bytes.data;
    if (reader->is_line || (reader->left == 0 && reader->at))
        return RESP_WHOLE; /* it was read before */
    if (!bytes.size)
        return RESP_PARTIAL;
    if (reader->left < 0) {
        if (bytes.data[0] != '*')
            return read_line(reader, bytes, limits);
        int64_t count = 0;
        reading = read_number(reader, bytes, "invalid multibulk length", &count);
        if (reading != RESP_WHOLE)
            return reading;
        if (count > (int64_t)limits->words)
            return refuse(reader, "invalid multibulk length");
        reader->left = count < 0 ? 0 : count;
    }
    while (reading == RESP_WHOLE && reader->left)
        reading = read_bulk(reader, bytes, limits);
    return reading;
}

struct bytes resp_word(const struct resp_reader *reader, size_t place)
{
    assert(place < reader->count);
    const char *base = reader->is_line ? builder_bytes(&reader->line).data : reader->base;
    return (struct bytes){base + reader->places[place].at, reader->places[place].size};
}

void resp_next(struct resp_reader *reader)
{
    if (reader->is_line && reader->line.size)
        explicit_bzero(reader->line.data, reader->line.size); /* it may have had a key */
    builder_clear(&reader->line, KEPT_BYTES);
    reader->is_line = false;
    reader->at = reader->count = 0;
    reader->left = reader->size = -1;
}

void resp_free(struct resp_reader *reader)
{
    resp_next(reader);
    builder_free(&reader->line);
    free(reader->places);
    *reader = (struct resp_reader){0};
}

bool resp_is(struct bytes text, const char *word)
{
    size_t size = strlen(word);
    return text.size == size && strncasecmp(text.data, word, size) == 0;
}

/* --- replies --- */

static void add_line(struct builder *out, char mark, struct bytes text)
{
    char *place = builder_reserve(out, text.size + 3);
    place[0] = mark;
    memcpy(place + 1, text.data, text.size);
    memcpy(place + 1 + text.size, "\r\n", 2);
    out->size += text.size + 3;
}

static void add_number(struct builder *out, char mark, int64_t number)
{
    char text[RESP_NUMBER_MOST], *at = text + sizeof text;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--at = '-';
    add_line(out, mark, (struct bytes){at, (size_t)(text + sizeof text - at)});
}

void resp_add_simple(struct builder *out, const char *text)
{
    add_line(out, '+', bytes_of(text));
}

void resp_add_error(struct builder *out, const char *text)
{
    size_t start = out->size + 1, end = start + strlen(text);
    add_line(out, '-', bytes_of(text));
    for (size_t i = start; i < end; i++) /* it may have words of the request, or of the administrator */
        if (out->data[i] == '\r' || out->data[i] == '\n')
            out->data[i] = ' ';
}

void resp_add_integer(struct builder *out, int64_t number)
{
    add_number(out, ':', number);
}

void resp_add_bulk(struct builder *out, struct bytes text)
{
    add_number(out, '$', (int64_t)text.size);
    char *place = builder_reserve(out, text.size + 2);
    if (text.size)
        memcpy(place, text.data, text.size);
    memcpy(place + text.size, "\r\n", 2);
    out->size += text.size + 2;
}

void resp_add_null(struct builder *out, int version)
{
    builder_add_bytes(out, version == 3 ? BYTES("_\r\n") : BYTES("$-1\r\n"));
}

void resp_add_array(struct builder *out, size_t count)
{
    add_number(out, '*', (int64_t)count);
}

void resp_add_map(struct builder *out, int version, size_t pairs)
{
    add_number(out, version == 3 ? '%' : '*', (int64_t)(version == 3 ? pairs : pairs * 2));
}

void resp_add_push(struct builder *out, int version, size_t count)
{
    add_number(out, version == 3 ? '>' : '*', (int64_t)count);
}
