/* test_namespace: codes of namespaces, and the members of their configurations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "model/namespace.h"

static const char *text_of(struct bytes text)
{
    return arena_copy(arena, text.data, text.size);
}

static void codes(void **state UNUSED)
{
    assert_true(namespace_is_code("a"));
    assert_true(namespace_is_code("demo2"));
    assert_true(namespace_is_code("abcdefghijklmnop"));
    assert_false(namespace_is_code("abcdefghijklmnopq"));
    assert_false(namespace_is_code(""));
    assert_false(namespace_is_code("2demo"));
    assert_false(namespace_is_code("Demo"));
    assert_false(namespace_is_code("de-mo"));
    assert_false(namespace_is_code("demo\n"));
    assert_true(namespace_is_reserved("ping"));
    assert_true(namespace_is_reserved("metrics"));
    assert_true(namespace_is_reserved("qm"));
    assert_true(namespace_is_reserved("qmail"));
    assert_false(namespace_is_reserved("pings"));
    assert_false(namespace_is_reserved("q"));
}

static void database_names(void **state UNUSED)
{
    char longest[65];
    memset(longest, 'a', 64);
    longest[64] = '\0';
    assert_false(namespace_is_database(longest));
    longest[63] = '\0';
    assert_true(namespace_is_database(longest));
    assert_true(namespace_is_database("stampd_demo-2"));
    assert_false(namespace_is_database(""));
    assert_false(namespace_is_database("a b"));
    assert_false(namespace_is_database("a;"));
    assert_true(namespace_is_database("stampd_demo@west"));
    assert_false(namespace_is_database("stampd_demo@"));
    assert_false(namespace_is_database("stampd_demo@West"));
    assert_false(namespace_is_database("stampd_demo@west@east"));
    assert_false(namespace_is_database("@west"));
    assert_false(namespace_is_database("stampd_demo@a2345678901234567"));
    assert_false(namespace_is_database("$a"));
    assert_false(namespace_is_database("1a"));
    assert_false(namespace_is_database("\xC3\xA9t\xC3\xA9"));
}

static void origins(void **state UNUSED)
{
    static const char *const good[] = {"*",
                                       "https://app.example",
                                       "http://localhost:8080",
                                       "https://127.0.0.1",
                                       "https://[::1]:443",
                                       "https://xn--nxasmq6b.example",
                                       "chrome-extension://abc"};
    static const char *const wrong[] = {"",
                                        "null",
                                        "app.example",
                                        "https://",
                                        "https://app.example/",
                                        "https://App.example",
                                        "https:/a",
                                        "https://a:",
                                        "https://a:123456",
                                        "https://a:80x",
                                        "https://a b",
                                        "https://[]",
                                        "https://[",
                                        "https://[::1",
                                        "https://a\r\nX: y",
                                        "1://a",
                                        "**",
                                        "https://*.a"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!namespace_is_origin(good[i]))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (namespace_is_origin(wrong[i]))
            fail_msg("%s", wrong[i]);
    char longest[300] = "https://";
    memset(longest + 8, 'a', 248);
    assert_false(namespace_is_origin(longest));
    longest[255] = '\0';
    assert_true(namespace_is_origin(longest));
}

static void accounts(void **state UNUSED)
{
    struct ns_conf conf = namespace_read(
        arena, BYTES("{\"access\":\"rules\",\"accounts\":{\"registration\":\"open\",\"sessions_most\":4}}"));
    assert_true(conf.accounts.is_on && !conf.wrong && !conf.accounts.has_anonymous);
    assert_int_equal(conf.accounts.registration, REGISTRATION_OPEN);
    assert_int_equal(conf.accounts.session_days, 30);
    assert_int_equal(conf.accounts.sessions_most, 4);
    assert_int_equal(conf.accounts.whois, WHOIS_NOBODY);
    assert_false(conf.accounts.has_whois_by_address || conf.accounts.has_mail_login);
    assert_false(namespace_read(arena, BYTES("{\"access\":\"rules\"}")).accounts.is_on);
    assert_false(namespace_read(arena, BYTES("{\"accounts\":{\"registration\":\"all\"}}")).accounts.is_on);
}

static struct ns_accounts accounts_of(const char *members)
{
    const char *text = arena_printf(arena, "{\"access\":\"rules\",\"accounts\":{%s}}", members);
    return namespace_read(arena, bytes_of(text)).accounts;
}

static void login_by_mail(void **state UNUSED)
{
    assert_true(accounts_of("\"mail_login\":true").has_mail_login);
    assert_false(accounts_of("\"mail_login\":false").has_mail_login);
    assert_true(accounts_of("\"mail_login\":false").is_on);
    assert_false(accounts_of("\"mail_login\":1").is_on);
    assert_false(accounts_of("\"mail_login\":\"on\"").is_on);
}

/* The callers that may ask for people by their names. */
static void whois(void **state UNUSED)
{
    static const char *const wrong[] = {"\"everybody\"", "\"role:\"", "\"role:a b\"",
                                        "\"rol\"",       "\"\"",      "true",
                                        "[\"role:a\"]",  "null",      "\"role:\\u0000\""};
    assert_int_equal(accounts_of("\"whois\":\"nobody\"").whois, WHOIS_NOBODY);
    assert_int_equal(accounts_of("\"whois\":\"account\"").whois, WHOIS_ACCOUNT);
    struct ns_accounts staff = accounts_of("\"whois\":\"role:staff\",\"whois_by\":\"address\"");
    assert_int_equal(staff.whois, WHOIS_ROLE);
    assert_true(bytes_equal(staff.whois_role, BYTES("staff")) && staff.has_whois_by_address);
    assert_false(accounts_of("\"whois\":\"account\",\"whois_by\":\"name\"").has_whois_by_address);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(accounts_of(arena_printf(arena, "\"whois\":%s", wrong[i])).is_on);
        assert_false(accounts_of(arena_printf(arena, "\"whois_by\":%s", wrong[i])).is_on);
    }
}

/* Whatever the member is: documents of accounts may be there. */
static void accounts_are_never_public(void **state UNUSED)
{
    static const char *const texts[] = {"{}", "7", "null", "{\"registration\":\"all\"}", "[]"};
    static const char *const modes[] = {"read", "open"};
    for (size_t i = 0; i < COUNT_OF(texts) * COUNT_OF(modes); i++) {
        const char *mode = modes[i % COUNT_OF(modes)], *text = texts[i / COUNT_OF(modes)];
        struct bytes after = bytes_of(arena_printf(arena, "{\"access\":\"%s\",\"accounts\":%s}", mode, text));
        const struct ns_conf conf = namespace_read(arena, after);
        assert_int_equal(conf.mode, ACCESS_CLOSED);
        assert_string_equal(conf.wrong, "accounts");
        assert_non_null(namespace_refuse_change(arena, NO_BYTES, after));
    }
    assert_non_null(namespace_refuse_change(arena, BYTES("{\"accounts\":{}}"), BYTES("{}")));
    assert_non_null(
        namespace_refuse_change(arena, BYTES("{\"accounts\":{}}"), BYTES("{\"access\":\"open\"}")));
    assert_null(namespace_refuse_change(arena, BYTES("{}"), BYTES("{\"access\":\"rules\",\"accounts\":{}}")));
    assert_null(namespace_refuse_change(arena, BYTES("{\"access\":\"open\"}"), BYTES("{\"accounts\":{}}")));
}

/* A malformed state never opens a namespace, malformed quotas let nobody write; any other malformed member
 * counts as absent. */
static void malformed_members(void **state UNUSED)
{
    static const char *const states[] = {"\"off\"", "7", "-1", "1.0", "1e0", "null", "true", "[]", "\"0\""};
    static const struct {
        const char *text, *wrong;
    } cases[] = {{"{\"database\":\"d\",\"access\":\"all\"}", "access"},
                 {"{\"database\":\"d;\"}", "database"},
                 {"{\"label\":7}", "label"},
                 {"{\"theme\":null}", "theme"},
                 {"{\"message\":[]}", "message"},
                 {"{\"options\":[]}", "options"},
                 {"{\"options\":{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}}", "options"},
                 {"{\"origins\":[\"https://a/\"]}", "origins"},
                 {"{\"origins\":\"*\"}", "origins"}};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const struct ns_conf conf = namespace_read(
            arena, bytes_of(arena_printf(arena, "{\"database\":\"d\",\"state\":%s}", states[i])));
        assert_int_equal(conf.state, NS_OFF);
        assert_string_equal(conf.wrong, "state");
        assert_true(bytes_equal(conf.database, BYTES("d")));
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct ns_conf conf = namespace_read(arena, bytes_of(cases[i].text));
        assert_int_equal(conf.state, NS_ON);
        assert_string_equal(conf.wrong, cases[i].wrong);
        assert_int_equal(conf.mode, ACCESS_CLOSED);
        assert_true(!conf.label.size && !conf.theme.size && !conf.message.size && !conf.options.size);
        assert_null(conf.origins);
        assert_null(conf.quotas);
    }
    for (int own = NS_ON; own <= NS_GONE; own++) {
        const struct ns_conf conf = namespace_read(
            arena,
            bytes_of(arena_printf(
                arena, "{\"state\":%d,\"message\":\"m\",\"quotas\":{\"address\":{\"requests\":\"few\"}}}",
                own)));
        assert_int_equal(conf.state, own == NS_ON ? NS_READONLY : own);
        assert_true(bytes_equal(conf.message, BYTES("m")) == (own != NS_ON));
        assert_string_equal(conf.wrong, "quotas");
        assert_null(conf.quotas);
    }
    assert_int_equal(namespace_read(arena, BYTES("{\"quotas\":{}}")).state, NS_ON);
    assert_int_equal(namespace_read(arena, BYTES("{")).state, NS_OFF);
    assert_int_equal(namespace_read(arena, BYTES("[]")).state, NS_OFF);
    assert_int_equal(namespace_read(arena, NO_BYTES).state, NS_ON);
    assert_null(namespace_read(arena, NO_BYTES).wrong);
}

static void rates_of_quotas(void **state UNUSED)
{
    const struct ns_conf conf =
        namespace_read(arena, BYTES("{\"quotas\":{\"account\":{\"writes\":\"60/min, burst "
                                    "9\"},\"namespace\":{\"live\":\"5/d\",\"live_open\":7}}}"));
    const struct quota_rate *writes = &conf.quotas->rates[QUOTA_ACCOUNT][QUOTA_WRITES];
    const struct quota_rate *live = &conf.quotas->rates[QUOTA_NAMESPACE][QUOTA_LIVE];
    assert_null(conf.wrong);
    assert_true(writes->count == 60 && writes->period_ms == 60000 && writes->burst == 9);
    assert_string_equal(writes->text, "60/min, burst 9");
    assert_true(live->count == 5 && live->period_ms == 86400000 && live->burst == 5);
    assert_int_equal(conf.quotas->kinds, 1 << QUOTA_WRITES | 1 << QUOTA_LIVE);
    assert_false(conf.quotas->rates[QUOTA_ADDRESS][QUOTA_WRITES].count);
    assert_int_equal(conf.quotas->numbers[QUOTA_NAMESPACE][QUOTA_LIVE_OPEN], 7);
    assert_int_equal(conf.quotas->numbers[QUOTA_ACCOUNT][QUOTA_LIVE_OPEN], 0);
    assert_string_equal(quotas_name(quotas_number(QUOTA_ACCOUNT, QUOTA_STREAMS_OPEN)),
                        "account.streams_open");
    assert_string_equal(quotas_name(quotas_rate(QUOTA_ACCOUNT, QUOTA_STREAMS)), "account.streams");
}

static void sizes_of_members(void **state UNUSED)
{
    static const struct {
        const char *name;
        size_t most;
    } cases[] = {{"label", NAMESPACE_LABEL_MOST},
                 {"theme", NAMESPACE_THEME_MOST},
                 {"message", NAMESPACE_MESSAGE_MOST},
                 {"options", NAMESPACE_OPTIONS_MOST}};
    static const struct json_limits limits = {.depth = 8, .tree_depth = 8};
    static char longest[NAMESPACE_OPTIONS_MOST + 2];
    memset(longest, 'a', sizeof longest - 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t more = 0; more < 2; more++) {
            bool is_options = strcmp(cases[i].name, "options") == 0;
            int size = (int)(cases[i].most + more - (is_options ? strlen("{\"a\":\"\"}") : 0));
            struct json *value;
            struct json_problem problem;
            const char *text =
                arena_printf(arena, is_options ? "{\"a\":\"%.*s\"}" : "\"%.*s\"", size, longest);
            assert_int_equal(json_read(arena, bytes_of(text), &limits, &value, &problem), FAULT_NONE);
            const char *refused = namespace_refuse_member(arena, bytes_of(cases[i].name), value);
            assert_int_equal(refused != NULL, more);
            char *most = arena_printf(arena, " %zu ", cases[i].most);
            assert_true(!refused || strstr(refused, most));
        }
    const struct json null = {.kind = JSON_NULL};
    assert_non_null(strstr(namespace_refuse_member(arena, BYTES("database"), &null), NAMESPACE_MEMBERS));
    assert_non_null(strstr(namespace_refuse_member(arena, BYTES("off"), &null), NAMESPACE_MEMBERS));
}

static void members_change_and_the_others_stay(void **state UNUSED)
{
    struct bytes text = namespace_set_member(arena, NO_BYTES, "database", "d");
    assert_string_equal(text_of(text), "{\"database\":\"d\"}");
    text = BYTES("{ \"x\" : [1, {\"off\":2}] , \"off\":\"a\",\"y\":1e400}");
    assert_string_equal(text_of(namespace_set_member(arena, text, "off", "say \"b\"")),
                        "{\"x\":[1, {\"off\":2}],\"off\":\"say \\\"b\\\"\",\"y\":1e400}");
    assert_string_equal(text_of(namespace_set_member(arena, text, "off", NULL)),
                        "{\"x\":[1, {\"off\":2}],\"y\":1e400}");
    assert_string_equal(text_of(namespace_set_member(arena, BYTES("{\"off\":\"a\"}"), "off", NULL)), "{}");
    assert_string_equal(text_of(namespace_set_json(arena, text, "x", BYTES("[\"*\"]"))),
                        "{\"x\":[\"*\"],\"off\":\"a\",\"y\":1e400}");
    assert_string_equal(text_of(namespace_set_json(arena, text, "x", NO_BYTES)),
                        "{\"off\":\"a\",\"y\":1e400}");
}

static void contents_that_are_refused(void **state UNUSED)
{
    static const struct {
        const char *before, *after, *member;
    } cases[] = {
        {"{}", "{\"state\":7,\"theme\":1}", "state"},
        {"{}", "{\"database\":\"a b\"}", "database"},
        {"{\"theme\":1}", "{\"theme\":1,\"state\":7}", "state"},
        {"{\"theme\":1}", "{\"theme\":2}", "theme"},
        {"{}", "7", ""},
        {"{}", "{", ""},
        {"{}", "{\"accounts\":{},\"access\":\"open\"}", "accounts"},
        {"{\"theme\":1}", "{\"theme\":1,\"state\":0,\"mine\":[1e400]}", NULL},
        {"7", "7", NULL},
        {"7", "{\"state\":1}", NULL},
    };
    const char *member;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *expected =
            namespace_refuse_content(arena, bytes_of(cases[i].before), bytes_of(cases[i].after), &member);
        assert_true(!expected == !cases[i].member);
        if (expected)
            assert_string_equal(member, cases[i].member);
    }
    assert_non_null(namespace_refuse_content(arena, NO_BYTES, BYTES("{\"state\":7}"), &member));
    assert_null(namespace_refuse_content(arena, BYTES("{}"), NO_BYTES, &member));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(database_names),
        cmocka_unit_test(origins),
        cmocka_unit_test(accounts),
        cmocka_unit_test(accounts_are_never_public),
        cmocka_unit_test(whois),
        cmocka_unit_test(login_by_mail),
        cmocka_unit_test(malformed_members),
        cmocka_unit_test(contents_that_are_refused),
        cmocka_unit_test(rates_of_quotas),
        cmocka_unit_test(sizes_of_members),
        cmocka_unit_test(members_change_and_the_others_stay),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
