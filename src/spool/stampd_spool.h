/* stampd_spool: libstampd-spool, a durable spool of requests for a stampd server, on the machine that makes
 * them.
 *
 * A spool is a folder.  Any number of processes append requests to it, without a server; stampd_spool_put
 * returns when the request is on disk, and one fdatasync serves all that wrote before it.  stamp-forward(8)
 * sends them to the server, which stores each once; doc/reference/spool.md describes the format.
 *
 * Functions return 0 or an errno value.  A handle is used by one thread, and not by a child after fork
 * (ECHILD): every thread and process opens its own.  fork(3) closes the descriptors of the handles in the
 * child, which share the locks of the parent; _Fork(3) and system calls made directly do not.  The folder
 * must be on a local file system.
 *
 * ETIMEDOUT: for ten seconds a lock of the spool was held by another process, which may be stopped; nothing
 * was done, except that stampd_spool_append may have stored the first requests, and the call may be repeated.
 * It is an error of stampd_spool_open, put, append, acknowledge and renew, and, with a meaning of its own, of
 * wait. */
#ifndef STAMPD_SPOOL_STAMPD_SPOOL_H
#define STAMPD_SPOOL_STAMPD_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAMPD_SPOOL_CHECKED __attribute__((warn_unused_result))

enum {
    STAMPD_SPOOL_ID_BYTES = 16,
    STAMPD_SPOOL_PRIORITY = 20,        /* the default; smaller is sooner, 0 to 255 */
    STAMPD_SPOOL_PARAM_MOST = 1 << 20, /* bytes of a param */
    STAMPD_SPOOL_TEXT_MOST = 4096,     /* bytes of each other text */
    STAMPD_SPOOL_RECORD_MOST = (1 << 20) + (32 << 10),
};

/* What stampd_spool_put waits for. */
enum stampd_spool_mode {
    STAMPD_SPOOL_DURABLE, /* the request is on disk: it survives a failure of power */
    STAMPD_SPOOL_WRITTEN, /* the kernel has it: it survives the death of the process, but a failure of power
                             or of the kernel may lose what was put in the seconds before, without a trace */
};

/* A request.  Begin with STAMPD_SPOOL_REQUEST. */
struct stampd_spool_request {
    const char *ns, *operation; /* namespace and operation */
    const char *param;          /* a JSON object; NULL: an empty one */
    size_t param_size;
    const char *resource, *domain, *info; /* of the task; NULL: none */
    int64_t start;                        /* not before this stamp, yymmddhhmmssmmm UTC; 0: at once */
    int priority;
    int is_strict; /* tasks of the domain start in the order of their requests */
    const char *traceparent,
        *tracestate; /* W3C Trace Context; what is malformed the server drops; NULL: none */
};
#define STAMPD_SPOOL_REQUEST ((struct stampd_spool_request){.priority = STAMPD_SPOOL_PRIORITY})

/* A record of the spool. */
struct stampd_spool_record {
    uint64_t sequence; /* its number in the spool, from 1 */
    uint64_t first;    /* of EBADMSG: the first of the damaged ones, to `sequence` */
    unsigned char series[STAMPD_SPOOL_ID_BYTES]; /* with the number: its name, for the server */
    int64_t time_ms;                             /* when it was put: milliseconds since 1970 */
    struct stampd_spool_request request;         /* its texts end with a NUL */
    const void *body;                            /* the request as stored; of EBADMSG: the damaged bytes */
    size_t body_size;
};

/* Numbers of records. */
struct stampd_spool_range {
    uint64_t first, last;
};

struct stampd_spool_state {
    unsigned char id[STAMPD_SPOOL_ID_BYTES];
    uint64_t waiting;     /* records that are not acknowledged */
    uint64_t last;        /* number of the last record; 0: there was none */
    uint64_t bytes;       /* of all files of the spool */
    uint64_t limit_bytes; /* of them */
    uint64_t dead;        /* records that were refused for good */
    int64_t oldest_ms;    /* age of the oldest waiting record by the present clock, never negative */
    int is_forwarded;     /* a forwarder holds the spool */
};

struct stampd_spool_limits {
    uint64_t segment_bytes; /* a segment is full at this size; 0: 4 MiB */
    uint64_t limit_bytes;   /* of all files together; then put fails with EDQUOT; 0: 1 GiB */
};

struct stampd_spool;

/* --- writers --- */

/* Creates the spool with a random id; the folder may exist and be empty.  EEXIST: it is a spool already. */
STAMPD_SPOOL_CHECKED int stampd_spool_create(const char *folder, const struct stampd_spool_limits *limits);
/* ENOENT: it is no spool; EPERM: everybody may write to the folder; EBADMSG: its identity is damaged;
 * ENOTSUP: it has the format of an earlier version. */
STAMPD_SPOOL_CHECKED int stampd_spool_open(const char *folder, enum stampd_spool_mode mode,
                                           struct stampd_spool **spool_r);
void stampd_spool_close(struct stampd_spool *spool); /* NULL is allowed */
/* Appends a request and waits for what the mode says.  After an error nothing was stored, except: EIO, the
 * disk failed while it was written, or no sync has ended for ten seconds, and the record may or may not be
 * there.  ETIMEDOUT: see above; ENOSPC: the disk is full; EDQUOT: the spool is; EINVAL: the request is not
 * well formed; EMSGSIZE: a text is too long. */
STAMPD_SPOOL_CHECKED int stampd_spool_put(struct stampd_spool *spool,
                                          const struct stampd_spool_request *request, uint64_t *sequence_r);
/* Appends requests in their order, under numbers that follow each other, and returns when the kernel has
 * them, whatever the mode: they are on disk when stampd_spool_wait has returned 0 for their numbers, which
 * are in `stored_r`.  After an error, which is as of put, it has those of the first requests that were stored
 * nevertheless, one or more, or none: then first is 1 and last is 0. */
STAMPD_SPOOL_CHECKED int stampd_spool_append(struct stampd_spool *spool,
                                             const struct stampd_spool_request *requests, size_t count,
                                             struct stampd_spool_range *stored_r);
/* Waits until these records are on disk, whoever appended them; one sync serves all that wait.  EIO: the disk
 * failed, and they may be lost, or some of them; EINVAL: the last one was never appended.  After another
 * error, as ETIMEDOUT when no sync has ended for ten seconds, the same call may succeed later. */
STAMPD_SPOOL_CHECKED int stampd_spool_wait(struct stampd_spool *spool,
                                           const struct stampd_spool_range *stored);
/* As stampd_spool_wait, but EAGAIN instead of waiting.  It starts no sync: the disk is synchronised for those
 * that wait, so another thread does, with a handle of its own. */
STAMPD_SPOOL_CHECKED int stampd_spool_try_wait(struct stampd_spool *spool,
                                               const struct stampd_spool_range *stored);

/* --- readers --- */

/* Reads sizes and ages: the files of the folder are listed. */
STAMPD_SPOOL_CHECKED int stampd_spool_read_state(struct stampd_spool *spool,
                                                 struct stampd_spool_state *state_r);
/* The first record behind `after` that is not acknowledged; its texts are valid until the next call.  EAGAIN:
 * there is none yet; EBADMSG: records are damaged, continue behind record_r->sequence. */
STAMPD_SPOOL_CHECKED int stampd_spool_next(struct stampd_spool *spool, uint64_t after,
                                           struct stampd_spool_record *record_r);
/* A descriptor that poll() finds readable when something was put since stampd_spool_clear.
 * Call clear, then read all records, then poll: nothing is missed.  -1: errno says why. */
int stampd_spool_descriptor(struct stampd_spool *spool);
void stampd_spool_clear(struct stampd_spool *spool);
/* Removes records from the backlog: on disk when it returns 0.  They need not be the first.  ENOBUFS: there
 * are too many gaps between acknowledged records. */
STAMPD_SPOOL_CHECKED int stampd_spool_acknowledge(struct stampd_spool *spool,
                                                  const struct stampd_spool_range *done, size_t count);
/* Makes this handle the only forwarder, until it is closed or the process ends.  EBUSY: there is one. */
STAMPD_SPOOL_CHECKED int stampd_spool_hold(struct stampd_spool *spool);
/* From now on records belong to a new series: for a folder that was found to be a copy of another. */
STAMPD_SPOOL_CHECKED int stampd_spool_renew(struct stampd_spool *spool);

/* --- dead letters --- */

/* Keeps the record in the folder dead/ with a reason, on disk when it returns 0; does not acknowledge it. */
STAMPD_SPOOL_CHECKED int stampd_spool_bury(struct stampd_spool *spool,
                                           const struct stampd_spool_record *record, const char *reason);
/* The first dead letter behind `after`, as stampd_spool_next; EBADMSG: it was damaged. */
STAMPD_SPOOL_CHECKED int stampd_spool_next_dead(struct stampd_spool *spool, uint64_t after,
                                                struct stampd_spool_record *record_r, const char **reason_r);
STAMPD_SPOOL_CHECKED int stampd_spool_drop_dead(struct stampd_spool *spool, uint64_t sequence);

#ifdef __cplusplus
}
#endif
#endif
