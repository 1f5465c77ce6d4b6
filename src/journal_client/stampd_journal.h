/* stampd_journal: libstampd-journal, a client of stamp-journal(8): records, values by key in the memory of a
 * host.
 *
 * doc/reference/journal-protocol.md describes functions, flags and errors.  Requests may be sent before the
 * answers to earlier ones are read; answers come in the order of the requests.
 *
 * Functions return 0 or an errno value; what the server refuses is no such error, but the word in
 * answer->error.  After ECONNRESET, EPROTO, ETIMEDOUT or an error of the system the connection is of no more
 * use, every call returns the same, and it is not known whether unanswered requests were run.  A connection
 * is used by one thread.  The library needs nothing but the C library, and ignores no signals: it sends
 * without SIGPIPE. */
#ifndef STAMPD_JOURNAL_CLIENT_STAMPD_JOURNAL_H
#define STAMPD_JOURNAL_CLIENT_STAMPD_JOURNAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAMPD_JOURNAL_CHECKED __attribute__((warn_unused_result))

enum stampd_journal_function {
    STAMPD_JOURNAL_SET = 2,
    STAMPD_JOURNAL_GET,
    STAMPD_JOURNAL_DELETE,
    STAMPD_JOURNAL_ADD,
    STAMPD_JOURNAL_NOT,
    STAMPD_JOURNAL_TRUNCATE,
    STAMPD_JOURNAL_LOCK,
    STAMPD_JOURNAL_UNLOCK,
    STAMPD_JOURNAL_RENAME,
    STAMPD_JOURNAL_PING = 64,
    STAMPD_JOURNAL_AUTH,
    /* Of tasks: `value` is the param of the operation take, keep, done or fail, a string.  With "wait", NEXT
     * waits for tasks, and DONE and FAIL do for the next ones, after the end: `timeout_ms` of the connection
     * must be well above it.  When the connection fails meanwhile, send DONE or FAIL again on another one. */
    STAMPD_JOURNAL_NEXT,
    STAMPD_JOURNAL_KEEP,
    STAMPD_JOURNAL_DONE,
    STAMPD_JOURNAL_FAIL,
};

enum stampd_journal_type {
    STAMPD_JOURNAL_VOID,
    STAMPD_JOURNAL_BUFFER,
    STAMPD_JOURNAL_STRING,
    STAMPD_JOURNAL_INTEGER, /* 8 bytes, big-endian: stampd_journal_write_integer */
    STAMPD_JOURNAL_FLOAT,   /* 8 bytes, big-endian: stampd_journal_write_float */
    STAMPD_JOURNAL_BOOLEAN, /* a byte, 0 or 1 */
    STAMPD_JOURNAL_NO_VALUE = -1
};

/* What `key` is in a GET. */
enum stampd_journal_query {
    STAMPD_JOURNAL_KEY,
    STAMPD_JOURNAL_RANGE,   /* the lower end; `other` is the upper one, both included */
    STAMPD_JOURNAL_PATTERN, /* a regular expression */
    STAMPD_JOURNAL_CURSOR   /* the cursor of an answer */
};

/* Flags of requests, and of answers, as the protocol has them. */
enum {
    STAMPD_JOURNAL_UPDATE_TIMEOUT = 1 << 4,
    STAMPD_JOURNAL_OVERWRITE = 1 << 5,
    STAMPD_JOURNAL_WORKED_ON = 1 << 6,
    STAMPD_JOURNAL_PERSIST = 1 << 9, /* SET, ADD, LOCK: kept on disk; the answer comes when it is there */
    STAMPD_JOURNAL_DATA =
        1 << 10, /* SET, RENAME and others, refused: NOT_FREE and OTHER_STAMP have what is there */
    STAMPD_JOURNAL_LISTEN = 1 << 11,       /* SET, GET: stampd_journal_next_notice */
    STAMPD_JOURNAL_ONLY_PRESENT = 1 << 13, /* SET: only where there is a record */
    STAMPD_JOURNAL_IF_STAMP = 1 << 14,     /* a change: only of what has `stamp`, else OTHER_STAMP */
    STAMPD_JOURNAL_STAMP = 1 << 15,        /* of one record: the answer has its stamp, stampd_journal_stamp */
    STAMPD_JOURNAL_LOCKED = 1 << 13,       /* of answers */
    STAMPD_JOURNAL_VALUE_MOST = 1 << 30,
};

/* Before a key, in a namespace whose records several hosts hold: of this level, a digit as 1.  The key is
 * searched among the hosts whose addresses differ in so many of the last levels only:
 * STAMPD_JOURNAL_LEVEL("1") "presence.ann". */
#define STAMPD_JOURNAL_LEVEL(level) "@" level ":"

struct stampd_journal_text {
    const void *data;
    size_t size;
};

/* Begin with STAMPD_JOURNAL_REQUEST; the texts are copied when it is sent. */
struct stampd_journal_request {
    enum stampd_journal_function function;
    enum stampd_journal_query query;
    unsigned flags;
    struct stampd_journal_text key, other; /* `other`: of a range, and the new key of RENAME */
    enum stampd_journal_type type;         /* of `value` */
    struct stampd_journal_text value;
    uint64_t timestamp_us; /* 0: now, by the server's clock */
    uint64_t timeout_ms;   /* 0: none */
    unsigned count;        /* most records of an answer; 0: as many as the server likes */
    uint64_t stamp;        /* with STAMPD_JOURNAL_IF_STAMP */
};
#define STAMPD_JOURNAL_REQUEST ((struct stampd_journal_request){.type = STAMPD_JOURNAL_NO_VALUE})

struct stampd_journal_record {
    struct stampd_journal_text key;
    enum stampd_journal_type type;
    struct stampd_journal_text value;
};

/* Its texts are valid until the next call with the connection. */
struct stampd_journal_answer {
    unsigned identifier; /* that stampd_journal_send returned */
    unsigned flags;
    uint64_t timestamp_us;                      /* of the record */
    uint64_t timeout_ms;                        /* until its end; 0: it has none */
    struct stampd_journal_text error;           /* of size 0: the request was done */
    unsigned count;                             /* of records: stampd_journal_next_record */
    struct stampd_journal_text cursor, records; /* `cursor` of size 0: there are no more records */
};

struct stampd_journal;

/* How bytes go; none of these functions waits.  `send` and `receive` return the number of bytes, or -1 and
 * errno, EAGAIN when they would wait; `receive` returns 0 at the end.  `descriptor` is polled. */
struct stampd_journal_transport {
    void *context;
    int descriptor;
    ssize_t (*send)(void *context, const void *data, size_t size);
    ssize_t (*receive)(void *context, void *data, size_t most);
    void (*close)(void *context);
};

/* Connects to the Unix socket of stamp-journal.  `timeout_ms`: a call fails (ETIMEDOUT) when nothing has gone
 * for so long; -1: never. */
STAMPD_JOURNAL_CHECKED int stampd_journal_open(const char *path, int timeout_ms,
                                               struct stampd_journal **journal_r);
/* The same over a connection that is there already: of TLS, by the library of your choice.  On success takes
 * what `transport` refers to, and calls its `close` at the end. */
STAMPD_JOURNAL_CHECKED int stampd_journal_open_transport(const struct stampd_journal_transport *transport,
                                                         int timeout_ms, struct stampd_journal **journal_r);
void stampd_journal_close(struct stampd_journal *journal); /* NULL is allowed */

/* AUTH: shows the key to a namespace.  EACCES: it is wrong, and the connection has ended. */
STAMPD_JOURNAL_CHECKED int stampd_journal_enter(struct stampd_journal *journal, const char *ns,
                                                const char *key);

/* Sends a request and waits for its answer.  EBUSY: answers to earlier requests have not been read. */
STAMPD_JOURNAL_CHECKED int stampd_journal_run(struct stampd_journal *journal,
                                              const struct stampd_journal_request *request,
                                              struct stampd_journal_answer *answer_r);

/* Pipelining: the request may stay in memory until stampd_journal_receive, or until many have gathered.
 * EINVAL: it is not well formed, and was not sent. */
STAMPD_JOURNAL_CHECKED int stampd_journal_send(struct stampd_journal *journal,
                                               const struct stampd_journal_request *request,
                                               unsigned *identifier_r);
/* The answer to the oldest request without one.  ENOENT: all are answered. */
STAMPD_JOURNAL_CHECKED int stampd_journal_receive(struct stampd_journal *journal,
                                                  struct stampd_journal_answer *answer_r);

/* The key of a record that was listened to and has changed since; it is listened to no more.  Waits
 * `timeout_ms`, -1: without limit.  ETIMEDOUT: nothing has changed yet, and the connection stays of use.
 * EBUSY: answers to requests have not been read. */
STAMPD_JOURNAL_CHECKED int stampd_journal_next_notice(struct stampd_journal *journal, int timeout_ms,
                                                      struct stampd_journal_text *key_r);

/* The stamp of the record, which another one follows after each change of its value; 0: the answer has none.
 * Before stampd_journal_next_record. */
uint64_t stampd_journal_stamp(const struct stampd_journal_answer *answer);

/* Takes the next record from the answer; 0: there was one, ENOENT: there are no more. */
STAMPD_JOURNAL_CHECKED int stampd_journal_next_record(struct stampd_journal_answer *answer,
                                                      struct stampd_journal_record *record_r);

/* Values of 8 bytes. */
void stampd_journal_write_integer(int64_t value, unsigned char bytes_r[8]);
void stampd_journal_write_float(double value, unsigned char bytes_r[8]);
/* 0 when the value has another size. */
int64_t stampd_journal_read_integer(struct stampd_journal_text value);
double stampd_journal_read_float(struct stampd_journal_text value);

#ifdef __cplusplus
}
#endif
#endif
