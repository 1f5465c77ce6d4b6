/* live_snapshot: loads documents through the link of a namespace, as workers read them: contents of older
 * releases are upgraded, and a document that has expired does not exist. */
#ifndef STAMPD_LIVE_LIVE_SNAPSHOT_H
#define STAMPD_LIVE_LIVE_SNAPSHOT_H

#include "document/documents.h"
#include "edge/pg/pg.h"

struct live_snapshot;

/* `database`, borrowed, is for the log. */
struct live_snapshot *live_snapshot_create(const char *database) __attribute__((returns_nonnull));
void live_snapshot_destroy(struct live_snapshot *snapshot);

/* The query of the namespace's schema, which precedes that of documents: is it due, its result. */
bool live_snapshot_wants_schema(const struct live_snapshot *snapshot);
void live_snapshot_take_schema(struct live_snapshot *snapshot, const struct pg_result *result);

/* A principal that a document has lost or gained (doc/explanation/sight.md). */
struct live_principal {
    struct bytes name;
    int64_t version, gained; /* of the document: of that; when it was last gained, 0: at birth */
    uint32_t writer;         /* the last 32 bits of the transaction of that */
    bool is_lost;
};

/* That the document was written while it was in a collection, or has left it. */
struct live_member {
    struct bytes collection, value;
    int64_t version; /* of the document, then */
    uint32_t writer; /* the last 32 bits of the transaction */
    bool has_left;
};

/* Was a row written by a change: of this version or a later one, or, where the version is 0, unknown, in the
 * transaction `since` or a later one?  `writer`: the last 32 bits of its transaction. */
static inline bool live_snapshot_is_recent(int64_t row_version, uint32_t writer, int64_t version,
                                           int64_t since)
{
    return version ? row_version >= version : writer - (uint32_t)since < UINT32_C(1) << 31;
}

struct live_loaded {
    const struct document *document; /* NULL: it was not loaded */
    const uint32_t *writers;         /* of its items, in order: the transactions, by their last 32 bits */
    const struct live_principal *principals; /* lost or gained since the transaction of the query */
    size_t principal_count;
    const struct live_member *members; /* likewise; none if they were not wanted */
    size_t member_count;
};
enum {
    LIVE_FIRST_DOCUMENTS = 5,    /* of a query, which are always loaded */
    LIVE_PRINCIPALS_MOST = 1000, /* of one document, and one more, which shows that there are more; the same
                                    of values of a collection */
};

/* The query of documents, all of one instant, with what they lost and gained since a transaction, and the
 * collections in which they were written.  Not all need be loaded, but the first LIVE_FIRST_DOCUMENTS always
 * are.  False: the schema has changed, and must be read before they are queried again. */
void live_snapshot_query(struct pg_params *params, const struct document_name *names, size_t count,
                         int64_t since, bool with_members);
MUST_USE bool live_snapshot_take(struct live_snapshot *snapshot, const struct pg_result *result,
                                 struct arena *arena, const struct document_name *names, size_t count,
                                 struct live_loaded *loaded_r);
/* NULL: it is not declared. */
const struct schema_collection *live_snapshot_collection(const struct live_snapshot *snapshot,
                                                         struct bytes class, struct bytes name);
/* Which rules were followed when the documents were loaded: the version of their item; 0, -1: none, or it is
 * not certain yet. */
int64_t live_snapshot_followed(const struct live_snapshot *snapshot);

#endif
