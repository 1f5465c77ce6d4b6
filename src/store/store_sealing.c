/* store_sealing: keys are read when a session opens, with each schema, and when a text has an unknown one. */
#include "store/store_sealing.h"

#include "base/log.h"
#include "store/store_cache.h"
#include "store/store_private.h"
#include "store/stored_id.h"

static enum fault store_sealing_read_keys(struct data_keys *keys, struct pg *pg)
{
    struct pg_result *rows;
    const char *problem = "";
    struct arena *arena = arena_create("data keys");
    enum fault fault = pg_run(pg, data_keys_statement(), PG_NO_PARAMS(arena), &rows);
    if (!fault && !data_keys_take(keys, rows, &problem)) {
        log_error("%s", problem);
        fault = FAULT_ODATABASE;
    }
    arena_destroy(arena);
    return fault;
}

struct sealing_cache {
    struct data_keys keys;
    struct stored_ids ids;
};

static enum fault open_cache(void *pointer, struct pg *pg)
{
    struct sealing_cache *cache = pointer;
    enum fault fault = store_sealing_read_keys(&cache->keys, pg);
    cache->ids = stored_ids_of_store(&cache->keys);
    if (!fault)
        stored_ids_use(&cache->ids, pg);
    return fault;
}

static void close_cache(void *pointer)
{
    struct sealing_cache *cache = pointer;
    data_keys_free(&cache->keys);
}

const struct store_cache store_cache_sealing = {
    .size = sizeof(struct sealing_cache), .open = open_cache, .close = close_cache};

static struct data_keys *keys_of(const struct store *store, int ns)
{
    struct sealing_cache *cache = store_cache_of(store, ns, STORE_CACHE_sealing);
    return cache ? &cache->keys : NULL;
}

const struct data_keys *store_sealing_keys(const struct store *store, int ns)
{
    static const struct data_keys none;
    const struct data_keys *keys = keys_of(store, ns);
    return keys ? keys : &none;
}

enum fault store_sealing_renew(struct store *store, int ns)
{
    struct data_keys *keys = keys_of(store, ns);
    return keys ? store_sealing_read_keys(keys, store_pg(store, ns)) : FAULT_NONE;
}

enum fault store_sealing_use(struct store *store, int ns, struct pg **pg_r)
{
    enum fault fault = store_sealing_keys(store, ns)->count ? store_connect(store, ns) : FAULT_NONE;
    *pg_r = NULL;
    return fault ? fault : store_use(store, ns, pg_r);
}

enum fault store_sealing_digest(struct store *store, int ns, struct arena *arena, struct bytes secret,
                                struct bytes kind, struct bytes text, struct bytes *digest_r)
{
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg);
    if (!fault)
        *digest_r = data_keys_digest(store_sealing_keys(store, ns), arena, secret, kind, text);
    return fault;
}

/* --- opening --- */

/* Another process may have begun to use a new key. */
static enum fault know_key(struct store *store, int ns, struct bytes sealed)
{
    int64_t id = sealing_key_id(sealed);
    return !id || data_keys_has(store_sealing_keys(store, ns), id) ? FAULT_NONE
                                                                   : store_sealing_renew(store, ns);
}

void store_sealing_report(struct arena *arena, struct bytes class)
{
    log_often(LOG_LEVEL_ERROR, arena_copy(arena, class.data, class.size),
              "an item cannot be decrypted: it was altered, or is of another place class=%.*s",
              (int)class.size, class.data);
}

enum fault store_sealing_open_item(struct store *store, int ns, struct arena *arena,
                                   const struct header *header, struct item *item)
{
    if (!store_sealing_keys(store, ns)->count)
        return FAULT_NONE;
    struct item_place place = {header->class, header->id, item->iclass, item->key, item->raw, BYTES("")};
    enum fault fault = know_key(store, ns, item->content);
    if (fault)
        return fault;
    if (!data_keys_open_item(store_sealing_keys(store, ns), arena, &place, &item->content)) {
        store_sealing_report(arena, header->class);
        return FAULT_BCONTENT;
    }
    item->key = place.key;
    return FAULT_NONE;
}

enum fault store_sealing_open_text(struct store *store, int ns, struct arena *arena,
                                   struct sealing_place place, struct bytes *text)
{
    if (!store_sealing_keys(store, ns)->count)
        return FAULT_NONE;
    enum fault fault = know_key(store, ns, *text);
    if (fault || data_keys_open_text(store_sealing_keys(store, ns), arena, place, text))
        return fault;
    const char *kind = arena_copy(arena, place.parts[0].data, place.parts[0].size);
    log_often(LOG_LEVEL_ERROR, kind, "a text cannot be decrypted: it was altered, or is of another place: %s",
              kind);
    return FAULT_BCONTENT;
}

/* --- ids --- */

struct bytes store_sealing_id(const struct store *store, int ns, struct arena *arena, struct bytes class,
                              struct bytes id)
{
    return data_keys_seal_id(store_sealing_keys(store, ns), arena, class, id);
}

enum fault store_sealing_open_id(const struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes *id)
{
    if (data_keys_open_id(store_sealing_keys(store, ns), arena, class, id))
        return FAULT_NONE;
    stored_id_report(class);
    return FAULT_BCONTENT;
}

/* --- what is refused --- */

bool store_sealing_refuses(const struct store *store, int ns, enum statement statement)
{
    switch (statement) {
    case STATEMENT_SIGHT_DECLARE:
    case STATEMENT_OWNERS_DECLARE:
        return store_sealing_keys(store, ns)->count > 0;
    default:
        return false;
    }
}
