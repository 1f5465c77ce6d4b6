/* operation: the cycle, its retries, rights, and the generic operations, against rows in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/document/stamp.h"
#include "fake_store.h"
#include "segment/namespaces.h"
#include "segment/slots.h"
#include "store/documents/store_commit.h"
#include "model/namespace.h"
#include "operation/reply.h"
#include "records/records.h"
#include "worker_context_world.h"

static char no_key[] = "";

static int start(void **state UNUSED)
{
    static const struct settings limits = {.limit_answer_bytes = 4 << 20,
                                           .limit_items = 100000,
                                           .limit_tombstones = 100000,
                                           .limit_content_bytes = 100,
                                           .limit_document_bytes = 575,
                                           .limit_documents = 32,
                                           .limit_name_bytes = 255,
                                           .limit_syncs = 50};
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"open\"}");
    return 0;
}

/* Runs a call; `text` is a JSON object with param, syncs, admin, build. */
static enum fault run(const char *operation, const char *text)
{
    const struct json *arguments = parse(text);
    const struct json *admin = json_member(arguments, "admin"), *claim = json_member(arguments, "build");
    struct call call = {.operation = bytes_of(operation),
                        .param = json_member(arguments, "param"),
                        .syncs = json_member(arguments, "syncs"),
                        .admin = admin ? admin->value : NO_BYTES,
                        .build = claim ? claim->value : NO_BYTES};
    reply = (struct reply){.body = &body};
    return run_in_world(&call);
}

/* The answer with every stamp above 9 replaced by V, so that it can be compared. */
static const char *masked(void)
{
    static char text[4096];
    size_t n = 0;
    for (const char *p = body.data; *p && n < sizeof text - 1; p++) {
        size_t digits = strspn(p, "0123456789");
        if (digits > 9) {
            text[n++] = 'V';
            p += digits - 1;
        } else {
            text[n++] = *p;
        }
    }
    text[n] = '\0';
    return text;
}

static int64_t answered_version(void)
{
    return strtoll(strstr(body.data, "\"v\":") + 4, NULL, 10);
}

static void put_then_get(void **state UNUSED)
{
    assert_int_equal(
        run("put",
            "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":{ \"n\" : "
            "1e400 }},{\"c\":\"Line\",\"k\":\"x\",\"s\":\"raw \\\"text\\\"\"}]}]}}"),
        FAULT_NONE);
    assert_string_equal(masked(), "{\"out\":{\"v\":V,\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":V}]}}");
    int64_t version = answered_version();
    assert_int_equal(
        run("get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\"},{\"c\":\"Doc\",\"id\":\"no\"}]}}"),
        FAULT_NONE);
    assert_string_equal(
        masked(), "{\"out\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":V,\"ct\":V,\"dt\":V,\"items\":["
                  "{\"c\":\"Line\",\"k\":\"x\",\"v\":V,\"s\":\"raw \\\"text\\\"\"},"
                  "{\"c\":\"Sta\",\"v\":V,\"j\":{ \"n\" : 1e400 }}]},"
                  "{\"c\":\"Doc\",\"id\":\"no\",\"v\":0,\"ct\":0,\"dt\":0,\"items\":[]}]}}");
    /* the same again is no change, and says the version that is there */
    int commits = fake.commits;
    assert_int_equal(
        run("put",
            "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":{ \"n\" : "
            "1e400 }}]}]}}"),
        FAULT_NONE);
    assert_int_equal(answered_version(), version);
    assert_int_equal(fake.commits, commits);
}

static void versions_expected(void **state UNUSED)
{
    assert_int_equal(run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":5}]}}"),
                     FAULT_AVERSION);
    assert_string_equal(reply.arguments[0], "Doc");
    assert_string_equal(reply.arguments[1], "a");
    assert_string_equal(reply.arguments[2], "0");
    assert_int_equal(reply.phase, PHASE_WORK);
    assert_int_equal(run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":0}]}}"),
                     FAULT_NONE);
    int64_t version = answered_version();
    assert_int_equal(run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":0}]}}"),
                     FAULT_AVERSION);
    char text[200];
    snprintf(text, sizeof text,
             "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":%lld,\"delete\":true}]}}",
             (long long)version);
    assert_int_equal(run("put", text), FAULT_NONE);
    assert_true(fake_version("Doc", "a") > version);
    assert_int_equal(
        run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":0,\"items\":[]}]}}"),
        FAULT_NONE);
}

static void a_sync_follows_the_operation(void **state UNUSED)
{
    assert_int_equal(
        run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":1}]}]},"
                   "\"syncs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0},{\"c\":\"Doc\",\"id\":"
                   "\"b\"}]}"),
        FAULT_NONE);
    assert_string_equal(masked(), "{\"out\":{\"v\":V,\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":V}]},"
                                  "\"syncs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":V,\"ct\":V,\"dt\":V,"
                                  "\"items\":[{\"c\":\"Sta\",\"v\":V,\"j\":1}],\"dels\":[]},"
                                  "{\"c\":\"Doc\",\"id\":\"b\",\"v\":0,\"ct\":0,\"dt\":0}]}");
    int64_t version = fake_version("Doc", "a");
    char text[300];
    snprintf(text, sizeof text,
             "{\"syncs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":%lld,\"ct\":%lld,\"dt\":%lld}]}",
             (long long)version, (long long)version, (long long)version);
    assert_int_equal(run("sync", text), FAULT_NONE);
    assert_string_equal(
        masked(),
        "{\"syncs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":V,\"ct\":V,\"dt\":V,\"items\":[],\"dels\":[]}]}");
    assert_int_equal(run("sync", "{}"), FAULT_NONE);
    assert_string_equal(body.data, "{}");
    /* malformed syncs are refused before the operation, which stores nothing */
    int commits = fake.commits;
    assert_int_equal(
        run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"n\"}]},\"syncs\":[{\"c\":\"Doc\"}]}"),
        FAULT_AARG);
    assert_int_equal(reply.phase, PHASE_BEFORE);
    assert_int_equal(fake.commits, commits);
}

static void rights_are_denied_by_default(void **state UNUSED)
{
    static const char get[] = "{\"param\":{\"docs\":[]}}", put[] = "{\"param\":{\"docs\":[]}}";
    assert_int_equal(run("put", put), FAULT_NONE);
    configure("{\"access\":\"read\"}");
    assert_int_equal(run("get", get), FAULT_NONE);
    assert_int_equal(run("put", put), FAULT_SCLOSED);
    configure("{\"access\":\"closed\"}");
    assert_int_equal(run("get", get), FAULT_SCLOSED);
    assert_int_equal(run("get", "{\"admin\":\"open sesame\",\"param\":{\"docs\":[]}}"), FAULT_NONE);
    assert_int_equal(run("get", "{\"admin\":\"open sesam\",\"param\":{\"docs\":[]}}"), FAULT_SKEY);
    configure("not json"); /* of no database: it is no namespace, not for the administrator either */
    assert_int_equal(run("get", get), FAULT_NNAMESPACE);
    configure(NULL);
    assert_int_equal(run("get", get), FAULT_NNAMESPACE);
    assert_int_equal(run("get", "{\"admin\":\"open sesame\",\"param\":{\"docs\":[]}}"), FAULT_NNAMESPACE);
    configure("{\"access\":\"open\",\"state\":2,\"message\":\"back at noon\"}");
    assert_int_equal(run("get", get), FAULT_OOFF);
    assert_string_equal(reply.detail, "back at noon");
    assert_int_equal(run("get", "{\"admin\":\"open sesame\",\"param\":{\"docs\":[]}}"), FAULT_NONE);
    settings.admin_key_sha256 = no_key;
    assert_int_equal(run("get", "{\"admin\":\"open sesame\",\"param\":{\"docs\":[]}}"), FAULT_SKEY);
}

static void configure_z(const char *conf)
{
    static int64_t version = 101;
    fake_change("Namespace", "z", version++, conf);
    slots_move_all(segment);
}

/* The higher of the two states applies, with its message: access_check and access_enter refuse what it
 * forbids. */
static void states_of_z_apply_to_all(void **state UNUSED)
{
    static const char get[] = "{\"param\":{\"docs\":[]}}", put[] = "{\"param\":{\"docs\":[]}}",
                      admin[] = "{\"admin\":\"open sesame\",\"param\":{\"docs\":[]}}";
    static const enum fault of_get[] = {FAULT_NONE, FAULT_NONE, FAULT_OOFF, FAULT_OGONE},
                            of_put[] = {FAULT_NONE, FAULT_OREADONLY, FAULT_OOFF, FAULT_OGONE},
                            of_admin[] = {FAULT_NONE, FAULT_OREADONLY, FAULT_NONE, FAULT_OGONE};
    for (int own = NS_ON; own <= NS_GONE; own++)
        for (int z = NS_ON; z <= NS_GONE; z++) {
            int highest = own > z ? own : z;
            configure(arena_printf(arena, "{\"access\":\"open\",\"state\":%d,\"message\":\"own\"}", own));
            configure_z(arena_printf(arena, "{\"state\":%d,\"message\":\"all\"}", z));
            assert_int_equal(run("get", get), of_get[highest]);
            assert_int_equal(run("put", put), of_put[highest]);
            if (highest)
                assert_string_equal(reply.detail, own >= z ? "own" : "all");
            assert_int_equal(run("put", admin), of_admin[highest]);
        }
    configure_z("{\"state\":\"on\"}");
    configure("{\"access\":\"open\"}");
    assert_int_equal(run("get", get), FAULT_OOFF);
    assert_null(reply.detail);
    assert_int_equal(run("get", admin), FAULT_NONE);
    configure_z("{}");
    configure("{\"access\":\"open\",\"state\":null}");
    assert_int_equal(run("get", get), FAULT_OOFF);
    assert_int_equal(run("get", admin), FAULT_NONE);
    configure("{\"access\":\"open\"}");
    assert_int_equal(run("get", get), FAULT_NONE);
}

static void arguments_are_checked(void **state UNUSED)
{
    static const struct {
        const char *operation, *text;
        enum fault fault;
    } cases[] = {
        {"nothing", "{}", FAULT_NOPERATION},
        {"get", "{\"build\":\"other\"}", FAULT_DBUILD},
        {"get", "{}", FAULT_AARG},
        {"get", "{\"param\":{}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":{}}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[1]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"doc\",\"id\":\"a\"}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Aaaaaaaaaaaaaaaaa\",\"id\":\"a\"}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Doc\"}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"\"}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":7}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"age\":-1}]}}", FAULT_AARG},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"age\":1.5}]}}", FAULT_AARG},
        {"put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\"}]}]}}",
         FAULT_AARG},
        {"put",
         "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":1,\"s\":\"x\"}]}]"
         "}}",
         FAULT_AARG},
        {"put",
         "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"k\":\"\",\"j\":1}]}]}"
         "}",
         FAULT_AARG},
        {"put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"s\":5}]}]}}",
         FAULT_AARG},
        {"put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"delete\":1}]}}", FAULT_AARG},
        {"put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"if\":-1}]}}", FAULT_AARG},
        {"list", "{\"param\":{\"c\":null}}", FAULT_AARG},
        {"list", "{\"param\":{\"prefix\":\"a\"}}", FAULT_AARG},
        {"list", "{\"param\":{\"after\":0}}", FAULT_AARG},
        {"list", "{\"param\":{\"cursor\":\"a\"}}", FAULT_AARG},
        {"list", "{\"param\":{\"limit\":1001}}", FAULT_AARG},
        {"list", "{\"param\":{\"c\":\"Doc\",\"limit\":0}}", FAULT_AARG},
        {"list", "{\"param\":{\"c\":\"Doc\",\"limit\":1001}}", FAULT_AARG},
        {"sync", "{\"syncs\":[3]}", FAULT_AARG},
        {"sync", "{\"syncs\":[{\"c\":\"Doc\",\"id\":\"a\",\"v\":\"1\"}]}", FAULT_AARG},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (run(cases[i].operation, cases[i].text) != cases[i].fault)
            fail_msg("case %zu %s %s: %s", i, cases[i].operation, cases[i].text, fault_code(reply.fault));
        assert_int_equal(body.size, 0);
    }
    assert_int_equal(fake.commits, 0);
}

static void classes_are_listed_page_by_page(void **state UNUSED)
{
    fake_change("Doc", "a", 201, "1");
    fake_change("Doc", "b", 202, "1");
    fake_change("Able", "a", 203, "1");
    assert_int_equal(run("list", "{}"), FAULT_NONE);
    assert_string_equal(body.data, "{\"out\":{\"classes\":[\"Able\",\"Doc\",\"Namespace\"]}}");
    assert_int_equal(run("list", "{\"param\":{\"limit\":2}}"), FAULT_NONE);
    assert_string_equal(body.data, "{\"out\":{\"classes\":[\"Able\",\"Doc\"],\"cursor\":\"Doc\"}}");
    assert_int_equal(run("list", "{\"param\":{\"limit\":2,\"cursor\":\"Doc\"}}"), FAULT_NONE);
    assert_string_equal(body.data, "{\"out\":{\"classes\":[\"Namespace\"]}}");
    assert_int_equal(run("list", "{\"param\":{\"cursor\":\"Z\"}}"), FAULT_NONE);
    assert_string_equal(body.data, "{\"out\":{\"classes\":[]}}");
}

static void limits_name_themselves_and_the_value(void **state UNUSED)
{
    char text[2000] = "{\"param\":{\"docs\":[";
    for (int i = 0; i < 33; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s{\"c\":\"Doc\",\"id\":\"%d\"}",
                 i ? "," : "", i);
    strcat(text, "]}}");
    assert_int_equal(run("get", text), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_documents");
    assert_string_equal(reply.arguments[1], "32");
    assert_string_equal(reply.arguments[2], "33");
    assert_int_equal(run("put", text), FAULT_ALIMIT);
    char item[400], id[260];
    memset(id, 'k', 256);
    id[256] = '\0';
    snprintf(text, sizeof text, "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"%s\"}]}}", id);
    assert_int_equal(run("get", text), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_name_bytes");
    snprintf(text, sizeof text, "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"%s\"}]}}", id + 1);
    assert_int_equal(run("get", text), FAULT_NONE);
    memset(item, '1', sizeof item);
    snprintf(text, sizeof text,
             "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":%.101s}]}]}}",
             item);
    assert_int_equal(run("put", text), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_content_bytes");
    snprintf(text, sizeof text,
             "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":%.99s},{"
             "\"c\":\"Stb\",\"j\":%.100s},{\"c\":"
             "\"Stc\",\"j\":12}]}]}}",
             item, item);
    assert_int_equal(run("put", text), FAULT_ALIMIT);
    assert_string_equal(reply.arguments[0], "limit_document_bytes");
    assert_string_equal(reply.arguments[2], "576");
    assert_int_equal(fake.commits, 0);
}

static int interruptions;

static void interrupt(void)
{
    if (interruptions-- > 0) {
        fake_change("Doc", "a", stamp_add_ms(stamp_now(), INT64_C(1000) * (10 - interruptions)), "9");
        slots_move_all(segment);
    }
}

static void contention_is_tried_three_times(void **state UNUSED)
{
    static const char put[] =
        "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":5}]}]}}";
    fake.before_commit = interrupt;
    interruptions = 2;
    assert_int_equal(run("put", put), FAULT_NONE);
    assert_int_equal(fake.commits, 3);
    interruptions = 3;
    fake_change("Doc", "a", stamp_add_ms(stamp_now(), 60000), "1");
    slots_move_all(segment);
    assert_int_equal(run("put", put), FAULT_CONTENTION);
    assert_int_equal(reply.phase, PHASE_VALIDATION);
    assert_int_equal(fake.commits, 6);
    fake.before_commit = NULL;
    fake.outcome = COMMIT_UNKNOWN; /* never run again by itself */
    assert_int_equal(run("put", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"u\"}]}}"), FAULT_XUNKNOWN);
    assert_int_equal(fake.commits, 7);
    assert_int_equal(reply.phase, PHASE_UNKNOWN);
}

static void reads_under_constant_writing_end_in_a_snapshot(void **state UNUSED)
{
    fake.after_load = interrupt;
    interruptions = 1 << 30;
    assert_int_equal(
        run("get", "{\"param\":{\"docs\":[{\"c\":\"Doc\",\"id\":\"a\"},{\"c\":\"Doc\",\"id\":\"b\"}]}}"),
        FAULT_NONE);
    assert_int_equal(fake.snapshots, 1);
}

static struct call *late;

static void use_up_time(void)
{
    late->deadline_ms = 1;
}

/* A command on a record whose request has used up its time when it has run. */
static void run_late(const char *param)
{
    struct call call = {.operation = BYTES("record"), .param = parse(param), .admin = BYTES("open sesame")};
    configure("{\"access\":\"open\"}"); /* it is read again, before the work */
    late = &call;
    fake.after_load = use_up_time;
    reply = (struct reply){.body = &body};
    assert_int_equal(run_in_world(&call), FAULT_XTIME);
    fake.after_load = NULL;
}

static void open_records(void)
{
    char problem[256], path[] = "/tmp/test_operation-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    if (!records_open(&segment->records, path, 2 << 20, 100, problem, sizeof problem))
        fail_msg("%s", problem);
    unlink(path);
}

static void close_records(void)
{
    records_close(segment->records);
    segment->records = NULL;
}

/* Commands on records have no commit that could undo them. */
static void a_fault_behind_changed_records_does_not_deny_them(void **state UNUSED)
{
    static const char set[] = "{\"commands\":[{\"do\":\"set\",\"key\":\"k\",\"value\":1}]}";
    static const char get[] = "{\"commands\":[{\"do\":\"get\",\"key\":\"k\"}]}";
    open_records();
    run_late(set);
    assert_int_equal(reply.phase, PHASE_AFTERWORK);
    run_late(get);
    assert_int_equal(reply.phase, PHASE_WORK);
    struct call call = {.operation = BYTES("record"), .param = parse(get), .admin = BYTES("open sesame")};
    reply = (struct reply){.body = &body};
    assert_int_equal(run_in_world(&call), FAULT_NONE);
    assert_non_null(strstr(body.data, "\"value\":1"));
    close_records();
}

/* A listen is answered with the secret of the schema, which may have to be read. */
static void a_listen_that_fails_comes_before_all_changes(void **state UNUSED)
{
    static const char both[] =
        "{\"commands\":[{\"do\":\"set\",\"key\":\"k\",\"value\":1},{\"do\":\"listen\"}]}";
    struct records_sums sums;
    open_records();
    for (int is_read = 0; is_read < 2; is_read++) {
        struct call call = {
            .operation = BYTES("record"), .param = parse(both), .admin = BYTES("open sesame")};
        fake.schema = is_read ? NULL : "{";
        reply = (struct reply){.body = &body};
        assert_int_equal(run_in_world(&call) == FAULT_NONE, is_read);
        records_sum(segment->records, NO_BYTES, &sums);
        assert_int_equal(sums.records, is_read);
    }
    close_records();
}

static void ping_tells_time_build_and_state(void **state UNUSED)
{
    struct call call = {.arena = arena, .route = CALL_PING, .deadline_ms = INT64_MAX};
    reply = (struct reply){.body = &body};
    body.size = 0;
    route_run(&worker_context, &call, &reply);
    builder_add(&body, "", 1);
    assert_string_equal(masked(), "{\"t\":V,\"b\":\"test\"}");
    call.route = CALL_NAMESPACE_PING;
    call.ns = call.database = BYTES("lab");
    body.size = 0;
    route_run(&worker_context, &call, &reply);
    builder_add(&body, "", 1);
    assert_string_equal(masked(), "{\"t\":V,\"b\":\"test\",\"off\":0,\"state\":0,\"build\":0,\"db\":\"ok\"}");
    assert_int_equal(fake.loads,
                     3); /* the configurations of it and of z, and the first use of its database */
    const int ns = documents_ns(worker_context.documents, call.database);
    for (int is_up = 0; is_up < 2; is_up++) {
        namespaces_set_health(worker_context.segment, ns, is_up);
        body.size = 0;
        route_run(&worker_context, &call, &reply);
        builder_add(&body, "", 1);
        assert_non_null(strstr(body.data, is_up ? "\"db\":\"ok\"" : "\"db\":\"down\""));
    }
    assert_int_equal(fake.loads, 3);
    call.database = NO_BYTES;
    route_run(&worker_context, &call, &reply);
    assert_int_equal(reply.fault, FAULT_NNAMESPACE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, worker_context_world_close)
    const struct CMUnitTest tests[] = {
        TEST(put_then_get),
        TEST(versions_expected),
        TEST(a_sync_follows_the_operation),
        TEST(rights_are_denied_by_default),
        TEST(states_of_z_apply_to_all),
        TEST(arguments_are_checked),
        TEST(classes_are_listed_page_by_page),
        TEST(limits_name_themselves_and_the_value),
        TEST(contention_is_tried_three_times),
        TEST(reads_under_constant_writing_end_in_a_snapshot),
        TEST(a_fault_behind_changed_records_does_not_deny_them),
        TEST(a_listen_that_fails_comes_before_all_changes),
        TEST(ping_tells_time_build_and_state),
    };
    return cmocka_run_group_tests_name("operation", tests, NULL, NULL);
}
