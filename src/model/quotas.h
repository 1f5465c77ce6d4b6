/* quotas: how much one address, one account and the whole namespace may do: the member `quotas` of a
 * namespace's configuration (model/namespace.h).  Pure.
 *
 *   {"address": {"requests": "600/min", "writes": "60/min, burst 10", "live_open": 10}, "account": {…},
 *    "namespace": {"requests": "6000/min", "bytes": 1000000000}, "classes": {"Note": {"file_bytes":
 * 5000000}}}
 *
 * A rate is "COUNT/PERIOD" or "COUNT/PERIOD, burst NUMBER"; a period is s, min, h or d.  The burst is what
 * may come at once; absent: COUNT.  A number is how much of something there may be at the same time.  What
 * has no member is not limited. */
#ifndef STAMPD_MODEL_QUOTAS_H
#define STAMPD_MODEL_QUOTAS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"

enum quota_subject { QUOTA_ADDRESS, QUOTA_ACCOUNT, QUOTA_NAMESPACE, QUOTA_SUBJECTS };
/* The events of rates: requests; those that may change something; tasks requested; subscriptions declared or
 * changed; connections for live events opened; streamed collections begun. */
enum quota_kind {
    QUOTA_REQUESTS,
    QUOTA_WRITES,
    QUOTA_TASKS,
    QUOTA_SUBSCRIPTIONS,
    QUOTA_LIVE,
    QUOTA_STREAMS,
    QUOTA_KINDS
};
/* The numbers: bytes of keys, contents and attachments stored; those of attachments alone; connections for
 * live events; streamed collections that are being sent; tasks that were requested and are not done;
 * subscriptions. */
enum quota_number {
    QUOTA_BYTES,
    QUOTA_LIVE_OPEN,
    QUOTA_STREAMS_OPEN,
    QUOTA_TASKS_WAITING,
    QUOTA_SUBSCRIPTIONS_HELD,
    QUOTA_FILE_BYTES,
    QUOTA_NUMBERS
};

enum {
    QUOTAS_TEXT_MOST = 4096,        /* bytes of the member */
    QUOTAS_COUNT_MOST = 1000000000, /* of events and of a burst */
    QUOTAS_RATES_MOST = 8,          /* events in a millisecond */
    QUOTAS_CLASSES_MOST = 16
};

struct quota_rate {
    int64_t count, period_ms, burst; /* count 0: not limited */
    const char *text;                /* as written */
};

/* What is stored: all bytes, or those of attachments. */
enum quota_stored { QUOTA_STORED_ALL, QUOTA_STORED_FILES, QUOTA_STORED };

struct quota_class {
    struct bytes name;          /* of a class of documents */
    int64_t most[QUOTA_STORED]; /* 0: not limited */
};

struct quotas {
    struct quota_rate rates[QUOTA_SUBJECTS][QUOTA_KINDS];
    int64_t numbers[QUOTA_SUBJECTS][QUOTA_NUMBERS]; /* 0: not limited */
    struct quota_class classes[QUOTAS_CLASSES_MOST];
    size_t class_count;
    unsigned kinds;    /* bits: kinds with a rate */
    struct bytes text; /* as written */
};

/* In the arena; false: malformed.  `value` may be shallow. */
MUST_USE bool quotas_read(struct arena *arena, const struct json *value, const struct quotas **quotas_r);
/* What quotas_read expects, one sentence. */
#define QUOTAS_EXPECTED                                                                                      \
    "An object with address, account, namespace is expected, each an object of rates like \"600/min\" or "   \
    "\"600/min, burst 50\" (s, min, h, d): requests, writes, tasks, subscriptions, live, streams; and of "   \
    "numbers: live_open, streams_open, tasks_waiting, subscriptions_held; for account and namespace also "   \
    "bytes, for namespace file_bytes; and classes, an object of up to 16 classes with bytes, file_bytes."

/* A rate in its text form; the arena has a copy of the text. */
MUST_USE bool quotas_read_rate(struct arena *arena, struct bytes text, struct quota_rate *rate_r);

/* All quotas in one sequence: the rates, then the numbers. */
enum {
    QUOTAS_RATES = QUOTA_SUBJECTS * QUOTA_KINDS,
    QUOTAS_OF_CLASSES = QUOTAS_RATES + QUOTA_SUBJECTS * QUOTA_NUMBERS, /* all classes together */
    QUOTAS_ALL = QUOTAS_OF_CLASSES + QUOTA_STORED
};
static inline int quotas_rate(enum quota_subject subject, enum quota_kind kind)
{
    return (int)subject * QUOTA_KINDS + (int)kind;
}
static inline int quotas_number(enum quota_subject subject, enum quota_number number)
{
    return QUOTAS_RATES + (int)subject * QUOTA_NUMBERS + (int)number;
}
/* "address.requests"; static. */
const char *quotas_name(int quota);

#endif
