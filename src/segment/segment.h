/* segment: the memory shared by all processes of this host, as seen by one of them.
 *
 * The segment holds tables with one module each, the tenants of board.h: slots (the freshness protocol),
 * processes, namespaces, metrics and more.  It has no locks and no pointers, and every access is
 * memory_order_seq_cst unless a module says why not. */
#ifndef STAMPD_SEGMENT_SEGMENT_H
#define STAMPD_SEGMENT_SEGMENT_H

#include <stdatomic.h>

#include "base/base.h"
#include "edge/mapping.h"

struct activity_board;
struct backlog;
struct beats;
struct cell_record;
struct feed_board;
struct hashers_board;
struct limiter_board;
struct lineage;
struct losses;
struct namespace_record;
struct process;
struct public_answers_head;
struct pulse;
struct purge_counts;
struct long_requests_board;
struct records;
struct refusals_board;
struct request_counts_board;
struct shared_cache;
struct shares_board;
struct slot;
struct stored;
struct task_counts_board;
struct waits;
struct warnings_board;

/* The handle of a process.  Each tenant owns the fields named after it; they are declared here because the
 * checks of every read are inlined. */
struct segment {
    struct slot *slots;
    _Atomic uint32_t *words; /* of slots: mark words in use by indexes ever taken */
    _Atomic int64_t *proof_until_ms;
    uint32_t slot_mask;
    struct public_answers_head *public_answers;
    uint64_t public_answers_count;
    int index; /* of this process; SEGMENT_NO_INDEX before segment_join */
    _Atomic uint32_t *writer_queue;
    struct process *processes;
    struct namespace_record *namespaces;
    struct cell_record *cells;
    struct lineage *lineage;
    struct waits *waits;
    struct beats *beats;
    struct pulse *metrics;
    struct backlog *backlogs;
    struct losses *losses;
    struct feed_board *feed;
    struct purge_counts *kept;
    struct task_counts_board *task_counts;
    struct long_requests_board *long_requests;
    struct hashers_board *hashers;
    struct shares_board *shares; /* for each of shares_kind */
    struct warnings_board *warnings;
    struct activity_board *activity;
    struct refusals_board *refusals;
    struct request_counts_board *request_counts;
    struct limiter_board *limiter;
    struct stored *stored;
    uint32_t limiter_lines; /* a power of two */
    struct shared_cache *shared_cache;
    struct records *records; /* of records/records.h, a memory of their own; NULL: there are none */
    struct mapping mapping;
};

#define SEGMENT_MAGIC UINT64_C(0x3164706d61747353) /* of its head: "Sstampd1" */

enum { SEGMENT_NO_INDEX = -1 };
enum { PROCESSES_MOST = 448 }; /* of this host that may commit: processes.h */

/* What the settings decide about the tenants. */
struct board_sizes {
    uint32_t slots;
    size_t shared_cache_bytes;
    size_t public_answers_bytes;
};

/* SEGMENT_NO_INDEX before segment_join. */
int segment_index(const struct segment *segment);

uint32_t segment_installation(const struct segment *segment); /* top byte 'S' */
uint64_t segment_generation(const struct segment *segment);
uint64_t segment_seed(const struct segment *segment); /* of the hash of names, the same for all instances */

/* The tag of a copy in the shared cache is the stamp that slots_see returned before the load, or moved + 1
 * of slots_publish under its condition. */
struct shared_cache *segment_shared_cache(const struct segment *segment);

#endif
