/* stamps: the shared memory by which no worker ever answers with a stale document (freshness.md; README.md
 * beside this file).  A table of slots, one cache line each; a document belongs to the slot of its hash.  A
 * slot has a stamp, moved at each commit, and one mark bit for each process.  Names of steps are those of
 * freshness.md.  No locks, no pointers in the segment; every access is memory_order_seq_cst. */
#ifndef STAMPD_DOCUMENT_STAMPS_H
#define STAMPD_DOCUMENT_STAMPS_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "document/backlog.h"
#include "document/losses.h"
#include "document/shelf.h"
#include "edge/segment.h"

enum {
    STAMPS_PROCESSES = 448,
    STAMPS_WORDS = STAMPS_PROCESSES / 64, /* of mark bits in a slot */
    STAMPS_NAMESPACES = 256,
    STAMPS_DATABASE_BYTES = 63, /* longest name of a database */
    STAMPS_NO_INDEX = -1
};

struct stamps_slot {
    _Alignas(64) _Atomic uint64_t stamp;
    _Atomic uint64_t mark[STAMPS_WORDS];
};

struct stamps_board; /* what lies in the segment */
struct ears_board;   /* and in it, for document/ears.h */
struct kept_board;   /* and for document/kept.h, reads.h, refusals.h */
struct reads_board;
struct refusals_board;

/* This process's handle: the mapped segment and its own index.  Its fields are for this module only; they
 * stand here because stamps_see is inlined. */
struct stamps {
    struct stamps_slot *slots;
    _Atomic uint32_t *turns; /* one a slot, for turns.c */
    _Atomic uint32_t *words; /* mark words in use by indexes ever taken */
    struct stamps_board *board;
    struct ears_board *ears;
    struct kept_board *kept;
    struct reads_board *reads;
    struct refusals_board *refusals;
    struct segment segment;
    struct shelf *shelf;
    uint32_t slot_mask;
    int index;
};

enum entry_state { ENTRY_FREE, ENTRY_HELD, ENTRY_DIRTY };

/* Creates or attaches the segment (master, before fork).  `slots` is a power of two; `shelf_bytes` for copies
 * that workers hand to each other.  Both must be what the living use. */
MUST_USE bool stamps_open_with_shelf(struct stamps **stamps_r, const char *path, uint32_t slots,
                                     size_t shelf_bytes, char *problem, size_t problem_size);
/* The same without a shelf. */
MUST_USE bool stamps_open(struct stamps **stamps_r, const char *path, uint32_t slots, char *problem,
                          size_t problem_size);
void stamps_close(struct stamps *stamps);

uint32_t stamps_installation(const struct stamps *stamps); /* top byte 'S' */
uint64_t stamps_generation(const struct stamps *stamps);
uint64_t stamps_seed(const struct stamps *stamps); /* of the hash of names, the same for all instances */

/* Tags of copies on the shelf are what stamps_see showed before they were loaded, or moved + 1 of
 * stamps_publish under its condition. */
struct shelf *stamps_shelf(const struct stamps *stamps);

/* The word of the slot's turn. */
_Atomic uint32_t *stamps_turn(const struct stamps *stamps, uint32_t slot);

/* --- slots --- */
struct look {
    bool busy;      /* some process may have a commit in flight */
    uint64_t stamp; /* read after the marks */
};
/* Hash of a document's name: database (its index), class, id. */
uint64_t stamps_hash(const struct stamps *stamps, int space, struct bytes class, struct bytes id);

/* Of any text; who does not know the seed cannot choose texts that meet. */
uint64_t stamps_hash_text(uint64_t seed, struct bytes text);

static inline uint32_t stamps_slot(const struct stamps *stamps, uint64_t hash)
{
    return (uint32_t)hash & stamps->slot_mask;
}

/* see(slot): marks FIRST, then the stamp.  The number of words is read at each look: a word that comes into
 * use later has no bit for a commit that was over before the look. */
static inline struct look stamps_see(const struct stamps *stamps, uint32_t slot)
{
    struct stamps_slot *line = &stamps->slots[slot];
    uint32_t words = atomic_load(stamps->words);
    uint64_t marks = 0;
    for (uint32_t word = 0; word < words; word++)
        marks |= atomic_load(&line->mark[word]);
    uint64_t stamp = atomic_load(&line->stamp);
    return (struct look){.busy = marks != 0, .stamp = stamp};
}

/* One commit at a time, in this order: begin, mark, (send, await the answer), publish or not, unmark, end.
 * `slots` without doubles. */
void stamps_begin(struct stamps *stamps, int space);
/* Sets our bit in each slot, then notes the stamps in `own_r`; ends with the fence that must precede the
 * send. */
void stamps_mark(struct stamps *stamps, const uint32_t *slots, size_t count, uint64_t *own_r);
/* Moves the stamps.  `moved_r` (may be NULL): what they were just before: a copy written by the commit is
 * tagged moved + 1 when moved = own, else it gets no tag.  For the herald too, which has no index. */
void stamps_publish(struct stamps *stamps, const uint32_t *slots, size_t count, uint64_t *moved_r);
void stamps_unmark(struct stamps *stamps, const uint32_t *slots, size_t count);
void stamps_end(struct stamps *stamps);

/* Moves every stamp: after a reconnection of the herald, fail-over, restore. */
void stamps_move_all(struct stamps *stamps);

/* --- databases, found or added by name; the index is `space` everywhere --- */
/* Full table, or no name of a database (empty, too long, with a NUL): -1. */
int stamps_space(struct stamps *stamps, struct bytes database);
/* NULL: a process died or is busy writing the name; nobody uses that space yet. */
const char *stamps_space_database(const struct stamps *stamps, int space);
int stamps_space_count(const struct stamps *stamps);
/* Are the sessions of former generations gone from it? */
bool stamps_space_is_clean(const struct stamps *stamps, int space);
void stamps_space_set_clean(struct stamps *stamps, int space);
/* What the last use of the database has shown, and how long ago that was (-1: never): written by whoever
 * opens or loses a session, and by the herald as long as it listens there. */
void stamps_space_tell(struct stamps *stamps, int space, bool is_up);
int64_t stamps_space_health(const struct stamps *stamps, int space, bool *is_up_r);
/* What was last known of its tasks. */
struct backlog *stamps_backlog(const struct stamps *stamps, int space);

/* --- entries: one for each process that may commit --- */
/* The child's first act: whose bit it sets.  The former process of that index is gone. */
void stamps_become(struct stamps *stamps, int index);
int stamps_index(const struct stamps *stamps); /* STAMPS_NO_INDEX before */
/* Takes at most `count` entries that belong to no instance; returns how many.  `lock_file` is the inode of
 * the instance's lock file. */
MUST_USE int stamps_take_entries(struct stamps *stamps, uint32_t instance, uint64_t lock_file, int count,
                                 int *indexes_r);
enum entry_state stamps_entry_state(const struct stamps *stamps, int index);
void stamps_entry_set(struct stamps *stamps, int index, enum entry_state state, uint32_t pid);
uint32_t stamps_entry_instance(const struct stamps *stamps, int index); /* 0: none */
uint64_t stamps_entry_lock_file(const struct stamps *stamps, int index);
uint32_t stamps_entry_pid(const struct stamps *stamps, int index);
int stamps_entry_space(const struct stamps *stamps,
                       int index);               /* where a commit may be in flight; -1: nowhere */
int stamps_entries(const struct stamps *stamps); /* none from this one on was ever taken */
void stamps_release_entry(struct stamps *stamps, int index); /* FREE and of no instance */
/* heir: moves the stamp of each slot that bears the own index's bit, then clears the bit; then entry.ns := 0.
 * Returns how many slots.  Only when the backend of the index's former process is gone. */
size_t stamps_sweep(struct stamps *stamps);

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
struct pulse *stamps_pulse(struct stamps *stamps, int index);
/* Why attempts of the process of this index were lost. */
struct losses *stamps_losses(const struct stamps *stamps, int index);

/* A pulse has one writer: no locked instruction is needed to count. */
static inline void pulse_count(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + more, memory_order_relaxed);
}

#endif
