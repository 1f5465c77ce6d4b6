/* store_cache: what a session caches beside its connection (store_cache_table.h), each kind in a file of its
 * own.  It lives as long as the connection. */
#ifndef STAMPD_STORE_STORE_CACHE_H
#define STAMPD_STORE_STORE_CACHE_H

#include "edge/pg/pg.h"
#include "store/store.h"

struct store_cache {
    size_t size; /* of its struct, which begins as zeros */
    /* Fills it when the session opens; on a fault the session is not opened.  NULL: filled on first use. */
    enum fault (*open)(void *cache, struct pg *pg);
    /* Releases its contents, also after a failed open. */
    void (*close)(void *cache);
};

#define CACHE(name) extern const struct store_cache store_cache_##name;
#include "store/store_cache_table.h"
#undef CACHE

enum store_cache_kind {
#define CACHE(name) STORE_CACHE_##name,
#include "store/store_cache_table.h"
#undef CACHE
    STORE_CACHES,
};

/* The cache of a session; NULL: the session is closed. */
void *store_cache_of(const struct store *store, int ns, enum store_cache_kind kind);

#endif
