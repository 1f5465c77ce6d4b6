/* stamps: the shared memory by which no worker ever answers with a stale document (freshness.md; README.md
 * beside this file).  A table of slots, one cache line each; a document belongs to the slot of its hash.  A
 * slot has a stamp, moved at each commit, and one mark bit for each process.  Names of steps are those of
 * freshness.md.  No locks, no pointers in the segment; every access is memory_order_seq_cst. */
#ifndef STAMPD_SEGMENT_SLOTS_H
#define STAMPD_SEGMENT_SLOTS_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "segment/backlog.h"
#include "segment/losses.h"
#include "segment/shared_cache.h"
#include "edge/mapping.h"

enum {
    PROCESSES_MOST = 448,
    SLOTS_WORDS = PROCESSES_MOST / 64, /* of mark bits in a slot */
    NAMESPACES_MOST = 256,
    NAMESPACES_DATABASE_BYTES = 63, /* longest name of a database */
    PROCESSES_NO_INDEX = -1
};

struct slot {
    _Alignas(64) _Atomic uint64_t stamp;
    _Atomic uint64_t mark[SLOTS_WORDS];
};

struct board;       /* what lies in the segment */
struct feed_board;  /* and in it, for segment/feed.h */
struct purge_board; /* and for segment/purge_counts.h, reads.h, refusals.h */
struct reads_board;
struct refusals_board;

/* This process's handle: the mapped segment and its own index.  Its fields are for this module only; they
 * stand here because slots_see is inlined. */
struct segment {
    struct slot *slots;
    _Atomic uint32_t *writer_queue; /* one a slot, for turns.c */
    _Atomic uint32_t *words;        /* mark words in use by indexes ever taken */
    struct board *board;
    struct feed_board *feed;
    struct purge_board *kept;
    struct reads_board *reads;
    struct refusals_board *refusals;
    struct mapping mapping;
    struct shared_cache *shared_cache;
    uint32_t slot_mask;
    int index;
};

enum process_state { PROCESS_FREE, PROCESS_HELD, PROCESS_DIRTY };

/* Creates or attaches the segment (master, before fork).  `slots` is a power of two; `shared_cache_bytes` for
 * copies that workers hand to each other.  Both must be what the living use. */
MUST_USE bool segment_open_with_shared_cache(struct segment **segment_r, const char *path, uint32_t slots,
                                             size_t shared_cache_bytes, char *problem, size_t problem_size);
/* The same without a shelf. */
MUST_USE bool segment_open(struct segment **segment_r, const char *path, uint32_t slots, char *problem,
                           size_t problem_size);
void segment_close(struct segment *segment);

uint32_t segment_installation(const struct segment *segment); /* top byte 'S' */
uint64_t segment_generation(const struct segment *segment);
uint64_t segment_seed(const struct segment *segment); /* of the hash of names, the same for all instances */

/* Tags of copies in the shared cache are what slots_see showed before they were loaded, or moved + 1 of
 * slots_publish under its condition. */
struct shared_cache *shared_cache_of(const struct segment *segment);

/* The word of the slot's turn. */
_Atomic uint32_t *writer_queue_word(const struct segment *segment, uint32_t slot);

/* --- slots --- */
struct observation {
    bool busy;      /* some process may have a commit in flight */
    uint64_t stamp; /* read after the marks */
};
/* Hash of a document's name: database (its index), class, id. */
uint64_t slots_hash(const struct segment *segment, int ns, struct bytes class, struct bytes id);

/* Of any text; who does not know the seed cannot choose texts that meet. */
uint64_t slots_hash_text(uint64_t seed, struct bytes text);

static inline uint32_t slots_index(const struct segment *segment, uint64_t hash)
{
    return (uint32_t)hash & segment->slot_mask;
}

/* see(slot): marks FIRST, then the stamp.  The number of words is read at each look: a word that comes into
 * use later has no bit for a commit that was over before the look. */
static inline struct observation slots_see(const struct segment *segment, uint32_t slot)
{
    struct slot *line = &segment->slots[slot];
    uint32_t words = atomic_load(segment->words);
    uint64_t marks = 0;
    for (uint32_t word = 0; word < words; word++)
        marks |= atomic_load(&line->mark[word]);
    uint64_t stamp = atomic_load(&line->stamp);
    return (struct observation){.busy = marks != 0, .stamp = stamp};
}

/* One commit at a time, in this order: begin, mark, (send, await the answer), publish or not, unmark, end.
 * `slots` without doubles. */
void slots_begin(struct segment *segment, int ns);
/* Sets our bit in each slot, then notes the stamps in `own_r`; ends with the fence that must precede the
 * send. */
void slots_mark(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *own_r);
/* Moves the stamps.  `moved_r` (may be NULL): what they were just before: a copy written by the commit is
 * tagged moved + 1 when moved = own, else it gets no tag.  For the relay too, which has no index. */
void slots_publish(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *moved_r);
void slots_unmark(struct segment *segment, const uint32_t *slots, size_t count);
void slots_end(struct segment *segment);

/* Moves every stamp: after a reconnection of the relay, fail-over, restore. */
void slots_move_all(struct segment *segment);

/* --- databases, found or added by name; the index is `space` everywhere --- */
/* Full table, or no name of a database (empty, too long, with a NUL): -1. */
int namespaces_find(struct segment *segment, struct bytes database);
/* NULL: a process died or is busy writing the name; nobody uses that space yet. */
const char *namespaces_database(const struct segment *segment, int ns);
int namespaces_count(const struct segment *segment);
/* Are the sessions of former generations gone from it? */
bool namespaces_is_clean(const struct segment *segment, int ns);
void namespaces_set_clean(struct segment *segment, int ns);
/* What the last use of the database has shown, and how long ago that was (-1: never): written by whoever
 * opens or loses a session, and by the relay as long as it listens there. */
void slots_ns_tell(struct segment *segment, int ns, bool is_up);
int64_t slots_ns_health(const struct segment *segment, int ns, bool *is_up_r);
/* What was last known of its tasks. */
struct backlog *backlog_of(const struct segment *segment, int ns);

/* --- entries: one for each process that may commit --- */
/* The child's first act: whose bit it sets.  The former process of that index is gone. */
void segment_join(struct segment *segment, int index);
int segment_index(const struct segment *segment); /* PROCESSES_NO_INDEX before */
/* Takes at most `count` entries that belong to no instance; returns how many.  `lock_file` is the inode of
 * the instance's lock file. */
MUST_USE int processes_take(struct segment *segment, uint32_t instance, uint64_t lock_file, int count,
                            int *indexes_r);
enum process_state processes_state(const struct segment *segment, int index);
void processes_set(struct segment *segment, int index, enum process_state state, uint32_t pid);
uint32_t processes_instance(const struct segment *segment, int index); /* 0: none */
uint64_t processes_lock_file(const struct segment *segment, int index);
uint32_t processes_pid(const struct segment *segment, int index);
int processes_namespace(const struct segment *segment,
                        int index);                         /* where a commit may be in flight; -1: nowhere */
int processes_count(const struct segment *segment);         /* none from this one on was ever taken */
void processes_release(struct segment *segment, int index); /* FREE and of no instance */
/* recovery process: moves the stamp of each slot that bears the own index's bit, then clears the bit; then
 * entry.ns := 0. Returns how many slots.  Only when the backend of the index's former process is gone. */
size_t slots_sweep(struct segment *segment);

/* --- what the master watches and metrics show, written by the process of the index --- */
enum { PULSE_NAME_BYTES = 64, PULSE_LATENCIES = 18 };
struct pulse {
    _Alignas(64) _Atomic int64_t request_since_ms; /* monotonic; 0: idle */
    _Atomic uint64_t requests, commits, conflicts, hits, misses, faults;
    _Atomic int64_t
        limit_ms; /* of the present request, where it may take another time than an operation; 0 */
    _Atomic int64_t task_claim; /* stamp of the claim of the tasks that it works at; 0: none */
    _Atomic uint64_t tasks_done, tasks_failed, tasks_lost;
    /* Of the present request: what it does to the database may be done, or under way; 0: nothing is. */
    _Atomic uint64_t may_have_changed, reserved[2];
    /* Application code must have returned by then (monotonic); 0: none runs. */
    _Atomic int64_t deadline_ms;
    char application[PULSE_NAME_BYTES]; /* the operation that runs it or ran last, for the log */
    _Atomic uint64_t latency_us,
        latencies[PULSE_LATENCIES]; /* of requests: their sum, and how many (latency.h) */
};
struct pulse *metrics_pulse(struct segment *segment, int index);
/* Why attempts of the process of this index were lost. */
struct losses *losses_of(const struct segment *segment, int index);

/* A pulse has one writer: no locked instruction is needed to count. */
static inline void pulse_count(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + more, memory_order_relaxed);
}

#endif
