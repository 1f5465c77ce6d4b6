/* beats: how far a standby is proven to be: rows with a time, which the process for beats commits in the
 * primaries of databases whose standbys are read (serve/beats.h).
 *
 * A standby that shows the row shows all that was acknowledged before the row was sent, by any host: the log
 * has their commits in this order.  Only a beat that was acknowledged counts: a former primary, which its
 * standby follows, acknowledges none under synchronous replication.  Times are of clock_boot_ms. */
#ifndef STAMPD_SEGMENT_BEATS_H
#define STAMPD_SEGMENT_BEATS_H

#include <stdatomic.h>

#include "segment/namespaces.h"
#include "segment/segment.h"

struct beats {
    _Atomic uint64_t nonce; /* of the process that writes them; 0: none has yet */
    struct beat {
        _Alignas(16) _Atomic int64_t wanted_ms, acknowledged_ms;
    } of[NAMESPACES_MOST];
};

/* By a reader: somebody reads a standby of this database. */
void beats_want(struct segment *segment, int ns, int64_t now_ms);
int64_t beats_wanted_ms(const struct segment *segment, int ns);

/* By the process for beats, before its first one: no row of another process counts from here on. */
void beats_begin(struct segment *segment, uint64_t nonce);
/* What a row must hold to count: it changes with each drop of copies, so that no standby of a history that is
 * over is believed; read it before the beat is sent. */
uint64_t beats_nonce(const struct segment *segment);
void beats_acknowledge(struct segment *segment, int ns, int64_t sent_ms);

/* By a reader that has found this row in a standby: does it count? */
MUST_USE bool beats_prove(const struct segment *segment, int ns, uint64_t nonce, int64_t sent_ms);

/* For board.c. */
size_t beats_size(const struct board_sizes *sizes);
void beats_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
