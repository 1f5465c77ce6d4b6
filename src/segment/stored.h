/* stored: the bytes that each namespace stores, for its quota (operation/quota.h): the sum over all documents
 * that a keeper has measured, and what the workers of this host have added and removed since.
 *
 * The number is exact when nothing else writes.  Until the next measurement it lacks what other hosts and
 * programs write, and it counts commits twice that end while a keeper measures.  Only namespaces that have
 * such a quota are measured. */
#ifndef STAMPD_SEGMENT_STORED_H
#define STAMPD_SEGMENT_STORED_H

#include "base/bytes.h"
#include "segment/namespaces.h"

enum { STORED_CODE_BYTES = 16 };

/* A commit has changed the sum. */
void stored_add(struct segment *segment, int ns, int64_t bytes);
/* The namespace with this code has a quota: it is to be measured. */
void stored_want(struct segment *segment, int ns, struct bytes code);
bool stored_is_wanted(const struct segment *segment, int ns);
/* A measurement: the sum, of a snapshot taken after stored_begin. */
int64_t stored_begin(const struct segment *segment, int ns);
void stored_end(struct segment *segment, int ns, int64_t begun, int64_t sum);
/* False: not measured yet.  `code_r` may be NULL. */
MUST_USE bool stored_read(const struct segment *segment, int ns, int64_t *bytes_r,
                          char code_r[STORED_CODE_BYTES + 1]);

/* --- layout in the segment --- */
struct stored {
    _Alignas(64) _Atomic int64_t grown; /* by workers, since the segment was created */
    _Atomic int64_t base;               /* with `grown`: the bytes stored */
    _Atomic uint64_t code[STORED_CODE_BYTES / 8];
    _Atomic uint32_t is_wanted, is_measured;
};

/* For board.c. */
size_t stored_size(const struct board_sizes *sizes);
void stored_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
