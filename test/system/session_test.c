/* session, relay: against a real server.  Not part of `make check`: STAMPD_TEST_CONNINFO names a server of
 * this host and a superuser in it (without dbname); system tests run it.  It makes databases of its own and
 * drops them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "administrator.h"
#include "base/clock.h"
#include "base/log.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "store/session.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "store/statements.h"
#include "edge/pg/pg.h"
#include "serve/relay.h"
#include "test/unit/child.h"

enum { PATIENCE_MS = 15000, SLOTS = 1024 };

static char database[40], workers_conninfo[1000], run_directory[100], queue_off[] = "off", no_remotes[] = "",
                                                                      no_group[] = "";
static struct settings settings;
static uint32_t timeline; /* of the last session */
static struct segment *segment;
static int ns;
static struct pg *admin; /* in the namespace's database */

/* --- the house of each test: a segment, a database --- */

static struct segment *open_segment(const char *name)
{
    struct segment *handle;
    char problem[300];
    int indexes[16];
    if (!segment_open(&handle, folder_path(name), SLOTS, 0, problem, sizeof problem))
        fail_msg("%s", problem);
    assert_int_equal(processes_take(handle, 1, 0, 16, indexes), 16);
    return handle;
}

static int open_house(void **state UNUSED)
{
    snprintf(run_directory, sizeof run_directory, "%s", folder_make());
    segment = open_segment("segment");
    ns = namespaces_find(segment, bytes_of(database));
    admin = connect_admin(database);
    tell(admin, "delete from doc");
    settings.hosts = HOSTS_ONE;
    settings.database = workers_conninfo;
    settings.run_directory = run_directory;
    return 0;
}

static int close_house(void **state UNUSED)
{
    wake_backends(admin); /* of a test that failed */
    tell(admin, "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()");
    pg_close(admin);
    segment_close(segment);
    folder_remove();
    return 0;
}

static struct pg *open_as(struct segment *handle, int index)
{
    struct pg *pg;
    segment_join(handle, index);
    enum fault fault = session_open(&settings, handle, ns, &pg, &timeline);
    if (fault)
        fail_msg("session_open: %s", fault_code(fault));
    assert_true(pg_is_usable(pg));
    return pg;
}

static void load_nothing(struct pg *pg)
{
    struct arena *arena = arena_create("load");
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, BYTES("Class"));
    pg_params_add_text(&params, BYTES("none"));
    assert_int_equal(pg_run(pg, &statements[STATEMENT_LOAD], &params, NULL), FAULT_NONE);
    arena_destroy(arena);
}

static enum fault fault_of_open(struct segment *handle, int index, int where)
{
    struct pg *pg;
    segment_join(handle, index);
    enum fault fault = session_open(&settings, handle, where, &pg, &timeline);
    if (!fault)
        pg_close(pg);
    else
        assert_null(pg);
    return fault;
}

static bool never(void)
{
    return false;
}

static bool at_once(void)
{
    return true;
}

#define AWAIT(condition)                                                                                     \
    for (int64_t end_ms = clock_monotonic_ms() + PATIENCE_MS; !(condition); clock_sleep_ms(5))               \
    assert_true(clock_monotonic_ms() < end_ms)

/* --- open(ns) --- */

static void a_session_is_as_the_statements_need_it(void **state UNUSED)
{
    static const char *const wanted[][2] = {
        {"plan_cache_mode", "force_generic_plan"},
        {"enable_seqscan", "off"},
        {"enable_hashjoin", "off"},
        {"enable_mergejoin", "off"},
        {"jit", "off"},
        {"default_transaction_isolation", "read committed"},
        {"lock_timeout", "1s"},
        {"statement_timeout", "5s"},
        {"idle_in_transaction_session_timeout", "1min"},
        {"search_path", "stampd"},
        {"application_name", "stampd"},
        {"stampd.worker", "on"},
    };
    struct pg *pg = open_as(segment, 3);
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        if (!ask(pg, "select (current_setting('%s') = '%s')::int", wanted[i][0], wanted[i][1]))
            fail_msg("%s is not %s", wanted[i][0], wanted[i][1]);
    assert_int_equal(ask(pg, "select count(*) from pg_prepared_statements where name = '%s'",
                         statements[STATEMENT_LOAD].name),
                     0);
    load_nothing(pg);
    assert_int_equal(ask(pg, "select count(*) from pg_prepared_statements where name = '%s'",
                         statements[STATEMENT_LOAD].name),
                     1);
    assert_int_equal(
        ask(admin,
            "select count(*) from pg_locks where locktype = 'advisory' and objsubid = 2 and pid = %d and"
            " classid = %u and objid = %u and granted",
            pg_backend_pid(pg), segment_installation(segment), (1u << 16) + 3),
        1);
    assert_true(namespaces_is_clean(segment, ns));
    pg_close(pg);
}

static void the_former_session_of_an_index_is_ended(void **state UNUSED)
{
    struct pg *former = open_as(segment, 3), *other = open_as(segment, 4);
    tell(former,
         "begin; insert into doc values ('A', 'left', 1, 1, 1, 0, 0)"); /* an end that nobody awaits */
    int backend = pg_backend_pid(former);
    struct pg *pg = open_as(segment, 3);
    assert_false(lives(admin, backend));
    assert_int_equal(ask(admin, "select count(*) from doc"), 0);
    assert_true(pg_is_alive(other) && pg_is_alive(pg));
    assert_false(pg_is_alive(former));
    pg_close(former);
    pg_close(other);
    pg_close(pg);
}

static void one_that_does_not_end_is_waited_for_in_bounds(void **state UNUSED)
{
    struct pg *former = open_as(segment, 3);
    assert_int_equal(kill(pg_backend_pid(former), SIGSTOP), 0);
    int64_t usual_s = settings.connect_timeout_s, start_ms = clock_monotonic_ms();
    settings.connect_timeout_s = 2;
    assert_int_equal(fault_of_open(segment, 3, ns), FAULT_XAWAY);
    assert_true(clock_monotonic_ms() - start_ms >= settings.connect_timeout_s * 1000);
    settings.connect_timeout_s = usual_s;
    assert_int_equal(fault_of_open(segment, 4, ns), FAULT_NONE); /* others are not hindered */
    assert_int_equal(kill(pg_backend_pid(former), SIGCONT), 0);
    assert_int_equal(fault_of_open(segment, 3, ns), FAULT_NONE);
    pg_close(former);
}

static void a_new_generation_ends_the_former(void **state UNUSED)
{
    struct pg *one = open_as(segment, 1), *two = open_as(segment, 2);
    int first = pg_backend_pid(one), second = pg_backend_pid(two);
    segment_close(segment); /* all processes are gone, but for the server's */
    segment = open_segment("segment");
    assert_int_equal(segment_generation(segment), 2);
    ns = namespaces_find(segment, bytes_of(database));
    assert_false(namespaces_is_clean(segment, ns));
    assert_true(lives(admin, first) && lives(admin, second));
    struct pg *pg = open_as(segment, 7);
    assert_true(namespaces_is_clean(segment, ns));
    assert_false(lives(admin, first) || lives(admin, second));
    struct pg *next = open_as(segment, 8); /* of the same generation: nobody is ended */
    assert_true(pg_is_alive(pg));
    pg_close(pg);
    pg_close(next);
    pg_close(one);
    pg_close(two);
}

static void another_installation_is_refused(void **state UNUSED)
{
    struct pg *pg = open_as(segment, 1);
    struct segment *twin = open_segment("twin");
    assert_true(segment_installation(twin) != segment_installation(segment));
    assert_int_equal(namespaces_find(twin, bytes_of(database)), ns);
    assert_int_equal(fault_of_open(twin, 1, ns), FAULT_OTWIN);
    assert_int_equal(fault_of_open(twin, 2, ns), FAULT_OTWIN);
    assert_true(pg_is_alive(pg));
    settings.hosts = HOSTS_MANY;
    assert_int_equal(fault_of_open(twin, 1, ns), FAULT_NONE);
    assert_true(pg_is_alive(pg));
    settings.hosts = HOSTS_ONE;
    tell(admin, "select pg_advisory_lock(1, 2), pg_advisory_lock(%d)",
         0x53000001); /* an application's: no matter */
    int backend = pg_backend_pid(pg);
    pg_close(pg);
    AWAIT(!lives(admin, backend));
    AWAIT(fault_of_open(twin, 1, ns) == FAULT_NONE);
    segment_close(twin);
}

struct race {
    _Atomic int serving[2], opened[2];
};
static struct race *race;

static void serve_in_turn(void *argument)
{
    int side = *(int *)argument;
    struct segment *own = open_segment(side ? "right" : "left");
    int where = namespaces_find(own, bytes_of(database));
    segment_join(own, 5);
    for (int64_t end_ms = clock_monotonic_ms() + 2000; clock_monotonic_ms() < end_ms;) {
        struct pg *pg;
        enum fault fault = session_open(&settings, own, where, &pg, &timeline);
        DEMAND(fault == FAULT_NONE || fault == FAULT_OTWIN);
        if (!fault) {
            atomic_fetch_add(&race->opened[side], 1);
            atomic_store(&race->serving[side], 1);
            DEMAND(atomic_load(&race->serving[!side]) == 0);
            clock_sleep_ms(2);
            DEMAND(atomic_load(&race->serving[!side]) == 0);
            atomic_store(&race->serving[side], 0);
            pg_close(pg);
        }
        clock_sleep_ms(session_pause_ms(1) / 4);
    }
}

static void two_installations_never_serve_together(void **state UNUSED)
{
    int sides[] = {0, 1};
    race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t left = child_start(serve_in_turn, &sides[0]), right = child_start(serve_in_turn, &sides[1]);
    child_expect(left);
    child_expect(right);
    assert_true(race->opened[0] + race->opened[1] > 0);
    munmap(race, sizeof *race);
}

static void a_database_that_does_not_fit_is_refused(void **state UNUSED)
{
    int missing = namespaces_find(segment, BYTES("session_test_missing"));
    assert_int_equal(fault_of_open(segment, 1, missing), FAULT_ODATABASE);
    make_database("session_test_bare");
    int bare = namespaces_find(segment, BYTES("session_test_bare"));
    assert_int_equal(fault_of_open(segment, 1, bare), FAULT_ODATABASE);
    drop_database("session_test_bare");
    tell(admin, "insert into migration (number, name) values (9999, 'of a later release')");
    assert_int_equal(fault_of_open(segment, 1, ns), FAULT_ODATABASE);
    tell(admin, "delete from migration where number = 9999");
    tell(admin, "create temporary table kept as table migration; delete from migration");
    assert_int_equal(fault_of_open(segment, 1, ns), FAULT_ODATABASE);
    tell(admin, "insert into migration select * from kept; drop table kept");
    assert_int_equal(fault_of_open(segment, 1, ns), FAULT_NONE);
    settings.database = (char *)(uintptr_t) "host=/nonexistent user=stampd";
    assert_int_equal(fault_of_open(segment, 1, ns), FAULT_XAWAY);
}

/* --- recovery process(index) --- */

static const uint32_t slots[] = {10, 20};
static struct gate reached;
static _Atomic int *shared; /* [0] backend of the worker */

/* A worker whose COMMIT lies unread in the socket of a backend that does not run; then it is killed. */
static void commit_to_nobody(void *argument)
{
    (void)argument;
    struct segment *own = open_segment("segment");
    struct pg *pg = NULL;
    uint64_t stamp[2];
    segment_join(own, 6);
    DEMAND(session_open(&settings, own, ns, &pg, &timeline) == FAULT_NONE);
    atomic_store(shared, pg_backend_pid(pg));
    slots_begin(own, ns);
    slots_mark(own, slots, 2, stamp);
    DEMAND(kill(pg_backend_pid(pg), SIGSTOP) == 0);
    gate_pass(&reached);
    (void)!pg_execute(pg, "insert into doc values ('A', 'late', 1, 1, 1, 0, 0)"); /* sent; nobody answers */
}

static void inherit(void *argument)
{
    (void)argument;
    struct segment *own = open_segment("segment");
    segment_join(own, 6);
    gate_pass(&reached);
    DEMAND(session_recover(&settings, own, never));
}

/* Leaves the worker's backend stopped, with a commit before it. */
static int kill_in_commit(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gate_open(&reached);
    pid_t worker = child_start(commit_to_nobody, NULL);
    gate_await(&reached);
    int backend = atomic_load(shared);
    clock_sleep_ms(100); /* the bytes leave; when they do not, nothing is wrong either */
    child_kill(worker);
    assert_true(slots_see(segment, 10).busy && slots_see(segment, 20).busy);
    munmap((void *)(uintptr_t)shared, 4096);
    return backend;
}

static bool is_marked(void)
{
    return slots_see(segment, 10).busy && slots_see(segment, 20).busy && slots_see(segment, 10).stamp == 0;
}

static void a_late_commit_is_waited_for(void **state UNUSED)
{
    int backend = kill_in_commit();
    pid_t recovery = child_start(inherit, NULL);
    gate_await(&reached);
    for (int i = 0; i < 30; i++) { /* as long as the backend is there, nothing is repaired */
        clock_sleep_ms(10);
        assert_true(is_marked());
        assert_int_equal(waitpid(recovery, NULL, WNOHANG), 0);
    }
    assert_int_equal(kill(backend, SIGCONT), 0);
    child_expect(recovery);
    assert_false(lives(admin, backend));
    int64_t rows = ask(admin, "select count(*) from doc");
    assert_false(slots_see(segment, 10).busy || slots_see(segment, 20).busy);
    assert_int_equal(slots_see(segment, 10).stamp, 1);
    assert_int_equal(slots_see(segment, 20).stamp, 1);
    assert_int_equal(processes_namespace(segment, 6), -1);
    clock_sleep_ms(100);
    assert_int_equal(ask(admin, "select count(*) from doc"), rows);
    gate_close(&reached);
}

static void an_recovery_that_is_killed_is_followed_by_another(void **state UNUSED)
{
    int backend = kill_in_commit();
    for (int i = 0; i < 3; i++) {
        pid_t recovery = child_start(inherit, NULL);
        gate_await(&reached);
        clock_sleep_ms(20 * i);
        child_kill(recovery);
        assert_true(is_marked());
    }
    struct pg *left = NULL; /* the session of a recovery process that died holding the lock */
    assert_int_equal(kill(backend, SIGCONT), 0);
    left = open_as(segment, 6);
    int former = pg_backend_pid(left);
    pid_t recovery = child_start(inherit, NULL);
    gate_await(&reached);
    child_expect(recovery);
    assert_false(lives(admin, former));
    assert_false(slots_see(segment, 10).busy);
    assert_int_equal(processes_namespace(segment, 6), -1);
    pg_close(left);
    gate_close(&reached);
}

static void mark_as(int index, int where)
{
    uint64_t stamp[2];
    segment_join(segment, index);
    slots_begin(segment, where);
    slots_mark(segment, slots, 2, stamp);
}

static void an_recovery_needs_neither_schema_nor_solitude(void **state UNUSED)
{
    assert_true(
        session_recover(&settings, (segment_join(segment, 2), segment), at_once)); /* nothing in flight */
    make_database("session_test_bare");
    mark_as(2, namespaces_find(segment, BYTES("session_test_bare")));
    assert_true(session_recover(&settings, segment, never));
    assert_false(slots_see(segment, 10).busy);
    drop_database("session_test_bare");
    mark_as(3, namespaces_find(segment, BYTES("session_test_bare"))); /* gone: nobody can commit there */
    assert_true(session_recover(&settings, segment, never));
    assert_int_equal(slots_see(segment, 10).stamp, 2);
    struct segment *twin = open_segment("twin");
    assert_int_equal(namespaces_find(twin, bytes_of(database)), ns);
    struct pg *pg = open_as(twin, 1);
    mark_as(4, ns);
    assert_true(session_recover(&settings, segment, never));
    assert_true(pg_is_alive(pg));
    pg_close(pg);
    segment_close(twin);
}

static void an_recovery_without_server_gives_up_when_asked(void **state UNUSED)
{
    mark_as(2, ns);
    settings.database = (char *)(uintptr_t) "host=/nonexistent user=stampd";
    assert_false(session_recover(&settings, segment, at_once));
    assert_true(is_marked());
    assert_int_equal(processes_namespace(segment, 2), ns);
    settings.database = workers_conninfo;
    assert_true(session_recover(&settings, segment, never));
}

static void pauses_grow_to_some_seconds(void **state UNUSED)
{
    for (int i = 0; i < 100; i++) {
        assert_in_range(session_pause_ms(1), 25, 50);
        assert_in_range(session_pause_ms(3), 100, 200);
        assert_in_range(session_pause_ms(1000000), 1000, 2000);
    }
}

/* --- the relay --- */

static void run_relay(void *argument)
{
    (void)argument;
    relay_run(&settings, segment);
}

static uint64_t stamp_of(int where, const char *id)
{
    return slots_see(segment, slots_index(segment, slots_hash(segment, where, BYTES("A"), bytes_of(id))))
        .stamp;
}

static uint64_t stamp_beside(uint32_t away, const char *one, const char *two)
{
    uint32_t slot = away;
    while (slot == slots_index(segment, slots_hash(segment, ns, BYTES("A"), bytes_of(one))) ||
           slot == slots_index(segment, slots_hash(segment, ns, BYTES("A"), bytes_of(two))))
        slot++;
    return slots_see(segment, slot).stamp;
}

static int64_t listening(void)
{
    return ask(admin, "select coalesce(max(pid), 0) from pg_stat_activity where datname = current_database()"
                      " and application_name = 'stampd relay' and state = 'idle'");
}

static void the_relay_hears_what_workers_did_not_write(void **state UNUSED)
{
    pid_t relay = child_start(run_relay, NULL);
    AWAIT(stamp_of(ns, "one") == 1); /* connected: all stamps moved */
    struct pg *worker = open_as(segment, 1);
    tell(worker, "insert into doc values ('A', 'two', 1, 1, 1, 0, 0)");
    tell(admin, "insert into doc values ('A', 'one', 1, 1, 1, 0, 0)");
    AWAIT(stamp_of(ns, "one") == 2);
    assert_int_equal(stamp_of(ns, "two"), 1); /* committed before, and not told */
    assert_int_equal(stamp_beside(0, "one", "two"), 1);
    tell(admin, "update doc set version = version + 1 where id = 'two'");
    AWAIT(stamp_of(ns, "two") == 2);
    tell(admin, "notify stampd, 'A.'");
    AWAIT(stamp_of(ns, "two") == 3 && stamp_of(ns, "one") == 3 && stamp_beside(0, "one", "two") == 2);
    tell(admin, "notify stampd");
    AWAIT(stamp_beside(0, "one", "two") == 3);

    int64_t backend = listening(), next; /* its connection is ended: what is changed meanwhile counts too */
    assert_true(backend > 0);
    tell(admin, "select pg_terminate_backend(%lld)", (long long)backend);
    AWAIT((next = listening()) > 0 && next != backend);
    AWAIT(stamp_beside(0, "one", "two") >= 4); /* once for each connection: another loss moves them again */
    uint64_t before = stamp_of(ns, "one");
    tell(admin, "delete from doc where id = 'one'");
    AWAIT(stamp_of(ns, "one") > before);

    make_database("session_test_next"); /* a namespace that comes later */
    struct pg *next_admin = connect_admin("session_test_next");
    migrate(next_admin);
    before = stamp_beside(0, "one", "two");
    int coming = namespaces_find(segment, BYTES("session_test_next"));
    AWAIT(stamp_beside(0, "one", "two") > before);
    before = stamp_of(coming, "x.y");
    tell(next_admin, "notify stampd, 'A.x.y'"); /* dots belong to the id */
    AWAIT(stamp_of(coming, "x.y") > before);
    assert_int_equal(kill(relay, SIGTERM), 0);
    child_expect(relay);
    pg_close(next_admin);
    pg_close(worker);
    drop_database("session_test_next");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_house, close_house)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_is_as_the_statements_need_it),
        TEST(the_former_session_of_an_index_is_ended),
        TEST(one_that_does_not_end_is_waited_for_in_bounds),
        TEST(a_new_generation_ends_the_former),
        TEST(another_installation_is_refused),
        TEST(two_installations_never_serve_together),
        TEST(a_database_that_does_not_fit_is_refused),
        TEST(a_late_commit_is_waited_for),
        TEST(an_recovery_that_is_killed_is_followed_by_another),
        TEST(an_recovery_needs_neither_schema_nor_solitude),
        TEST(an_recovery_without_server_gives_up_when_asked),
        TEST(pauses_grow_to_some_seconds),
        TEST(the_relay_hears_what_workers_did_not_write),
    };
    const char *server = getenv("STAMPD_TEST_CONNINFO");
    if (!server) {
        fprintf(stderr, "STAMPD_TEST_CONNINFO is not set\n");
        return 77;
    }
    log_open("session_test", getenv("STAMPD_TEST_VERBOSE") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, false,
             LOG_FORMAT_TEXT);
    snprintf(database, sizeof database, "session_test_%d", (int)getpid());
    snprintf(workers_conninfo, sizeof workers_conninfo, "%s user=stampd", server);
    settings = (struct settings){.live = SETTING_ON,
                                 .queue_socket = queue_off,
                                 .queue_remotes = no_remotes,
                                 .socket_group = no_group,
                                 .connect_timeout_s = 20,
                                 .statement_timeout_ms = 5000,
                                 .lock_timeout_ms = 1000,
                                 .limit_operation_s = 60};
    make_database(database);
    admin = connect_admin(database);
    migrate(admin);
    pg_close(admin);
    int failed = cmocka_run_group_tests_name("session", tests, NULL, NULL);
    drop_database(database);
    return failed ? 1 : 0;
}
