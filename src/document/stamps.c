/* stamps: layout of the segment and the steps of freshness.md on it.
 *
 * Memory that is zero is a valid beginning: no mark, no namespace, every entry FREE.  So a new segment needs
 * no making beyond edge/segment's, and an instance may attach at any moment. */
#include "document/stamps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "document/ears.h"
#include "document/kept.h"
#include "document/reads.h"
#include "document/refusals.h"
#include "document/turns.h"

/* An entry belongs to the instance that set `instance` (compare-and-swap from 0), until it is set to 0 again.
 */
struct entry {
    _Alignas(64) _Atomic uint32_t state; /* FREE, HELD, DIRTY (owner dead, not repaired) */
    _Atomic uint32_t instance, pid;
    _Atomic uint32_t ns;        /* 1 + space where a commit may be in flight; 0: none */
    _Atomic uint64_t lock_file; /* inode; 0: not yet written */
};

/* The name's bytes behind one that counts them, as words that go from 0 to their value once, in order. */
enum { NAME_WORDS = (1 + STAMPS_DATABASE_BYTES) / 8 };
struct space {
    _Alignas(64) _Atomic uint64_t name[NAME_WORDS + 1]; /* the last stays 0: the NUL of the longest name */
    _Atomic uint32_t clean;
    _Atomic int64_t health; /* monotonic ms of the last use, doubled, + 1: it worked; 0: never */
};

struct stamps_board {
    struct segment_head head;
    _Alignas(64) _Atomic uint32_t words;
    _Atomic uint32_t slot_count; /* 0: nobody has come yet */
    struct space spaces[STAMPS_NAMESPACES];
    struct entry entries[STAMPS_PROCESSES];
    struct pulse pulses[STAMPS_PROCESSES];
    struct backlog backlogs[STAMPS_NAMESPACES];
    struct losses losses[STAMPS_PROCESSES];
    struct ears_board ears;
    struct kept_board kept;
    struct reads_board reads;
    struct refusals_board refusals;
    struct stamps_slot slots[]; /* then the turns, then the shelf */
};

static const uint64_t MAGIC = UINT64_C(0x3164706d61747353); /* "Sstampd1" */
enum { LAYOUT = 14 };                                       /* changes with anything above */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(uint64_t) == sizeof(long long),
               "64-bit atomics without locks");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && sizeof(uint32_t) == sizeof(int), "32-bit atomics without locks");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4,
               "atomics as large as their values");
_Static_assert(sizeof(struct stamps_slot) == 64, "a slot is one cache line");
_Static_assert(sizeof(struct entry) == 64, "an entry is one cache line");
_Static_assert(sizeof(struct pulse) == 384, "a pulse is six cache lines");
_Static_assert(sizeof(struct space) == 128, "a namespace is two cache lines");
_Static_assert(STAMPS_WORDS * 64 == STAMPS_PROCESSES && STAMPS_WORDS == 7,
               "the stamp and all bits share the line");
_Static_assert(NAME_WORDS * 8 == 1 + STAMPS_DATABASE_BYTES && STAMPS_DATABASE_BYTES < 256,
               "count and name fill words");
_Static_assert(offsetof(struct stamps_board, slots) % 64 == 0, "slots, and what follows them, are aligned");
_Static_assert(ENTRY_FREE == 0, "zero is a valid beginning");

/* Two tables may be as large together as two others. */
static bool agree_on_slots(struct stamps_board *board, uint32_t slots)
{
    uint32_t present = 0;
    return atomic_compare_exchange_strong(&board->slot_count, &present, slots) || present == slots;
}

bool stamps_open(struct stamps **stamps_r, const char *path, uint32_t slots, char *problem,
                 size_t problem_size)
{
    return stamps_open_with_shelf(stamps_r, path, slots, 0, problem, problem_size);
}

bool stamps_open_with_shelf(struct stamps **stamps_r, const char *path, uint32_t slots, size_t shelf_bytes,
                            char *problem, size_t problem_size)
{
    assert(slots % 64 == 0 && (slots & (slots - 1)) == 0);
    struct stamps *stamps = calloc(1, sizeof *stamps);
    if (!stamps)
        log_fatal("out of memory opening the segment");
    size_t turns = sizeof(struct stamps_board) + (size_t)slots * sizeof(struct stamps_slot);
    size_t shelf = turns + (size_t)slots * sizeof *stamps->turns;
    if (!segment_open(&stamps->segment, path, MAGIC, LAYOUT, shelf + shelf_bytes, problem, problem_size)) {
        free(stamps);
        return false;
    }
    stamps->board = stamps->segment.memory;
    stamps->shelf = shelf_create((char *)stamps->segment.memory + shelf, shelf_bytes);
    stamps->turns = (_Atomic uint32_t *)((char *)stamps->segment.memory + turns);
    stamps->slots = stamps->board->slots;
    stamps->words = &stamps->board->words;
    stamps->ears = &stamps->board->ears;
    stamps->kept = &stamps->board->kept;
    stamps->reads = &stamps->board->reads;
    stamps->refusals = &stamps->board->refusals;
    stamps->slot_mask = slots - 1;
    stamps->index = STAMPS_NO_INDEX;
    if (!agree_on_slots(stamps->board, slots)) {
        snprintf(problem, problem_size, "segment %s: in use with another segment_slots", path);
        stamps_close(stamps);
        return false;
    }
    *stamps_r = stamps;
    return true;
}

void stamps_close(struct stamps *stamps)
{
    if (!stamps)
        return;
    shelf_destroy(stamps->shelf);
    segment_close(&stamps->segment);
    free(stamps);
}

uint32_t stamps_installation(const struct stamps *stamps)
{
    return stamps->board->head.installation;
}

uint64_t stamps_generation(const struct stamps *stamps)
{
    return stamps->board->head.generation;
}

uint64_t stamps_seed(const struct stamps *stamps)
{
    return stamps->board->head.seed;
}

/* --- slots --- */

/* The hash of one part seeds the next: no separator to confuse, nothing to copy, any length. */
uint64_t stamps_hash(const struct stamps *stamps, int space, struct bytes class, struct bytes id)
{
    static const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t seed = stamps_seed(stamps) + ((uint64_t)space + 1) * spread;
    return XXH3_64bits_withSeed(id.data, id.size, XXH3_64bits_withSeed(class.data, class.size, seed));
}

uint64_t stamps_hash_text(uint64_t seed, struct bytes text)
{
    return XXH3_64bits_withSeed(text.data, text.size, seed);
}

static struct entry *own_entry(const struct stamps *stamps)
{
    assert(stamps->index >= 0 && stamps->index < STAMPS_PROCESSES);
    return &stamps->board->entries[stamps->index];
}

static _Atomic uint64_t *own_word(const struct stamps *stamps, uint32_t slot)
{
    assert(slot <= stamps->slot_mask);
    return &stamps->slots[slot].mark[stamps->index / 64];
}

static uint64_t own_bit(const struct stamps *stamps)
{
    return UINT64_C(1) << (stamps->index % 64);
}

void stamps_begin(struct stamps *stamps, int space)
{
    struct entry *entry = own_entry(stamps);
    assert(space >= 0 && space < STAMPS_NAMESPACES);
    assert(atomic_load(&entry->ns) == 0); /* at most one commit in flight or in doubt */
    atomic_store(&entry->ns, (uint32_t)space + 1);
}

void stamps_mark(struct stamps *stamps, const uint32_t *slots, size_t count, uint64_t *own_r)
{
    uint64_t bit = own_bit(stamps);
    assert(atomic_load(&own_entry(stamps)->ns) != 0);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_or(own_word(stamps, slots[i]), bit);
        crash_at(CRASH_COMMIT_MARK);
    }
    for (size_t i = 0; i < count; i++)
        own_r[i] = atomic_load(&stamps->slots[slots[i]].stamp);
    atomic_thread_fence(memory_order_seq_cst); /* before the bytes of COMMIT leave */
}

void stamps_publish(struct stamps *stamps, const uint32_t *slots, size_t count, uint64_t *moved_r)
{
    for (size_t i = 0; i < count; i++) {
        assert(slots[i] <= stamps->slot_mask);
        uint64_t moved = atomic_fetch_add(&stamps->slots[slots[i]].stamp, 1);
        if (moved_r)
            moved_r[i] = moved;
        crash_at(CRASH_PUBLISH);
    }
}

void stamps_unmark(struct stamps *stamps, const uint32_t *slots, size_t count)
{
    uint64_t bit = own_bit(stamps);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_and(own_word(stamps, slots[i]), ~bit);
        crash_at(CRASH_UNMARK);
    }
}

void stamps_end(struct stamps *stamps)
{
    atomic_store(&own_entry(stamps)->ns, 0);
}

void stamps_move_all(struct stamps *stamps)
{
    for (size_t slot = 0; slot <= stamps->slot_mask; slot++)
        atomic_fetch_add(&stamps->slots[slot].stamp, 1);
}

size_t stamps_sweep(struct stamps *stamps)
{
    struct entry *entry = own_entry(stamps);
    uint64_t bit = own_bit(stamps);
    size_t repaired = 0;
    for (size_t slot = 0; slot <= stamps->slot_mask; slot++) {
        _Atomic uint64_t *word = own_word(stamps, (uint32_t)slot);
        if (!(atomic_load(word) & bit))
            continue;
        atomic_fetch_add(&stamps->slots[slot].stamp,
                         1); /* first: whoever sees the bit gone sees the stamp moved */
        crash_at(CRASH_HEIR_MOVED);
        atomic_fetch_and(word, ~bit);
        crash_at(CRASH_HEIR_UNMARKED);
        repaired++;
    }
    crash_at(CRASH_HEIR_SWEPT);
    atomic_store(&entry->ns, 0);
    crash_at(CRASH_HEIR_ENDED);
    return repaired;
}

/* --- databases --- */

/* The words of a name, the first with the count of bytes; returns how many, 0 for what is no name. */
static int name_to_words(struct bytes database, uint64_t words_r[NAME_WORDS])
{
    if (database.size == 0 || database.size > STAMPS_DATABASE_BYTES ||
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
static bool find_or_write_name(struct space *space, const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t present = atomic_load(&space->name[i]);
        if (present == 0 && atomic_compare_exchange_strong(&space->name[i], &present, words[i]))
            continue;
        if (present != words[i])
            return false;
    }
    return true;
}

int stamps_space(struct stamps *stamps, struct bytes database)
{
    uint64_t words[NAME_WORDS];
    int count = name_to_words(database, words);
    if (count == 0)
        return -1;
    for (int i = 0; i < STAMPS_NAMESPACES; i++)
        if (find_or_write_name(&stamps->board->spaces[i], words, count))
            return i;
    return -1;
}

static struct space *space_at(const struct stamps *stamps, int space)
{
    assert(space >= 0 && space < STAMPS_NAMESPACES);
    return &stamps->board->spaces[space];
}

const char *stamps_space_database(const struct stamps *stamps, int space)
{
    struct space *place = space_at(stamps, space);
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

int stamps_space_count(const struct stamps *stamps)
{
    int count = 0;
    while (count < STAMPS_NAMESPACES && atomic_load(&stamps->board->spaces[count].name[0]))
        count++;
    return count;
}

bool stamps_space_is_clean(const struct stamps *stamps, int space)
{
    return atomic_load(&space_at(stamps, space)->clean) != 0;
}

void stamps_space_set_clean(struct stamps *stamps, int space)
{
    atomic_store(&space_at(stamps, space)->clean, 1);
}

void stamps_space_tell(struct stamps *stamps, int space, bool is_up)
{
    atomic_store(&space_at(stamps, space)->health, clock_monotonic_ms() * 2 + is_up);
}

int64_t stamps_space_health(const struct stamps *stamps, int space, bool *is_up_r)
{
    int64_t health = atomic_load(&space_at(stamps, space)->health);
    *is_up_r = health & 1;
    return health ? clock_monotonic_ms() - health / 2 : -1;
}

struct backlog *stamps_backlog(const struct stamps *stamps, int space)
{
    assert(space >= 0 && space < STAMPS_NAMESPACES);
    return &stamps->board->backlogs[space];
}

/* --- entries --- */

void stamps_become(struct stamps *stamps, int index)
{
    assert(index >= 0 && index < STAMPS_PROCESSES);
    assert((uint32_t)index / 64 < atomic_load(stamps->words)); /* taken, so readers look at its word */
    stamps->index = index;
    shelf_recover(stamps->shelf, index);
    turns_recover(stamps, index);
}

_Atomic uint32_t *stamps_turn(const struct stamps *stamps, uint32_t slot)
{
    assert(slot <= stamps->slot_mask);
    return &stamps->turns[slot];
}

struct shelf *stamps_shelf(const struct stamps *stamps)
{
    return stamps->shelf;
}

int stamps_index(const struct stamps *stamps)
{
    return stamps->index;
}

static struct entry *entry_at(const struct stamps *stamps, int index)
{
    assert(index >= 0 && index < STAMPS_PROCESSES);
    return &stamps->board->entries[index];
}

/* Words in use only grow. */
static void raise_words(struct stamps *stamps, uint32_t needed)
{
    uint32_t present = atomic_load(stamps->words);
    while (present < needed && !atomic_compare_exchange_weak(stamps->words, &present, needed))
        ;
}

int stamps_take_entries(struct stamps *stamps, uint32_t instance, uint64_t lock_file, int count,
                        int *indexes_r)
{
    assert(instance != 0);
    int taken = 0;
    for (int i = 0; i < STAMPS_PROCESSES && taken < count; i++) {
        struct entry *entry = entry_at(stamps, i);
        uint32_t nobody = 0;
        if (!atomic_compare_exchange_strong(&entry->instance, &nobody, instance))
            continue;
        assert(atomic_load(&entry->state) == ENTRY_FREE && atomic_load(&entry->ns) == 0);
        atomic_store(&entry->lock_file, lock_file);
        raise_words(stamps, (uint32_t)i / 64 + 1);
        indexes_r[taken++] = i;
        crash_at(CRASH_INSTANCE_ENTRY);
    }
    return taken;
}

enum entry_state stamps_entry_state(const struct stamps *stamps, int index)
{
    return (enum entry_state)atomic_load(&entry_at(stamps, index)->state);
}

void stamps_entry_set(struct stamps *stamps, int index, enum entry_state state, uint32_t pid)
{
    struct entry *entry = entry_at(stamps, index);
    if (state != ENTRY_HELD) /* before anybody may hold it again */
        atomic_store(&stamps_pulse(stamps, index)->task_claim, 0);
    atomic_store(&entry->pid, pid);
    atomic_store(&entry->state, state);
}

uint32_t stamps_entry_instance(const struct stamps *stamps, int index)
{
    return atomic_load(&entry_at(stamps, index)->instance);
}

uint64_t stamps_entry_lock_file(const struct stamps *stamps, int index)
{
    return atomic_load(&entry_at(stamps, index)->lock_file);
}

uint32_t stamps_entry_pid(const struct stamps *stamps, int index)
{
    return atomic_load(&entry_at(stamps, index)->pid);
}

int stamps_entry_space(const struct stamps *stamps, int index)
{
    return (int)atomic_load(&entry_at(stamps, index)->ns) - 1;
}

int stamps_entries(const struct stamps *stamps)
{
    return (int)atomic_load(stamps->words) * 64;
}

void stamps_release_entry(struct stamps *stamps, int index)
{
    struct entry *entry = entry_at(stamps, index);
    assert(atomic_load(&entry->ns) == 0); /* else its bits may be set */
    atomic_store(&stamps_pulse(stamps, index)->request_since_ms, 0);
    atomic_store(&stamps_pulse(stamps, index)->deadline_ms, 0);
    atomic_store(&stamps_pulse(stamps, index)->limit_ms, 0);
    atomic_store(&stamps_pulse(stamps, index)->may_have_changed, 0);
    atomic_store(&stamps_pulse(stamps, index)->task_claim, 0);
    atomic_store(&entry->pid, 0);
    atomic_store(&entry->state, ENTRY_FREE);
    crash_at(CRASH_MASTER_RELEASED);
    atomic_store(&entry->lock_file, 0);
    atomic_store(&entry->instance, 0); /* last: from here on it may be another's */
}

struct losses *stamps_losses(const struct stamps *stamps, int index)
{
    assert(index >= 0 && index < STAMPS_PROCESSES);
    return &stamps->board->losses[index];
}

struct pulse *stamps_pulse(struct stamps *stamps, int index)
{
    assert(index >= 0 && index < STAMPS_PROCESSES);
    return &stamps->board->pulses[index];
}
