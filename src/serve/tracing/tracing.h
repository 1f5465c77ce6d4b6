/* tracing: which requests are traced, and how a worker hands over what it has measured.
 *
 * A request is sampled when it arrives: at random, by trace_ratio, or as its header traceparent says, if
 * callers are trusted (trace_caller).  At its end the worker writes one message into a pipe that the exporter
 * reads (span_exporter.h).  The pipe is never waited for: while it is full, spans are dropped and counted. */
#ifndef STAMPD_SERVE_TRACING_TRACING_H
#define STAMPD_SERVE_TRACING_TRACING_H

#include "base/logging/spans.h"
#include "base/settings.h"
#include "http/request.h"
#include "operation/reply.h"
#include "segment/counts/metrics.h"

enum { TRACE_ID = 16, SPAN_ID = 8, TRACE_REQUEST_BYTES = 64, TRACE_CODE_BYTES = 32, TRACE_METHOD_BYTES = 7 };

/* A request that was traced; written and read as a whole, which the kernel promises up to PIPE_BUF. */
struct trace_message {
    unsigned char trace[TRACE_ID], id[SPAN_ID], parent[SPAN_ID]; /* parent: zeros: none */
    int64_t begin_us, us;                                        /* since the epoch; how long */
    int64_t phases_us[PHASE_UNKNOWN + 1], waited_us;
    int status;
    char ns[PULSE_NS_BYTES + 1], what[PULSE_WHAT_BYTES + 1], method[TRACE_METHOD_BYTES + 1];
    char request[TRACE_REQUEST_BYTES + 1], code[TRACE_CODE_BYTES + 1];
    char link[SPANS_CONTEXT_BYTES + 1]; /* of a caller that is not trusted */
    uint32_t count, left_out;
    struct trace_part {
        unsigned char trace[TRACE_ID], id[SPAN_ID]; /* linked; zeros: none */
        int64_t begin_us;                           /* since the epoch */
        uint32_t us;
        uint8_t kind, parent;
        bool has_failed;
        char name[SPAN_NAME_BYTES + 1];
    } parts[SPANS_MOST];
};

/* By the master, before it forks: makes the pipe. */
void tracing_make_pipe(void);
/* Its end that the exporter reads; does not block. */
int tracing_pipe(void);

/* In a worker. */
bool tracing_open(const struct settings *settings); /* false: nothing is traced */
/* At the arrival of a request with this method and this header traceparent; true: it is traced. */
bool tracing_begin(struct bytes method, struct bytes parent);
/* The request has been read: its tasks and the lines of the log get the context of its span. */
void tracing_join(struct call *call);
/* Both only if spans_get()->is_on, which a task may have turned on, too.  Before the answer, which frees what
 * came from nginx: names the span.  `is_refused`: the request could not be read. */
void tracing_name(const struct call *call, const struct reply *reply, bool is_refused);
/* Behind the answer: hands over.  `since_us`: the arrival, monotonic. */
void tracing_end(struct segment *segment, const struct request *request, struct reply *reply,
                 int64_t since_us);

/* The parts of a traceparent; false: it is none. */
bool tracing_read(const char *context, unsigned char trace_r[TRACE_ID], unsigned char id_r[SPAN_ID]);

#endif
