/* members: unknown names are refused at every level of every argument, and faults say where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "fake_store.h"
#include "http/arguments.h"
#include "operation/reply.h"
#include "worker_context_world.h"

#define SESSION "session-of-a-client"

/* --- arguments ----------------------------------------------------------------------------------- */

static struct arguments arguments;
static struct json_problem problem;

static enum fault read_source(struct bytes query, struct bytes type, struct bytes text)
{
    static const struct argument_limits limits = {.depth = 32, .nodes = ARGUMENT_NODES, .parts = 16};
    struct argument_source source = {.query = query, .content_type = type, .body = text};
    return arguments_read(arena, &source, &limits, &arguments, &problem);
}

static enum fault read_query(struct bytes query)
{
    return read_source(query, NO_BYTES, NO_BYTES);
}

static enum fault read_form(struct bytes text)
{
    return read_source(NO_BYTES, BYTES("application/x-www-form-urlencoded"), text);
}

static enum fault read_json(struct bytes text)
{
    return read_source(NO_BYTES, BYTES("application/json"), text);
}

static void other_names_are_refused(void **state UNUSED)
{
    static const struct {
        const char *pair, *member, *name, *nearest, *sentence;
    } cases[] = {
        {"Param={}", "\"Param\":{}", "Param", "param", "Unknown argument \"Param\"; did you mean \"param\"?"},
        {"syncs=[]&%6cangs=", "\"syncs\":[],\"langs\":1", "langs", "lang",
         "Unknown argument \"langs\"; did you mean \"lang\"?"},
        {"=1", "\"\":1", "", NULL,
         "Unknown argument \"\"; known are param, syncs, account, key, admin, lang, dhop and session."},
        {"items=[]", "\"items\":[]", "items", NULL,
         "Unknown argument \"items\"; known are param, syncs, account, key, admin, lang, dhop and session."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char object[200];
        snprintf(object, sizeof object, "{%s}", cases[i].member);
        for (int path = 0; path < 3; path++) {
            struct bytes pair = bytes_of(cases[i].pair);
            enum fault fault = path == 0   ? read_query(pair)
                               : path == 1 ? read_form(pair)
                                           : read_json(bytes_of(object));
            assert_int_equal(fault, FAULT_AARG);
            assert_true(arguments.is_unknown);
            assert_string_equal(arguments.wrong, cases[i].name);
            assert_string_equal(arguments.nearest ? arguments.nearest : "",
                                cases[i].nearest ? cases[i].nearest : "");
            assert_string_equal(problem.what, cases[i].sentence);
        }
    }
    assert_int_equal(read_query(BYTES("%ff=1")), FAULT_AUTF8);
}

static void json_sent_as_a_form_is_explained(void **state UNUSED)
{
    struct bytes sent = BYTES(" {\"param\":{\"docs\":[]}}");
    assert_int_equal(read_form(sent), FAULT_ATYPE);
    assert_non_null(strstr(problem.what, "looks like JSON"));
    assert_int_equal(read_source(BYTES(""), BYTES(""), sent), FAULT_ATYPE);
    assert_non_null(strstr(problem.what, "no Content-Type"));
    assert_int_equal(read_source(BYTES(""), BYTES("text/plain"), sent), FAULT_ATYPE);
    assert_non_null(strstr(problem.what, "looks like JSON"));
}

/* --- operations ---------------------------------------------------------------------------------- */

static int start(void **state UNUSED)
{
    static char queue_key[] = "";
    static const struct settings limits = {.limit_items = 1000,
                                           .limit_depth = 32,
                                           .limit_tombstones = 1000,
                                           .limit_content_bytes = 10,
                                           .limit_document_bytes = 130,
                                           .limit_documents = 2,
                                           .limit_definition_bytes = 2048,
                                           .limit_definitions = 3,
                                           .limit_subscription_days = 90,
                                           .limit_name_bytes = 20,
                                           .limit_syncs = 2,
                                           .dhop_past_s = 1,
                                           .queue_key_sha256 = queue_key};
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"open\"}");
    fake.schema = "{\"classes\":{\"Person\":{\"items\":{\"Main\":{\"singleton\":true,\"fields\":{"
                  "\"town\":\"string\",\"team\":\"string\"}}},\"collections\":{"
                  "\"team\":{\"key\":[\"Main.team\"]},\"place\":{\"key\":[\"Main.town\",\"Main.team\"]}}}}}";
    return 0;
}

static enum fault run(const char *operation, const char *text, const struct resource *resource)
{
    const struct json *all = parse(text);
    const struct json *dhop = json_member(all, "dhop");
    struct call call = {.operation = bytes_of(operation),
                        .resource = resource,
                        .param = json_member(all, resource ? "items" : "param"),
                        .syncs = json_member(all, "syncs"),
                        .dhop = dhop ? dhop->value : NO_BYTES,
                        .session =
                            json_member(all, "session") ? json_member(all, "session")->value : NO_BYTES,
                        .admin = BYTES("open sesame")};
    reply = (struct reply){.body = &body};
    return run_in_world(&call);
}

static void unknown_members_are_refused(void **state UNUSED)
{
    static const struct {
        const char *operation, *text, *name, *nearest, *at;
    } cases[] = {
#define PUT(docs) "{\"param\":{\"docs\":[" docs "]}}"
        {"put", "{\"param\":{\"doc\":[]}}", "doc", "docs", "/param/doc"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"If\":1}"), "If", "if", "/param/docs/0/If"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\"},{\"c\":\"A\",\"id\":\"b\",\"item\":[]}"), "item", "items",
         "/param/docs/1/item"},
        {"put",
         PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"j\":1},{\"c\":\"C\",\"j\":1,\"if\":2}]}"),
         "if", NULL, "/param/docs/0/items/1/if"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"J\":1}]}"), "J", "j",
         "/param/docs/0/items/0/J"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"v\":1}"), "v", NULL, "/param/docs/0/v"},
        {"get", "{\"param\":{\"docs\":[],\"a/b~c\":1}}", "a/b~c", NULL, "/param/a~1b~0c"},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"A\",\"id\":\"a\",\"Age\":1}]}}", "Age", "age",
         "/param/docs/0/Age"},
        {"sync", "{\"param\":{\"docs\":[]}}", "docs", NULL, "/param/docs"},
        {"sync", "{\"syncs\":[{\"c\":\"A\",\"id\":\"a\"},{\"c\":\"A\",\"id\":\"b\",\"V\":1}]}", "V", "v",
         "/syncs/1/V"},
        {"list", "{\"param\":{\"c\":\"A\",\"Limit\":1}}", "Limit", "limit", "/param/Limit"},
        {"list", "{\"param\":{\"orderby\":1}}", "orderby", NULL, "/param/orderby"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"were\":[]}}", "were", "where", "/param/were"},
        {"find",
         "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"where\":[{\"f\":\"town\",\"t\":\"eq\",\"v\":1}]}}",
         "v", NULL, "/param/where/0/v"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"id\":{\"t\":\"eq\",\"V1\":1}}}", "V1", "v1",
         "/param/id/V1"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"id\":{\"f\":1,\"t\":\"eq\",\"v1\":1}}}", "f",
         NULL, "/param/id/f"},
        {"collection", "{\"param\":{\"c\":\"Person\",\"collection\":\"team\",\"value\":\"a\",\"tokn\":\"\"}}",
         "tokn", "token", "/param/tokn"},
        {"subs", "{\"session\":\"" SESSION "\",\"param\":{\"def\":[]}}", "def", "defs", "/param/def"},
        {"subs", "{\"session\":\"" SESSION "\",\"param\":{\"push\":{\"endpoints\":\"\"}}}", "endpoints",
         "endpoint", "/param/push/endpoints"},
        {"subs", "{\"session\":\"" SESSION "\",\"param\":{\"push\":{\"keys\":{\"p256DH\":\"\"}}}}", "p256DH",
         "p256dh", "/param/push/keys/p256DH"},
        {"task", "{\"param\":{\"op\":\"put\",\"params\":{}}}", "params", "param", "/param/params"},
        {"task", "{\"param\":{\"op\":\"put\",\"param\":{\"doc\":[]}}}", "doc", "docs", "/param/param/doc"},
        {"task", "{\"param\":{\"op\":\"put\",\"param\":{\"docs\":[{\"c\":\"A\",\"id\":\"a\",\"If\":1}]}}}",
         "If", "if", "/param/param/docs/0/If"},
        {"tasks", "{\"param\":{\"lists\":{}}}", "lists", "list", "/param/lists"},
        {"tasks", "{\"param\":{\"list\":{\"fron\":1}}}", "fron", "from", "/param/list/fron"},
        {"tasks", "{\"param\":{\"history\":{\"failure\":true}}}", "failure", "failures",
         "/param/history/failure"},
        {"tasks", "{\"param\":{\"move\":{\"id\":\"\",\"start\":1}}}", "start", "startat",
         "/param/move/start"},
        {"push", "{\"param\":{\"sesion\":1}}", "sesion", "session", "/param/sesion"},
        {"record", "{\"param\":{\"commands\":[],\"k\":1}}", "k", NULL, "/param/k"},
        {"pushkey", "{\"param\":{\"k\":1}}", "k", NULL, "/param/k"},
        {"volumes", "{\"param\":{\"c\":1}}", "c", NULL, "/param/c"},
        {"copy", "{\"param\":{\"ID\":1}}", "ID", "id", "/param/ID"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int commits = fake.commits;
        if (run(cases[i].operation, cases[i].text, NULL) != FAULT_AARG)
            fail_msg("%s %s: %s", cases[i].operation, cases[i].text, reply_code(&reply));
        assert_int_equal(fake.commits, commits);
        assert_string_equal(reply.at, cases[i].at);
        assert_string_equal(reply.arguments[0], cases[i].name);
        assert_int_equal(reply.argument_count, cases[i].nearest ? 2 : 1);
        if (cases[i].nearest)
            assert_string_equal(reply.arguments[1], cases[i].nearest);
        assert_int_equal(memcmp(reply.detail, "Unknown member ", strlen("Unknown member ")), 0);
    }
}

static void faults_say_where(void **state UNUSED)
{
    static const struct {
        const char *operation, *text, *at;
    } cases[] = {
        {"put", "{}", "/param/docs"},
        {"put", PUT("1"), "/param/docs/0"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\"},{\"c\":\"a\",\"id\":\"b\"}"), "/param/docs/1/c"},
        {"put", PUT("{\"c\":\"A\"}"), "/param/docs/0/id"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"\"}"), "/param/docs/0/id"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"much too long for an id\"}"), "/param/docs/0/id"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"if\":-1}"), "/param/docs/0/if"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"if\":1}"), "/param/docs/0/if"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":{}}"), "/param/docs/0/items"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"j\":1},1]}"),
         "/param/docs/0/items/1"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\"}]}"), "/param/docs/0/items/0"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"k\":\"\",\"j\":1}]}"),
         "/param/docs/0/items/0/k"},
        {"put", PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"j\":12345678901}]}"),
         "/param/docs/0/items/0/j"},
        {"put",
         PUT("{\"c\":\"A\",\"id\":\"a\",\"items\":[{\"c\":\"B\",\"j\":123456789},{\"c\":\"C\",\"j\":"
             "123456789}]"
             "}"),
         "/param/docs/0/items"},
        {"put", PUT("{},{},{}"), "/param/docs"},
        {"get", "{\"param\":{\"docs\":[{\"c\":\"A\",\"id\":\"a\",\"age\":\"x\"}]}}", "/param/docs/0/age"},
        {"sync", "{\"syncs\":[{\"c\":\"A\",\"id\":\"a\",\"dt\":-1}]}", "/syncs/0/dt"},
        {"sync", "{\"syncs\":[1]}", "/syncs/0"},
        {"sync", "{\"syncs\":[1,1,1]}", "/syncs"},
        {"sync", "{\"session\":\"short\"}", "/session"},
        {"sync", "{\"dhop\":\"short\"}", "/dhop"},
        {"sync", "{\"dhop\":\"100101000000000\"}", "/dhop"},
        {"list", "{\"param\":{\"c\":1}}", "/param/c"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"where\":{}}}", "/param/where"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"where\":[1]}}", "/param/where/0"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"id\":{\"t\":\"is\"}}}", "/param/id/t"},
        {"find", "{\"param\":{\"c\":\"Person\",\"i\":\"Main\",\"id\":{\"t\":\"eq\",\"v1\":1}}}",
         "/param/id/v1"},
        {"collection", "{\"param\":{\"c\":\"Person\",\"collection\":\"team\",\"value\":{}}}", "/param/value"},
        {"collection", "{\"param\":{\"c\":\"Person\",\"collection\":\"place\",\"value\":[\"a\",[]]}}",
         "/param/value/1"},
        {"subs", "{\"session\":\"" SESSION "\",\"param\":{\"add\":[\"Note\",\"note\"]}}", "/param/add/1"},
        {"subs", "{\"session\":\"" SESSION "\",\"param\":{\"add\":[\"Person/place@x\"]}}", "/param/add/0"},
        {"subs", "{\"param\":{}}", "/session"},
        {"task", "{\"param\":{\"op\":\"put\",\"delay\":-1}}", "/param/delay"},
        {"task", "{\"param\":{\"op\":\"put\",\"param\":{\"docs\":1}}}", "/param/param/docs"},
        {"tasks", "{\"param\":{\"show\":1}}", "/param/show"},
        {"tasks", "{\"param\":{\"history\":{\"id\":1}}}", "/param/history/id"},
        {"tasks", "{\"param\":{}}", "/param"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)run(cases[i].operation, cases[i].text, NULL);
        if (!reply.at || strcmp(reply.at, cases[i].at) != 0)
            fail_msg("%s %s: %s", cases[i].operation, cases[i].text, reply.at ? reply.at : "nowhere");
    }
    assert_int_equal(run("put", PUT("{\"c\":\"A\",\"id\":\"a\"}"), NULL), FAULT_NONE);
    assert_null(reply.at);
}

static void resources_too(void **state UNUSED)
{
    const struct resource patch = {.act = RESOURCE_REPLACE, .class = BYTES("A"), .id = BYTES("a")};
    assert_int_equal(run("PUT", "{\"items\":[{\"c\":\"B\",\"v\":1,\"j\":1},{\"c\":\"C\",\"J\":1}]}", &patch),
                     FAULT_AARG);
    assert_string_equal(reply.at, "/items/1/J");
    assert_int_equal(run("PUT", "{}", &patch), FAULT_AARG);
    assert_string_equal(reply.at, "/items");
    assert_int_equal(run("PUT", "{\"items\":[{\"c\":\"B\",\"v\":1,\"j\":1}]}", &patch), FAULT_NONE);
    const struct resource wrong = {.act = RESOURCE_READ, .class = BYTES("a"), .id = BYTES("a")};
    assert_int_equal(run("GET", "{}", &wrong), FAULT_AARG);
    assert_null(reply.at); /* it is in the path */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(other_names_are_refused),
        TEST(json_sent_as_a_form_is_explained),
        TEST(unknown_members_are_refused),
        TEST(faults_say_where),
        TEST(resources_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
