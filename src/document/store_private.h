/* store_private: what the files of the store share; for src/document/store*.c and its tests only. */
#ifndef STAMPD_DOCUMENT_STORE_PRIVATE_H
#define STAMPD_DOCUMENT_STORE_PRIVATE_H

#include "document/store.h"
#include "edge/pg.h"

struct store_session {
    struct pg *pg;     /* NULL: closed */
    uint64_t used;     /* turn of its last use: the lowest is the least recently used */
    bool in_snapshot;  /* between store_snapshot_begin and _end */
    int failures;      /* to open, since it was last opened */
    int64_t retry_ms;  /* monotonic: not tried again before */
    enum fault reason; /* of the last failure to open */
};

struct store {
    const struct settings *settings;
    struct stamps *stamps;
    uint64_t turn;
    int open_count;
    struct store_session sessions[STAMPS_NAMESPACES];
};

/* The session for a read, opened when there is none. */
MUST_USE enum fault store_use(struct store *store, int space, struct pg **pg_r);
/* After a read: closes a session that is of no more use.  True: it was found dead, read once more (a read may
 * be repeated, a commit never).  `attempt` counts from 0. */
bool store_reads_again(struct store *store, int space, enum fault fault, int attempt);
void store_close(struct store *store, int space);

/* The first and the last statement of a commit that keeps an answer. */
struct once_params {
    struct pg_params keep, purge;
};
void store_add_once(struct once_params *params, const struct store *store, struct arena *arena,
                    const struct once *once);

/* Limit of a whole pipeline: each of its statements has statement_timeout, waits for locks included. */
int64_t store_pipeline_ms(const struct store *store);

/* The first text, in the order of code points, behind all that start with `prefix`; false: there is none (the
 * prefix is empty or holds nothing but U+10FFFF).  `prefix` is UTF-8. */
MUST_USE bool store_prefix_end(struct arena *arena, struct bytes prefix, struct bytes *end_r);

#endif
