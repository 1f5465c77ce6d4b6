/* live_snapshot: loads documents through the link of a namespace, as workers read them: contents of older
 * releases are upgraded, and a document that has expired does not exist. */
#ifndef STAMPD_LIVE_LIVE_SNAPSHOT_H
#define STAMPD_LIVE_LIVE_SNAPSHOT_H

#include "document/documents.h"
#include "edge/pg.h"

struct live_snapshot;

/* `database`, borrowed, is for the log. */
struct live_snapshot *live_snapshot_create(const char *database) __attribute__((returns_nonnull));
void live_snapshot_destroy(struct live_snapshot *snapshot);

/* The query of the namespace's schema, which precedes that of documents: is it due, its result. */
bool live_snapshot_wants_schema(const struct live_snapshot *snapshot);
void live_snapshot_take_schema(struct live_snapshot *snapshot, const struct pg_result *result);

struct live_loaded {
    const struct document *document; /* NULL: it was not loaded */
    const uint32_t *writers;         /* of its items, in order: the transactions, by their last 32 bits */
};

/* The query of documents, all of one instant.  Not all need be loaded, but the first two always are.  False:
 * the schema has changed, and must be read before they are queried again. */
void live_snapshot_query(struct pg_params *params, const struct document_name *names, size_t count);
MUST_USE bool live_snapshot_take(struct live_snapshot *snapshot, const struct pg_result *result,
                                 struct arena *arena, const struct document_name *names, size_t count,
                                 struct live_loaded *loaded_r);

#endif
