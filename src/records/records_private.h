/* records_private: the layout of the records, for the files records_*.c.
 *
 * Six kinds of pieces: keys, values, sides, leases, contents and shares.  A key is in a list of its hash's
 * bucket and in the order of keys; its value lists all its keys.  What only some records have is in a side,
 * so that the others do not pay for it; a side with an end is in the order of ends.  A number of a piece is 0
 * where there is none.
 *
 * A large content of a record that is kept on disk is in a piece of its own, above the fence of pieces.h,
 * where nothing else is: so it can be given up when there is need of room, and a place for a larger one can
 * always be made. */
#ifndef STAMPD_RECORDS_RECORDS_PRIVATE_H
#define STAMPD_RECORDS_RECORDS_PRIVATE_H

#include <string.h>

#include "base/coding/siphash.h"
#include "edge/mapping.h"
#include "edge/robust_lock.h"
#include "records/order.h"
#include "records/pieces.h"
#include "records/records_changes.h"
#include "records/records_fetch.h"
#include "records/records_host.h"
#include "records/records_state.h"

struct key_piece {
    uint32_t chain;            /* the next key of the bucket */
    uint32_t smaller, greater; /* order of keys */
    uint32_t value;
    uint32_t sibling; /* the next key of the value */
    uint32_t place;   /* namespace above, bytes of the key in the low half */
    char text[];
};

/* Of the two words of a value's timestamp: its microseconds, above them what the value is, and what the disk
 * has of it. */
#define VALUE_TIMESTAMP ((UINT64_C(1) << 58) - 1)
enum {
    VALUE_DELETED = 1 << 26,
    VALUE_OF_LOCK = 1 << 27,
    VALUE_PERSISTED = 1 << 28,
    VALUE_TOUCHED =
        1 << 29, /* its end has moved since it was saved, and its keys are listed, or it is away */
    VALUE_FLAGS = VALUE_DELETED | VALUE_OF_LOCK | VALUE_PERSISTED | VALUE_TOUCHED,
    VALUE_STATE_BIT = 30
};
_Static_assert(RECORDS_MS_MOST * 1000 <= (int64_t)VALUE_TIMESTAMP, "no flag is part of a timestamp");

/* What the disk has of a value whose content is apart. */
enum value_state {
    VALUE_UNSAVED,
    VALUE_WRITTEN, /* by a change of the disk that is not over */
    VALUE_SAVED,   /* all of it, under the first of its keys */
    VALUE_AWAY     /* and the disk alone has the content */
};

/* Of a value's form: the bytes of its content, its type, and how the content lies. */
enum { VALUE_SIZE = (1 << 27) - 1, VALUE_TYPE_BIT = 27, VALUE_TYPE = 7 };
#define VALUE_USED  (1u << 30) /* since the hand has passed it; only where the content is apart */
#define VALUE_APART (1u << 31) /* behind the value is a number: of the content's piece; away: its digest */
_Static_assert((int)RECORDS_CONTENT_MOST <= (int)VALUE_SIZE && (int)RECORDS_TYPES <= (int)VALUE_TYPE,
               "a form has both");

/* Its namespace is that of its keys: it has one key or more, but for a moment when it is made or removed. */
struct value_piece {
    uint32_t timestamp[2]; /* us, VALUE_DELETED, … */
    uint32_t form;
    uint32_t keys;
    uint32_t side;
    uint32_t created_s, modified_s, accessed_s;
    uint32_t change; /* of the content, numbered: with modified_s its stamp */
    char content[];
};

struct content_piece {
    uint32_t value; /* whose it is */
    char text[];
};

/* Contents of fewer bytes are always in memory: there would be nothing to gain. */
enum { RECORDS_APART_LEAST = 64 };

struct side_piece {
    uint32_t smaller, greater; /* order of ends */
    uint32_t expires[2];       /* ms; 0: never, and not in the order of ends */
    uint32_t touch_s;
    uint32_t lease;
    uint32_t value;
    uint32_t share, charged; /* whom the value counts for, and with how many bytes; 0: the namespace */
};

/* What a payer has: of a caller, whose parent is that of the rule, or of a rule.  It is there while a value
 * counts for it, and counts itself.  It is in the bucket of its digest, among keys: the first six words are
 * in their places. */
struct share_piece {
    uint32_t chain;
    uint32_t parent; /* 0: none */
    uint32_t count;  /* of values */
    uint32_t bytes[2];
    uint32_t place; /* namespace above, SHARE_SIZE in the low half */
    uint32_t digest[2];
};
enum { SHARE_SIZE = 0xffff /* no key has it */ };
_Static_assert(offsetof(struct share_piece, place) == offsetof(struct key_piece, place) &&
                   offsetof(struct share_piece, chain) == offsetof(struct key_piece, chain),
               "a bucket has both");

struct lease_piece {
    uint32_t worked_until[2], locked_until[2]; /* ms */
    uint32_t owner_size;
    char owner[RECORDS_OWNER_MOST];
};

/* How the disk has what is persisted of a namespace: records_spaces.c. */
enum space_kind {
    SPACE_OPEN,  /* nothing of it was on disk yet */
    SPACE_CLEAR, /* as it is */
    SPACE_SEALED /* encrypted: records_seal.h */
};

struct records_space {
    uint32_t code[RECORDS_CODE_MOST / 4]; /* zeros: not in use */
    uint32_t bytes[2];
    uint32_t count;   /* of values */
    uint32_t paid[2]; /* of the bytes: those of shares */
    uint32_t kind;
    uint32_t is_hidden; /* of a former namespace of the code */
};

/* What is obeyed of a namespace: records_state.h. */
struct state_entry {
    uint32_t code[RECORDS_CODE_MOST / 4];
    uint32_t state;
    uint32_t is_encrypted;
    uint32_t is_spread;
    uint32_t made[2];
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

/* What struct records_hosts has: records_host.c. */
struct hosts_board {
    _Atomic uint64_t changes;
    _Atomic uint64_t words[sizeof(struct records_hosts) / sizeof(uint64_t)];
};

struct records_head {
    struct mapping_head head;
    struct robust_lock lock, save_lock; /* the second: of the right to write to the disk */
    uint32_t is_ready;                  /* all below is initialised */
    uint32_t is_loaded;                 /* what is on disk */
    uint32_t key_root, end_root;
    uint32_t unsaved_first, unsaved_last; /* keys that the disk does not have as they are: records_save.h */
    uint32_t unsaved_bytes[2], save_number[2];
    uint32_t joined[2];             /* the number of the last change of several keys */
    _Atomic uint64_t saved;         /* the number up to which all changes are on disk */
    uint32_t buckets, bucket_mask;  /* word of the first; their number - 1 */
    uint32_t spaces;                /* in use */
    struct pieces pieces, contents; /* below the fence, above it */
    uint32_t fence, hand;           /* the piece above that is looked at next; 0: the first one */
    uint32_t away;                  /* values whose content the disk alone has */
    uint32_t away_bytes[2];         /* of these contents */
    struct hosts_board hosts;
    struct records_space space[RECORDS_SPACES_MOST];
    _Atomic uint32_t moved[RECORDS_STATE_MOVES], moved_all; /* changes of configurations */
    uint32_t seen[RECORDS_STATE_MOVES], seen_all;           /* of these, by the reading that was applied */
    uint32_t confirmed[2];                                  /* ms, monotonic: when it began; 0: never */
    _Atomic uint32_t changed[RECORDS_MARKS];                /* changes of keys, by their hash */
    _Atomic uint64_t changes;                               /* of all */
    _Atomic uint64_t refused;                               /* commands for which there was no room */
    _Atomic uint64_t refused_shares;                        /* the same, in a share */
    uint32_t last_change;                                   /* of contents: numbers may be left out */
    struct changes_ring ring;
    uint32_t states; /* in use */
    uint32_t spread; /* of these: what several hosts hold */
    struct state_entry state[RECORDS_STATES_MOST];
    struct undo undo;
};

/* Of the file: a number of the layout, which every change of these structs raises. */
#define RECORDS_MAGIC UINT64_C(0x3153434552505453) /* "STPRECS1" */
enum { RECORDS_LAYOUT = 13 };

/* Of one change: a record of which each key takes the place of another one, or of the memory of a deletion,
 * which has as many; with each may go two shares. */
enum { GIVEN_MOST = (RECORDS_KEYS_MOST + 1) * (RECORDS_KEYS_MOST + 6) };

/* Why a change ended RECORDS_OUT_OF_MEMORY: a piece was not to be had. */
struct room_lack {
    size_t bytes; /* 0: it was not that */
    bool is_apart;
    int turns; /* of the hand, since */
};

/* What a payer and all payers have, before a change. */
struct share_sums {
    uint64_t caller_bytes, caller_records, rule_bytes, rule_records, paid;
};

/* What a command would have had to overwrite. */
struct records_obstacle {
    uint32_t value;
    struct bytes key; /* of the command */
};

/* A content that is away, as it was seen, and what was read of it, outside the lock. */
struct room_read {
    struct records_wanted wanted;
    bool has_ended;       /* with a content that fits, or without */
    bool is_elsewhere;    /* only other processes read */
    struct builder text;  /* of the disk */
    struct bytes content; /* part of it, or of what is offered; without data: there is none that fits */
    const char *problem;  /* then: why, if nothing was logged yet */
    const struct records_fetched *offered;
    size_t offered_count;
};

/* The key whose hash was needed last. */
struct hashed_key {
    uint64_t hash;
    size_t size; /* of the text: the namespace's number and the key */
    char text[1 + RECORDS_KEY_MOST];
};

struct records {
    struct mapping mapping;
    bool is_to_be_erased; /* when it is closed */
    struct records_head *head;
    struct memory memory;
    struct ordering keys, ends;
    struct siphash_key hash;
    struct hashed_key *hashed;
    int64_t tombstone_ms;
    int64_t busy_ms;   /* the longest wait for the lock */
    int64_t now_ms;    /* of the command that runs */
    uint64_t saving;   /* the number of the change under way; 0: nothing of it is to be saved */
    uint32_t appended; /* words of the ring of changes that it has written */
    char *folder;      /* NULL: there is none */
    size_t disk_bytes;
    struct disk_table *disk;   /* opened when it is needed, by each process */
    struct records_seal *seal; /* NULL: nothing can be encrypted here */
    struct builder texts, sealed;
    struct builder out;
    uint32_t given[GIVEN_MOST]; /* pieces to give back at the end of the change */
    size_t given_count;
    struct room_lack lack;
    struct room_read read;
    struct records_obstacle obstacle;
    struct share_sums shares; /* of the payer, before the change under way */
    size_t weight;            /* of the value of a command with terms, before it; 0: there was none */
};

/* --- records_memory.c --- */
/* False: busy.  Sets now_ms; nothing is half done. */
MUST_USE bool records_enter(struct records *records);
/* For what is not about records, or does not depend on the time: now_ms stays as it was. */
MUST_USE bool records_enter_untimed(struct records *records);
void records_leave(struct records *records);
/* Ends the change: gives back what is to be given, and makes all of it true. */
void records_commit(struct records *records);
/* Takes the change back. */
void records_abandon(struct records *records);
void records_give_later(struct records *records, uint32_t piece);

/* --- records_spaces.c.  Changes belong to the change under way, unless they are said to end it. --- */
/* Index of the namespace; -1: it has none, and `is_made` is false or the table is full. */
int records_find_space(struct records *records, struct bytes code, bool is_made);
struct bytes records_space_code(const struct records *records, int space);
enum space_kind records_kind_of(bool is_encrypted);
/* The one for a command in the namespace of the space, which is encrypted or not: this one, or another one in
 * its place, if the records here are those of a former namespace.  -1: the table is full.  A change of its
 * own. */
int records_take_kind(struct records *records, int space, bool is_encrypted, bool is_persisted);
/* The one of the namespace, for whatever reads or changes its records: never that of a former namespace of
 * the code which was encrypted where this one is not, or the reverse. */
static inline int records_space_for(struct records *records, struct bytes code, bool is_encrypted,
                                    bool is_persisted, bool is_made)
{
    int space = records_find_space(records, code, is_made);
    return space < 0 ? space : records_take_kind(records, space, is_encrypted, is_persisted);
}

/* The one for what the disk has of the kind; hidden, if it has the other kind too.  -1: the table is full. */
int records_load_space(struct records *records, struct bytes code, enum space_kind kind);
/* Leaves no record of the namespace and former ones.  Changes of their own. */
void records_empty_spaces(struct records *records, struct bytes code);
/* The namespace of the space is known now: if the space is that of a former one, it becomes empty and hidden,
 * else it is shown.  Changes of their own. */
void records_settle_space(struct records *records, int space, bool is_encrypted);
/* Do several hosts hold the records of this namespace?  Of records_state.c. */
bool records_are_spread(const struct records *records, struct bytes ns);

static inline struct key_piece *records_key(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static inline struct value_piece *records_value(const struct records *records, uint32_t piece)
{
    return pieces_at(&records->memory, piece);
}

static inline struct side_piece *records_side(const struct records *records, uint32_t piece)
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

static inline int records_value_space(const struct records *records, const struct value_piece *value)
{
    return (int)(records_key(records, value->keys)->place >> 16);
}

static inline uint64_t records_timestamp(const struct value_piece *value)
{
    return undo_long(value->timestamp) & VALUE_TIMESTAMP;
}

/* VALUE_DELETED, … */
static inline uint32_t records_flags(const struct value_piece *value)
{
    return value->timestamp[1] & VALUE_FLAGS;
}

static inline enum value_state records_state_of(const struct value_piece *value)
{
    return (enum value_state)(value->timestamp[1] >> VALUE_STATE_BIT);
}

static inline void records_set_state(struct records *records, struct value_piece *value,
                                     enum value_state state)
{
    uint32_t rest = value->timestamp[1] & ~((uint32_t)VALUE_AWAY << VALUE_STATE_BIT);
    undo_set(&records->memory, &value->timestamp[1], rest | (uint32_t)state << VALUE_STATE_BIT);
}

static inline bool records_is_apart(const struct value_piece *value)
{
    return value->form & VALUE_APART;
}

static inline bool records_is_away(const struct value_piece *value)
{
    return records_is_apart(value) && records_state_of(value) == VALUE_AWAY;
}

static inline uint32_t records_size(const struct value_piece *value)
{
    return value->form & VALUE_SIZE;
}

static inline enum records_type records_type(const struct value_piece *value)
{
    return (enum records_type)(value->form >> VALUE_TYPE_BIT & VALUE_TYPE);
}

/* Behind a value whose content is apart. */
static inline uint32_t records_apart(const struct value_piece *value)
{
    uint32_t number;
    memcpy(&number, value->content, sizeof number);
    return number;
}

/* Of a value that is not away. */
static inline const char *records_content(const struct records *records, const struct value_piece *value)
{
    if (!records_is_apart(value))
        return value->content;
    assert(!records_is_away(value));
    return ((const struct content_piece *)pieces_at(&records->memory, records_apart(value)))->text;
}

/* Of a memory, no other content of the key had it. */
static inline uint64_t records_stamp(const struct value_piece *value)
{
    return (uint64_t)value->modified_s << 32 | value->change;
}

/* What a content apart counts for its namespace, in the memory or not. */
static inline size_t records_apart_size(size_t size)
{
    return pieces_size_of(sizeof(struct content_piece) + size);
}

/* When it ends; 0: never. */
static inline int64_t records_end(const struct records *records, const struct value_piece *value)
{
    return value->side ? (int64_t)undo_long(records_side(records, value->side)->expires) : 0;
}

/* NULL: it has none. */
static inline struct lease_piece *records_lease_of(const struct records *records,
                                                   const struct value_piece *value)
{
    uint32_t lease = value->side ? records_side(records, value->side)->lease : 0;
    return lease ? records_lease(records, lease) : NULL;
}

/* --- records_content.c: contents, and the room for them.  Changes belong to the change under way. --- */

/* A value without keys and side; 0: no memory. */
uint32_t records_make_value(struct records *records, int space, struct bytes content, enum records_type type,
                            bool is_apart);
/* One whose content the disk has; of it is known what the value says. */
uint32_t records_make_away(struct records *records, int space, struct bytes content, enum records_type type);
/* Another content, with another stamp; the value may move.  0: no memory. */
uint32_t records_set_content(struct records *records, uint32_t value, struct bytes content, bool is_apart);
/* Is a content of this size to be apart, in a record with these flags? */
bool records_goes_apart(size_t size, uint32_t flags);
/* The value with all its keys. */
void records_remove_value(struct records *records, uint32_t value);
/* The content into the memory again, and out of it.  False: no memory. */
MUST_USE bool records_bring_content(struct records *records, uint32_t value, struct bytes content);
void records_give_up_content(struct records *records, uint32_t value);
uint32_t records_digest(const struct records *records, struct bytes content);
uint32_t records_away_digest(const struct records *records, uint32_t value);
/* Leaves none of it; always possible. */
void records_empty_content(struct records *records, uint32_t value);

/* --- records_room.c --- */

enum room {
    ROOM_NONE, /* there is nothing to give up */
    ROOM_MADE,
    ROOM_MORE /* not yet: call again; others may have the lock meanwhile */
};
/* Removes up to `most` values that have expired, each as a change of its own; how many. */
int records_sweep(struct records *records, int most);
/* Makes room for what was lacking, by giving up contents.  Changes of its own. */
enum room records_make_room(struct records *records);
/* The same without giving up anything, for a content apart. */
MUST_USE bool records_widen(struct records *records);
/* --- records_table.c: keys and values.  Changes belong to the change under way. --- */

/* A piece below the fence, counted for the namespace; 0: no memory. */
uint32_t records_take(struct records *records, int space, size_t bytes);
void records_give(struct records *records, int space, uint32_t piece);
void records_count(struct records *records, int space, int64_t bytes, int values);

/* The key; 0: there is none. */
uint32_t records_find(const struct records *records, int space, struct bytes key);
/* For listeners, before the commit: what is under the key of this value changes.  Of a deletion that is only
 * remembered, nobody sees anything.  A mark also moves with a change that is taken back. */
void records_note_change(struct records *records, int space, const struct value_piece *value,
                         struct bytes key);
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
/* Gives the value a key in its namespace; false: no memory. */
MUST_USE bool records_add_key(struct records *records, int space, uint32_t value, struct bytes key);
void records_remove_key(struct records *records, uint32_t key);
/* What a value is: flags and type. */
void records_set_flags(struct records *records, uint32_t value, uint32_t flags);
void records_set_type(struct records *records, uint32_t value, enum records_type type);
void records_set_timestamp(struct records *records, uint32_t value, uint64_t timestamp_us);
/* The side of the value, made if needed; 0: no memory. */
uint32_t records_need_side(struct records *records, uint32_t value);
/* False: no memory; not for a value that has a side, nor for 0. */
MUST_USE bool records_set_expiry(struct records *records, uint32_t value, int64_t expires_ms);
MUST_USE bool records_set_touch(struct records *records, uint32_t value, uint32_t touch_s);
/* Gives back a side that has nothing in it. */
void records_spare_side(struct records *records, uint32_t value);
/* The lease of the value, made if needed; 0: no memory. */
uint32_t records_need_lease(struct records *records, uint32_t value);
void records_drop_lease(struct records *records, uint32_t value);
size_t records_count_keys(const struct records *records, uint32_t value);

/* --- records_share.c: shares of payers.  Changes belong to the change under way. --- */

/* Bytes that the value takes, with all that is its own. */
size_t records_weigh(const struct records *records, uint32_t value);
/* The value, which has changed, counts for the payer if it `is_taken`; NULL: for the namespace.  Else for
 * whom it did.  With what it weighs now.  False: no memory. */
MUST_USE bool records_settle_share(struct records *records, uint32_t value, const struct records_payer *payer,
                                   bool is_taken);
/* It counts for the namespace from now on. */
void records_leave_share(struct records *records, uint32_t value);
/* Before a change and after it: has a share grown beyond its limit? */
void records_note_shares(struct records *records, int space, const struct records_payer *payer);
bool records_is_beyond_share(const struct records *records, int space, const struct records_payer *payer);
/* What the share of this digest has; zeros: there is none. */
void records_read_share(const struct records *records, int space, uint64_t digest, uint64_t *bytes_r,
                        uint64_t *values_r);
/* The digests of the value's payer; false: it has none. */
bool records_find_payer(const struct records *records, uint32_t value, struct records_payer *payer_r);

/* --- records_unsaved.c: what the disk does not have yet; parts of the change under way.  The list has pieces
 * of keys, of which `chain` is the next one; they are not counted for the namespace. --- */

/* All keys of the value.  False: no memory, or too much waits for the disk. */
MUST_USE bool records_list_unsaved(struct records *records, uint32_t value);
/* A key that is taken from a persisted record: it is not given back before the disk has no such record.  What
 * is written is what the key has by then: another record, if there is one. */
void records_list_removed(struct records *records, uint32_t key);

/* The number of the change that has put the key on the list: two words. */
static inline uint32_t *records_number_of(struct key_piece *key)
{
    return &key->smaller; /* and greater: it is in no order */
}

/* --- records_save.c --- */

/* Reads what records->read asks for from the disk, outside the lock; what is not there, or damaged, is
 * reported. */
void records_fetch_content(struct records *records);

/* --- records_fetch.c --- */

/* Notes the content of the value, which is away, as what is to be read. */
void records_note_away(struct records *records, uint32_t value);
/* Was the content of this value, which is away, read as it is now?  Then it is that of records->read. */
bool records_find_read(struct records *records, uint32_t value);

/* --- records_ring.c --- */

/* How many words the ring takes of a memory of so many. */
uint32_t records_ring_words(size_t words);
/* What is under the key changes: a part of the change under way. */
void records_ring_append(struct records *records, int space, struct bytes key);
/* As records_changes_read, under the lock; `space` below 0: of none. */
enum records_changes_end records_ring_read(const struct records *records, int space, uint64_t *position,
                                           struct builder *out);

/* --- records_get.c --- */
/* The content of a value that is away is that of records->read. */
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
