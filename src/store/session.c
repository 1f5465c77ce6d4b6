/* session: open(ns) and the recovery process of freshness.md.
 *
 * The two numbers of an advisory lock are the installation (top byte 'S', which distinguishes our locks from
 * those of an application) and generation mod 32768 << 16 | index.  Until the lock is granted, only queries
 * of the lock holders are sent.  The lock is polled, not waited for: so the wait has a limit without a cancel
 * request, and no session stays queued for a lock that it no longer wants. */
#include "store/session.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "model/schema/search.h"
#include "segment/beats.h"
#include "segment/feed.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/counts/waits.h"
#include "store/proof.h"
#include "store/statements.h"
#include "edge/crypto/crypto.h"

enum {
    POLL_LEAST_MS = 2,
    POLL_MOST_MS = 100,
    PAUSE_LEAST_MS = 50,
    PAUSE_MOST_MS = 2000,
    GIVE_UP_SLICE_MS = 50,
    GENERATIONS = 32768, /* distinguished by a lock */
};

/* The advisory locks of stampd servers in the present database, without those of this session. */
#define OTHERS                                                                                               \
    "(select classid::bigint as installation, objid::bigint >> 16 as generation, objid::bigint as key, pid"  \
    " from pg_catalog.pg_locks where locktype = 'advisory' and objsubid = 2 and classid::bigint >> 24 = 83"  \
    " and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())" \
    " and pid <> pg_catalog.pg_backend_pid()) as others"

/* The wait for a standby is not ended: the commit would be shown to all, and be lost at a failover. */
#define WAITS "(select wait_event from pg_catalog.pg_stat_get_activity(pid)) is not distinct from 'SyncRep'"

/* $1 installation, $2 generation, $3 key, $4 former generations matter, $5 other installations matter. */
enum session_statement { ENTER, END_FORMER, END_OTHERS, VERIFY, SESSION_STATEMENTS };
static const struct pg_statement session_statements[SESSION_STATEMENTS] = {
    /* Queries the lock holders, and tries the lock only if none is in the way. */
    [ENTER] =
        {"session_enter",
         "with seen as materialized (select count(*) filter (where installation <> $1::int) as strangers,"
         " count(*) filter (where installation = $1 and generation <> $2::int) as former,"
         " count(*) filter (where installation = $1 and key = $3::int) as rivals,"
         " count(*) filter (where (installation <> $1 and $5::int <> 0 or installation = $1 and key = "
         "$3::int)"
         " and " WAITS ") as waiting from " OTHERS ")"
         " select strangers, former, rivals, waiting, case when (strangers = 0 or $5::int = 0)"
         " and (former = 0 or $4::int = 0) and rivals = 0 then pg_try_advisory_lock($1, $3) else false end"
         " from seen",
         5},
    /* Sessions are found by their lock, so a reused pid is never terminated. */
    [END_FORMER] = {"session_end_former",
                    "select count(pg_terminate_backend(pid)) from " OTHERS " where installation = $1::int"
                    " and (key = $3::int or (generation <> $2::int and $4::int <> 0)) and not " WAITS,
                    4},
    [END_OTHERS] = {"session_end_others",
                    "select count(pg_terminate_backend(pid)) from " OTHERS
                    " where installation <> $1::int and not " WAITS,
                    1},
    [VERIFY] = {"session_verify",
                "select (select count(*) from " OTHERS " where installation <> $1::int),"
                " coalesce((select max(number) from migration), 0),"
                " coalesce(nullif(current_setting('stampd.restored', true), '') <>"
                " (select restored from namespace where one), false),"
                " (select epoch from namespace where one)",
                1},
};

struct entering {
    const struct settings *settings;
    struct segment *segment;
    int ns;
    const char *database;
    bool alone; /* other installations are an obstacle */
    bool ends_others;
    int32_t installation, generation, key;
    struct arena *arena;
    struct pg *pg;
    struct lineage_met met;
};

static struct entering start_entering(const struct settings *settings, struct segment *segment, int ns,
                                      bool alone)
{
    int32_t generation = (int32_t)(segment_generation(segment) % GENERATIONS);
    int index = segment_index(segment);
    assert(index >= 0 && index <= UINT16_MAX);
    struct entering entering = {
        .settings = settings,
        .segment = segment,
        .ns = ns,
        .database = namespaces_database(segment, ns),
        .alone = alone,
        .installation = (int32_t)segment_installation(segment),
        .generation = generation,
        .key = generation << 16 | index,
        .arena = arena_create("session"),
    };
    assert(entering.database && entering.installation > 0);
    return entering;
}

/* Closes a connection that did not become a session. */
static enum fault end_entering(struct entering *entering, enum fault fault, struct pg **pg_r)
{
    *pg_r = NULL;
    if (fault)
        pg_close(entering->pg);
    else
        *pg_r = entering->pg;
    arena_destroy(entering->arena);
    return fault;
}

/* `until_ms`: waits_silence, which outlives the connection. */
static bool is_silent(void *until_ms)
{
    return clock_monotonic_ms() < atomic_load((_Atomic int64_t *)until_ms);
}

static struct pg_patience patience_with(const struct segment *segment, int cell)
{
    return (struct pg_patience){is_silent, waits_silence(segment, cell)};
}

/* Plans: commit.md 1.6.  Keepalives: the server too must detect that our host is gone, or the lock stays.
 * Where live events are on, other hosts' relays and listeners receive our changes as they receive those of
 * psql: notifications serialise commits. */
enum { ROLE_SETTINGS = 768 };
static void write_role_settings(const struct settings *settings, char text_r[ROLE_SETTINGS])
{
    bool tells_others = settings->hosts == HOSTS_MANY && settings->live;
    int size =
        snprintf(text_r, ROLE_SETTINGS,
                 "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off"
                 " -c enable_mergejoin=off -c jit=off -c default_transaction_isolation=read\\ committed"
                 " -c idle_in_transaction_session_timeout=%lld -c search_path=stampd -c stampd.worker=%s"
                 " -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
                 " -c tcp_user_timeout=30000 -c stampd.collection_values=%lld"
                 " -c pg_trgm.similarity_threshold=%g",
                 (long long)settings->limit_operation_s * 1000, tells_others ? "off" : "on",
                 (long long)settings->limit_collection_values, SEARCH_LIKE_LEAST);
    assert(size > 0 && size < ROLE_SETTINGS);
}

static enum fault connect(struct entering *entering)
{
    const struct settings *settings = entering->settings;
    char role_settings[ROLE_SETTINGS];
    write_role_settings(settings, role_settings);
    struct pg_options options = {
        .conninfo = settings_conninfo(settings, entering->database),
        .database = entering->database,
        .role_settings = role_settings,
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    enum fault fault = pg_open(&options, &entering->pg);
    if (!fault)
        (void)pg_set_patience(
            entering->pg, patience_with(entering->segment, namespaces_cell(entering->segment, entering->ns)));
    return fault;
}

static enum fault session_run(struct entering *entering, enum session_statement which, bool former,
                              struct pg_result **result_r)
{
    const struct pg_statement *statement = &session_statements[which];
    const bool flags[] = {former, entering->alone};
    struct pg_params *params = PG_PARAMS(entering->arena, PG_I32(entering->installation));
    if (statement->parameters > 1) {
        PG_PARAMS_ADD(params, PG_I32(entering->generation), PG_I32(entering->key));
        for (int i = 0; params->count < statement->parameters; i++)
            pg_params_add_i32(params, flags[i]);
    }
    return pg_run(entering->pg, statement, params, result_r);
}

static enum fault refuse_twin(const struct entering *entering)
{
    log_error("database=%s is served by another installation: its segment is not ours (%08x) and hosts = one",
              entering->database, (unsigned)entering->installation);
    return FAULT_OTWIN;
}

/* Terminates the sessions in the way, waits until pg_locks shows none, and takes the lock. */
static enum fault take_lock(struct entering *entering)
{
    bool clean = namespaces_is_clean(entering->segment, entering->ns);
    int64_t deadline_ms = clock_monotonic_ms() + entering->settings->connect_timeout_s * 1000;
    for (int64_t wait_ms = POLL_LEAST_MS;;
         wait_ms = wait_ms * 2 < POLL_MOST_MS ? wait_ms * 2 : POLL_MOST_MS) {
        struct pg_result *seen;
        enum fault fault = session_run(entering, ENTER, !clean, &seen);
        if (fault)
            return fault;
        int64_t strangers = pg_get_i64(seen, 0, 0), former = pg_get_i64(seen, 0, 1),
                rivals = pg_get_i64(seen, 0, 2), waiting = pg_get_i64(seen, 0, 3);
        if (strangers && entering->alone && !entering->ends_others)
            return refuse_twin(entering);
        if (pg_get_bool(seen, 0, 4)) {
            crash_at(CRASH_SESSION_LOCKED);
            if (!clean)
                namespaces_set_clean(entering->segment, entering->ns);
            crash_at(CRASH_SESSION_CLEAN);
            return FAULT_NONE;
        }
        if (waiting) { /* that may last: the caller has other things to do */
            log_often(
                LOG_LEVEL_WARNING, "former session",
                "database=%s: a former session waits for a standby: its commit is neither lost nor known",
                entering->database);
            return FAULT_XAWAY;
        }
        if (clock_monotonic_ms() >= deadline_ms) {
            log_warning(
                "database=%s: former sessions do not end: %lld of former generations, %lld of index %d,"
                " %lld of other hosts",
                entering->database, (long long)former, (long long)rivals, segment_index(entering->segment),
                (long long)strangers);
            return FAULT_XAWAY;
        }
        fault = session_run(entering, END_FORMER, !clean, NULL);
        if (!fault && strangers && entering->ends_others)
            fault = session_run(entering, END_OTHERS, false, NULL);
        if (fault)
            return fault;
        crash_at(CRASH_SESSION_ENDED_OTHERS);
        clock_sleep_ms(wait_ms);
        arena_reset(entering->arena);
    }
}

enum fault session_meet(struct segment *segment, int ns, const struct lineage_met *met)
{
    const char *database = namespaces_database(segment, ns);
    switch (lineage_meet(segment, ns, met)) {
    case LINEAGE_FORMER:
        log_often(LOG_LEVEL_WARNING, "former primary",
                  "database=%s: a former primary: its timeline is %u, and %u has begun: it is not used",
                  database, met->timeline, lineage_timeline(segment, ns));
        return FAULT_XAWAY;
    case LINEAGE_NEW:
        log_warning(
            "database=%s: another server is the primary: timeline %u has begun, all copies are dropped",
            database, met->timeline);
        crash_at(CRASH_SESSION_MET);
        return FAULT_NONE;
    case LINEAGE_SAME:
    default:
        return FAULT_NONE;
    }
}

/* Connects, takes the lock and proves what is visible; `statements` of session_statements are prepared. */
static enum fault enter_session(struct entering *entering, size_t statement_count)
{
    enum fault fault = connect(entering);
    if (fault)
        return fault;
    crash_at(CRASH_SESSION_CONNECTED);
    fault = pg_prepare(entering->pg, session_statements, statement_count);
    const char *sqlstate = pg_sqlstate(entering->pg);
    if (fault && (strcmp(sqlstate, "42P01") == 0 || strcmp(sqlstate, "3F000") == 0)) {
        log_error("database=%s has no tables of stampd: run `stampctl ns migrate`", entering->database);
        return FAULT_ODATABASE;
    }
    if (!fault)
        fault = take_lock(entering);
    entering->met.mark = lineage_mark(entering->segment, entering->ns);
    if (!fault) /* under the lock: what the former session has committed is proven, too */
        fault = proof_begin(entering->pg, entering->arena, entering->settings->connect_timeout_s * 1000,
                            &entering->met);
    if (fault)
        return fault;
    crash_at(CRASH_SESSION_PROVEN);
    return session_meet(entering->segment, entering->ns, &entering->met);
}

/* Under the lock: another installation that started at the same moment saw no lock either, so check again. */
static enum fault verify_session(struct entering *entering)
{
    struct pg_result *seen;
    enum fault fault = session_run(entering, VERIFY, false, &seen);
    if (fault)
        return fault;
    if (pg_get_i64(seen, 0, 0) && entering->alone && !entering->ends_others)
        return refuse_twin(entering);
    int64_t number = pg_get_i64(seen, 0, 1);
    if (number == SCHEMA_NUMBER &&
        lineage_has_lost(entering->segment, entering->ns, pg_get_i64(seen, 0, 3))) {
        log_error("database=%s has lost commits that were acknowledged, or cannot prove the contrary: run "
                  "`stampctl ns restored`",
                  entering->database);
        return FAULT_ODATABASE;
    }
    if (number == SCHEMA_NUMBER && !pg_get_bool(seen, 0, 2))
        return FAULT_NONE;
    if (number ==
        SCHEMA_NUMBER) { /* clients have newer copies than it, with versions that it would give again */
        log_error("database=%s was restored from a backup: run `stampctl ns restored`", entering->database);
        return FAULT_ODATABASE;
    }
    log_error("database=%s is at migration %lld, this program needs %d: %s", entering->database,
              (long long)number, SCHEMA_NUMBER,
              number < SCHEMA_NUMBER ? "run `stampctl ns migrate`" : "install the newer release");
    return FAULT_ODATABASE;
}

/* --- a pair of hosts: does the lease, a row of z, name this one? --- */

struct holder {
    struct pg *pg; /* of z */
    struct lineage_met met;
};

static const struct pg_statement holds = {"session_holds",
                                          "select coalesce(installation, 0) from lease where one", 0};

static bool is_in_cell_of_z(const struct entering *entering)
{
    return namespaces_cell(entering->segment, entering->ns) == 0;
}

static enum fault open_holder(const struct entering *entering, struct holder *holder)
{
    const struct settings *settings = entering->settings;
    const struct pg_options options = {
        .conninfo = settings->database,
        .database = settings->z_database,
        .role_settings = "-c search_path=stampd",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    if (!slots_have_lease(entering->segment))
        return FAULT_OTWIN; /* an everyday answer of the host that waits */
    enum fault fault = pg_open(&options, &holder->pg);
    if (!fault)
        (void)pg_set_patience(holder->pg, patience_with(entering->segment, 0));
    if (!fault)
        fault = is_in_cell_of_z(entering)
                    ? proof_look(holder->pg, entering->arena, &holder->met)
                    : proof_begin(holder->pg, entering->arena, settings->connect_timeout_s * 1000, NULL);
    return fault ? fault : pg_prepare(holder->pg, &holds, 1);
}

/* A former primary has a former row.  In the cell of z the server that was asked must be the one that has our
 * session.  The server of z that is asked for a session elsewhere must commit once more after it was asked:
 * no former primary can, as its standby is elsewhere, and a row that it had before that was the newest. */
static enum fault check_server(const struct entering *entering, struct holder *holder)
{
    if (!is_in_cell_of_z(entering))
        return proof_run(holder->pg, entering->arena, entering->settings->connect_timeout_s * 1000);
    bool is_same = !entering->met.timeline || (entering->met.timeline == holder->met.timeline &&
                                               entering->met.system == holder->met.system);
    return is_same ? FAULT_NONE : FAULT_XAWAY;
}

/* Another host writes the row before it looks for our sessions: it sees our lock, or we see its row. */
static enum fault ask_holder(const struct entering *entering, struct holder *holder)
{
    struct pg_result *row;
    enum fault fault = FAULT_FIRST(holder->pg ? FAULT_NONE : open_holder(entering, holder),
                                   pg_run(holder->pg, &holds, PG_NO_PARAMS(entering->arena), &row));
    if (fault)
        return fault;
    if (pg_rows(row) && pg_get_i64(row, 0, 0) != entering->installation)
        return FAULT_OTWIN;
    return check_server(entering, holder);
}

enum fault session_open(const struct settings *settings, struct segment *segment, int ns, struct pg **pg_r,
                        uint32_t *timeline_r)
{
    struct entering entering = start_entering(settings, segment, ns, settings->hosts != HOSTS_MANY);
    struct holder holder = {0};
    enum fault fault = FAULT_NONE;
    *timeline_r = 0;
    if (settings->hosts == HOSTS_PAIR) { /* before sessions of another host are ended, and under the lock */
        fault = ask_holder(&entering, &holder);
        entering.ends_others = !fault;
    }
    if (!fault)
        fault = FAULT_FIRST(enter_session(&entering, SESSION_STATEMENTS), verify_session(&entering));
    if (!fault && settings->hosts == HOSTS_PAIR)
        fault = ask_holder(&entering, &holder);
    pg_close(holder.pg);
    *timeline_r = entering.met.timeline;
    if (!fault) {
        pg_prepare_on_use(entering.pg, statements, STATEMENT_COUNT);
        crash_at(CRASH_SESSION_OPENED);
        log_debug("session open database=%s index=%d backend=%d", entering.database, segment_index(segment),
                  pg_backend_pid(entering.pg));
    }
    return end_entering(&entering, fault, pg_r);
}

/* --- standbys --- */

enum { REPLICA_MS = 2000 }; /* of a statement: the primary is asked afterwards */
enum { STANDS, SCHEMA, REPLICA_STATEMENTS };
static const struct pg_statement replica_statements[REPLICA_STATEMENTS] = {
    [STANDS] = {"session_stands", "select nonce, sent_ms from heartbeat where installation = $1::bigint", 1},
    [SCHEMA] = {"session_schema", "select coalesce(max(number), 0)::bigint from migration", 0},
};

enum fault session_open_replica(const struct settings *settings, struct segment *segment, int ns,
                                struct pg **pg_r)
{
    const char *database = namespaces_database(segment, ns);
    char role_settings[ROLE_SETTINGS];
    struct pg_result *row;
    write_role_settings(settings, role_settings);
    const struct pg_options options = {
        .conninfo = settings_replica(settings, database),
        .database = database,
        .name = "stampd replica",
        .role_settings = role_settings,
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = REPLICA_MS,
        .lock_timeout_ms = REPLICA_MS,
        .takes_standby = true,
    };
    enum fault fault = pg_open(&options, pg_r);
    if (fault)
        return fault;
    struct arena *arena = arena_create("replica");
    fault = FAULT_FIRST(pg_prepare(*pg_r, replica_statements, REPLICA_STATEMENTS),
                        pg_run(*pg_r, &replica_statements[SCHEMA], PG_NO_PARAMS(arena), &row));
    if (!fault && pg_get_i64(row, 0, 0) != SCHEMA_NUMBER)
        fault = FAULT_ODATABASE;
    arena_destroy(arena);
    if (!fault)
        pg_prepare_on_use(*pg_r, statements, STATEMENT_COUNT);
    return fault;
}

enum fault session_standing(struct segment *segment, int ns, struct pg *pg, struct arena *arena,
                            int64_t *as_of_ms_r)
{
    enum { NONCE, SENT_MS };
    struct pg_result *row;
    *as_of_ms_r = 0;
    enum fault fault = pg_run(pg, &replica_statements[STANDS],
                              PG_PARAMS(arena, PG_I64(segment_installation(segment))), &row);
    if (!fault && pg_rows(row) &&
        beats_prove(segment, ns, (uint64_t)pg_get_i64(row, 0, NONCE), pg_get_i64(row, 0, SENT_MS)))
        *as_of_ms_r = pg_get_i64(row, 0, SENT_MS);
    return fault;
}

int64_t session_pause_ms(int failures)
{
    int64_t pause_ms = PAUSE_LEAST_MS;
    for (int i = 1; i < failures && pause_ms < PAUSE_MOST_MS; i++)
        pause_ms *= 2;
    if (pause_ms > PAUSE_MOST_MS)
        pause_ms = PAUSE_MOST_MS;
    uint16_t chance;
    crypto_random(&chance, sizeof chance);
    return pause_ms / 2 + pause_ms * chance / UINT16_MAX / 2;
}

static bool rest(int64_t pause_ms, bool (*give_up)(void))
{
    for (int64_t end_ms = clock_monotonic_ms() + pause_ms; clock_monotonic_ms() < end_ms;) {
        if (give_up())
            return false;
        clock_sleep_ms(GIVE_UP_SLICE_MS);
    }
    return !give_up();
}

bool session_recover(const struct settings *settings, struct segment *segment, bool (*give_up)(void))
{
    int index = segment_index(segment);
    int ns = processes_namespace(segment, index);
    if (ns < 0)
        return true;
    crash_at(CRASH_RECOVERY_BEGUN);
    for (int failures = 1;; failures++) {
        struct entering entering = start_entering(settings, segment, ns, false);
        struct pg *pg;
        /* Checks nothing but the lock: whatever the present schema, a late commit must be waited for. */
        enum fault fault = end_entering(&entering, enter_session(&entering, VERIFY), &pg);
        if (!fault || fault == FAULT_ODATABASE) { /* a dropped database: no commit is possible there */
            crash_at(CRASH_RECOVERY_LOCKED);
            struct publisher *publisher = feed_publisher_create(segment);
            feed_publisher_miss(publisher, ns); /* first: finding no commit in flight proves all were sent */
            size_t slots = slots_sweep(segment);
            feed_publisher_destroy(publisher);
            log_info("recovered index=%d database=%s slots=%zu%s", index, namespaces_database(segment, ns),
                     slots, fault ? " (the database is gone)" : "");
            pg_close(pg);
            return true;
        }
        if (!rest(session_pause_ms(failures), give_up))
            return false;
    }
}
