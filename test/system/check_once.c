/* Answers kept under an Idempotency-Key on a real PostgreSQL: kept by the commit, found, refused to twins,
 * too old, purged; and how the statements are planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/document/stamp.h"
#include "segment/segment.h"
#include "segment/segment_open.h"
#include "store/statements.h"
#include "store/documents/store_commit.h"
#include "store/documents/store_idempotency.h"
#include "store/documents/store_load.h"
#include "store/store_private.h"
#include "scratch.h"

enum { LOCK_TIMEOUT_MS = 30000 };

static struct scratch scratch;
static struct arena *arena;
static struct store *store;

static int open_all(void **state UNUSED)
{
    scratch_run(scratch.admin, "truncate stampd.doc, stampd.item, stampd.idempotency");
    arena = arena_create("test");
    store = store_create(&scratch.settings, scratch.segment);
    return store_connect(store, scratch.ns);
}

static int close_all(void **state UNUSED)
{
    arena_destroy(arena);
    store_destroy(store);
    return 0;
}

static void release(void *document)
{
    document_release(document);
}

static struct idempotency idempotency_of(const char *key, struct bytes answer)
{
    return (struct idempotency){.account = BYTES("zoe"),
                                .key = bytes_of(key),
                                .digest = BYTES("d"),
                                .mime = BYTES("text/plain"),
                                .answer = answer,
                                .version = 7,
                                .now = stamp_now()};
}

/* Commits an item of the document `id` (NULL: nothing at all) together with the answer. */
static enum commit_outcome commit(const char *id, const struct idempotency *idempotency, enum fault *fault_r)
{
    struct commit_document document = {0};
    struct commit commit = {
        .version = stamp_now(), .documents = &document, .count = id ? 1 : 0, .idempotency = idempotency};
    if (id) {
        struct load load = {.class = BYTES("Doc"), .id = bytes_of(id)};
        assert_int_equal(store_load(store, scratch.ns, arena, &load), FAULT_NONE);
        arena_defer(arena, release, load.document);
        struct draft *draft = draft_open(arena, load.document);
        draft_set_item(draft, BYTES("Item"), BYTES(""), false,
                       idempotency->answer.size ? BYTES("1") : BYTES("2"));
        document = (struct commit_document){.base = load.document, .act = draft_act(draft)};
        draft_seal(draft, commit.version, 0, &document.rows);
    }
    return store_commit(store, scratch.ns, arena, &commit, fault_r);
}

static void keep(const char *key)
{
    enum fault fault;
    struct idempotency idempotency = idempotency_of(key, BYTES("answer"));
    assert_int_equal(commit(NULL, &idempotency, &fault), COMMIT_DONE);
}

static bool find(const char *key, struct idempotency *idempotency)
{
    bool is_found;
    *idempotency = (struct idempotency){.account = BYTES("zoe"), .key = bytes_of(key), .now = stamp_now()};
    assert_int_equal(store_idempotency_find(store, scratch.ns, arena, idempotency, &is_found), FAULT_NONE);
    return is_found;
}

static int64_t count(const char *what)
{
    return scratch_number(scratch.admin, arena_printf(arena, "select count(*) from stampd.%s", what));
}

/* --- keeping and finding --- */

static void an_answer_is_kept_by_its_commit(void **state UNUSED)
{
    const struct bytes answer = BYTES("any \0 bytes \xff");
    struct idempotency idempotency = idempotency_of("k", answer), found;
    enum fault fault;
    assert_false(find("k", &found));
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE);
    assert_int_equal(count("doc"), 1);
    assert_true(find("k", &found));
    assert_true(bytes_equal(found.answer, answer));
    assert_true(bytes_equal(found.mime, BYTES("text/plain")) && bytes_equal(found.digest, BYTES("d")));
    assert_true(found.version == 7);
    assert_false(find("K", &found));
    idempotency.account = BYTES("");
    idempotency.answer = BYTES("");
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE); /* another's key of that name */
    assert_true(find("k", &found));
    assert_true(bytes_equal(found.answer, answer));
}

static void a_second_commit_is_refused_whole(void **state UNUSED)
{
    struct idempotency idempotency = idempotency_of("k", BYTES("1"));
    enum fault fault;
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE);
    assert_int_equal(commit("b", &idempotency, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    assert_int_equal(count("doc"), 1);
    idempotency.key = BYTES("l"); /* and a refused commit keeps no answer */
    scratch_run(scratch.admin, "insert into stampd.doc values ('Doc', 'b', 1, 0, 0, 0, 0)");
    struct commit_document document = {.act = DRAFT_READ};
    struct load load = {.class = BYTES("Doc"), .id = BYTES("b")};
    assert_int_equal(store_load(store, scratch.ns, arena, &load), FAULT_NONE);
    arena_defer(arena, release, load.document);
    scratch_run(scratch.admin, "update stampd.doc set version = 2 where id = 'b'");
    document.base = load.document;
    struct commit merely_read = {
        .version = stamp_now(), .documents = &document, .count = 1, .idempotency = &idempotency};
    assert_int_equal(store_commit(store, scratch.ns, arena, &merely_read, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    assert_true(document.moved);
    assert_int_equal(count("idempotency"), 1);
}

/* --- twins --- */

/* Another session keeps an answer under the key k, holds its transaction open until somebody waits for it,
 * and ends it.  Returns when the answer stands there. */
static pid_t start_twin(const char *end)
{
    static const char waiters[] =
        "select count(*) from pg_locks w join pg_locks r using (pid) where w.locktype = 'transactionid'"
        " and not w.granted and r.relation = 'stampd.idempotency'::regclass"
        " and r.database = (select oid from pg_database where datname = current_database())";
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid) {
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return pid;
    }
    struct pg *pg = scratch_connect(&scratch);
    scratch_run(
        pg,
        "begin; insert into stampd.idempotency values ('zoe', 'k', 'd', 'm', 'twin', 9, stampd.stamp_now())");
    if (write(ready[1], "r", 1) != 1)
        _exit(1);
    for (int i = 0; i < 3000 && !scratch_number(pg, waiters); i++)
        clock_sleep_ms(10);
    while (!end)
        clock_sleep_ms(10);
    scratch_run(pg, end);
    pg_close(pg);
    _exit(0);
}

static void end_twin(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_twin_is_waited_for(void **state UNUSED)
{
    struct idempotency idempotency = idempotency_of("k", BYTES("own")), found;
    enum fault fault;
    pid_t twin = start_twin("commit");
    assert_false(find("k", &found));
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    end_twin(twin);
    assert_int_equal(count("doc"), 0);
    assert_true(find("k", &found));
    assert_true(bytes_equal(found.answer, BYTES("twin")));
    scratch_run(scratch.admin, "truncate stampd.idempotency");
    twin = start_twin("rollback");
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE);
    end_twin(twin);
    assert_true(find("k", &found));
    assert_true(bytes_equal(found.answer, BYTES("own")));
}

static void a_twin_is_not_waited_for_without_end(void **state UNUSED)
{
    struct idempotency idempotency = idempotency_of("k", BYTES("own"));
    enum fault fault;
    scratch.settings.lock_timeout_ms = 200;
    assert_int_equal(store_reconnect(store, scratch.ns, 5000), FAULT_NONE);
    scratch.settings.lock_timeout_ms = LOCK_TIMEOUT_MS;
    pid_t twin = start_twin(NULL);
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_REFUSED);
    assert_int_equal(fault, FAULT_STALE);
    kill(twin, SIGKILL);
    waitpid(twin, NULL, 0);
    /* Its backend may end later than after the 200 ms of this session. */
    assert_int_equal(store_reconnect(store, scratch.ns, 5000), FAULT_NONE);
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE); /* the key is free */
}

/* --- age --- */

static void grow_old(const char *where)
{
    scratch_run(scratch.admin,
                arena_printf(arena,
                             "update stampd.idempotency set at = stampd.stamp_of(now() - %lld *"
                             " interval '1 second') where %s",
                             (long long)store_idempotency_purge_s(&scratch.settings) + 1, where));
}

static void what_is_too_old_is_of_no_account(void **state UNUSED)
{
    struct idempotency found, idempotency = idempotency_of("k", BYTES("new"));
    enum fault fault;
    keep("k");
    keep("young");
    grow_old("key = 'k'");
    assert_false(find("k", &found));
    assert_true(find("young", &found));
    assert_int_equal(commit("a", &idempotency, &fault), COMMIT_DONE); /* replaced, and not purged itself */
    assert_true(find("k", &found));
    assert_true(bytes_equal(found.answer, BYTES("new")));
    assert_int_equal(count("idempotency"), 2);
}

static void what_is_too_old_goes_by_and_by(void **state UNUSED)
{
    for (int i = 0; i < 20; i++)
        keep(arena_printf(arena, "old%d", i));
    keep("young");
    grow_old("key like 'old%'");
    scratch_run(scratch.admin, "begin; select from stampd.idempotency where key = 'old3' for update");
    keep("next0"); /* waits for nobody */
    scratch_run(scratch.admin, "rollback");
    assert_int_equal(count("idempotency where key like 'old%'"), 16);
    for (int i = 1; i < 5; i++)
        keep(arena_printf(arena, "next%d", i));
    assert_int_equal(count("idempotency where key like 'old%'"), 0);
    assert_int_equal(count("idempotency"), 6);
}

static void administrators_purge_by_batches(void **state UNUSED)
{
    for (int i = 0; i < 5; i++)
        keep(arena_printf(arena, "old%d", i));
    grow_old("true");
    keep("young"); /* takes four of them along */
    keep("younger");
    for (int i = 0; i < 5; i++)
        scratch_run(
            scratch.admin,
            arena_printf(arena, "insert into stampd.idempotency values ('', '%d', '', '', '', 0, 5)", i));
    assert_int_equal(scratch_number(scratch.admin, "select stampd.purge_idempotency(5)"), 0);
    assert_int_equal(scratch_number(scratch.admin, "select stampd.purge_idempotency(6, 3)"), 3);
    assert_int_equal(scratch_number(scratch.admin, "select stampd.purge_idempotency(6, 3)"), 2);
    assert_int_equal(scratch_number(scratch.admin, "select stampd.purge_idempotency(6)"), 0);
    assert_int_equal(count("idempotency"), 2);
}

/* --- plans --- */

/* As the sessions of workers plan: the generic plan, made while the table is empty. */
static void assert_plan(enum statement statement, const char *arguments, const char *expected)
{
    const struct pg_statement *told = &statements[statement];
    struct pg *pg = scratch_connect(&scratch);
    scratch_run(
        pg, "set search_path = stampd; set plan_cache_mode = force_generic_plan; set enable_seqscan = off;"
            " set enable_hashjoin = off; set enable_mergejoin = off; set jit = off");
    scratch_run(pg, arena_printf(arena, "prepare %s as %s", told->name, told->sql));
    scratch_run(
        pg, arena_printf(arena,
                         "create temp table plan (line text); do $$ declare line text; begin for line in"
                         " execute 'explain execute %s(%s)' loop insert into plan values (line); end loop;"
                         " end $$",
                         told->name, arguments));
    if (!scratch_number(
            pg, arena_printf(arena, "select count(*) from plan where line like '%%%s%%'", expected)) ||
        scratch_number(pg, "select count(*) from plan where line like '%Seq Scan%'"))
        fail_msg("%s is not planned with %s", told->name, expected);
    pg_close(pg);
}

static void plans_are_index_scans(void **state UNUSED)
{
    assert_plan(STATEMENT_IDEMPOTENCY_FIND, "'''', '''', 1", "idempotency_pkey");
    assert_plan(STATEMENT_IDEMPOTENCY_PURGE, "1", "idempotency_at");
    assert_plan(STATEMENT_IDEMPOTENCY_PURGE, "1", "Tid Scan on idempotency");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_is_kept_by_its_commit),
        TEST(a_second_commit_is_refused_whole),
        TEST(a_twin_is_waited_for),
        TEST(a_twin_is_not_waited_for_without_end),
        TEST(what_is_too_old_is_of_no_account),
        TEST(what_is_too_old_goes_by_and_by),
        TEST(administrators_purge_by_batches),
        TEST(plans_are_index_scans),
    };
    char database[48];
    snprintf(database, sizeof database, "once_check_%d", (int)getpid());
    scratch_open(&scratch, database, 1);
    scratch.settings.lock_timeout_ms = LOCK_TIMEOUT_MS;
    segment_join(scratch.segment, scratch.indexes[0]);
    int failed = cmocka_run_group_tests_name("once on a server", tests, NULL, NULL);
    scratch_close(&scratch);
    return failed;
}
