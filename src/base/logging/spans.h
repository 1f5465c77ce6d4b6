/* spans: the pieces of the present request that take time, while it is traced (serve/tracing): statements of
 * PostgreSQL and runs of tasks.
 *
 * One record a process, as one request is served at a time.  Of a request that is not traced nothing is
 * noted, and each function costs a load and a branch.  A span has names only: no parameter, no id of a
 * document, no content. */
#ifndef STAMPD_BASE_LOGGING_SPANS_H
#define STAMPD_BASE_LOGGING_SPANS_H

#include "base/bytes.h"

enum {
    SPANS_MOST = 30, /* of a request; what comes later is counted in left_out */
    SPAN_NAME_BYTES = 48,
    SPANS_CONTEXT_BYTES = 55, /* of a header traceparent */
};

enum span_kind { SPAN_STATEMENT, SPAN_TASK };

struct span {
    int64_t begin_us; /* monotonic */
    uint32_t us;      /* how long; about an hour at most */
    uint8_t kind;
    uint8_t parent; /* 0: the request; else 1 + the number of the task's span */
    bool has_failed;
    char name[SPAN_NAME_BYTES + 1];
    char link[SPANS_CONTEXT_BYTES + 1]; /* of a task: the traceparent that it has stored; "": none */
};

struct spans {
    bool is_on;
    bool may_adopt; /* a task that was requested in a sampled trace turns it on */
    uint8_t inside; /* the parent of what follows */
    uint32_t count, left_out;
    int64_t waited_us;                     /* for PostgreSQL */
    char context[SPANS_CONTEXT_BYTES + 1]; /* traceparent of the request's own span; "": not known yet */
    char adopted[SPANS_CONTEXT_BYTES + 1]; /* traceparent of the task that turned it on; "": none did */
    struct span spans[SPANS_MOST];
};
struct spans *spans_get(void);

/* The time at which a piece begins; 0: nothing is noted. */
int64_t spans_begin(void);
/* Its end; does nothing if begin_us is 0. */
void spans_note(const char *name, int64_t begin_us, bool has_failed);

/* Does a traceparent state that its trace is sampled? */
bool spans_is_sampled(struct bytes trace);

/* The run of a task, which what follows belongs to until its end.  `trace` is what the task has stored
 * (model/trace.h); NO_BYTES: nothing. */
void spans_begin_task(struct bytes operation, struct bytes trace);
void spans_end_task(bool has_failed);

#endif
