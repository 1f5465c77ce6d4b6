/* test_rules: decisions: every grant and right over documents before and after a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rules_world.h"

/* --- grants --- */

static void grants(void **state UNUSED)
{
#define WITH(grant)                                                                                          \
    "{\"Note\":{\"owner\":\"Info.owner\",\"members\":\"Share\","                                             \
    "\"team\":{\"class\":\"Team\",\"id\":\"Info.team\",\"members\":\"Member\"},\"read\":[\"" grant           \
    "\"],\"list\":[\"" grant "\"]}}"
    static const char items[] = "Info={\"owner\":\"ann\",\"team\":\"red\"}\n"
                                "Share/bob={\"role\":\"writer\"}\nShare/cid={\"role\":[\"writer\"]}\n"
                                "Share/dan-";
    static const struct {
        const char *rules, *callers[8]; /* who may */
    } cases[] = {
        {WITH("anybody"), {"", "ann", "bob", "cid", "dan", "eve admin"}},
        {WITH("account"), {"ann", "bob", "cid", "dan", "eve admin"}},
        {WITH("role:admin"), {"eve admin"}},
        {WITH("role:adm"), {NULL}},
        {WITH("owner"), {"ann"}},
        {WITH("members"), {"bob", "cid"}},
        {WITH("members:writer"), {"bob"}},
        {WITH("members:reader"), {NULL}},
        {WITH("team"), {"ann", "bob"}},
        {WITH("team:chief"), {"ann"}},
        {WITH("team:member"), {NULL}},
    };
    static const char *const callers[] = {"", "ann", "bob", "cid", "dan", "eve admin"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t k = 0; k < COUNT_OF(callers); k++) {
            bool may = false;
            for (size_t n = 0; cases[i].callers[n]; n++)
                may |= strcmp(cases[i].callers[n], callers[k]) == 0;
            rules_world_read(cases[i].rules, callers[k], items, may ? "Note.read[0]" : "!Note.read");
            rules_world_list(cases[i].rules, callers[k], items, may ? "Note.read[0]" : "!Note.list");
            rules_world_read(cases[i].rules, callers[k], NULL, "!");
        }
    }
#undef WITH
}

static void nothing_is_allowed_without_a_rule(void **state UNUSED)
{
    static const char note[] = "Info={\"owner\":\"ann\"}";
    rules_world_read("{}", "ann admin", note, "!");
    rules_world_read("{\"Other\":{\"read\":[\"anybody\"]}}", "ann", note, "!");
    rules_world_read("{\"Note\":{}}", "ann", note, "!Note.read");
    rules_world_read("{\"Note\":{\"read\":[]}}", "ann", note, "!Note.read");
    rules_world_list("{\"Note\":{\"read\":[\"anybody\"]}}", "ann", note, "!Note.list");
    rules_world_list("{\"Note\":{\"list\":[\"anybody\"]}}", "ann", note, "!Note.read");
    rules_world_alter("{\"Note\":{\"read\":[\"anybody\"]}}", "ann", note, "Info={}", "!Note.update");
    rules_world_alter("{\"Note\":{\"read\":[\"anybody\"]}}", "ann", note, NOTHING, "!Note.delete");
    rules_world_alter("{\"Note\":{\"read\":[\"anybody\"]}}", "ann", NULL, "Info={}", "!Note.create");
    rules_world_alter("{}", "ann", NULL, "Info={}", "!");
    rules_world_alter("{}", "ann", note, NOTHING, "!");
    rules_world_alter("{}", "ann", note, note, ""); /* unchanged */
    rules_world_alter("{\"Note\":{\"update\":[\"anybody\"],\"delete\":[\"anybody\"]}}", "ann", note,
                      "Info={}", "!Note.read");
    rules_world_alter("{\"Note\":{\"update\":[\"anybody\"],\"delete\":[\"anybody\"]}}", "ann", note, NOTHING,
                      "!Note.read");
}

static void creation_is_judged_after_and_change_before(void **state UNUSED)
{
    static const char rules[] = "{\"Note\":{\"owner\":\"Info.owner\",\"read\":[\"account\"],"
                                "\"create\":[\"role:admin\",\"owner\"],\"update\":[\"owner\"],"
                                "\"delete\":[\"owner\"]}}";
    static const char of_ann[] = "Info={\"owner\":\"ann\"}", of_bob[] = "Info={\"owner\":\"bob\"}";
    rules_world_alter(rules, "ann", NULL, of_ann, "Note.create[1]");
    rules_world_alter(rules, "ann", NULL, of_bob, "!Note.create");
    rules_world_alter(rules, "ann", NULL, "Info={}", "!Note.create");
    rules_world_alter(rules, "ann admin", NULL, of_bob, "Note.create[0]");
    rules_world_alter(rules, "ann", of_ann, of_bob, "Note.update[0]");
    rules_world_alter(rules, "bob", of_ann, of_bob, "!Note.update");
    rules_world_alter(rules, "ann", of_ann, NOTHING, "Note.delete[0]");
    rules_world_alter(rules, "bob", of_ann, NOTHING, "!Note.delete");
    /* Deleted and created anew in one commit. */
    rules_world_alter(rules, "ann", of_ann, AGAIN "Info={\"owner\":\"ann\"}", "Note.create[1]");
    rules_world_alter(rules, "ann", of_ann, AGAIN "Info={\"owner\":\"bob\"}", "!Note.create");
    rules_world_alter(rules, "bob", of_ann, AGAIN "Info={\"owner\":\"bob\"}", "!Note.delete");
    rules_world_alter(rules, "", NULL, of_ann, "!Note.create");
}

static void members_of_values(void **state UNUSED)
{
    static const char rules[] = "{\"Note\":{\"owner\":\"Info.owner\",\"read\":[\"owner\"]}}";
    static const char *const refused[] = {
        "Info={\"owner\":7}",
        "Info={\"owner\":null}",
        "Info={\"owner\":{\"owner\":\"ann\"}}",
        "Info={\"owner\":[\"ann\"]}",
        "Info={\"owner\":true}",
        "Info={\"owner\":\"\"}",
        "Info={\"owner\":\"Ann\"}",
        "Info={\"owner\":\"ann \"}",
        "Info={\"Owner\":\"ann\"}",
        "Info={\"x\":{\"owner\":\"ann\"}}",
        "Info={\"x\":\"\\\"owner\\\":\\\"ann\\\"\"}",
        "Info={}",
        "Info=[\"owner\",\"ann\"]",
        "Info=\"ann\"",
        "Info=null",
        "Info:{\"owner\":\"ann\"}",
        "Info/ann={\"owner\":\"ann\"}",
        "Info-",
        "Other={\"owner\":\"ann\"}",
        "Info={\"owner\"",
        "Info={\"owner\":",
        "Info={\"owner\":\"ann",
        "Info={\"owner\":\"ann\\",
        "Info={\"\\u006f\\u0077ner",
        "Info={",
        "Info= ",
    };
    static const char *const allowed[] = {
        "Info={\"owner\":\"ann\"}",
        "Info= { \"a\" : [1,{\"owner\":2},\"]\"] , \"owner\" : \"ann\" , \"b\":1} ",
        "Info={\"a\":\"\\\"\",\"owner\":\"ann\"}",
        "Info={\"\\u006fwner\":\"ann\"}",
        "Info={\"owner\":\"\\u0061nn\"}",
        "Info={\"a\":-1.5e3,\"b\":true,\"c\":null,\"owner\":\"ann\"}",
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        rules_world_read(rules, "ann", refused[i], "!Note.read");
    for (size_t i = 0; i < COUNT_OF(allowed); i++)
        rules_world_read(rules, "ann", allowed[i], "Note.read[0]");
    rules_world_read(rules, "", "Info={\"owner\":\"\"}", "!Note.read");
    rules_world_read(rules, "", "Info={\"owner\":null}", "!Note.read");
}

static void teams(void **state UNUSED)
{
    static const char rules[] =
        "{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"Info.team\",\"members\":\"Member\"},"
        "\"read\":[\"team:chief\",\"team\"],\"list\":[\"team\"],\"create\":[\"team\"],\"update\":[\"team:"
        "chief\"]}}";
    static const char red[] = "Info={\"team\":\"red\"}";
    struct rules_question question;
    struct rules_view view;
    rules_world_loads = 0;
    rules_world_read(rules, "bob", red, "Note.read[1]");
    assert_int_equal(rules_world_loads, 1);
    rules_world_list(rules, "ann", red, "Note.read[0]");
    assert_int_equal(rules_world_loads, 2);
    rules_world_read(rules, "cid", red, "!Note.read");
    rules_world_read(rules, "", red, "!Note.read");
    rules_world_read(rules, "ann", "Info={\"team\":\"blue\"}", "!Note.read"); /* a team that does not exist */
    rules_world_read(rules, "ann", "Info={\"team\":7}", "!Note.read");
    rules_world_read(rules, "ann", "Info={}", "!Note.read");
    rules_world_read(rules, "ann", "Other={}", "!Note.read");
    rules_world_alter(rules, "bob", NULL, red, "Note.create[0]");
    rules_world_alter(rules, "bob", NULL, "Info={\"team\":\"blue\"}", "!Note.create");
    rules_world_alter(rules, "ann", red, "Info={\"team\":\"blue\"}", "Note.update[0]");
    rules_world_alter(rules, "bob", red, "Info={\"team\":\"blue\"}", "!Note.update");
    question = rules_world_ask(rules, "ann");
    assert_false(
        rules_may_read(&question, rules_world_make("Note", "1", "Info={\"team\":\"broken\"}"), &view));
    assert_int_equal(question.fault, FAULT_XAWAY);
    question.fault = FAULT_XAWAY; /* of the decision before; this one loads nothing */
    assert_false(rules_may_read(&question, rules_world_make("Note", "1", "Info={}"), &view));
    assert_int_equal(question.fault, FAULT_NONE);
    assert_true(rules_may_read(&question, rules_world_make("Note", "1", red), &view));
    assert_int_equal(question.fault, FAULT_NONE);
    /* An id longer than that of any document names none. */
    char text[400] = "Info={\"team\":\"";
    memset(text + strlen(text), 'x', 256);
    strcat(text, "\"}");
    rules_world_loads = 0;
    rules_world_read(rules, "ann", text, "!Note.read");
    assert_int_equal(rules_world_loads, 0);
}

static void a_fault_hides_nothing_and_shows_nothing(void **state UNUSED)
{
    static const char rules[] =
        "{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"Info.team\",\"members\":\"Member\"},"
        "\"read\":[\"account\"],\"items\":{\"Info\":{\"see\":[\"team\"]}}}}";
    struct rules_question question = rules_world_ask(rules, "ann");
    struct rules_view view;
    assert_false(
        rules_may_read(&question, rules_world_make("Note", "1", "Info={\"team\":\"broken\"}"), &view));
    assert_int_equal(question.fault, FAULT_XAWAY);
}

/* --- items --- */

static const char items_rules[] =
    "{\"Note\":{\"owner\":\"Info.owner\",\"read\":[\"anybody\"],\"list\":[\"anybody\"],"
    "\"create\":[\"account\"],\"update\":[\"account\"],\"delete\":[\"owner\"],\"items\":{"
    "\"Secret\":{\"see\":[\"owner\"],\"write\":[\"owner\"]},"
    "\"Price\":{\"write\":[\"role:shop\",{\"to\":\"owner\",\"if\":{\"not\":{\"exists\":{\"before\":"
    "\"Price.sum\"}}}}]},"
    "\"Audit\":{\"see\":[\"role:shop\"]},\"Box\":{\"see\":[],\"write\":[\"account\"]}}}}";

static bool shows(const char *caller, const char *item)
{
    struct rules_question question = rules_world_ask(items_rules, caller);
    struct rules_view view;
    const struct document *document = rules_world_make("Note", "1", "Info={\"owner\":\"ann\"}");
    assert_true(rules_may_read(&question, document, &view));
    bool is_shown = rules_view_shows(&view, bytes_of(item));
    assert_int_equal(rules_may_see(&question, document, bytes_of(item)), is_shown);
    return is_shown;
}

static void views(void **state UNUSED)
{
    struct rules_question question = rules_world_ask(items_rules, "bob");
    struct rules_view view, other;
    const struct document *document = rules_world_make("Note", "1", "Info={\"owner\":\"ann\"}");
    assert_true(shows("bob", "Info") && shows("bob", "Price") && shows("bob", "Unknown"));
    assert_false(shows("bob", "Secret") || shows("bob", "Audit") || shows("", "Secret"));
    assert_true(shows("ann", "Secret") && !shows("ann", "Audit") && !shows("ann", "Box"));
    assert_true(shows("ann shop", "Audit") && shows("bob shop", "Audit"));

    assert_true(rules_may_read(&question, document, &view));
    const char *name = rules_view_name(&view, rules_world_arena);
    assert_int_equal(strlen(name), 16);
    assert_int_equal(strspn(name, "0123456789abcdef"), 16);
    /* Other rules that hide the same classes. */
    question = rules_world_ask(
        "{\"Note\":{\"read\":[\"anybody\"],\"items\":{\"Aaa\":{\"write\":[]},\"Box\":{\"see\":[]},"
        "\"Audit\":{\"see\":[]},\"Secret\":{\"see\":[]}}}}",
        "");
    assert_true(rules_may_read(&question, document, &other));
    assert_true(view.hidden != other.hidden);
    assert_string_equal(rules_view_name(&other, rules_world_arena), name);
    /* The same bits, other classes. */
    question =
        rules_world_ask("{\"Note\":{\"read\":[\"anybody\"],\"items\":{\"A\":{\"see\":[]},\"B\":{\"see\":[]},"
                        "\"C\":{},\"D\":{\"see\":[]}}}}",
                        "");
    assert_true(rules_may_read(&question, document, &other));
    assert_int_equal(view.hidden, other.hidden);
    assert_string_not_equal(rules_view_name(&other, rules_world_arena), name);
    question =
        rules_world_ask("{\"Note\":{\"read\":[\"anybody\"],\"items\":{\"A\":{\"see\":[\"anybody\"]}}}}", "");
    assert_true(rules_may_read(&question, document, &other) && rules_view_is_whole(&other));
    assert_string_equal(rules_view_name(&other, rules_world_arena), "");
}

static void writing(void **state UNUSED)
{
    static const char info[] = "Info={\"owner\":\"ann\"}";
    rules_world_alter(items_rules, "bob", info, "Body={}", "Note.update[0]");
    rules_world_alter(items_rules, "bob", info, "Secret={}", "!Note.items.Secret.write");
    rules_world_alter(items_rules, "ann", info, "Secret={}", "Note.update[0]");
    rules_world_alter(items_rules, "bob", info, "Body={}\nSecret/x={}", "!Note.items.Secret.write");
    rules_world_alter(items_rules, "bob", "Info={\"owner\":\"ann\"}\nSecret/x={}", "Secret/x-",
                      "!Note.items.Secret.write");
    rules_world_alter(items_rules, "ann", "Info={\"owner\":\"ann\"}\nSecret/x={}", "Secret/x-",
                      "Note.update[0]");
    rules_world_alter(items_rules, "bob", "Info={\"owner\":\"ann\"}\nSecret/x={}", "Secret/x={}\nBody={}",
                      "Note.update[0]"); /* Secret/x is unchanged */
    /* The owner before the change writes, not who makes himself the owner. */
    rules_world_alter(items_rules, "bob", info, "Info={\"owner\":\"bob\"}\nSecret={}",
                      "!Note.items.Secret.write");
    rules_world_alter(items_rules, "bob", NULL, "Info={\"owner\":\"bob\"}\nSecret={}", "Note.create[0]");
    rules_world_alter(items_rules, "bob", NULL, "Info={\"owner\":\"ann\"}\nSecret={}",
                      "!Note.items.Secret.write");
    rules_world_alter(items_rules, "ann", info, "Price={\"sum\":1}", "Note.update[0]");
    rules_world_alter(items_rules, "ann", "Info={\"owner\":\"ann\"}\nPrice={\"sum\":1}", "Price={\"sum\":2}",
                      "!Note.items.Price.write");
    rules_world_alter(items_rules, "ann shop", "Info={\"owner\":\"ann\"}\nPrice={\"sum\":1}",
                      "Price={\"sum\":2}", "Note.update[0]");
    /* The items of a document that ends need no right of their own; those of the next one do. */
    rules_world_alter(items_rules, "ann", "Info={\"owner\":\"ann\"}\nPrice={\"sum\":1}", NOTHING,
                      "Note.delete[0]");
    rules_world_alter(items_rules, "ann", "Info={\"owner\":\"ann\"}\nPrice={\"sum\":1}",
                      AGAIN "Info={\"owner\":\"bob\"}\nSecret={}", "!Note.items.Secret.write");
}

/* A change without effect is allowed, so that naming a hidden item must not be. */
static void naming(void **state UNUSED)
{
    static const struct {
        const char *caller, *before, *after, *item;
        bool may_name, may_write;
    } cases[] = {
        {"bob", "Info={\"owner\":\"ann\"}\nSecret={\"a\":1}", "Secret={\"a\":1}", "Secret", false, false},
        {"bob", "Info={\"owner\":\"ann\"}\nSecret={\"a\":1}", "Secret={\"a\":2}", "Secret", false, false},
        {"ann", "Info={\"owner\":\"ann\"}\nSecret={\"a\":1}", "Secret={\"a\":1}", "Secret", true, true},
        {"bob", "Info={\"owner\":\"ann\"}\nPrice={}", "Price={}", "Price", true, false},
        {"bob", "Info={\"owner\":\"ann\"}", "Box={}", "Box", true, true},
        {"", "Info={\"owner\":\"ann\"}", "Box={}", "Box", false, false},
        {"", "Info={\"owner\":\"ann\"}", "Info={\"owner\":\"ann\"}", "Info", true, false},
        {"bob", NULL, "Info={}", "Info", true, true},
        {"bob", NULL, "Info={}", "Secret", true, false},
        {"", NULL, "Info={}", "Info", true, false},
        {"", NULL, NOTHING, "Info", true, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rules_question question = rules_world_ask(items_rules, cases[i].caller);
        struct draft *draft =
            rules_world_change(rules_world_make("Note", "1", cases[i].before), cases[i].after);
        char what[32];
        snprintf(what, sizeof what, "case %zu", i);
        rules_world_check(rules_may_name(&question, draft, bytes_of(cases[i].item)), &question, NULL, what,
                          cases[i].may_name);
        rules_world_check(rules_may_write(&question, draft, bytes_of(cases[i].item)), &question, NULL, what,
                          cases[i].may_write);
    }
    /* What may not be read may not be named; no rules, no name. */
    struct rules_question question =
        rules_world_ask("{\"Note\":{\"create\":[\"anybody\"],\"update\":[\"anybody\"]}}", "");
    assert_false(rules_may_name(&question, rules_world_change(rules_world_make("Note", "1", "A={}"), "A={}"),
                                BYTES("A")));
    assert_false(rules_may_write(&question, rules_world_change(rules_world_make("Note", "1", "A={}"), "A={}"),
                                 BYTES("A")));
    assert_true(rules_may_name(&question, rules_world_change(rules_world_make("Note", "1", NULL), NOTHING),
                               NO_BYTES));
    /* The item that makes the caller the owner is named before it is set. */
    question = rules_world_ask("{\"Note\":{\"owner\":\"Info.owner\",\"create\":[\"owner\"]}}", "ann");
    assert_true(rules_may_name(&question, rules_world_change(rules_world_make("Note", "1", NULL), NOTHING),
                               BYTES("Info")));
    question = rules_world_ask("{}", "");
    assert_false(rules_may_name(&question, rules_world_change(rules_world_make("Note", "1", "A={}"), "A={}"),
                                BYTES("A")));
    assert_false(rules_may_write(&question, rules_world_change(rules_world_make("Note", "1", "A={}"), "A={}"),
                                 BYTES("A")));
    assert_false(rules_may_see(&question, rules_world_make("Note", "1", "A={}"), BYTES("A")));
}

/* Each read of a cached document is decided: without an allocation, unless a text has escapes. */
static void reading_allocates_nothing(void **state UNUSED)
{
    static const char rules[] =
        "{\"Note\":{\"owner\":\"Info.owner\",\"members\":\"Share\",\"read\":[\"role:admin\",\"owner\","
        "\"members:writer\"],\"list\":[\"owner\"],\"items\":{\"Secret\":{\"see\":[\"owner\"]}}}}";
    static const char *const callers[] = {"", "ann", "bob", "cid", "eve admin"};
    const struct document *document =
        rules_world_make("Note", "1",
                         "Info={\"title\":\"\\u0061\",\"tags\":[1,{\"owner\":2}],\"owner\":\"ann\"}\nShare/"
                         "bob={\"role\":\"writer\"}");
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        struct rules_question question = rules_world_ask(rules, callers[i]);
        struct rules_view view;
        size_t used = arena_used(rules_world_arena);
        (void)rules_may_read(&question, document, &view);
        (void)rules_may_list(&question, document, &view);
        assert_int_equal(arena_used(rules_world_arena), used);
    }
}

/* Grants that cost less come first; the path is that of the text. */
static void order(void **state UNUSED)
{
    static const char rules[] =
        "{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"Info.team\",\"members\":\"Member\"},"
        "\"owner\":\"Info.owner\",\"read\":[\"anybody\"],\"update\":[\"team\",\"owner\",{\"to\":\"account\","
        "\"if\":"
        "{\"exists\":{\"after\":\"Info.x\"}}},\"role:admin\"]}}";
    static const char note[] = "Info={\"owner\":\"ann\",\"team\":\"red\"}", more[] = "B={}";
    rules_world_loads = 0;
    rules_world_alter(rules, "ann admin", note, more, "Note.update[3]");
    rules_world_alter(rules, "ann", note, more, "Note.update[1]");
    assert_int_equal(rules_world_loads, 0);
    rules_world_alter(rules, "bob", note, more, "Note.update[0]");
    assert_int_equal(rules_world_loads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grants, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_allowed_without_a_rule, rules_world_set_up,
                                        rules_world_tear_down),
        cmocka_unit_test_setup_teardown(creation_is_judged_after_and_change_before, rules_world_set_up,
                                        rules_world_tear_down),
        cmocka_unit_test_setup_teardown(members_of_values, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(teams, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(a_fault_hides_nothing_and_shows_nothing, rules_world_set_up,
                                        rules_world_tear_down),
        cmocka_unit_test_setup_teardown(views, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(writing, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(naming, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(reading_allocates_nothing, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(order, rules_world_set_up, rules_world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
