/* stamps: layout of the segment and the steps of freshness.md on it.
 *
 * Memory that is zero is a valid beginning: no mark, no namespace, every entry FREE.  So a new segment needs
 * no making beyond edge/segment's, and an instance may attach at any moment. */
#include "segment/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "segment/feed.h"
#include "segment/purge_counts.h"
#include "segment/reads.h"
#include "segment/refusals.h"
#include "segment/writer_queue.h"

/* An entry belongs to the instance that set `instance` (compare-and-swap from 0), until it is set to 0 again.
 */
struct entry {
    _Alignas(64) _Atomic uint32_t state; /* FREE, HELD, DIRTY (owner dead, not repaired) */
    _Atomic uint32_t instance, pid;
    _Atomic uint32_t ns;        /* 1 + space where a commit may be in flight; 0: none */
    _Atomic uint64_t lock_file; /* inode; 0: not yet written */
};

/* The name's bytes behind one that counts them, as words that go from 0 to their value once, in order. */
enum { NAME_WORDS = (1 + NAMESPACES_DATABASE_BYTES) / 8 };
struct ns {
    _Alignas(64) _Atomic uint64_t name[NAME_WORDS + 1]; /* the last stays 0: the NUL of the longest name */
    _Atomic uint32_t clean;
    _Atomic int64_t health; /* monotonic ms of the last use, doubled, + 1: it worked; 0: never */
};

struct board {
    struct mapping_head head;
    _Alignas(64) _Atomic uint32_t words;
    _Atomic uint32_t slot_count; /* 0: nobody has come yet */
    struct ns namespaces[NAMESPACES_MOST];
    struct entry entries[PROCESSES_MOST];
    struct pulse pulses[PROCESSES_MOST];
    struct backlog backlogs[NAMESPACES_MOST];
    struct losses losses[PROCESSES_MOST];
    struct feed_board feed;
    struct purge_board kept;
    struct reads_board reads;
    struct refusals_board refusals;
    struct slot slots[]; /* then the turns, then the shared cache */
};

static const uint64_t MAGIC = UINT64_C(0x3164706d61747353); /* "Sstampd1" */
enum { LAYOUT = 14 };                                       /* changes with anything above */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(uint64_t) == sizeof(long long),
               "64-bit atomics without locks");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && sizeof(uint32_t) == sizeof(int), "32-bit atomics without locks");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4,
               "atomics as large as their values");
_Static_assert(sizeof(struct slot) == 64, "a slot is one cache line");
_Static_assert(sizeof(struct entry) == 64, "an entry is one cache line");
_Static_assert(sizeof(struct pulse) == 384, "a pulse is six cache lines");
_Static_assert(sizeof(struct ns) == 128, "a namespace is two cache lines");
_Static_assert(SLOTS_WORDS * 64 == PROCESSES_MOST && SLOTS_WORDS == 7,
               "the stamp and all bits share the line");
_Static_assert(NAME_WORDS * 8 == 1 + NAMESPACES_DATABASE_BYTES && NAMESPACES_DATABASE_BYTES < 256,
               "count and name fill words");
_Static_assert(offsetof(struct board, slots) % 64 == 0, "slots, and what follows them, are aligned");
_Static_assert(PROCESS_FREE == 0, "zero is a valid beginning");

/* Two tables may be as large together as two others. */
static bool agree_on_slots(struct board *board, uint32_t slots)
{
    uint32_t present = 0;
    return atomic_compare_exchange_strong(&board->slot_count, &present, slots) || present == slots;
}

bool segment_open(struct segment **segment_r, const char *path, uint32_t slots, char *problem,
                  size_t problem_size)
{
    return segment_open_with_shared_cache(segment_r, path, slots, 0, problem, problem_size);
}

bool segment_open_with_shared_cache(struct segment **segment_r, const char *path, uint32_t slots,
                                    size_t shared_cache_bytes, char *problem, size_t problem_size)
{
    assert(slots % 64 == 0 && (slots & (slots - 1)) == 0);
    struct segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        log_fatal("out of memory opening the segment");
    size_t writer_queue = sizeof(struct board) + (size_t)slots * sizeof(struct slot);
    size_t shared_cache = writer_queue + (size_t)slots * sizeof *segment->writer_queue;
    if (!mapping_open(&segment->mapping, path, MAGIC, LAYOUT, shared_cache + shared_cache_bytes, problem,
                      problem_size)) {
        free(segment);
        return false;
    }
    segment->board = segment->mapping.memory;
    segment->shared_cache =
        shared_cache_create((char *)segment->mapping.memory + shared_cache, shared_cache_bytes);
    segment->writer_queue = (_Atomic uint32_t *)((char *)segment->mapping.memory + writer_queue);
    segment->slots = segment->board->slots;
    segment->words = &segment->board->words;
    segment->feed = &segment->board->feed;
    segment->kept = &segment->board->kept;
    segment->reads = &segment->board->reads;
    segment->refusals = &segment->board->refusals;
    segment->slot_mask = slots - 1;
    segment->index = PROCESSES_NO_INDEX;
    if (!agree_on_slots(segment->board, slots)) {
        snprintf(problem, problem_size, "segment %s: in use with another segment_slots", path);
        segment_close(segment);
        return false;
    }
    *segment_r = segment;
    return true;
}

void segment_close(struct segment *segment)
{
    if (!segment)
        return;
    shared_cache_destroy(segment->shared_cache);
    mapping_close(&segment->mapping);
    free(segment);
}

uint32_t segment_installation(const struct segment *segment)
{
    return segment->board->head.installation;
}

uint64_t segment_generation(const struct segment *segment)
{
    return segment->board->head.generation;
}

uint64_t segment_seed(const struct segment *segment)
{
    return segment->board->head.seed;
}

/* --- slots --- */

/* The hash of one part seeds the next: no separator to confuse, nothing to copy, any length. */
uint64_t slots_hash(const struct segment *segment, int ns, struct bytes class, struct bytes id)
{
    static const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t seed = segment_seed(segment) + ((uint64_t)ns + 1) * spread;
    return XXH3_64bits_withSeed(id.data, id.size, XXH3_64bits_withSeed(class.data, class.size, seed));
}

uint64_t slots_hash_text(uint64_t seed, struct bytes text)
{
    return XXH3_64bits_withSeed(text.data, text.size, seed);
}

static struct entry *own_entry(const struct segment *segment)
{
    assert(segment->index >= 0 && segment->index < PROCESSES_MOST);
    return &segment->board->entries[segment->index];
}

static _Atomic uint64_t *own_word(const struct segment *segment, uint32_t slot)
{
    assert(slot <= segment->slot_mask);
    return &segment->slots[slot].mark[segment->index / 64];
}

static uint64_t own_bit(const struct segment *segment)
{
    return UINT64_C(1) << (segment->index % 64);
}

void slots_begin(struct segment *segment, int ns)
{
    struct entry *entry = own_entry(segment);
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    assert(atomic_load(&entry->ns) == 0); /* at most one commit in flight or in doubt */
    atomic_store(&entry->ns, (uint32_t)ns + 1);
}

void slots_mark(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *own_r)
{
    uint64_t bit = own_bit(segment);
    assert(atomic_load(&own_entry(segment)->ns) != 0);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_or(own_word(segment, slots[i]), bit);
        crash_at(CRASH_COMMIT_MARK);
    }
    for (size_t i = 0; i < count; i++)
        own_r[i] = atomic_load(&segment->slots[slots[i]].stamp);
    atomic_thread_fence(memory_order_seq_cst); /* before the bytes of COMMIT leave */
}

void slots_publish(struct segment *segment, const uint32_t *slots, size_t count, uint64_t *moved_r)
{
    for (size_t i = 0; i < count; i++) {
        assert(slots[i] <= segment->slot_mask);
        uint64_t moved = atomic_fetch_add(&segment->slots[slots[i]].stamp, 1);
        if (moved_r)
            moved_r[i] = moved;
        crash_at(CRASH_PUBLISH);
    }
}

void slots_unmark(struct segment *segment, const uint32_t *slots, size_t count)
{
    uint64_t bit = own_bit(segment);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_and(own_word(segment, slots[i]), ~bit);
        crash_at(CRASH_UNMARK);
    }
}

void slots_end(struct segment *segment)
{
    atomic_store(&own_entry(segment)->ns, 0);
}

void slots_move_all(struct segment *segment)
{
    for (size_t slot = 0; slot <= segment->slot_mask; slot++)
        atomic_fetch_add(&segment->slots[slot].stamp, 1);
}

size_t slots_sweep(struct segment *segment)
{
    struct entry *entry = own_entry(segment);
    uint64_t bit = own_bit(segment);
    size_t repaired = 0;
    for (size_t slot = 0; slot <= segment->slot_mask; slot++) {
        _Atomic uint64_t *word = own_word(segment, (uint32_t)slot);
        if (!(atomic_load(word) & bit))
            continue;
        atomic_fetch_add(&segment->slots[slot].stamp,
                         1); /* first: whoever sees the bit gone sees the stamp moved */
        crash_at(CRASH_RECOVERY_MOVED);
        atomic_fetch_and(word, ~bit);
        crash_at(CRASH_RECOVERY_UNMARKED);
        repaired++;
    }
    crash_at(CRASH_RECOVERY_SWEPT);
    atomic_store(&entry->ns, 0);
    crash_at(CRASH_RECOVERY_ENDED);
    return repaired;
}

/* --- databases --- */

/* The words of a name, the first with the count of bytes; returns how many, 0 for what is no name. */
static int name_to_words(struct bytes database, uint64_t words_r[NAME_WORDS])
{
    if (database.size == 0 || database.size > NAMESPACES_DATABASE_BYTES ||
        memchr(database.data, '\0', database.size))
        return 0;
    char text[NAME_WORDS * 8] = {(char)database.size};
    memcpy(text + 1, database.data, database.size);
    memcpy(words_r, text, sizeof text);
    return (int)(1 + database.size + 7) / 8;
}

/* Is it the namespace's place, or made so?  No word of a name is 0, and a word once written stays.  So a
 * place that differs will always differ, everybody who seeks the same name goes by it and comes to the same
 * place, and a name left half-written by a dead process is finished by the next that it fits. */
static bool find_or_write_name(struct ns *ns, const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t present = atomic_load(&ns->name[i]);
        if (present == 0 && atomic_compare_exchange_strong(&ns->name[i], &present, words[i]))
            continue;
        if (present != words[i])
            return false;
    }
    return true;
}

int namespaces_find(struct segment *segment, struct bytes database)
{
    uint64_t words[NAME_WORDS];
    int count = name_to_words(database, words);
    if (count == 0)
        return -1;
    for (int i = 0; i < NAMESPACES_MOST; i++)
        if (find_or_write_name(&segment->board->namespaces[i], words, count))
            return i;
    return -1;
}

static struct ns *ns_at(const struct segment *segment, int ns)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    return &segment->board->namespaces[ns];
}

const char *namespaces_database(const struct segment *segment, int ns)
{
    struct ns *place = ns_at(segment, ns);
    uint64_t first = atomic_load(&place->name[0]);
    unsigned char size;
    memcpy(&size, &first, sizeof size);
    if (size == 0)
        return NULL;
    for (int i = 1; i < (1 + size + 7) / 8; i++)
        if (atomic_load(&place->name[i]) == 0)
            return NULL;
    return (const char *)(const void *)place->name + 1;
}

int namespaces_count(const struct segment *segment)
{
    int count = 0;
    while (count < NAMESPACES_MOST && atomic_load(&segment->board->namespaces[count].name[0]))
        count++;
    return count;
}

bool namespaces_is_clean(const struct segment *segment, int ns)
{
    return atomic_load(&ns_at(segment, ns)->clean) != 0;
}

void namespaces_set_clean(struct segment *segment, int ns)
{
    atomic_store(&ns_at(segment, ns)->clean, 1);
}

void slots_ns_tell(struct segment *segment, int ns, bool is_up)
{
    atomic_store(&ns_at(segment, ns)->health, clock_monotonic_ms() * 2 + is_up);
}

int64_t slots_ns_health(const struct segment *segment, int ns, bool *is_up_r)
{
    int64_t health = atomic_load(&ns_at(segment, ns)->health);
    *is_up_r = health & 1;
    return health ? clock_monotonic_ms() - health / 2 : -1;
}

struct backlog *backlog_of(const struct segment *segment, int ns)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    return &segment->board->backlogs[ns];
}

/* --- entries --- */

void segment_join(struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    assert((uint32_t)index / 64 < atomic_load(segment->words)); /* taken, so readers look at its word */
    segment->index = index;
    shared_cache_recover(segment->shared_cache, index);
    writer_queue_recover(segment, index);
}

_Atomic uint32_t *writer_queue_word(const struct segment *segment, uint32_t slot)
{
    assert(slot <= segment->slot_mask);
    return &segment->writer_queue[slot];
}

struct shared_cache *shared_cache_of(const struct segment *segment)
{
    return segment->shared_cache;
}

int segment_index(const struct segment *segment)
{
    return segment->index;
}

static struct entry *entry_at(const struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->board->entries[index];
}

/* Words in use only grow. */
static void raise_words(struct segment *segment, uint32_t needed)
{
    uint32_t present = atomic_load(segment->words);
    while (present < needed && !atomic_compare_exchange_weak(segment->words, &present, needed))
        ;
}

int processes_take(struct segment *segment, uint32_t instance, uint64_t lock_file, int count, int *indexes_r)
{
    assert(instance != 0);
    int taken = 0;
    for (int i = 0; i < PROCESSES_MOST && taken < count; i++) {
        struct entry *entry = entry_at(segment, i);
        uint32_t nobody = 0;
        if (!atomic_compare_exchange_strong(&entry->instance, &nobody, instance))
            continue;
        assert(atomic_load(&entry->state) == PROCESS_FREE && atomic_load(&entry->ns) == 0);
        atomic_store(&entry->lock_file, lock_file);
        raise_words(segment, (uint32_t)i / 64 + 1);
        indexes_r[taken++] = i;
        crash_at(CRASH_INSTANCE_ENTRY);
    }
    return taken;
}

enum process_state processes_state(const struct segment *segment, int index)
{
    return (enum process_state)atomic_load(&entry_at(segment, index)->state);
}

void processes_set(struct segment *segment, int index, enum process_state state, uint32_t pid)
{
    struct entry *entry = entry_at(segment, index);
    if (state != PROCESS_HELD) /* before anybody may hold it again */
        atomic_store(&metrics_pulse(segment, index)->task_claim, 0);
    atomic_store(&entry->pid, pid);
    atomic_store(&entry->state, state);
}

uint32_t processes_instance(const struct segment *segment, int index)
{
    return atomic_load(&entry_at(segment, index)->instance);
}

uint64_t processes_lock_file(const struct segment *segment, int index)
{
    return atomic_load(&entry_at(segment, index)->lock_file);
}

uint32_t processes_pid(const struct segment *segment, int index)
{
    return atomic_load(&entry_at(segment, index)->pid);
}

int processes_namespace(const struct segment *segment, int index)
{
    return (int)atomic_load(&entry_at(segment, index)->ns) - 1;
}

int processes_count(const struct segment *segment)
{
    return (int)atomic_load(segment->words) * 64;
}

void processes_release(struct segment *segment, int index)
{
    struct entry *entry = entry_at(segment, index);
    assert(atomic_load(&entry->ns) == 0); /* else its bits may be set */
    atomic_store(&metrics_pulse(segment, index)->request_since_ms, 0);
    atomic_store(&metrics_pulse(segment, index)->deadline_ms, 0);
    atomic_store(&metrics_pulse(segment, index)->limit_ms, 0);
    atomic_store(&metrics_pulse(segment, index)->may_have_changed, 0);
    atomic_store(&metrics_pulse(segment, index)->task_claim, 0);
    atomic_store(&entry->pid, 0);
    atomic_store(&entry->state, PROCESS_FREE);
    crash_at(CRASH_MASTER_RELEASED);
    atomic_store(&entry->lock_file, 0);
    atomic_store(&entry->instance, 0); /* last: from here on it may be another's */
}

struct losses *losses_of(const struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->board->losses[index];
}

struct pulse *metrics_pulse(struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->board->pulses[index];
}
