/* schema_watch: looks for requests in z, runs a command for each, and stores what it prints. */
#include "control/schema/schema_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "edge/json/json.h"
#include "model/namespace.h"

enum {
    LOOK_MS = 1000,       /* between two looks for requests */
    STORE_MS = 1000,      /* between two commits of what a command prints */
    AWAY_MOST_MS = 30000, /* longest pause while z cannot be worked on */
    TEXT_MOST = 16 << 10, /* kept of what a command prints: of a plan its beginning, else its end */
    PIECE = 4096,
};

static const struct pg_statement statements[] = {
    {"watch_alone", "select pg_try_advisory_lock(hashtextextended('stampd schema watch', 0))", 0},
    {"watch_next",
     "select d.id, i.content::json ->> 'do', i.content::json ->> 'of', d.version from stampd.doc d"
     " join stampd.item i on i.class = d.class and i.id = d.id where d.class = 'SchemaRun' and d.ctime <> 0"
     " and i.iclass = 'Conf' and i.key = '' and i.content is not null and case when not i.raw then"
     " i.content::json ->> 'state' in ('asked', 'running') end order by d.version, d.id limit 1",
     0},
    {"watch_store",
     "with held as materialized (select (stampd.lock_document('SchemaRun', $1::text)).version)"
     " select greatest(stampd.put_item('SchemaRun', $1::text, 'Lines', '', $2::text),"
     " stampd.put_item('SchemaRun', $1::text, 'Conf', '', $3::text)) from held where version = $4::bigint",
     4},
};
enum { ALONE, NEXT, STORE };

/* One request. */
struct schema_run {
    struct control *control; /* its arena has what belongs to this request */
    struct pg *z;
    const char *code, *of;
    bool is_plan;
    int64_t version; /* of its document, as this process has left it; 0: another request is in its place */
    struct builder text; /* printed so far */
    bool is_full;        /* of a plan: what follows is left out */
    bool is_changed;     /* since it was stored */
    int64_t stored_ms;
};

/* --- what is stored --- */

/* Bytes of a terminal or of another encoding are no reason to lose the rest. */
static void schema_watch_add_text(struct builder *json, struct bytes text)
{
    struct builder copy = {0};
    const bool is_utf8 = bytes_is_utf8(text);
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        builder_add(&copy, byte && (is_utf8 || byte < 0x80) ? text.data + i : "?", 1);
    }
    json_add_string(json, builder_bytes(&copy));
    builder_free(&copy);
}

static enum fault schema_watch_store(struct schema_run *run, const char *state)
{
    struct arena *arena = run->control->arena;
    struct builder lines = {0}, conf = {0};
    struct pg_result *row;
    run->is_changed = false;
    run->stored_ms = clock_monotonic_ms();
    if (!run->version)
        return FAULT_NONE;
    builder_add_text(&lines, "{\"text\":");
    schema_watch_add_text(&lines, builder_bytes(&run->text));
    builder_add_text(&lines, "}");
    builder_printf(&conf, "{\"do\":\"%s\",\"of\":%s,\"state\":\"%s\"}", run->is_plan ? "plan" : "apply",
                   run->of, state);
    enum fault fault = pg_run(run->z, &statements[STORE],
                              PG_PARAMS(arena, PG_TEXT(bytes_of(run->code)), PG_TEXT(builder_bytes(&lines)),
                                        PG_TEXT(builder_bytes(&conf)), PG_I64(run->version)),
                              &row);
    if (!fault)
        run->version = pg_rows(row) ? pg_get_i64(row, 0, 0) : 0;
    builder_free(&lines);
    builder_free(&conf);
    return fault;
}

/* Keeps whole lines within the limit. */
static void schema_watch_shorten(struct schema_run *run)
{
    struct builder *text = &run->text;
    if (text->size <= TEXT_MOST)
        return;
    const char *end = run->is_plan ? memrchr(text->data, '\n', TEXT_MOST)
                                   : memchr(text->data + text->size - TEXT_MOST, '\n', TEXT_MOST);
    if (run->is_plan) {
        text->size = end ? (size_t)(end - text->data) + 1 : TEXT_MOST;
        run->is_full = true;
        return;
    }
    const char *rest = end ? end + 1 : text->data + text->size - TEXT_MOST;
    size_t size = text->size - (size_t)(rest - text->data);
    memmove(text->data, rest, size);
    text->size = size;
}

/* --- the command --- */

/* The program ends with this process, and is then run again: it continues where it stopped. */
/* Reads until the command closes its end. */
static enum fault schema_watch_follow(struct schema_run *run, int in)
{
    enum fault fault = FAULT_NONE;
    for (;;) {
        struct pollfd end = {.fd = in, .events = POLLIN};
        int ready = poll(&end, 1, STORE_MS);
        if (!fault && run->is_changed && clock_monotonic_ms() - run->stored_ms >= STORE_MS)
            fault = schema_watch_store(run, "running");
        if (ready <= 0)
            continue;
        ssize_t got = read(in, builder_reserve(&run->text, PIECE), PIECE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fault;
        fwrite(run->text.data + run->text.size, 1, (size_t)got, stdout);
        fflush(stdout);
        if (run->is_full)
            continue;
        run->text.size += (size_t)got;
        run->is_changed = true;
        schema_watch_shorten(run);
    }
}

/* A fault is one of z: the request is still marked as running, and is run again. */
static enum fault execute(struct schema_run *run)
{
    const struct control *control = run->control;
    const char *const admin = control->admin_conninfo;
    const char *const words[] = {"/proc/self/exe",
                                 "schema",
                                 run->is_plan ? "plan" : "apply",
                                 "--config",
                                 control->config,
                                 "--if",
                                 run->of,
                                 admin ? "--admin-conninfo" : "--",
                                 admin ? admin : run->code,
                                 admin ? "--" : NULL,
                                 run->code,
                                 NULL};
    const struct subprocess_work work = {
        .words = words, .has_no_in = true, .has_out = true, .has_errors_in_out = true, .is_bound = true};
    struct subprocess child;
    if (!subprocess_start(&work, &child))
        return FAULT_BINTERNAL;
    const enum fault fault = schema_watch_follow(run, child.out);
    const int status = subprocess_end(&child);
    return fault ? fault : schema_watch_store(run, status == 0 ? "done" : "failed");
}

/* --- requests --- */

/* What is not a request of the operation is marked as failed, so that it is not found again. */
static bool is_sound(struct arena *arena, const struct pg_result *row)
{
    struct bytes code = pg_get_text(row, 0, 0), deed = pg_get_text(row, 0, 1), of = pg_get_text(row, 0, 2);
    int64_t version;
    return namespace_is_code(arena_copy(arena, code.data, code.size)) && bytes_to_i64(of, &version) &&
           version >= 0 && (bytes_equal(deed, BYTES("plan")) || bytes_equal(deed, BYTES("apply")));
}

static enum fault run_next(struct control *control, struct pg *z, bool *found_r)
{
    struct arena *arena = control->arena;
    struct pg_result *row;
    enum fault fault = pg_run(z, &statements[NEXT], PG_NO_PARAMS(arena), &row);
    *found_r = !fault && pg_rows(row);
    if (!*found_r)
        return fault;
    struct bytes code = pg_get_text(row, 0, 0), of = pg_get_text(row, 0, 2);
    struct schema_run run = {.control = control,
                             .z = z,
                             .code = arena_copy(arena, code.data, code.size),
                             .of = "0",
                             .is_plan = bytes_equal(pg_get_text(row, 0, 1), BYTES("plan")),
                             .version = pg_get_i64(row, 0, 3)};
    if (is_sound(arena, row)) {
        run.of = arena_copy(arena, of.data, of.size);
        fault = schema_watch_store(&run, "running");
        if (!fault && run.version) {
            printf("%s: schema %s\n", run.code, run.is_plan ? "plan" : "apply");
            fault = execute(&run);
        }
    } else {
        builder_add_text(&run.text, "This is not a request of the operation schema.\n");
        fault = schema_watch_store(&run, "failed");
    }
    builder_free(&run.text);
    return fault;
}

/* Is this the process that works?  Waits for it, unless it is `is_once`. */
static enum fault take_turn(struct control *control, struct pg *z, bool is_once, bool *is_own_r)
{
    for (bool is_told = false;; is_told = true) {
        struct pg_result *row;
        enum fault fault = pg_run(z, &statements[ALONE], PG_NO_PARAMS(control->arena), &row);
        *is_own_r = !fault && pg_get_bool(row, 0, 0);
        if (fault || *is_own_r || is_once)
            return fault;
        if (!is_told)
            message_print("another stampctl schema watch is at work: this one waits until that one ends");
        arena_reset(control->arena);
        clock_sleep_ms(LOOK_MS);
    }
}

/* Works until z fails, or with `is_once` until nothing is asked for.  `is_reached_r`: z could be used. */
static enum fault work(struct control *control, struct pg *z, bool is_once, bool *is_reached_r)
{
    bool is_own = false, found;
    enum fault fault =
        FAULT_FIRST(pg_prepare(z, statements, COUNT_OF(statements)), take_turn(control, z, is_once, &is_own));
    if (!fault && !is_own)
        message_print("another stampctl schema watch is at work");
    while (!fault && is_own) {
        *is_reached_r = true;
        fault = run_next(control, z, &found);
        arena_reset(control->arena);
        if (!fault && !found && is_once)
            return FAULT_NONE;
        if (!fault && !found)
            clock_sleep_ms(LOOK_MS);
    }
    if (fault)
        message_print("z: %.*s", (int)strcspn(pg_message(z), "\n"), pg_message(z));
    return fault ? fault : FAULT_STALE;
}

bool schema_watch_run(struct control *control, bool is_once)
{
    struct control connecting = *control, working = *control;
    struct pg *z;
    bool is_done = false;
    int64_t pause_ms = LOOK_MS;
    connecting.arena = arena_create("connection");
    working.arena = arena_create("request");
    do {
        bool is_reached = false;
        if (ns_registry_open(&connecting, &z))
            is_done = work(&working, z, is_once, &is_reached) == FAULT_NONE;
        arena_reset(working.arena);
        arena_reset(connecting.arena);
        if (!is_once)
            clock_sleep_ms(pause_ms);
        pause_ms = is_reached ? LOOK_MS : pause_ms * 2 < AWAY_MOST_MS ? pause_ms * 2 : AWAY_MOST_MS;
    } while (!is_once);
    arena_destroy(working.arena);
    arena_destroy(connecting.arena);
    return is_done;
}
