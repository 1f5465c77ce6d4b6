/* ledger: what the processes of the torture committed, in shared memory, and the judgement of it.
 *
 * Each operation that was committed is a node.  An operation that saw version s of a document comes after the
 * one that wrote s, and before the one that replaced s.  Were there a circle, no order one after the other
 * could explain what was seen: a lost update, a write skew, a dirty read. */
#ifndef STAMPD_TEST_LEDGER_H
#define STAMPD_TEST_LEDGER_H

#include "base/base.h"

enum { LEDGER_USES = 4 };

/* Of an administrator's function, which does not tell: the version before its own. */
#define LEDGER_SEEN_UNKNOWN INT64_C(-1)

struct ledger_use {
    int32_t document; /* from 0, without great gaps */
    int32_t act;      /* enum draft_act */
    int64_t seen;     /* 0: there was no row */
    int64_t known;    /* the highest version that the process had seen of it before */
};

struct ledger_entry {
    int64_t version; /* 0: it only read, all at one instant */
    int32_t process;
    int32_t use_count;
    struct ledger_use uses[LEDGER_USES];
};

struct ledger;

/* Made before fork.  `capacity` entries for each process; what is beyond is refused by ledger_is_full. */
struct ledger *ledger_create(int processes, size_t capacity);
void ledger_destroy(struct ledger *ledger);
void ledger_clear(struct ledger *ledger);
bool ledger_is_full(const struct ledger *ledger, int process);
/* By the process of that number only. */
void ledger_add(struct ledger *ledger, int process, const struct ledger_entry *entry);

/* Judges all entries, prints what is wrong and returns how many things are.  `purging`: zombies were purged
 * meanwhile, so that "no row" has been true at several times: then births are placed by their versions, and
 * reads of "no row" after what their process had seen of the document before. */
size_t ledger_judge(const struct ledger *ledger, bool purging);

#endif
