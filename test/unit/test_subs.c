/* subs: what the operation makes of its argument, and what an answer tells its session, against a store that
 * remembers what it was asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "fake_store.h"
#include "fake_tasks.h"
#include "store/documents/store_commit.h"
#include "worker_context_world.h"

#define SESSION "session-of-a-client"

/* A point of the curve; 16 bytes. */
#define P256DH "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
#define AUTH   "AAAAAAAAAAAAAAAAAAAAAA"

static struct bytes kept[] = {{"Note", 4}, {"Note/a", 6}};

static int start(void **state UNUSED)
{
    static char all[] = "*";
    static const struct settings limits = {.limit_items = 1000,
                                           .limit_tombstones = 1000,
                                           .debug_push_local = SETTING_OFF,
                                           .push_services = all,
                                           .limit_content_bytes = 100,
                                           .limit_definition_bytes = 2048,
                                           .limit_definitions = 3,
                                           .limit_document_bytes = 575,
                                           .limit_documents = 32,
                                           .limit_subscription_days = 2,
                                           .limit_name_bytes = 16,
                                           .limit_push_subscriptions = 5,
                                           .limit_subscriptions = 6,
                                           .limit_syncs = 50};
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"read\"}");
    fake.schema =
        "{\"classes\":{\"Person\":{\"items\":{\"Main\":{\"singleton\":true}},\"collections\":{"
        "\"team\":{\"key\":[\"Main.team\"]},\"place\":{\"key\":[\"Main.town\",\"Main.street\"]}}}}}";
    subs = (struct fake_subs){.is_there = true,
                              .subscription = {.version = 7, .until = 9, .definitions = kept, .count = 2}};
    return 0;
}

static enum fault run(const char *operation, const char *param, const char *session)
{
    struct call call = {
        .operation = bytes_of(operation), .param = param ? parse(param) : NULL, .session = bytes_of(session)};
    reply = (struct reply){.body = &body};
    return run_in_world(&call);
}

static enum fault ask(const char *param)
{
    return run("subs", param, SESSION);
}

static void assert_refused(enum fault fault, const char *argument, const char *param)
{
    int changes = subs.changes;
    assert_int_equal(ask(param), fault);
    assert_string_equal(reply.arguments[0], argument);
    assert_int_equal(subs.changes, changes);
}

static void assert_texts(const struct bytes *texts, size_t count, const char *expected)
{
    struct builder joined = {0};
    for (size_t i = 0; i < count; i++) {
        builder_add_bytes(&joined, texts[i]);
        builder_add_text(&joined, " ");
    }
    builder_add(&joined, "", 1);
    assert_string_equal(joined.data, expected);
    builder_free(&joined);
}

static void nothing_is_only_a_look(void **state UNUSED)
{
    assert_int_equal(ask(NULL), FAULT_NONE);
    assert_string_equal(body.data,
                        "{\"out\":{\"v\":7,\"until\":9,\"defs\":[\"Note\",\"Note/a\"],\"push\":false}}");
    subs.subscription.push.endpoint = BYTES("https://secret/");
    subs.subscription.context = BYTES("\"x\"");
    assert_int_equal(ask("{}"), FAULT_NONE);
    assert_string_equal(body.data,
                        "{\"out\":{\"v\":7,\"until\":9,\"defs\":[\"Note\",\"Note/a\"],\"push\":true,"
                        "\"context\":\"\\\"x\\\"\"}}");
    assert_int_equal(subs.reads, 2);
    assert_int_equal(subs.changes, 0);
    subs.is_there = false;
    assert_int_equal(ask(NULL), FAULT_NSUBSCRIPTION);
    assert_int_equal(ask("{\"life\":1}"), FAULT_NSUBSCRIPTION);
}

static void definitions_are_sorted_by_keys_and_none_twice(void **state UNUSED)
{
    assert_int_equal(ask("{\"defs\":[\"Note/b%62\",\"Note\",\"Note/bb\"]}"), FAULT_NONE);
    assert_true(subs.change.is_whole && subs.change.may_create);
    assert_texts(subs.change.keys, subs.change.count, "cNote/@ dNote/@bb ");
    assert_int_equal(subs.change.texts[1].size, subs.change.texts[1].data[6] == '%' ? 9 : 7);
    assert_int_equal(subs.change.drop_count, 0);
    assert_null(subs.change.push);
    assert_null(subs.change.context);
    assert_int_equal(
        ask("{\"add\":[\"Person/team@r%40d\",\"Person/place@a@b\"],\"drop\":[\"Gone/x@y\",\"A\"]}"),
        FAULT_NONE);
    assert_true(!subs.change.is_whole && subs.change.may_create);
    assert_texts(subs.change.keys, subs.change.count, "mPerson/place@1:a1:b mPerson/team@r@d ");
    assert_texts(subs.change.drops, subs.change.drop_count, "cA/@ mGone/x@y ");
    assert_int_equal(ask("{\"drop\":[\"A\"]}"), FAULT_NONE);
    assert_false(subs.change.may_create);
}

static void bad_lists(void **state UNUSED)
{
    assert_refused(FAULT_AARG, "defs", "{\"defs\":[\"note\"]}");
    assert_refused(FAULT_AARG, "add", "{\"add\":[7]}");
    assert_refused(FAULT_AARG, "drop", "{\"drop\":\"Note\"}");
    assert_refused(FAULT_AARG, "defs", "{\"defs\":[],\"add\":[]}");
    assert_refused(FAULT_AARG, "def", "{\"def\":[]}");
    assert_refused(FAULT_AARG, "delete", "{\"delete\":true,\"life\":5}");
    assert_refused(FAULT_ALIMIT, "limit_definitions", "{\"defs\":[\"A\",\"A\",\"A\",\"A\"]}");
    assert_refused(FAULT_NCOLLECTION, "Person", "{\"defs\":[\"Person/nothing@x\"]}");
    assert_refused(FAULT_NCOLLECTION, "Other", "{\"defs\":[\"Other/team@x\"]}");
    assert_refused(FAULT_AARG, "defs", "{\"defs\":[\"Person/place@x\"]}");
    assert_refused(FAULT_AARG, "add", "{\"add\":[\"Person/team@x@y\"]}");
    static const char *const limits[][2] = {
        {"limit_definitions", "3"}, {"limit_push_subscriptions", "5"}, {"limit_subscriptions", "6"}};
    subs.fault = FAULT_ALIMIT;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        subs.limit = limits[i][0];
        assert_int_equal(ask("{\"add\":[\"A\"]}"), FAULT_ALIMIT);
        assert_string_equal(reply.arguments[0], limits[i][0]);
        assert_string_equal(reply.arguments[1], limits[i][1]);
    }
}

static void lives(void **state UNUSED)
{
    assert_int_equal(ask("{\"life\":2880}"), FAULT_NONE);
    assert_int_equal(subs.change.life, 2880);
    assert_int_equal(ask("{\"defs\":[]}"), FAULT_NONE);
    assert_int_equal(subs.change.life, -1440);
    settings.limit_subscription_days = 1;
    assert_int_equal(ask("{\"defs\":[]}"), FAULT_NONE);
    assert_int_equal(subs.change.life, -1440);
    assert_refused(FAULT_ALIMIT, "limit_subscription_days", "{\"life\":1441}");
    assert_string_equal(reply.arguments[2], "2");
    assert_refused(FAULT_AARG, "life", "{\"life\":0}");
}

static void addresses_and_contexts(void **state UNUSED)
{
    assert_int_equal(
        ask("{\"push\":{\"endpoint\":\"https://x/y\",\"expirationTime\":null,\"keys\":{\"p256dh\":\"" P256DH
            "\",\"auth\":\"" AUTH "\"}},\"context\":\"c\"}"),
        FAULT_NONE);
    assert_true(bytes_equal(subs.push.endpoint, BYTES("https://x/y")));
    assert_true(bytes_equal(subs.push.p256dh, BYTES(P256DH)));
    assert_true(bytes_equal(subs.push.auth, BYTES(AUTH)));
    assert_true(bytes_equal(subs.context, BYTES("c")));
    assert_int_equal(ask("{\"push\":null,\"context\":null}"), FAULT_NONE);
    assert_true(subs.change.push && !subs.push.endpoint.data && !subs.push.auth.data);
    assert_true(subs.change.context && !subs.context.data);
    assert_int_equal(ask("{\"push\":{}}"), FAULT_AARG);
    assert_int_equal(ask("{\"push\":[]}"), FAULT_AARG);
    assert_int_equal(ask("{\"context\":7}"), FAULT_AARG);
}

static void the_end(void **state UNUSED)
{
    assert_int_equal(ask("{\"delete\":true}"), FAULT_NONE);
    assert_string_equal(body.data, "{}");
    assert_int_equal(subs.drops, 1);
    assert_int_equal(ask("{\"delete\":false,\"life\":5}"), FAULT_NONE);
    assert_int_equal(subs.drops, 1);
}

static struct call *late;

static void use_up_time(void)
{
    late->deadline_ms = 1;
}

/* The phase of the fault when the time of the request is used up behind its statement. */
static enum phase ask_late(const char *param)
{
    struct call call = {.operation = BYTES("subs"), .param = parse(param), .session = BYTES(SESSION)};
    late = &call;
    subs.then = use_up_time;
    reply = (struct reply){.body = &body};
    assert_int_equal(run_in_world(&call), subs.fault ? subs.fault : FAULT_XTIME);
    subs.then = NULL;
    return reply.phase;
}

/* It was changed at once, before the commit. */
static void a_fault_behind_a_change_does_not_deny_it(void **state UNUSED)
{
    assert_int_equal(ask_late("{\"life\":5}"), PHASE_AFTERWORK);
    assert_int_equal(ask_late("{\"delete\":true}"), PHASE_AFTERWORK);
    subs.fault = FAULT_XDATABASE;
    assert_int_equal(ask_late("{\"life\":5}"), PHASE_WORK);
    assert_int_equal(ask_late("{\"delete\":true}"), PHASE_WORK);
}

static void sessions_are_checked_for_all(void **state UNUSED)
{
    static const char *const wrong[] = {"", "fifteen-letters", "sixteen letters!", "x/xxxxxxxxxxxxxxx"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(run("sync", NULL, wrong[i]), FAULT_AARG);
        assert_string_equal(reply.arguments[0], "session");
    }
    assert_int_equal(run("sync", NULL, "sixteen-letters_"), FAULT_NONE);
    assert_string_equal(body.data, "{}");
    assert_int_equal(run("subs", NULL, NULL), FAULT_AARG);
    assert_int_equal(subs.reads, 0);
}

/* --- the answer --- */

static enum fault put(const char *content, const char *session)
{
    configure("{\"access\":\"open\"}");
    return run("put",
               arena_printf(arena,
                            "{\"docs\":[{\"c\":\"Note\",\"id\":\"a\",\"items\":[{\"c\":\"Sta\",\"j\":%s}]}]}",
                            content),
               session);
}

static const char *told(void)
{
    const char *member = strstr(body.data, ",\"subs\":");
    return member ? member + 1 : "absent";
}

static void what_was_matched_is_told_to_its_session(void **state UNUSED)
{
    struct matched_definition matched[] = {{.text = BYTES("Note"), .version = 12},
                                           {.text = BYTES("No\"te"), .version = 13}};
    fake.match = (struct match){.is_known = true, .has_own = true, .definitions = matched, .count = 2};
    assert_int_equal(put("1", SESSION), FAULT_NONE);
    assert_true(bytes_equal(fake.session, BYTES(SESSION)));
    assert_string_equal(told(), "\"subs\":[[\"Note\",12],[\"No\\\"te\",13]]}");
    fake.match.count = 0;
    assert_int_equal(put("2", SESSION), FAULT_NONE);
    assert_string_equal(told(), "\"subs\":[]}");
    fake.match.has_own = false;
    assert_int_equal(put("3", SESSION), FAULT_NONE);
    assert_string_equal(told(), "\"subs\":null}");
    assert_int_equal(put("3", SESSION), FAULT_NONE); /* no change, no commit */
    assert_string_equal(told(), "absent");
    assert_int_equal(put("4", NULL), FAULT_NONE);
    assert_null(fake.session.data);
    assert_string_equal(told(), "absent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_only_a_look, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(definitions_are_sorted_by_keys_and_none_twice, start,
                                        worker_context_world_close),
        cmocka_unit_test_setup_teardown(bad_lists, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(lives, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(addresses_and_contexts, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(the_end, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(a_fault_behind_a_change_does_not_deny_it, start,
                                        worker_context_world_close),
        cmocka_unit_test_setup_teardown(sessions_are_checked_for_all, start, worker_context_world_close),
        cmocka_unit_test_setup_teardown(what_was_matched_is_told_to_its_session, start,
                                        worker_context_world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
