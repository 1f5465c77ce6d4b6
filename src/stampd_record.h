/* stampd_record.h: records, values by key in the memory of the host (records.md), for modules.
 *
 * A record belongs to the namespace of the call.  All workers of the host, the operation `record` and
 * stamp-journal see the same ones; other hosts do not, unless the namespace is spread: then a call asks the
 * stamp-journal of this host, which asks the others, and takes some tenths of a millisecond, and while hosts
 * fail up to record_hosts_ms for all calls of a request.  Otherwise a function is a direct call into that
 * memory and takes about a microsecond.
 *
 *     struct stampd_record visits;
 *     switch (stampd_record_add(call, "visits", 1, NULL, &visits)) {
 *     case STAMPD_RECORD_OK:
 *         stampd_add_integer(result, "visits", visits.value.integer);
 *         break;
 *     case STAMPD_RECORD_OUT_OF_MEMORY:
 *         return stampd_raise(call, "XFULL", "There is no room.", NULL);
 *     default:
 *         break;
 *     }
 *
 * Records are no part of a commit.  A change happens at once and whole, is seen by everybody, and stays when
 * the try or the whole operation fails; another try makes it again, and afterwork runs again when an answer
 * is repeated under an Idempotency-Key.  What must not happen twice belongs into a document, or under a key
 * that is set only if it is absent.  A worker that is killed, at any instruction, leaves each record as it
 * was before or after the change, and the memory to the others. A lock is not given back when its holder
 * fails or dies: it ends by its time.
 *
 * A module is trusted: the rules for records in the configuration of the namespace are for clients and do not
 * apply here, but to a set or add that is for_caller.  The limits apply: limit_namespace_records_mb,
 * records_mb, limit_content_bytes.  An operation that is read-only may only get (BREADONLY); a filter may do
 * nothing here. */
#ifndef STAMPD_STAMPD_RECORD_H
#define STAMPD_STAMPD_RECORD_H

#include "stampd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended.  Anything but OK and NOT_SAVED has changed nothing. */
enum stampd_record_state {
    STAMPD_RECORD_OK = 0,
    STAMPD_RECORD_NOT_FOUND,     /* there is no record, or it has ended */
    STAMPD_RECORD_NOT_FREE,      /* the key has a record, and the call does not overwrite */
    STAMPD_RECORD_OLDER,         /* not returned at present: a change of a module is later than all before */
    STAMPD_RECORD_LOCKED,        /* by another owner */
    STAMPD_RECORD_NOT_LOCKED,    /* there is nothing to unlock */
    STAMPD_RECORD_WRONG_TYPE,    /* what is there is of another type */
    STAMPD_RECORD_OUT_OF_RANGE,  /* the sum, or the size */
    STAMPD_RECORD_OUT_OF_MEMORY, /* the memory is full, or the quota of the namespace */
    STAMPD_RECORD_BUSY,          /* a process that is stopped holds the memory; two seconds have passed */
    STAMPD_RECORD_FAILED,        /* the try has failed, now or before: see below */
    STAMPD_RECORD_NO_DISK,      /* persist: no records_directory, or no site key for an encrypted namespace */
    STAMPD_RECORD_NOT_SAVED,    /* changed in memory; the disk refuses, and is tried again */
    STAMPD_RECORD_WORKED_ON,    /* since 1.13: it is marked as worked on */
    STAMPD_RECORD_NOT_READ,     /* since 1.14: the disk alone has the value, and does not give it */
    STAMPD_RECORD_LOST,         /* since 1.14: what has changed is no longer known */
    STAMPD_RECORD_OTHER_STAMP,  /* since 1.16: the record has another stamp than only_if_stamp */
    STAMPD_RECORD_OUT_OF_SHARE, /* since 1.16, for_caller: the caller's share, or that of the rule, is used up
                                 */
    /* Since 1.17, of a namespace whose records several hosts hold together. */
    STAMPD_RECORD_UNKNOWN, /* no host that answers can know: a change may have happened, or happen yet */
    STAMPD_RECORD_NO_PARTICIPANTS, /* this host takes no part, or its stamp-journal does not run */
    STAMPD_RECORD_UNSUPPORTED      /* these hosts do not do that */
};

/* FAILED, and the try has failed with: BMODULE for a key that is not 1 to 1024 bytes of UTF-8, an owner that
 * is not 1 to 64 bytes, or anything else that a comment here does not allow; ALIMIT for a content beyond
 * limit_content_bytes; ORECORDS when the host has no memory for records (setting records_mb). */

enum stampd_record_type {
    STAMPD_RECORD_VOID = 0,
    STAMPD_RECORD_BUFFER,
    STAMPD_RECORD_STRING, /* UTF-8 */
    STAMPD_RECORD_INTEGER,
    STAMPD_RECORD_FLOAT, /* finite */
    STAMPD_RECORD_BOOLEAN
};

/* The member of its type counts. */
struct stampd_record_value {
    enum stampd_record_type type;
    struct stampd_bytes bytes; /* of a buffer or a string */
    int64_t integer;
    double number;
    bool boolean;
};

/* Before a key, in a namespace whose records several hosts hold: of this level, a digit as 1.  The key is
 * searched among the hosts whose addresses differ from that of this host in so many of the last levels only,
 * and others may have another value, or none: STAMPD_RECORD_LEVEL("1") "presence.ann". */
#define STAMPD_RECORD_LEVEL(level) "@" level ":"

/* What a call has found or left.  Times are since 1970. */
struct stampd_record {
    struct stampd_record_value value; /* its bytes live until the request is answered */
    int64_t expires_ms;               /* 0: never */
    int64_t touch_s;
    int64_t created_s, modified_s, accessed_s;
    int64_t locked_until_ms; /* 0: it is not locked */
    uint64_t stamp;          /* since 1.16: another one after each change of the value */
    int64_t reserved[3];
};

/* NULL in its place: all zero. */
struct stampd_record_options {
    /* Of a set, and of an add that makes the record: it ends so many milliseconds from now, and is never seen
     * after; 0: never, up to ten years. */
    int64_t ttl_ms;
    int64_t touch_s;     /* the same: each get moves the end at least so far from then; 0: it does not */
    const char *owner;   /* of the lock that may stand; NULL: none may */
    bool only_if_absent; /* set: NOT_FREE if there is a record */
    bool only_if_there;  /* add, and since 1.16 set: NOT_FOUND if there is none */
    bool persist; /* of a set, and of an add that makes the record: it is kept on disk.  A call that changes
                   * such a record returns when the change is there */
    /* Since 1.16, of a set and an add: as if the caller of the operation ran it himself.  The first rule of
     * the namespace that allows him to write the key has the terms: how long it stays, and his share
     * (OUT_OF_SHARE); a longer ttl_ms or touch_s is cut.  FAILED, the try with SCLOSED: no rule allows it.
     * Without effect for an administrator. */
    bool for_caller;
    uint64_t only_if_stamp; /* since 1.16, set, add: OTHER_STAMP unless the record has it; 0: any */
    const void *reserved[3];
};

/* All since 1.12.  `key`: 1 to 1024 bytes of UTF-8.  record_r may be NULL; it is set for OK, and zero
 * otherwise. */
enum stampd_record_state stampd_record_get(struct stampd_call *call, const char *key,
                                           struct stampd_record *record_r);
/* Overwrites, unless the options say otherwise. */
enum stampd_record_state stampd_record_set(struct stampd_call *call, const char *key,
                                           const struct stampd_record_value *value,
                                           const struct stampd_record_options *options);
/* Since 1.16: as stampd_record_set.  record_r, for OK: what is there now, without the value; for NOT_FREE and
 * OTHER_STAMP: what is in the way, with its value. */
enum stampd_record_state stampd_record_put(struct stampd_call *call, const char *key,
                                           const struct stampd_record_value *value,
                                           const struct stampd_record_options *options,
                                           struct stampd_record *record_r);
/* Adds to an integer; its sum is in record_r. */
enum stampd_record_state stampd_record_add(struct stampd_call *call, const char *key, int64_t by,
                                           const struct stampd_record_options *options,
                                           struct stampd_record *record_r);
/* `owner`: of the lock that may stand; NULL: none may. */
enum stampd_record_state stampd_record_delete(struct stampd_call *call, const char *key, const char *owner);
/* Locks the key for `owner`, 1 to 64 bytes, or extends its lock: until lock_ms from now, 1 to 604800000, or
 * stampd_record_unlock.  Until then every change without this owner is LOCKED; to get is not.  Where there is
 * no record, it makes one of no content that ends with the lock.  Use an owner for one holder only, and the
 * same in each try, as the account with a key of the request: stampd_random_token draws another for each try,
 * which its own former lock would keep out. */
enum stampd_record_state stampd_record_lock(struct stampd_call *call, const char *key, const char *owner,
                                            int64_t lock_ms);
enum stampd_record_state stampd_record_unlock(struct stampd_call *call, const char *key, const char *owner);

/* All since 1.13.  `owner` as of stampd_record_delete.  Adds to a float, which must stay finite; the rest as
 * stampd_record_add. */
enum stampd_record_state stampd_record_add_number(struct stampd_call *call, const char *key, double by,
                                                  const struct stampd_record_options *options,
                                                  struct stampd_record *record_r);
/* Turns a boolean round; what it is now is in record_r. */
enum stampd_record_state stampd_record_not(struct stampd_call *call, const char *key, const char *owner,
                                           struct stampd_record *record_r);
/* Cuts a string, which must stay UTF-8, or a buffer to `size` bytes; a buffer also grows, by zeros, up to
 * limit_content_bytes. */
enum stampd_record_state stampd_record_truncate(struct stampd_call *call, const char *key, size_t size,
                                                const char *owner);
/* Gives the record the key `to` in place of `key`. */
enum stampd_record_state stampd_record_rename(struct stampd_call *call, const char *key, const char *to,
                                              bool may_overwrite, const char *owner);
/* Gets the record and marks it as worked on for work_ms, 1 to 604800000: until then each further call is
 * WORKED_ON.  A change for an operation that is read-only. */
enum stampd_record_state stampd_record_work(struct stampd_call *call, const char *key, int64_t work_ms,
                                            struct stampd_record *record_r);
/* The first record after the key `after` (NULL: the very first) whose key begins with `prefix` (NULL: any),
 * in the order of bytes; NOT_FOUND: there is none.  key_r, which lives until the request is answered, is the
 * next `after`; record_r has no value but its type, and nothing is touched: stampd_record_get returns it.
 * Each key is as of its call: a record that is there all the time and not renamed is found exactly once. */
enum stampd_record_state stampd_record_next(struct stampd_call *call, const char *prefix, const char *after,
                                            const char **key_r, struct stampd_record *record_r);

/* Since 1.14.  The next key that begins with `prefix` (NULL: any) and has changed since the position `since`
 * (NULL: now); position_r is behind that change, and may be kept in a document or a record.  Both texts live
 * until the request is answered.
 *
 *     while ((state = stampd_record_changed(call, "orders.", since, 0, &key, &since)) == STAMPD_RECORD_OK)
 *         handle(call, key);
 *
 * What counts is another value, also an equal one, a deletion, the passing of an end, and a key that is given
 * or taken, by anybody.  The record is as it is now, and may have changed several times.  NOT_FOUND: nothing
 * has changed up to position_r.  LOST: the host remembers a bounded number of changes, and none of the time
 * before all its processes have stopped; look at all keys (stampd_record_next), and go on at position_r.
 *
 * With wait_ms above 0, and `since`, waits so long for a change, at most record_wait_s; it holds a process of
 * the server, so the wait ends, NOT_FOUND, as soon as another request arrives for it, and does not begin
 * where record_waiters processes wait.  Wait before the first document is loaded: its transaction stays open.
 */
enum stampd_record_state stampd_record_changed(struct stampd_call *call, const char *prefix,
                                               const char *since, int64_t wait_ms, const char **key_r,
                                               const char **position_r);

#ifdef __cplusplus
}
#endif

#endif
