/* records: values by key, in memory shared by all processes of a host, without a server between them.
 *
 * A record has one or several keys in a namespace, a type, a content, and perhaps an end, after which nobody
 * sees it.  The sender's timestamp of a change decides: what is older than what is there changes nothing, and
 * a deletion is remembered for a while so that this holds for it too.
 *
 * The memory is a file of its own, mapped like the shared segment (edge/mapping.h): it begins empty when no
 * process uses it, and lives as long as one does.  One lock protects it, held for about a microsecond.  A
 * process that dies while it holds the lock, by any signal, leaves notes by which the next one takes the
 * unfinished change back (undo.h): each command has happened whole or not at all.  Commands wait for
 * nothing but this lock, and for the disk where it alone has a content, or all room that can be had waits for
 * it; a holder that is stopped makes them end with RECORDS_BUSY.
 *
 * A full memory, or a full quota of the namespace, refuses: RECORDS_OUT_OF_MEMORY.  What has expired is
 * removed before, and of records on disk contents that were not used lately are given up: whoever needs one
 * reads it from the disk, without the lock. */
#ifndef STAMPD_RECORDS_RECORDS_H
#define STAMPD_RECORDS_RECORDS_H

#include "base/builder.h"
#include "base/bytes.h"

enum records_type {
    RECORDS_VOID,
    RECORDS_BUFFER,
    RECORDS_STRING,  /* UTF-8 */
    RECORDS_INTEGER, /* 8 bytes, big-endian, two's complement */
    RECORDS_FLOAT,   /* 8 bytes, IEEE 754, big-endian, finite */
    RECORDS_BOOLEAN, /* a byte, 0 or 1 */
    RECORDS_TYPES
};

enum records_deed {
    RECORDS_SET,
    RECORDS_GET,
    RECORDS_DELETE,
    RECORDS_ADD,
    RECORDS_NOT,
    RECORDS_TRUNCATE,
    RECORDS_LOCK,
    RECORDS_UNLOCK,
    RECORDS_RENAME,
    RECORDS_LINK,   /* gives the record another key, `to` */
    RECORDS_UNLINK, /* takes this key from the record; with its last key it is gone */
    RECORDS_EXPIRE, /* the end is `expires_ms`, earlier or later; one that has passed deletes the record */
    RECORDS_DEEDS
};

/* How a command ended.  Anything but OK has changed nothing, but for NOT_SAVED, which only records_save leads
 * to. */
enum records_outcome {
    RECORDS_OK,
    RECORDS_NOT_FOUND,
    RECORDS_NOT_FREE, /* the key has a record, and the command does not overwrite */
    RECORDS_OLDER,    /* the record, or its deletion, has a later timestamp */
    RECORDS_LOCKED,   /* by another owner */
    RECORDS_NOT_LOCKED,
    RECORDS_WORKED_ON, /* and the command leaves those alone */
    RECORDS_WRONG_TYPE,
    RECORDS_OUT_OF_RANGE, /* the sum, or the size */
    RECORDS_TOO_MANY_KEYS,
    RECORDS_OUT_OF_MEMORY,
    RECORDS_NO_DISK, /* it was to be persisted: there is no folder, or no key for an encrypted namespace */
    RECORDS_BUSY,
    RECORDS_NOT_SAVED,    /* changed, and not yet on disk */
    RECORDS_NOT_READ,     /* the disk alone has the content, and does not give it, or a damaged one */
    RECORDS_OTHER_STAMP,  /* the record has another stamp than the command expects */
    RECORDS_OUT_OF_SHARE, /* a share of the payer is used up */
    RECORDS_ELSEWHERE,    /* several hosts hold the records of the namespace: not this memory */
    /* Of these hosts (cluster/cluster.h); records_run has none of them. */
    RECORDS_UNKNOWN, /* no host that answers can know; a change may have happened, or happen later */
    RECORDS_NO_PARTICIPANTS,
    RECORDS_UNSUPPORTED, /* what they do not do */
    RECORDS_OUTCOMES
};

enum {
    RECORDS_KEY_MOST = 1024,             /* bytes; UTF-8 */
    RECORDS_KEYS_MOST = 8,               /* of one record */
    RECORDS_CONTENT_MOST = 64 * 1048576, /* bytes */
    RECORDS_OWNER_MOST = 64,             /* bytes */
    RECORDS_CODE_MOST = 16,              /* bytes of a namespace's code */
    RECORDS_SPACES_MOST = 256,           /* namespaces with records */
    RECORDS_LEASE_MOST_MS = 7 * 86400000 /* of locks and of marks "worked on" */
};
#define RECORDS_MS_MOST      INT64_C(253402300799999) /* 9999-12-31 */
#define RECORDS_TOUCH_MOST_S INT64_C(315360000)       /* ten years */

/* Of a command for which there may be room when the disk has the changes that wait for it. */
enum records_patience {
    RECORDS_WAITS,   /* saves them first */
    RECORDS_REPORTS, /* ends with OUT_OF_MEMORY, and found_r->saving: save that, and run it again */
    RECORDS_REFUSES  /* ends with OUT_OF_MEMORY */
};

/* Of EXPIRE: what the end that the record has must be, or else the outcome is NOT_FOUND.  No end is the
 * latest one. */
enum records_end_if {
    RECORDS_END_ABSENT = 1 << 0,
    RECORDS_END_PRESENT = 1 << 1,
    RECORDS_END_EARLIER = 1 << 2, /* than the new one */
    RECORDS_END_LATER = 1 << 3
};

/* The payer of a record: a caller, which has a share of what a rule for keys may have.  A record counts for
 * the payer of the command that stored its content last, or made it larger; one that a command without a
 * payer has stored counts for the namespace alone.  Of all limits 0 is none; what makes a share smaller is
 * always possible. */
struct records_payer {
    uint64_t rule, caller;             /* digests, not 0; that of the caller is of the rule too */
    uint64_t rule_bytes, rule_records; /* limits of all callers of the rule */
    uint64_t caller_bytes, caller_records;
    uint64_t payers_bytes; /* of all payers of the namespace together */
};

struct records_command {
    enum records_deed deed;
    struct bytes key;
    struct bytes to;          /* RENAME, LINK: the other key */
    const struct bytes *more; /* SET: further keys of the record */
    size_t more_count;        /* at most RECORDS_KEYS_MOST - 1 */
    enum records_type type;   /* SET; ADD: INTEGER or FLOAT */
    struct bytes content;     /* SET; ADD: what is added, in the form of its type */
    size_t size;              /* TRUNCATE */
    int64_t timestamp_us;     /* of the sender, since 1970; 0: now, and after everything that is there */
    int64_t expires_ms; /* since 1970; 0: never.  GET: where above 0, moves the end there if it is later */
    int64_t touch_s;    /* SET: each GET moves the end this far from then; 0: does not */
    int64_t lease_ms;   /* LOCK: its length.  GET: marks the record as worked on for this long; 0: does not */
    struct bytes owner; /* LOCK, UNLOCK; other changes: of the lock that may stand */
    uint64_t stamp;     /* not of GET, LOCK, UNLOCK: only the record that has it is changed; 0: any */
    int64_t ends_by_ms; /* the latest end of what the command stores, makes or gives a key, and that GET
                         * moves to; 0: there is none */
    uint64_t records_most;             /* the namespace may have so many; 0: not limited */
    const struct records_payer *payer; /* NULL: the namespace */
    bool may_overwrite;                /* SET, RENAME.  ADD, LOCK: makes the record if there is none */
    bool is_only_present;              /* SET, beside may_overwrite: where there is no record, NOT_FOUND */
    bool shows_present; /* of what is in the way, NOT_FREE or OTHER_STAMP, found_r has the content too */
    bool keeps_end;     /* SET: of a record that is there the end stays, and how GET moves it */
    bool keeps_disk;    /* SET, not persisted: a record that is on disk stays there */
    unsigned end_if;    /* EXPIRE: enum records_end_if */
    bool is_immediate;  /* DELETE, RENAME: nothing is remembered */
    bool leaves_worked; /* GET: not what is worked on */
    bool is_probe;      /* GET: without the content, and it is no use of the record */
    bool is_persisted;  /* SET; ADD, LOCK that make it: it is kept on disk from then on, or no longer */
    bool is_encrypted;  /* the namespace: what the disk has of it is */
    enum records_patience patience;
    bool is_listened; /* mark and position are set in found_r, also when there is no record */
};

/* What a command saw or left; the texts are valid until the next call. */
struct records_found {
    struct bytes key, content;
    enum records_type type;
    int64_t expires_ms; /* 0: never */
    int64_t touch_s;
    int64_t timestamp_us;                      /* of the last SET */
    uint64_t stamp;                            /* another one after each change of the content */
    int64_t created_s, modified_s, accessed_s; /* since 1970 */
    int64_t locked_until_ms, worked_until_ms;  /* 0: not now */
    size_t size;                               /* of the content, also of a probe */
    uint64_t mark, position;                   /* for records_changes.h */
    uint64_t saving;                           /* for records_save; 0: the disk has nothing of it */
    bool is_persisted;
    bool is_away; /* with BUSY: another process is to read its content first, see records_fetch.h */
};

struct records;

/* Creates or attaches the memory: `bytes` must be what running processes use.  `tombstone_s`: how long a
 * deletion is remembered.  False: one line in `problem`. */
MUST_USE bool records_open(struct records **records_r, const char *path, size_t bytes, int64_t tombstone_s,
                           char *problem, size_t problem_size);
void records_close(struct records *records); /* NULL is allowed */
/* As segment_open_erase, for the last process of a server: records_close will do it.  NULL is allowed. */
void records_erase(struct records *records);
/* While any process has it open, the memory lives: for a child that closes all others. */
int records_descriptor(const struct records *records);
/* From now on this process waits no longer for others, before it finds the records busy. */
void records_limit_wait(struct records *records, int64_t most_ms);

/* Runs a command in a namespace, which may have `quota` bytes of the memory (0: all of it).  `found_r` is set
 * for RECORDS_OK, but for a record that is gone; for NOT_FREE, OLDER, LOCKED, WORKED_ON and
 * NOT_READ without content; for OTHER_STAMP too.  Of NOT_FREE it is what is in the way, under the key that is
 * not free. */
MUST_USE enum records_outcome records_run(struct records *records, struct bytes ns, size_t quota,
                                          const struct records_command *command,
                                          struct records_found *found_r);

/* The first key after `after` (NO_BYTES: from `from` on) and not above `to` (NO_BYTES: without end) that has
 * a record; in `found_r`, as of a probe.  NOT_FOUND: there is none.  Passes at most RECORDS_STEPS keys
 * without a record: then BUSY with the last of them in `found_r->key`; the caller goes on after it.
 * `is_encrypted`: as of a command. */
enum { RECORDS_STEPS = 256 };
MUST_USE enum records_outcome records_next(struct records *records, struct bytes ns, bool is_encrypted,
                                           struct bytes from, struct bytes after, struct bytes to,
                                           struct records_found *found_r);

/* Is it a key: 1 to RECORDS_KEY_MOST bytes of UTF-8 without NUL? */
bool records_is_key(struct bytes key);
/* Is the content one of this type? */
bool records_is_content(enum records_type type, struct bytes content);
const char *records_outcome_word(enum records_outcome outcome);
const char *records_type_word(enum records_type type);
int64_t records_read_integer(struct bytes content);
double records_read_float(struct bytes content);
void records_write_integer(char content_r[8], int64_t number);
void records_write_float(char content_r[8], double number);
/* The sum of two contents of the type, INTEGER or FLOAT.  OUT_OF_RANGE: there is none. */
MUST_USE enum records_outcome records_add_up(enum records_type type, struct bytes a, struct bytes b,
                                             char sum_r[8]);

struct records_sums {
    uint64_t
        bytes; /* of the namespace, or of all: what pieces take, or would if all contents were in memory */
    uint64_t records; /* with remembered deletions, and what has expired since */
    uint64_t capacity;
    uint64_t unsaved;          /* bytes of the keys of what is not on disk yet; of all namespaces */
    uint64_t away, away_bytes; /* records whose content the disk alone has; of all namespaces */
    uint64_t refused; /* commands of all namespaces that ended OUT_OF_MEMORY, since the memory was created */
    uint64_t refused_shares; /* the same of OUT_OF_SHARE */
    uint64_t paid;           /* bytes of the namespace, or of all, that count for payers */
};
/* NO_BYTES: of all namespaces. */
void records_sum(struct records *records, struct bytes ns, struct records_sums *sums_r);

/* What a share has, by its digest: of a caller or a rule.  Zeros: nothing. */
void records_sum_share(struct records *records, struct bytes ns, uint64_t digest,
                       struct records_sums *sums_r);

/* What a namespace has of the memory. */
struct records_use {
    char ns[RECORDS_CODE_MOST + 1];
    uint64_t bytes, records; /* as in records_sums */
};
/* The namespaces that have records; how many.  0 also when the records are busy. */
size_t records_uses(struct records *records, struct records_use uses_r[RECORDS_SPACES_MOST]);
/* The same for a process that has not opened the records and only reads their file: a change under way may be
 * counted in part.  False: the file cannot be read, or is of another release.  No process has the records
 * open: true, and none. */
MUST_USE bool records_peek(const char *path, struct records_use uses_r[RECORDS_SPACES_MOST], size_t *count_r);

/* For tests: stops with an assertion unless everything in the memory fits together. */
void records_check(struct records *records);

#endif
