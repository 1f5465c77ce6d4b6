/* resp: the messages of RESP, the protocol of Redis, in its versions 2 and 3: requests from bytes, replies to
 * bytes.  Pure: the fuzz target runs exactly this.
 *
 * A request is an array of words, or one line of them.  The reader goes on where it has stopped: what came in
 * many pieces costs no more than what came in one. */
#ifndef STAMPD_JOURNAL_RESP_RESP_H
#define STAMPD_JOURNAL_RESP_RESP_H

#include "base/builder.h"
#include "base/bytes.h"

enum {
    RESP_WORDS_MOST = 2048,    /* of a request */
    RESP_LINE_MOST = 16384,    /* bytes of a request in one line */
    RESP_EXTRA_BYTES = 262144, /* a request may be larger by this than the largest word */
    RESP_NUMBER_MOST = 24      /* bytes of an integer as a text */
};

struct resp_limits {
    size_t words, word, all; /* how many; bytes of each, and of the request */
};

enum resp_reading { RESP_WHOLE, RESP_PARTIAL, RESP_MALFORMED };

struct resp_place {
    uint32_t at, size;
};

/* Zeroed and with resp_next: before a request.  To be freed. */
struct resp_reader {
    const char *base;
    size_t at;    /* bytes that were read */
    int64_t left; /* words that are to come; -1: not known yet */
    int64_t size; /* of the word that comes; -1: not known yet */
    size_t count; /* words */
    size_t capacity;
    struct resp_place *places;
    struct builder line; /* the words of a line, without their quotes */
    bool is_line;
    const char *problem; /* of RESP_MALFORMED: the connection cannot go on */
};

/* `bytes`: from the beginning of the request, whatever was read before. */
MUST_USE enum resp_reading resp_read(struct resp_reader *reader, struct bytes bytes,
                                     const struct resp_limits *limits);
/* Of a whole request, as long as its bytes stay where they are: after a move, resp_read is called again. */
struct bytes resp_word(const struct resp_reader *reader, size_t place);
/* The next request is to be read. */
void resp_next(struct resp_reader *reader);
void resp_free(struct resp_reader *reader);

/* An integer as Redis takes one: digits without zeros before them, perhaps a minus. */
MUST_USE bool resp_to_integer(struct bytes text, int64_t *number_r);
/* Is it this word, in any case?  `word`: in lower case. */
bool resp_is(struct bytes text, const char *word);

/* --- replies --- */

void resp_add_simple(struct builder *out, const char *text);
/* The text begins with a code, and has no line end. */
void resp_add_error(struct builder *out, const char *text);
void resp_add_integer(struct builder *out, int64_t number);
void resp_add_bulk(struct builder *out, struct bytes text);
void resp_add_null(struct builder *out, int version);
void resp_add_array(struct builder *out, size_t count);
/* `pairs` of what follows: an array of twice as many in version 2. */
void resp_add_map(struct builder *out, int version, size_t pairs);
/* Something that the client has not requested: an array in version 2. */
void resp_add_push(struct builder *out, int version, size_t count);

#endif
