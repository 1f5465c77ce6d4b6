/* store_session: the sessions of a store in memory, for store.c and its test only. */
#ifndef STAMPD_STORE_STORE_SESSION_H
#define STAMPD_STORE_STORE_SESSION_H

#include "edge/pg/pg.h"
#include "segment/namespaces.h"
#include "store/store_cache.h"

struct store_session {
    struct pg *pg;              /* NULL: closed */
    void *caches[STORE_CACHES]; /* open: of each kind */
    uint64_t used;              /* sequence number of its last use: the lowest is the LRU */
    int64_t used_ms;            /* monotonic: its last use */
    bool in_snapshot, is_held;
    uint32_t timeline; /* of the server: a session of a former primary is not used again */
    int failures;      /* failed openings since it was last open */
    int64_t retry_ms;  /* monotonic: not tried again before */
    enum fault reason; /* of the last failure to open */
    int64_t as_of_ms;  /* of a standby: session_standing, */
    uint64_t drops;    /* and the lineage_drops at which it was found */
};

enum { NO_VISITOR = -1 };

struct store {
    const struct settings *settings;
    struct segment *segment;
    bool is_of_replica;
    uint64_t turn;
    int open_count;
    int visitor; /* see store_set_visitor; NO_VISITOR: none */
    struct store_reading *reading;
    struct store_session sessions[NAMESPACES_MOST];
};

#endif
