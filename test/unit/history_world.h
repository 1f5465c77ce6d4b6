/* history world: random lives of one document, whose truth is kept three times: by an oracle that knows only
 * what was asked for and when, by a model of the database's rows that obeys the statements of a commit
 * (commit.md 3, 5), and by the snapshots of drafts.  Every commit and every load compares them. */
#ifndef STAMPD_TEST_HISTORY_WORLD_H
#define STAMPD_TEST_HISTORY_WORLD_H

#include "model/document/draft.h"

#define WORLD_STEPS 300 /* operations of one world, at most */
#define WORLD_NAMES 8

/* What the oracle knows of the document as of one version. */
struct moment {
    int64_t version, ctime; /* ctime 0: it does not exist */
    struct fact {
        int content;              /* negative: no item */
        int64_t version, removed; /* of the item; of its last removal in this life when there is none now */
    } facts[WORLD_NAMES];
};

/* A row of the table of items; version 0: no row. */
struct row {
    int64_t version, vop;
    const struct content *content; /* NULL: tombstone */
};

struct world {
    uint64_t random;
    struct arena *arena; /* reset after each step */
    int64_t now, retention_ms;
    struct header header; /* the row of the document; version 0: none */
    int64_t floor;
    struct row rows[WORLD_NAMES];
    struct document *current, *cached; /* after the last commit; as a cache loads it now and then */
    struct moment history[WORLD_STEPS + 1];
    size_t moments; /* the last is the present */
    unsigned purges, renewals, loads;
};

struct world *world_create(uint64_t seed);
void world_destroy(struct world *world);

/* A number from 0 to `most` - 1. */
int world_draw(struct world *world, int64_t most);
bool world_chance(struct world *world, int percent);

/* The clock goes on, stands still or goes back; the document changes, dies, is born again; the cache loads.
 */
void world_step(struct world *world);

/* Is it the document as it was at its version, as far back as it says it knows removals? */
void world_assert_true(const struct world *world, const struct document *document);

#endif
