/* fake_store: stands in for store/store.c at link time: rows in memory, with hooks between the steps, so
 * that other workers' commits can fall exactly where a test wants them. */
#ifndef STAMPD_TEST_FAKE_STORE_H
#define STAMPD_TEST_FAKE_STORE_H

#include "store/data_keys.h"
#include "store/store.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"

struct fake_store {
    int loads; /* documents loaded */
    int round_trips;
    int commits;   /* commits that were asked for */
    int snapshots; /* snapshots begun */
    int verifies;
    enum fault load_fault;       /* answered by every load */
    enum commit_outcome outcome; /* forced when it is not COMMIT_DONE */
    enum fault outcome_fault;
    enum fault reconnect_fault;
    bool is_lost;          /* outcome COMMIT_UNKNOWN: what was to be committed is */
    int finds;             /* answers looked for */
    enum fault find_fault; /* answered by every look */
    const char *schema;    /* a declaration; NULL: nothing is declared */
    bool is_forgetful;     /* behind a commit the schema is not known */
    int selects;           /* of applications */
    const char *rows;      /* answered by every one; NULL: too many bytes */
    struct bytes selected; /* the first value of the last one */
    enum fault select_fault;
    struct data_keys keys; /* none: it is not encrypted */
    struct copy_batch due; /* what is due of any document, and where */
    size_t note_count;     /* what commits have noted, */
    struct {
        char text[64];
    } notes[8];           /* "Class.id Item.key" */
    size_t copy_count;    /* targets of the copies written */
    struct match match;   /* answered to commits */
    struct bytes session; /* that the last one named */
    void (*before_commit)(void);
    void (*after_load)(void);
    void (*after_find)(void);
};
extern struct fake_store fake;

void fake_reset(void);
/* A change made elsewhere: the document `class`/`id` is now at `version` with one singleton Sta of that
 * content; NULL content: it is deleted.  Moves no stamp. */
void fake_change(const char *class, const char *id, int64_t version, const char *content);
/* The row's version, 0: no row. */
int64_t fake_version(const char *class, const char *id);
/* An answer kept elsewhere: `kept->key` and so on are copied. */
void fake_keep(const struct idempotency *kept);
/* The answer kept under the key, of any account; NULL: none. */
const struct idempotency *fake_kept(const char *key);
void fake_forget_kept(void);
void fake_set_floor(int64_t floor);

#endif
