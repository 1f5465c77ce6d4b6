/* journal_message: the messages of the journal protocol (doc/reference/journal-protocol.md), to and from
 * bytes. Pure: the fuzz target runs exactly this. */
#ifndef STAMPD_JOURNAL_JOURNAL_MESSAGE_H
#define STAMPD_JOURNAL_JOURNAL_MESSAGE_H

#include "base/builder.h"
#include "base/bytes.h"

enum journal_function {
    JOURNAL_NOP,
    JOURNAL_QUIT,
    JOURNAL_SET,
    JOURNAL_GET,
    JOURNAL_DELETE,
    JOURNAL_ADD,
    JOURNAL_NOT,
    JOURNAL_TRUNCATE,
    JOURNAL_LOCK,
    JOURNAL_UNLOCK,
    JOURNAL_RENAME,
    JOURNAL_PING = 64, /* above those of the specification */
    JOURNAL_AUTH,
    JOURNAL_NEXT, /* of tasks: journal_tasks.h */
    JOURNAL_KEEP,
    JOURNAL_DONE,
    JOURNAL_FAIL,
};

enum {
    JOURNAL_VERSION = 1,
    JOURNAL_LONG_KEYS = 1 << 0,
    JOURNAL_VALUE_SHIFT = 1, /* two bits: no value, a size of 8, 16 or 32 bits */
    JOURNAL_VALUE_BITS = 3,
    JOURNAL_HAS_TIMEOUT = 1 << 3,
    JOURNAL_UPDATE_TIMEOUT = 1 << 4,
    JOURNAL_OVERWRITE = 1 << 5,
    JOURNAL_WORKED_ON = 1 << 6,
    JOURNAL_QUERY_SHIFT = 7, /* two bits: enum journal_query */
    JOURNAL_QUERY_BITS = 3,
    JOURNAL_PERSIST = 1 << 9 | 1 << 12, /* the specification has it twice */
    JOURNAL_DATA = 1 << 10,
    JOURNAL_LISTEN = 1 << 11,
    JOURNAL_ONLY_PRESENT = 1 << 13, /* in requests */
    JOURNAL_IF_STAMP = 1 << 14,     /* in requests: a stamp follows the timeout */
    JOURNAL_STAMP =
        1 << 15, /* in requests: the answer is to have a stamp; in answers: it follows the error */
    JOURNAL_LOCKED = 1 << 13,     /* in answers */
    JOURNAL_MORE = 1 << 14,       /* in answers: a cursor follows the records */
    JOURNAL_OF_RECORDS = 7 << 13, /* in requests: of functions of records, SET to RENAME */
    JOURNAL_FIXED_BYTES = 18,     /* of a request, to its timestamp */
    JOURNAL_CURSOR_MOST = 4200    /* bytes of a key; those of records are shorter */
};

enum journal_query { JOURNAL_KEY, JOURNAL_RANGE, JOURNAL_PATTERN, JOURNAL_CURSOR };

/* The texts are slices of the bytes read. */
struct journal_request {
    uint16_t function, identifier, flags, count;
    uint64_t timestamp, timeout, stamp; /* 0: absent */
    struct bytes key, other; /* `other`: the upper end of a range, or RENAME's new key; NO_BYTES: absent */
    bool has_value;
    uint8_t type;
    struct bytes value;
};

enum journal_reading {
    JOURNAL_WHOLE,
    JOURNAL_PARTIAL,  /* more bytes must come */
    JOURNAL_MALFORMED /* the connection cannot go on */
};

static inline enum journal_query journal_query_of(const struct journal_request *request)
{
    return (enum journal_query)(request->flags >> JOURNAL_QUERY_SHIFT & JOURNAL_QUERY_BITS);
}

/* Reads the first message; `used_r`: its bytes.  `most`: of its value. */
MUST_USE enum journal_reading journal_message_read(struct bytes bytes, size_t most,
                                                   struct journal_request *request_r, size_t *used_r);

/* An answer is written in this order: begin, perhaps a stamp, any number of records, perhaps a cursor, end.
 */
struct journal_answer {
    struct builder *out;
    size_t start;
    uint16_t flags, count;
};

void journal_message_begin(struct journal_answer *answer, struct builder *out,
                           const struct journal_request *request, uint64_t timestamp, uint64_t timeout,
                           const char *error);
void journal_message_add_stamp(struct journal_answer *answer, uint64_t stamp);
/* An answer without records: an error, or, with "", success. */
void journal_message_refuse(struct builder *out, const struct journal_request *request, uint64_t timestamp,
                            const char *error);
/* `with_content` false: the type alone. */
void journal_message_add(struct journal_answer *answer, struct bytes key, uint8_t type, struct bytes content,
                         bool with_content);
/* A message to a listener: the record has changed. */
void journal_message_notice(struct builder *out, uint16_t identifier, uint64_t timestamp, struct bytes key);
void journal_message_add_cursor(struct journal_answer *answer, struct bytes cursor);
void journal_message_end(struct journal_answer *answer);

#endif
