/* worker_context_world: see the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker_context_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "edge/crypto/crypto.h"
#include "fake_store.h"
#include "operation/access/configurations.h"
#include "operation/access/verified_tokens.h"
#include "operation/builtin.h"
#include "operation/reply.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024 };

static char build[] = "test", z_database[] = "z", key_digest[CRYPTO_SHA256_HEX + 1];
struct settings settings;
struct segment *segment;
struct worker_context worker_context;
struct arena *arena;
struct builder body;
struct reply reply;

int worker_context_world_open(const struct settings *limits)
{
    char problem[256], path[] = "/tmp/stampd-segment-XXXXXX";
    int index, fd = mkstemp(path);
    close(fd);
    unlink(path);
    builtin_register();
    crypto_sha256_hex(BYTES("open sesame"), key_digest);
    settings = *limits;
    settings.admin_key_sha256 = key_digest;
    settings.build = build;
    settings.cache_age_s = 1000;
    settings.cache_mb = 1;
    settings.hosts = HOSTS_ONE;
    settings.tombstone_s = 100;
    settings.z_database = z_database;
    if (!segment_open(&segment, path, SLOTS, 0, problem, sizeof problem))
        return fprintf(stderr, "%s\n", problem), -1;
    unlink(path);
    if (processes_take(segment, 1, 1, 1, &index) != 1)
        return -1;
    segment_join(segment, index);
    fake_reset();
    worker_context = (struct worker_context){.settings = &settings,
                                             .segment = segment,
                                             .documents = documents_create(&settings, segment),
                                             .configurations = configurations_create(),
                                             .verified_tokens = verified_tokens_create()};
    arena = arena_create("test");
    return 0;
}

int worker_context_world_close(void **state UNUSED)
{
    verified_tokens_destroy(worker_context.verified_tokens);
    configurations_destroy(worker_context.configurations);
    documents_destroy(worker_context.documents);
    segment_close(segment);
    arena_destroy(arena);
    builder_free(&body);
    body = (struct builder){0};
    fake_reset();
    return 0;
}

void configure(const char *conf)
{
    static int64_t version = 101;
    if (conf && *conf == '{')
        conf = arena_printf(arena, "{\"database\":\"lab\"%s%s", conf[1] == '}' ? "" : ",", conf + 1);
    fake_change("Namespace", "lab", version++, conf);
    slots_move_all(segment);
}

const struct json *parse(const char *text)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 7};
    struct json *root;
    struct json_problem problem;
    assert_int_equal(json_read(arena, bytes_of(text), &limits, &root, &problem), FAULT_NONE);
    return root;
}

enum fault run_in_world(struct call *call)
{
    call->arena = arena;
    call->route = CALL_OPERATION;
    if (!call->ns.data)
        call->ns = BYTES("lab");
    if (!call->database.data)
        call->database = BYTES("lab");
    call->request_id = "test";
    if (!call->deadline_ms)
        call->deadline_ms = INT64_MAX / 2;
    body.size = 0;
    route_run(&worker_context, call, &reply);
    builder_add(&body, "", 1);
    body.size--;
    return reply.fault;
}
