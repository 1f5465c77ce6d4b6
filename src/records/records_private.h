/* records_private: the layout of the records, for the files records_*.c.
 *
 * Three kinds of pieces: keys, values and leases.  A key is in a list of its hash's bucket and in the order
 * of keys; its value lists all its keys.  A value with an end is in the order of ends.  A number of a piece
 * is 0 where there is none. */
#ifndef STAMPD_RECORDS_RECORDS_PRIVATE_H
#define STAMPD_RECORDS_RECORDS_PRIVATE_H

#include "base/siphash.h"
#include "edge/mapping.h"
#include "edge/robust_lock.h"
#include "records/order.h"
#include "records/pieces.h"
#include "records/records_changes.h"
#include "records/records_state.h"

struct key_piece {
    uint32_t chain;            /* the next key of the bucket */
    uint32_t smaller, greater; /* order of keys */
    uint32_t value;
    uint32_t sibling; /* the next key of the value */
    uint32_t place;   /* namespace above, bytes of the key in the low half */
    char text[];
};

enum {
    VALUE_DELETED = 1 << 8,
    VALUE_OF_LOCK = 1 << 9,
    VALUE_PERSISTED = 1 << 10,
    VALUE_TOUCHED = 1 << 11, /* its end has moved since it was saved, and its keys are listed */
    VALUE_TYPE = 0xff
};

struct value_piece {
    uint32_t smaller, greater; /* order of ends */
    uint32_t expires[2];       /* ms; 0: never, and not in the order of ends */
    uint32_t timestamp[2];     /* us */
    uint32_t size;
    uint32_t kind; /* type, VALUE_…, namespace in the high half */
    uint32_t keys;
    uint32_t touch_s;
    uint32_t created_s, modified_s, accessed_s;
    uint32_t lease;
    char content[];
};

struct lease_piece {
    uint32_t worked_until[2], locked_until[2]; /* ms */
    uint32_t owner_size;
    char owner[RECORDS_OWNER_MOST];
};

struct records_space {
    uint32_t code[RECORDS_CODE_MOST / 4]; /* zeros: not in use */
    uint32_t bytes[2];
    uint32_t count; /* of values */
};

/* What is obeyed of a namespace: records_state.h. */
struct state_entry {
    uint32_t code[RECORDS_CODE_MOST / 4];
    uint32_t state;
    uint32_t is_encrypted;
    uint32_t message_size;
    uint32_t message[RECORDS_STATE_MESSAGE_MOST / 4];
    uint32_t step_us[RECORDS_RATES][2], burst_us[RECORDS_RATES][2]; /* step 0: not limited */
    uint32_t paid_us[RECORDS_RATES][2];                             /* when the debt is paid, monotonic */
};

enum { RECORDS_MARKS = 4096 };

/* Keys that have changed: records_ring.c. */
struct changes_ring {
    uint32_t first, mask;      /* its first word; their number - 1 */
    uint32_t end[2], floor[2]; /* positions */
};

struct records_head {
    struct mapping_head head;
    struct robust_lock lock, save_lock; /* the second: of the right to write to the disk */
    uint32_t is_ready;                  /* all below is initialised */
    uint32_t is_loaded;                 /* what is on disk */
    uint32_t key_root, end_root;
    uint32_t unsaved_first, unsaved_last; /* keys that the disk does not have as they are: records_save.h */
    uint32_t unsaved_bytes[2], save_number[2];
    _Atomic uint64_t saved;        /* the number up to which all changes are on disk */
    uint32_t buckets, bucket_mask; /* word of the first; their number - 1 */
    uint32_t spaces;               /* in use */
    struct pieces pieces;
    struct records_space space[RECORDS_SPACES_MOST];
    _Atomic uint32_t moved[RECORDS_STATE_MOVES], moved_all; /* changes of configurations */
    uint32_t seen[RECORDS_STATE_MOVES], seen_all;           /* of these, by the reading that was applied */
    uint32_t confirmed[2];                                  /* ms, monotonic: when it began; 0: never */
    _Atomic uint32_t changed[RECORDS_MARKS];                /* changes of keys, by their hash */
    _Atomic uint64_t changes;                               /* of all */
    _Atomic uint64_t refused;                               /* commands for which there was no room */
    struct changes_ring ring;
    uint32_t states; /* in use */
    struct state_entry state[RECORDS_STATES_MOST];
    struct undo undo;
};

/* Of the file: a number of the layout, which every change of these structs raises. */
#define RECORDS_MAGIC UINT64_C(0x3153434552505453) /* "STPRECS1" */
enum { RECORDS_LAYOUT = 6 };

/* A SET may remove a record, or the memory of a deletion, for each of its keys: keys, value and lease. */
enum { GIVEN_MOST = (RECORDS_KEYS_MOST + 1) * (RECORDS_KEYS_MOST + 2) };

struct records {
    struct mapping mapping;
    struct records_head *head;
    struct memory memory;
    struct ordering keys, ends;
    struct siphash_key hash;
    int64_t tombstone_ms;
    int64_t now_ms;    /* of the command that runs */
    uint64_t saving;   /* the number of the change under way; 0: nothing of it is to be saved */
    uint32_t appended; /* words of the ring of changes that it has written */
    char *folder;      /* NULL: there is none */
    size_t disk_bytes;
    struct disk_table *disk; /* opened when it is needed, by each process */
    struct builder texts;
    struct builder out;
    uint32_t given[GIVEN_MOST]; /* pieces to give back at the end of the change */
    size_t given_count;
};

/* --- records_memory.c --- */
/* False: busy.  Sets now_ms; nothing is half done. */
MUST_USE bool records_enter(struct records *records);
/* For what is not about records: now_ms stays as it was. */
MUST_USE bool records_enter_untimed(struct records *records);
void records_leave(struct records *records);
/* Ends the change: gives back what is to be given, and makes all of it true. */
void records_commit(struct records *records);
/* Takes the change back. */
void records_abandon(struct records *records);
void records_give_later(struct records *records, uint32_t piece);
/* Index of the namespace; -1: it has none, and `is_made` is false or the table is full. */
int records_find_space(struct records *records, struct bytes code, bool is_made);

static inline struct key_piece *records_key(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static inline struct value_piece *records_value(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static inline struct lease_piece *records_lease(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static inline struct bytes records_key_text(const struct key_piece *key)
{
    return (struct bytes){key->text, key->place & UINT16_MAX};
}

static inline int records_value_space(const struct value_piece *value)
{
    return (int)(value->kind >> 16);
}

/* --- records_table.c: keys and values.  Changes belong to the change under way. --- */

/* The key; 0: there is none. */
uint32_t records_find(const struct records *records, int space, struct bytes key);
/* The mark of the key as of now, under the lock: records_changes.h. */
uint64_t records_mark(const struct records *records, int space, struct bytes key);
/* What is sought in the order of keys. */
struct records_sought {
    int space;
    struct bytes key;
    bool is_after; /* greater than the key only */
};
int records_probe(const struct memory *memory, const void *sought, uint32_t piece);
int records_compare_keys(const struct memory *memory, uint32_t a, uint32_t b);
int records_compare_ends(const struct memory *memory, uint32_t a, uint32_t b);
/* A value without keys, end and lease; 0: no memory. */
uint32_t records_make_value(struct records *records, int space, struct bytes content, enum records_type type);
/* Gives the value a key; false: no memory. */
MUST_USE bool records_add_key(struct records *records, uint32_t value, struct bytes key);
void records_remove_key(struct records *records, uint32_t key);
/* The value with all its keys. */
void records_remove_value(struct records *records, uint32_t value);
void records_set_expiry(struct records *records, uint32_t value, int64_t expires_ms);
/* Another content; the value may move.  0: no memory. */
uint32_t records_set_content(struct records *records, uint32_t value, struct bytes content);
/* The lease of the value, made if needed; 0: no memory. */
uint32_t records_need_lease(struct records *records, uint32_t value);
void records_drop_lease(struct records *records, uint32_t value);
/* Removes up to `most` values that have expired, each as a change of its own; how many. */
int records_sweep(struct records *records, int most);
size_t records_count_keys(const struct records *records, uint32_t value);

/* --- records_unsaved.c: what the disk does not have yet; parts of the change under way.  The list has pieces
 * of keys, of which `chain` is the next one; they are not counted for the namespace. --- */

/* All keys of the value.  False: no memory, or too much waits for the disk. */
MUST_USE bool records_list_unsaved(struct records *records, uint32_t value);
/* A key that is taken from a persisted record: it is not given back before the disk has no such record. */
void records_list_removed(struct records *records, uint32_t key);

/* The number of the change that has put the key on the list: two words. */
static inline uint32_t *records_number_of(struct key_piece *key)
{
    return &key->smaller; /* and greater: it is in no order */
}

/* --- records_ring.c --- */

/* How many words the ring takes of a memory of so many. */
uint32_t records_ring_words(size_t words);
/* What is under the key changes: a part of the change under way. */
void records_ring_append(struct records *records, int space, struct bytes key);
/* As records_changes_read, under the lock; `space` below 0: of none. */
enum records_changes_end records_ring_read(const struct records *records, int space, uint64_t *position,
                                           struct builder *out);

/* --- records_get.c --- */
void records_describe(struct records *records, uint32_t value, struct bytes key, bool with_content,
                      struct records_found *found_r);
enum records_outcome records_get(struct records *records, uint32_t value,
                                 const struct records_command *command, struct records_found *found_r);

/* --- records_change.c --- */
bool records_is_locked(const struct records *records, uint32_t value, struct bytes owner);
/* `key` and `value`: of the command's key, 0: none; the value may be a tombstone.  Does not commit. */
enum records_outcome records_change(struct records *records, int space, uint32_t key, uint32_t value,
                                    const struct records_command *command, uint32_t *left_r);

#endif
