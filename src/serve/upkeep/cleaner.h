/* cleaner: removes the files of attachments that nothing refers to (doc/reference/attachments.md).
 *
 * Part of the keeper, once in its round for each namespace, in two generations: a file without references is
 * marked in one round and removed in a later one.  Between them an upload of the same bytes takes it back,
 * and a commit that would refer to it is refused.  A file is removed while its row is locked, and its row is
 * deleted after it; so a crash leaves at most a row that is still marked. */
#ifndef STAMPD_SERVE_UPKEEP_CLEANER_H
#define STAMPD_SERVE_UPKEEP_CLEANER_H

#include "base/settings.h"
#include "edge/pg/pg.h"

struct cleaner;
struct cleaner *cleaner_create(const struct settings *settings) __attribute__((returns_nonnull));
void cleaner_destroy(struct cleaner *cleaner);

/* What a round has done. */
struct cleaned {
    int64_t marked, removed; /* files */
    int64_t found;           /* files without a row: they got one, marked */
    int64_t cleared;         /* unfinished uploads, and files that were encrypted again */
};
/* One round for a database, until the deadline at most; the next one continues.  Calls `pause` between two
 * batches; false: stop. */
void cleaner_run(struct cleaner *cleaner, struct pg *pg, const char *database, int64_t deadline_ms,
                 bool (*pause)(void *context), void *context, struct cleaned *cleaned_r);

#endif
