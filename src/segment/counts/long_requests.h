/* long_requests: the number of workers that serve long requests, in the shared segment (architecture.md,
 * "Long requests").
 *
 * Each worker has a slot.  A worker whose request is long writes its slot, then counts the earlier ones of
 * the same namespace, of the same client and of the same account: no process waits, and no more than the
 * share get in.  A slot counts while its process lives: no repair is needed when the process dies.  A read
 * beyond a share is admitted on trial, for a short time, unless a trial of the same client or namespace has
 * failed recently: a quick read is never refused, and a slow one costs one trial. */
#ifndef STAMPD_SEGMENT_COUNTS_LONG_REQUESTS_H
#define STAMPD_SEGMENT_COUNTS_LONG_REQUESTS_H

#include "base/base.h"
#include "segment/segment.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/counts/tickets.h"

struct long_shares {
    int ns;
    uint64_t client, account;     /* 0: the limit per client does not apply to it */
    int64_t ns_most, client_most; /* concurrent workers; 0: no limit */
};

enum long_requests_entry {
    LONG_REQUESTS_ENTERED,
    LONG_REQUESTS_ON_TRIAL,
    LONG_REQUESTS_NAMESPACE_FULL, /* refused: the namespace has used its share */
    LONG_REQUESTS_CLIENT_FULL,    /* refused: the client, or the account, has used its share */
};

/* Enters the process of this handle, which has an index and has not entered.  A refused process has not
 * entered. */
enum long_requests_entry long_requests_enter(struct segment *segment, const struct long_shares *shares);
/* The trial was too short: LONG_REQUESTS_ENTERED if there is room now; otherwise the process has left.
 * `is_slow`: the trial ran to its end, and the client, or the namespace, gets no other trial for a while. */
enum long_requests_entry long_requests_extend(struct segment *segment, const struct long_shares *shares,
                                              bool is_slow);
void long_requests_leave(struct segment *segment);
/* Workers of this process's instance that serve long requests. */
int64_t long_requests_count(const struct segment *segment);

/* --- layout in the segment --- */
enum { LONG_REQUESTS_SUSPECTS = 256 };
struct long_requests_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct long_requests_slot {
        struct tickets_slot ticket;
        _Atomic uint64_t client, account;
        _Atomic uint32_t ns, reserved;
    } slots[PROCESSES_MOST];
    struct long_requests_suspect {
        _Atomic uint64_t client;
        _Atomic int64_t until_ms; /* monotonic */
    } suspects[LONG_REQUESTS_SUSPECTS];
    _Atomic int64_t namespaces_until_ms[NAMESPACES_MOST];
};

/* For board.c. */
size_t long_requests_size(const struct board_sizes *sizes);
void long_requests_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
