/* slots: the shared memory that prevents workers from ever serving a stale document (freshness.md;
 * README.md beside this file).  A table of slots, one cache line each; a document belongs to the slot of
 * its hash.  A slot has a stamp, moved at each commit, and one mark bit for each process.  The steps have
 * the names of freshness.md.  No locks, no pointers in the segment; every access is
 * memory_order_seq_cst. */
#ifndef STAMPD_SEGMENT_SLOTS_H
#define STAMPD_SEGMENT_SLOTS_H

#include "base/bytes.h"
#include "base/clock.h"
#include "segment/segment.h"
#include "segment/processes.h"

enum { SLOTS_WORDS = PROCESSES_MOST / 64 /* of mark bits in a slot */ };
enum { SLOTS_PROVE_NOTHING = 1, SLOTS_LEASE_LOST = 2 }; /* as times */

struct slot {
    _Alignas(64) _Atomic uint64_t stamp;
    _Atomic uint64_t mark[SLOTS_WORDS];
};

/* The table in the segment. */
struct slots_head {
    _Alignas(64) _Atomic uint32_t words;
    _Atomic uint32_t count;         /* of slots; 0: no process has attached yet */
    _Atomic int64_t proof_until_ms; /* slots_prove_until; 0: no lease is needed */
    struct slot slots[];
};

struct observation {
    bool busy;      /* some process may have a commit in flight, or another host */
    uint64_t stamp; /* read after the marks */
};
/* Hash of a document's name: database (its index), class, id. */
uint64_t slots_hash(const struct segment *segment, int ns, struct bytes class, struct bytes id);
/* The first part of it, for many documents of a class: slots_hash_text of it and an id is the hash. */
uint64_t slots_seed(const struct segment *segment, int ns, struct bytes class);

/* The slot of a class.  Each commit that changes a document of the class marks and moves it with those of its
 * documents: what was read of many of them is the newest while it stands. */
uint32_t slots_of_class(const struct segment *segment, int ns, struct bytes class);

/* Of any text; without the seed, colliding texts cannot be chosen. */
uint64_t slots_hash_text(uint64_t seed, struct bytes text);

static inline uint32_t slots_index(const struct segment *segment, uint64_t hash)
{
    return (uint32_t)hash & segment->slot_mask;
}

/* Whether the lease of this host, if one is needed (hosts = pair), still lasts: else another host may commit.
 */
static inline bool slots_may_prove(const struct segment *segment)
{
    int64_t until_ms = atomic_load(segment->proof_until_ms);
    return !until_ms || clock_boot_ms() < until_ms;
}

/* see(slot): the lease, then the marks, and the stamp LAST: what is seen holds when the lease was looked at.
 * The number of words is read each time: a word that comes into use later has no bit for a commit that ended
 * before this observation. */
static inline struct observation slots_see(const struct segment *segment, uint32_t slot)
{
    bool may_prove = slots_may_prove(segment);
    struct slot *line = &segment->slots[slot];
    uint32_t words = atomic_load(segment->words);
    uint64_t marks = 0;
    for (uint32_t word = 0; word < words && word < SLOTS_WORDS; word++) /* a reader trusts no length */
        marks |= atomic_load(&line->mark[word]);
    uint64_t stamp = atomic_load(&line->stamp);
    return (struct observation){.busy = marks != 0 || !may_prove, .stamp = stamp};
}

/* One commit at a time, in this order: begin, mark, (send, await the answer), publish or not, unmark, end.
 * `slots` has no duplicates. */
void slots_begin(struct segment *segment, int ns);
/* Sets our bit in each slot, then notes the stamps in `own_r`; ends with the fence that must precede the
 * send. */
void slots_mark(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *own_r);
/* Moves the stamps. `moved_r` (may be NULL) gets their values just before: a copy written by the commit is
 * tagged moved + 1 if moved = own, else it gets no tag.  Also used by the relay, which has no index. */
void slots_publish(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *moved_r);
void slots_unmark(struct segment *segment, const uint32_t *slots, size_t count);
void slots_end(struct segment *segment);

/* By the master, at its start: nothing is proven before the lease is held.  No effect while another instance
 * serves. */
void slots_need_lease(struct segment *segment);
/* By the process that keeps the lease: it lasts until then, in boot time; SLOTS_PROVE_NOTHING: it is not
 * held; SLOTS_LEASE_LOST: another host has taken it, and all processes of this one end. */
void slots_prove_until(struct segment *segment, int64_t until_ms);
/* Whether sessions may be opened: the lease is held, or was until PostgreSQL went away, or none is needed. */
MUST_USE bool slots_have_lease(const struct segment *segment);
MUST_USE bool slots_have_lost_lease(const struct segment *segment);

/* Moves every stamp: after a reconnection of the relay, fail-over, restore. */
void slots_move_all(struct segment *segment);
/* For the recovery process: moves the stamp of each slot in which the bit of its own index is set, then
 * clears the bit; then sets entry.ns := 0.  Returns the number of slots.  Called only when the backend of
 * the index's former process is gone. */
size_t slots_sweep(struct segment *segment);

/* Whether all attached processes have the same number of slots. */
bool slots_agree(struct segment *segment);

/* For board.c. */
size_t slots_size(const struct board_sizes *sizes);
void slots_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
