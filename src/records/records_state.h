/* records_state: what stamp-journal obeys of each namespace, kept beside the records: whether it is served,
 * the administrator's message, and how many requests it may get.
 *
 * A process that has PostgreSQL reads all configurations every second and applies them as one.  Whoever
 * changes a configuration, or learns of a change, calls records_state_move after the commit and before it
 * tells anybody: from then on nothing is admitted by what was read before, until a reading that began later
 * is applied.  A reading older than one that was applied is ignored.  What was confirmed too long ago, or
 * never, admits nothing. */
#ifndef STAMPD_RECORDS_RECORDS_STATE_H
#define STAMPD_RECORDS_RECORDS_STATE_H

#include "base/bytes.h"
#include "model/namespace.h"
#include "records/records.h"

enum {
    RECORDS_STATES_MOST = 256,        /* namespaces */
    RECORDS_STATE_MESSAGE_MOST = 240, /* bytes; longer ones are cut */
    RECORDS_STATE_MOVES = 64,         /* counters of changes, by the code's hash */
    RECORDS_STATE_READ_MS = 1000      /* between two readings */
};

/* The rates: of requests, and of those that change something. */
enum records_rate { RECORDS_REQUESTS, RECORDS_WRITES, RECORDS_RATES };

struct records_state {
    struct bytes ns;
    enum ns_state state; /* the effective one */
    struct bytes message;
    bool is_encrypted;
    bool is_spread; /* several hosts hold its records together: every command here ends with ELSEWHERE */
    uint64_t made;  /* another one for each namespace that has had the code */
    struct quota_rate rates[RECORDS_RATES]; /* of the namespace; count 0: not limited */
};

/* Changes that had happened when a reading began. */
struct records_reading {
    int64_t began_ms;
    uint32_t moved[RECORDS_STATE_MOVES], moved_all;
};

/* The configuration of the namespace may have changed; that of z, or NO_BYTES: of all. */
void records_state_move(struct records *records, struct bytes ns);
/* Is it time to read? */
bool records_state_is_due(const struct records *records);
/* Before the configurations are read. */
void records_state_begin(const struct records *records, struct records_reading *reading_r);
/* They are exactly these, at most RECORDS_STATES_MOST. */
void records_state_apply(struct records *records, const struct records_reading *reading,
                         const struct records_state *states, size_t count);

enum records_verdict {
    RECORDS_ADMITTED,
    RECORDS_IS_READONLY,
    RECORDS_IS_OFF,
    RECORDS_IS_GONE,
    RECORDS_IS_ABSENT,   /* there is no such namespace */
    RECORDS_TOO_MANY,    /* requests */
    RECORDS_IS_MOVED,    /* it is being read again: ask again in a moment */
    RECORDS_UNCONFIRMED, /* too old, or never read */
};
struct records_answer {
    char message[RECORDS_STATE_MESSAGE_MOST + 1]; /* of the administrator, about the state; "": none */
    int64_t wait_ms;                              /* RECORDS_TOO_MANY: until one is admitted */
    bool is_encrypted;                            /* RECORDS_ADMITTED: for records_command */
    bool is_spread;                               /* the same: as in records_state, with `made` */
    uint64_t made;
};

/* May this namespace be served now?  If it may, counts the request, unless it is part of one that was
 * counted. `oldest_ms`: age of what was confirmed that is still obeyed. */
MUST_USE enum records_verdict records_state_admit(struct records *records, struct bytes ns, bool is_write,
                                                  bool is_counted, int64_t oldest_ms,
                                                  struct records_answer *answer_r);
/* Do several hosts hold the records of any namespace?  Costs a load.  records_changes moves when that of a
 * namespace begins or ends. */
bool records_state_some_spread(const struct records *records);

#endif
