/* fake_store: stands in for document/store.c at link time: rows in memory, with hooks between the steps, so
 * that other workers' commits can fall exactly where a test wants them. */
#ifndef STAMPD_TEST_FAKE_STORE_H
#define STAMPD_TEST_FAKE_STORE_H

#include "document/store.h"

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
    void (*before_commit)(void);
    void (*after_load)(void);
};
extern struct fake_store fake;

void fake_reset(void);
/* A change made elsewhere: the document `class`/`id` is now at `version` with one singleton Sta of that
 * content; NULL content: it is deleted.  Moves no stamp. */
void fake_change(const char *class, const char *id, int64_t version, const char *content);
/* The row's version, 0: no row. */
int64_t fake_version(const char *class, const char *id);
void fake_set_floor(int64_t floor);

#endif
