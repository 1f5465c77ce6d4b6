/* registry: one connection, one statement, in non-blocking steps. */
#include "queue/registry.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "edge/json/json.h"
#include "edge/pg/pg.h"
#include "edge/pg/pg_async.h"

enum {
    PERIOD_MS = 30000,
    PAUSE_LEAST_MS = 500,
    PAUSE_MOST_MS = 15000,
    STATEMENT_TIMEOUT_MS = 20000,
    NAMESPACES_MAX = 1000,
    CODE_MAX = 16,
};

enum state { RESTING, CONNECTING, CONNECTED, QUERYING };

struct registry {
    const struct settings *settings;
    struct pg_options options;
    struct arena *arena; /* of one result */
    struct pg *pg;       /* NULL while resting */
    enum state state;
    enum pg_progress progress;
    struct pg_result *result;
    enum fault fault;
    int64_t next_ms; /* monotonic: of the next step, if nothing arrives */
    int failures;
    size_t count;
    const char *codes[NAMESPACES_MAX];
};

static const struct pg_statement names = {
    "namespaces",
    "select id, content from stampd.item where class = 'Namespace' and iclass = 'Conf' and key = ''"
    " and content is not null and not raw order by id limit 1000",
    0};

struct registry *registry_create(const struct settings *settings)
{
    struct registry *registry = memory_zeroed(1, sizeof *registry, "registry");
    registry->settings = settings;
    registry->arena = arena_create("registry");
    registry->options = (struct pg_options){
        .conninfo = settings->database,
        .database = settings->z_database,
        .name = "stamp-queue",
        .role_settings = "",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
        .lock_timeout_ms = STATEMENT_TIMEOUT_MS,
    };
    return registry;
}

void registry_destroy(struct registry *registry)
{
    if (!registry)
        return;
    arena_destroy(registry->arena); /* results are freed before their connection */
    pg_close(registry->pg);
    free(registry);
}

int64_t registry_poll(const struct registry *registry, struct pollfd *socket_r)
{
    bool waits = registry->state == CONNECTING || registry->state == QUERYING;
    *socket_r = (struct pollfd){
        .fd = registry->pg ? pg_socket(registry->pg) : -1,
        .events = (short)(waits && registry->progress == PG_WAITS_TO_WRITE ? POLLOUT : POLLIN),
    };
    return waits ? pg_async_deadline_ms(registry->pg) : registry->next_ms;
}

void registry_hurry(struct registry *registry)
{
    if (registry->state == CONNECTED)
        registry->next_ms = 0;
}

static void rest(struct registry *registry)
{
    int64_t pause_ms = registry->failures > 5 ? PAUSE_MOST_MS : PAUSE_LEAST_MS << registry->failures;
    registry->failures++;
    arena_reset(registry->arena);
    pg_close(registry->pg);
    registry->pg = NULL;
    registry->state = RESTING;
    registry->next_ms = clock_monotonic_ms() + pause_ms;
}

/* Does the configuration, or the default without one, name this manager? */
static bool is_ours(const struct registry *registry, struct bytes text)
{
    struct json *conf;
    struct bytes code = BYTES("qm");
    if (!json_is_tree(registry->arena, text, 32, 1, &conf))
        return false;
    const struct json *member = json_member(conf, "queue");
    if (member && member->kind == JSON_STRING)
        code = member->value;
    return bytes_equal(code, bytes_of(registry->settings->queue_code));
}

static void take_list(struct registry *registry)
{
    registry->count = 0;
    for (int row = 0; row < pg_rows(registry->result) && registry->count < NAMESPACES_MAX; row++) {
        struct bytes code = pg_get_text(registry->result, row, 0);
        if (code.size <= CODE_MAX && is_ours(registry, pg_get_text(registry->result, row, 1)))
            registry->codes[registry->count++] = arena_copy(registry->arena, code.data, code.size);
    }
}

static void start_connecting(struct registry *registry)
{
    registry->pg = pg_async_start(&registry->options);
    registry->progress = PG_WAITS_TO_WRITE;
    registry->state = CONNECTING;
}

static void start_query(struct registry *registry)
{
    struct pg_params none;
    arena_reset(registry->arena);
    pg_params_start(&none, registry->arena);
    registry->result = NULL;
    registry->fault = FAULT_NONE;
    registry->progress = PG_WAITS_TO_WRITE;
    registry->state = QUERYING;
    if (!pg_is_alive(registry->pg) || pg_async_send(registry->pg, &names, &none))
        rest(registry);
}

bool registry_turn(struct registry *registry, const char *const **codes_r, size_t *count_r)
{
    int64_t now_ms = clock_monotonic_ms();
    if (registry->state == RESTING && now_ms >= registry->next_ms)
        start_connecting(registry);
    if (registry->state == CONNECTING) {
        registry->progress = pg_async_connect(registry->pg, &registry->options, &registry->fault);
        if (registry->progress == PG_FAILED)
            rest(registry);
        else if (registry->progress == PG_DONE)
            registry->state = CONNECTED, registry->next_ms = 0;
    }
    if (registry->state == CONNECTED && (now_ms >= registry->next_ms || !pg_is_alive(registry->pg)))
        start_query(registry);
    if (registry->state != QUERYING)
        return false;
    registry->progress = pg_async_receive(registry->pg, registry->arena, &registry->result, &registry->fault);
    if (registry->progress == PG_FAILED)
        rest(registry);
    if (registry->progress != PG_DONE)
        return false;
    take_list(registry);
    registry->failures = 0;
    registry->state = CONNECTED;
    registry->next_ms = now_ms + PERIOD_MS;
    *codes_r = registry->codes;
    *count_r = registry->count;
    return true;
}
