/* refusals: counts of refusals by each limit, in the shared segment, for the metrics.  Limits are those of
 * the settings; all other names share one counter, so the number of counters is fixed. */
#ifndef STAMPD_SEGMENT_COUNTS_REFUSALS_H
#define STAMPD_SEGMENT_COUNTS_REFUSALS_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "segment/namespaces.h"
#include "segment/segment.h"

enum { REFUSALS_MOST = 224, REFUSALS_QUOTAS = 48, REFUSALS_CODE_BYTES = 16, REFUSALS_STATUSES = 16 };
struct refusals_board {
    struct refusals_of_quotas {
        _Alignas(64) _Atomic uint64_t code[REFUSALS_CODE_BYTES / 8];
        _Atomic uint64_t counts[REFUSALS_QUOTAS];
    } quotas[NAMESPACES_MOST];
    _Alignas(
        64) _Atomic uint64_t counts[REFUSALS_MOST]; /* in the order of the settings; the last: all others */
    _Atomic uint64_t nginx[REFUSALS_STATUSES];      /* by status */
};

/* Counts an answer with this fault, if its first argument, which may be NULL, names a limit. */
void refusals_count(struct segment *segment, enum fault fault, const char *limit);

/* Name and count of a counter, from 0; NULL: there is no such counter, or it belongs to no limit.
 * REFUSALS_MOST is the end. */
const char *refusals_read(const struct segment *segment, int counter, uint64_t *count_r);

/* --- nginx --- */

/* Counts an answer of nginx itself; a status that it does not refuse with is ignored. */
void refusals_count_nginx(struct segment *segment, int64_t status);
/* The status of a counter, from 0; 0: there is no such counter. */
int refusals_read_nginx(const struct segment *segment, int counter, uint64_t *count_r);

/* --- quotas --- */

/* Counts a refusal by the quota `kind` (limiter.h) of a namespace with this code. */
void refusals_count_quota(struct segment *segment, int ns, struct bytes code, int kind);
/* The refusals by a quota of a namespace; 0: none.  `code_r`: the namespace's. */
uint64_t refusals_read_quota(const struct segment *segment, int ns, int kind,
                             char code_r[REFUSALS_CODE_BYTES + 1]);

/* For board.c. */
size_t refusals_size(const struct board_sizes *sizes);
void refusals_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
