/* reply: the answer to a call: a result, or a fault with its arguments. */
#ifndef STAMPD_OPERATION_REPLY_H
#define STAMPD_OPERATION_REPLY_H

#include "base/builder.h"
#include "base/fault.h"
#include "operation/call.h"

enum { REPLY_ARGUMENTS_MAX = 8 };

/* Phases of an operation (protocol.md, "Faults"); unknown: of a request whose worker ended. */
enum phase { PHASE_BEFORE, PHASE_WORK, PHASE_VALIDATION, PHASE_AFTERWORK, PHASE_SYNC, PHASE_UNKNOWN };

/* The time of each phase, all tries together, in microseconds. */
struct timing {
    int64_t us[PHASE_UNKNOWN + 1];
    int64_t since_us; /* monotonic: start of the current phase */
    int64_t idle_us;  /* of all: it had nothing to do but wait for something to happen (long_poll.h) */
    bool is_shown;    /* to the client, in the header Server-Timing */
};

struct reply;

/* How an answer is sent in pieces, before all of it is known.  Once a piece is sent the answer cannot become
 * a fault: it breaks off instead, so its text must show whether it is complete. */
struct outlet {
    /* Does the database work that the head needs; sending may hold the database afterwards. */
    void (*prepare)(struct outlet *outlet);
    /* The first piece follows the head, which has the reply's mime.  False: the client has gone, or has not
     * accepted data for a long time: nothing follows. */
    bool (*send)(struct outlet *outlet, struct reply *reply, struct bytes piece);
    bool is_open; /* the head has been sent */
    bool is_head; /* only the head is wanted */
};

/* The head of an answer that is a file (operation/files.h). */
struct reply_file {
    const char *tag;    /* its ETag, without quotes */
    const char *policy; /* Content-Security-Policy; NULL: none */
    bool is_immutable;  /* whoever has it need not request this address again */
    int64_t proxy_s;    /* nginx may answer with its copy this long; 0: it keeps none */
};

/* How nginx requests an object of an object store (blob/object_store.h). */
struct reply_object {
    const char *authorization, *date, *body;
    const char *range; /* "": the whole */
    int64_t size;
};

/* The head of an answer whose body nginx sends: the file of an attachment (attachments/attachment.c). */
struct reply_attachment {
    const char *location;              /* where nginx finds it; NULL: there is no body */
    const struct reply_object *object; /* NULL: in the directory */
    const char *sha;                   /* its digest, 64 digits: ETag and digest headers */
    const char *disposition;           /* Content-Disposition; NULL: none */
    bool is_public, is_immutable;
};

/* The head of an answer about an upload in parts (attachments/upload.c). */
struct reply_upload {
    int64_t offset, length;                    /* -1: none */
    const char *location, *expires, *metadata; /* NULL: none */
};

struct reply {
    enum fault fault;
    const char *code; /* of FAULT_RAISED, in the arena */
    enum phase phase; /* in which the fault occurred */
    int argument_count;
    const char *arguments[REPLY_ARGUMENTS_MAX]; /* UTF-8, in the arena */
    const char *detail;                         /* one more sentence for people; may be NULL */
    const char *at; /* of the argument, a JSON pointer from all arguments as one object; NULL: no argument */
    const char *mime;    /* of the result; JSON: in its envelope, with synchronisations; others: unchanged */
    bool is_gzip;        /* the result is compressed; nginx unpacks it for clients that cannot */
    bool is_replayed;    /* the stored answer to the same request */
    int status;          /* of HTTP, where the fault does not define it; 0: 200 */
    int fault_status;    /* of HTTP with a fault, instead of the fault's own; 0: the fault's own */
    const char *members; /* more members of the text of a fault, `"name":value,…`, in the arena; NULL: none */
    bool is_post_only;   /* of FAULT_AMETHOD: POST would be accepted */
    bool is_secret;      /* no cache may store it */
    const char *cookie;    /* header Set-Cookie, of a success or of FAULT_SKEY, in the arena; NULL: none */
    int64_t retry_after_s; /* of FAULT_XBUSY; 0: the standard */
    int64_t etag;          /* version of the document that the answer is about; 0: none */
    bool is_lasting;       /* only a commit can make it outdated, no minute */
    const struct reply_file *file;             /* NULL: the answer is not a file */
    const struct reply_attachment *attachment; /* NULL: the answer is not about an attachment */
    const struct reply_upload *upload;         /* NULL: the answer is not about an upload in parts */
    bool is_for_decoder; /* of FAULT_ELSEWHERE: the process that waits for the decoder of images serves it */
    const char *etag_view; /* the view (view.h) that it is of, in the arena; NULL, "": the whole */
    struct timing *timing; /* NULL: no measurement */
    struct outlet *outlet; /* NULL: the answer is sent whole, from `body` */
    struct builder *body;  /* cleared by the caller before; kept across requests */
};

/* Begins a phase, and ends the previous one. */
void reply_enter(struct reply *reply, enum phase phase);

/* Records a fault with its arguments (NUL-terminated texts, copied; NULL ends the list) and returns it. */
enum fault reply_fault(struct call *call, struct reply *reply, enum fault fault, const char *detail, ...)
    __attribute__((sentinel));

/* FAULT_AARG: the text that is expected of an argument other than `param` and `syncs`, one sentence. */
enum fault reply_wrong_argument(struct call *call, struct reply *reply, const char *argument,
                                const char *expected);

/* Is it valid in a header as the type of an answer? */
bool reply_is_mime(struct bytes mime);
#define MIME_JSON    "application/json"
#define MIME_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define MIME_EVENTS  "text/event-stream"
#define MIME_LINES   "application/x-ndjson" /* one JSON text per line */

/* Records an exception of the application under its own code, which is copied; returns FAULT_RAISED. */
enum fault reply_raise(struct call *call, struct reply *reply, const char *code, const char *detail);
/* Adds an argument, copied; excess arguments are dropped. */
void reply_add_argument(struct call *call, struct reply *reply, const char *argument);

/* Code, text and class of a fault in this reply, and whether the server retries it. */
const char *reply_code(const struct reply *reply);
const char *reply_words(const struct reply *reply);
int reply_major(const struct reply *reply);
bool reply_is_retried(const struct reply *reply, enum fault fault);

#endif
