/* edge/pg/pg on a real PostgreSQL: connecting, waits, pipelines and their verdicts, notifications. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "edge/pg/pg_pipeline.h"

enum { SHORT_MS = 1000, LONG_MS = 60000 }; /* of a statement; a machine may be busy */

static struct scratch scratch;
static struct arena *arena;
static struct pg *pg;

static struct pg_options options_for(const char *conninfo, const char *database)
{
    return (struct pg_options){
        .conninfo = conninfo,
        .database = database,
        .role_settings = "-c search_path=stampd",
        .connect_timeout_s = 5,
        .statement_timeout_ms = LONG_MS,
        .lock_timeout_ms = LONG_MS,
    };
}

static int open_for(int64_t statement_timeout_ms)
{
    arena = arena_create("test");
    struct pg_options options = options_for(scratch.conninfo, scratch.database);
    options.statement_timeout_ms = statement_timeout_ms;
    return pg_open(&options, &pg);
}

static int open_all(void **state UNUSED)
{
    return open_for(LONG_MS);
}

static int open_impatiently(void **state UNUSED)
{
    return open_for(SHORT_MS);
}

static int close_all(void **state UNUSED)
{
    pg_close(pg);
    arena_destroy(arena);
    return 0;
}

/* Prepares and runs one statement. */
static struct pg_result *query(const char *sql, struct pg_params *params)
{
    struct pg_statement statement = {.name = "", .sql = sql, .parameters = params->count};
    struct pg_result *result;
    assert_int_equal(pg_prepare(pg, &statement, 1), FAULT_NONE);
    assert_int_equal(pg_run(pg, &statement, params, &result), FAULT_NONE);
    return result;
}

static void end_backend(void)
{
    char sql[96];
    snprintf(sql, sizeof sql, "select pg_terminate_backend(%d, 5000)::int", pg_backend_pid(pg));
    assert_int_equal(scratch_number(scratch.admin, sql), 1);
}

static void opening_tells_what_is_wrong(void **state UNUSED)
{
    struct pg *other;
    static const char *const missing[] = {"no such", "dbname=postgres", "postgresql://localhost/postgres",
                                          "a'b\\c", "x options='-c jit=on'"};
    for (size_t i = 0; i < COUNT_OF(missing); i++) { /* names, never connection strings */
        struct pg_options options = options_for(scratch.conninfo, missing[i]);
        assert_int_equal(pg_open(&options, &other), FAULT_ODATABASE);
        assert_null(other);
    }
    struct pg_options options = options_for("host=/nowhere/at/all", scratch.database);
    assert_int_equal(pg_open(&options, &other), FAULT_XAWAY);
    options = options_for(scratch.conninfo, "template0"); /* refuses connections: not missing */
    assert_int_equal(pg_open(&options, &other), FAULT_XAWAY);
}

static void a_database_of_another_encoding_is_refused(void **state UNUSED)
{
    char sql[256], name[80];
    snprintf(name, sizeof name, "%s_ascii", scratch.database);
    snprintf(sql, sizeof sql,
             "create database \"%s\" template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'",
             name);
    scratch_run(scratch.admin, sql);
    struct pg *other;
    struct pg_options options = options_for(scratch.conninfo, name);
    enum fault fault = pg_open(&options, &other);
    snprintf(sql, sizeof sql, "drop database \"%s\"", name);
    scratch_run(scratch.admin, sql);
    assert_int_equal(fault, FAULT_ODATABASE);
}

static void values_come_back_as_they_went(void **state UNUSED)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_i64(&params, INT64_MIN);
    pg_params_add_i32(&params, -7);
    pg_params_add_text(&params, BYTES("h\xc3\xa9"));
    pg_params_add_text(&params, NO_BYTES);
    pg_params_add_i64_array(&params, (const int64_t[]){INT64_MAX, -1}, 2);
    pg_params_add_i32_array(&params, (const int32_t[]){3, INT32_MIN}, 2);
    const struct bytes texts[] = {BYTES("a,b"), NO_BYTES, BYTES("")};
    pg_params_add_text_array(&params, texts, 3);
    pg_params_add_bool_array(&params, (const bool[]){true, false}, 2);
    pg_params_add_text_array(&params, NULL, 0);
    struct pg_result *result = query("select $1::bigint, $2::int, $3::text, $4::text, ($5::bigint[])::text,"
                                     " ($6::int[])::text, ($7::text[])::text, ($8::bool[])::text,"
                                     " cardinality($9::text[]), true, 2::smallint",
                                     &params);
    assert_int_equal(pg_rows(result), 1);
    assert_true(pg_get_i64(result, 0, 0) == INT64_MIN);
    assert_int_equal(pg_get_i64(result, 0, 1), -7);
    assert_true(bytes_equal(pg_get_text(result, 0, 2), BYTES("h\xc3\xa9")));
    assert_true(pg_is_null(result, 0, 3) && !pg_get_text(result, 0, 3).data);
    static const char *const arrays[] = {"{9223372036854775807,-1}", "{3,-2147483648}", "{\"a,b\",NULL,\"\"}",
                                         "{t,f}"};
    for (int i = 0; i < 4; i++)
        assert_true(bytes_equal(pg_get_text(result, 0, 4 + i), bytes_of(arrays[i])));
    assert_int_equal(pg_get_i64(result, 0, 8), 0);
    assert_true(pg_get_bool(result, 0, 9));
    assert_int_equal(pg_get_i64(result, 0, 10), 2);
    assert_true(pg_is_usable(pg));
}

static void large_values_go_through(void **state UNUSED)
{
    enum { SIZE = 20 << 20 };
    char *large = arena_alloc(arena, SIZE);
    memset(large, 'x', SIZE);
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, (struct bytes){large, SIZE});
    struct pg_result *result = query("select $1::text || 'y', length($1)", &params);
    assert_int_equal(pg_get_text(result, 0, 0).size, SIZE + 1);
    assert_int_equal(pg_get_i64(result, 0, 1), SIZE);
}

static void an_error_leaves_the_connection_usable(void **state UNUSED)
{
    assert_int_equal(pg_execute(pg, "select 1/0"), FAULT_XDATABASE);
    assert_string_equal(pg_sqlstate(pg), "22012");
    assert_true(pg_is_usable(pg));
    assert_int_equal(pg_execute(pg, "select pg_sleep(60)"), FAULT_XTIME);
    assert_string_equal(pg_sqlstate(pg), "57014");
    assert_true(pg_is_usable(pg));
    assert_int_equal(pg_execute(pg, "begin"), FAULT_NONE);
    assert_false(pg_is_usable(pg));
    assert_int_equal(pg_execute(pg, "rollback"), FAULT_NONE);
    assert_true(pg_is_usable(pg));
    assert_string_equal(pg_sqlstate(pg), "");
}

static void a_dead_backend_is_noticed(void **state UNUSED)
{
    assert_true(pg_is_alive(pg));
    end_backend();
    assert_true(pg_is_usable(pg)); /* nobody has looked */
    assert_false(pg_is_alive(pg));
    assert_false(pg_is_usable(pg));
    assert_int_equal(pg_execute(pg, "select 1"), FAULT_XAWAY);
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_XAWAY);
}

static void a_dead_backend_is_met_by_a_query(void **state UNUSED)
{
    end_backend();
    assert_int_equal(pg_execute(pg, "select 1"), FAULT_XAWAY);
    assert_false(pg_is_usable(pg));
}

/* --- pipelines --- */

enum { INSERT, COUNT, SLEEP, DIVIDE, STATEMENTS };
static const struct pg_statement pipelined[STATEMENTS] = {
    [INSERT] = {"insert", "insert into late (n) values ($1)", 1},
    [COUNT] = {"count", "select count(*) from late", 0},
    [SLEEP] = {"sleep", "select pg_sleep($1::int / 1000.0)", 1},
    [DIVIDE] = {"divide", "select 1 / $1::int", 1},
};

static void prepare_pipelined(void)
{
    assert_int_equal(
        pg_execute(pg,
                   "set client_min_messages = warning; drop table if exists late;"
                   " create table late (n int constraint late_twice unique deferrable initially deferred)"),
        FAULT_NONE);
    assert_int_equal(pg_prepare(pg, pipelined, STATEMENTS), FAULT_NONE);
}

static void add(int which, int32_t number)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    if (pipelined[which].parameters)
        pg_params_add_i32(&params, number);
    pg_pipeline_add(pg, &pipelined[which], &params);
}

static int64_t count_late(void)
{
    struct pg_params params;
    struct pg_result *result;
    pg_params_start(&params, arena);
    assert_int_equal(pg_run(pg, &pipelined[COUNT], &params, &result), FAULT_NONE);
    return pg_get_i64(result, 0, 0);
}

static void a_pipeline_commits_at_its_sync(void **state UNUSED)
{
    prepare_pipelined();
    struct pg_verdict verdict;
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(COUNT, 0);
    add(INSERT, 2);
    add(COUNT, 0);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_COMMITTED);
    assert_int_equal(verdict.fault, FAULT_NONE);
    assert_int_equal(pg_get_i64(verdict.results[1], 0, 0), 1);
    assert_int_equal(pg_get_i64(verdict.results[3], 0, 0), 2);
    assert_true(pg_is_usable(pg));
    assert_int_equal(count_late(), 2);
}

static void a_refused_pipeline_leaves_nothing(void **state UNUSED)
{
    prepare_pipelined();
    struct pg_verdict verdict;
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(DIVIDE, 0);
    add(INSERT, 2);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_REFUSED);
    assert_int_equal(verdict.failed, 1);
    assert_string_equal(verdict.sqlstate, "22012");
    assert_int_equal(verdict.fault, FAULT_XDATABASE);
    assert_null(verdict.results);
    assert_true(pg_is_usable(pg));
    assert_int_equal(count_late(), 0);
}

/* Each statement succeeds; the commit itself fails. */
static void a_refusal_at_the_sync_is_no_commit(void **state UNUSED)
{
    prepare_pipelined();
    struct pg_verdict verdict;
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(INSERT, 1);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_REFUSED);
    assert_string_equal(verdict.sqlstate, "23505");
    assert_string_equal(verdict.constraint, "late_twice");
    assert_non_null(verdict.detail);
    assert_int_equal(count_late(), 0);
}

static void a_silent_server_leaves_the_outcome_unknown(void **state UNUSED)
{
    prepare_pipelined();
    assert_int_equal(pg_execute(pg, "set statement_timeout = 0"), FAULT_NONE);
    struct pg_verdict verdict;
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(SLEEP, 30000);
    pg_pipeline_run(pg, 200, &verdict); /* had it waited for the answer, the outcome would be known */
    assert_int_equal(verdict.outcome, PG_UNKNOWN);
    assert_int_equal(verdict.fault, FAULT_XTIME);
    assert_false(pg_is_usable(pg));
    end_backend();
}

/* Its answer may still come: another statement would take it for its own. */
static void a_silent_server_is_not_asked_again(void **state UNUSED)
{
    int backend = pg_backend_pid(pg);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(pg_execute(pg, "select 1"), FAULT_XTIME);
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_false(pg_is_usable(pg));
    assert_int_equal(pg_execute(pg, "select 2"), FAULT_XAWAY);
}

static void a_backend_lost_in_a_pipeline_leaves_the_outcome_unknown(void **state UNUSED)
{
    prepare_pipelined();
    struct pg_verdict verdict;
    end_backend();
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_UNKNOWN);
    assert_int_equal(verdict.fault, FAULT_XAWAY);
    assert_false(pg_is_usable(pg));
}

/* More than the socket's buffers hold, both ways: a client that only wrote would wait for ever. */
static void statements_are_prepared_when_they_are_used(void **state UNUSED)
{
    struct pg_verdict verdict;
    assert_int_equal(
        pg_execute(pg,
                   "set client_min_messages = warning; drop table if exists late;"
                   " create table late (n int constraint late_twice unique deferrable initially deferred)"),
        FAULT_NONE);
    pg_prepare_on_use(pg, pipelined, STATEMENTS);

    /* What stands behind the statement that fails is not prepared, and the failure is that statement's. */
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(INSERT, 2);
    add(DIVIDE, 0);
    add(COUNT, 0);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_REFUSED);
    assert_int_equal(verdict.failed, 2);
    assert_int_equal(count_late(), 0);

    /* Results stand at the places of their statements, prepared in the same pipeline or before. */
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    add(SLEEP, 1);
    add(COUNT, 0);
    add(DIVIDE, 1);
    add(COUNT, 0);
    assert_int_equal(pg_pipeline_count(pg), 5);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_COMMITTED);
    assert_int_equal(pg_get_i64(verdict.results[2], 0, 0), 1);
    assert_int_equal(pg_get_i64(verdict.results[3], 0, 0), 1);
    assert_int_equal(pg_get_i64(verdict.results[4], 0, 0), 1);

    /* A refusal at the commit belongs to no statement. */
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    add(INSERT, 1);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_REFUSED);
    assert_int_equal(verdict.failed, 1);
    assert_int_equal(count_late(), 1);
}

/* A statement that cannot be prepared fails at its own place, and again when it is used again. */
static void a_statement_that_cannot_be_prepared_fails_in_its_pipeline(void **state UNUSED)
{
    static const struct pg_statement some[] = {{"right", "select 7", 0},
                                               {"wrong", "select * from nowhere", 0}};
    struct pg_params params;
    struct pg_result *result;
    struct pg_verdict verdict;
    pg_params_start(&params, arena);
    pg_prepare_on_use(pg, some, COUNT_OF(some));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
        pg_pipeline_add(pg, &some[0], &params);
        pg_pipeline_add(pg, &some[1], &params);
        pg_pipeline_run(pg, LONG_MS, &verdict);
        assert_int_equal(verdict.outcome, PG_REFUSED);
        assert_int_equal(verdict.failed, 1);
        assert_string_equal(verdict.sqlstate, "42P01");
        assert_int_equal(pg_run(pg, &some[1], &params, &result), FAULT_XDATABASE);
    }
    assert_int_equal(pg_run(pg, &some[0], &params, &result), FAULT_NONE);
    assert_int_equal(pg_get_i64(result, 0, 0), 7);
}

static void a_long_pipeline_does_not_block_itself(void **state UNUSED)
{
    enum { ROUNDS = 64, SIZE = 1 << 20 };
    static const struct pg_statement echo = {"echo", "select $1::text", 1};
    assert_int_equal(pg_execute(pg, "set statement_timeout = 0"), FAULT_NONE); /* of all 64 MB */
    assert_int_equal(pg_prepare(pg, &echo, 1), FAULT_NONE);
    char *large = arena_alloc(arena, SIZE);
    memset(large, 'x', SIZE);
    struct pg_params params;
    struct pg_verdict verdict;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, (struct bytes){large, SIZE});
    assert_int_equal(pg_pipeline_begin(pg, arena), FAULT_NONE);
    for (int i = 0; i < ROUNDS; i++)
        pg_pipeline_add(pg, &echo, &params);
    pg_pipeline_run(pg, LONG_MS, &verdict);
    assert_int_equal(verdict.outcome, PG_COMMITTED);
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(pg_get_text(verdict.results[i], 0, 0).size, SIZE);
}

static void preparing_tells_what_is_wrong(void **state UNUSED)
{
    static const struct pg_statement wrong[] = {{"right", "select 1", 0},
                                                {"wrong", "select * from nowhere", 0}};
    assert_int_equal(pg_prepare(pg, wrong, 2), FAULT_XDATABASE);
    assert_string_equal(pg_sqlstate(pg), "42P01");
    assert_true(pg_is_usable(pg));
}

static void notifications_come_unasked(void **state UNUSED)
{
    struct bytes channel, payload;
    assert_int_equal(pg_execute(pg, "listen stampd"), FAULT_NONE);
    assert_false(pg_next_notification(pg, arena, &channel, &payload));
    scratch_run(scratch.admin, "set stampd.worker = on; select stampd.put_item('A', 'unheard', 'I', '', '1');"
                               " reset stampd.worker; select stampd.put_item('A', 'heard', 'I', '', '1')");
    struct pollfd socket = {.fd = pg_socket(pg), .events = POLLIN};
    assert_int_equal(poll(&socket, 1, 60000), 1);
    assert_true(pg_next_notification(pg, arena, &channel, &payload));
    assert_true(bytes_equal(channel, BYTES("stampd")) && bytes_equal(payload, BYTES("A.heard")));
    assert_false(pg_next_notification(pg, arena, &channel, &payload));
    scratch_run(scratch.admin, "select stampd.delete_document('A', 'heard')");
    assert_int_equal(poll(&socket, 1, 60000), 1);
    assert_true(pg_next_notification(pg, arena, &channel, &payload));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening_tells_what_is_wrong, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_database_of_another_encoding_is_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(values_come_back_as_they_went, open_all, close_all),
        cmocka_unit_test_setup_teardown(large_values_go_through, open_all, close_all),
        cmocka_unit_test_setup_teardown(an_error_leaves_the_connection_usable, open_impatiently, close_all),
        cmocka_unit_test_setup_teardown(a_dead_backend_is_noticed, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_dead_backend_is_met_by_a_query, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_pipeline_commits_at_its_sync, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_refused_pipeline_leaves_nothing, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_refusal_at_the_sync_is_no_commit, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_silent_server_leaves_the_outcome_unknown, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_silent_server_is_not_asked_again, open_impatiently, close_all),
        cmocka_unit_test_setup_teardown(a_backend_lost_in_a_pipeline_leaves_the_outcome_unknown, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_long_pipeline_does_not_block_itself, open_all, close_all),
        cmocka_unit_test_setup_teardown(statements_are_prepared_when_they_are_used, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_statement_that_cannot_be_prepared_fails_in_its_pipeline, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(preparing_tells_what_is_wrong, open_all, close_all),
        cmocka_unit_test_setup_teardown(notifications_come_unasked, open_all, close_all),
    };
    char database[48];
    snprintf(database, sizeof database, "check_pg_%d", (int)getpid());
    scratch_open(&scratch, database, 1);
    int failed = cmocka_run_group_tests_name("pg on a server", tests, NULL, NULL);
    scratch_close(&scratch);
    return failed;
}
