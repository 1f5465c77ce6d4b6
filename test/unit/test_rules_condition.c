/* test_rules_condition: conditions of grants over documents before and after a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/builder.h"
#include "rules_world.h"

#define BEFORE(place) "{\"before\":\"" place "\"}"
#define AFTER(place)  "{\"after\":\"" place "\"}"
static const struct {
    const char *condition, *before, *after;
    bool holds;
} cases[] = {
    {"{\"eq\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":1}", true},
    {"{\"eq\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":1.0}", true},
    {"{\"eq\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":10e-1}", true},
    {"{\"eq\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":\"1\"}", false},
    {"{\"eq\":[" AFTER("A.x") ",1]}", "A={\"x\":1}", "A={\"x\":2}", false},
    {"{\"eq\":[" BEFORE("A.x") ",1]}", "A={\"x\":1}", "A={\"x\":2}", true},
    {"{\"eq\":[" AFTER("A.x") ",9007199254740993]}", "A={}", "A={\"x\":9007199254740992}", false},
    {"{\"eq\":[" AFTER("A.x") ",null]}", "A={}", "A={\"x\":null}", true},
    {"{\"eq\":[" AFTER("A.x") ",null]}", "A={}", "A={\"y\":null}", false},
    {"{\"eq\":[" AFTER("A.x") ",true]}", "A={}", "A={\"x\":true}", true},
    {"{\"eq\":[" AFTER("A.x") ",true]}", "A={}", "A={\"x\":false}", false},
    {"{\"eq\":[" AFTER("A.x") ",\"a\\u00e9\"]}", "A={}", "A={\"x\":\"\\u0061é\"}", true},
    {"{\"eq\":[" AFTER("A.x") "," BEFORE("A.x") "]}", "A={\"x\":[1,{\"a\":2}]}",
     "A={\"x\":[1.0,{\"a\" : 2}]}", true},
    {"{\"eq\":[" AFTER("A.x") "," BEFORE("A.x") "]}", "A={\"x\":[1,{\"a\":2}]}", "A={\"x\":[1,{\"a\":3}]}",
     false},
    {"{\"ne\":[" AFTER("A.x") "," BEFORE("A.x") "]}", "A={\"x\":[1]}", "A={\"x\":{}}", true},
    {"{\"ne\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":2}", true},
    {"{\"ne\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":\"1\"}", true},
    {"{\"ne\":[" AFTER("A.x") ",1]}", "A={}", "A={\"x\":1}", false},
    {"{\"ne\":[" AFTER("A.x") ",1]}", "A={}", "A={\"y\":1}", false}, /* missing */
    {"{\"ne\":[" AFTER("A.x") ",1]}", "A={}", "B={\"x\":2}", false},
    {"{\"lt\":[" AFTER("A.x") ",10]}", "A={}", "A={\"x\":9}", true},
    {"{\"lt\":[" AFTER("A.x") ",10]}", "A={}", "A={\"x\":10}", false},
    {"{\"le\":[" AFTER("A.x") ",10]}", "A={}", "A={\"x\":10.0}", true},
    {"{\"gt\":[" AFTER("A.x") ",10]}", "A={}", "A={\"x\":1e2}", true},
    {"{\"ge\":[" AFTER("A.x") ",10]}", "A={}", "A={\"x\":9.99}", false},
    {"{\"ge\":[" AFTER("A.x") "," BEFORE("A.x") "]}", "A={\"x\":5}", "A={\"x\":5,\"y\":1}", true},
    {"{\"lt\":[" AFTER("A.x") ",\"b\"]}", "A={}", "A={\"x\":\"a\"}", true},
    {"{\"lt\":[" AFTER("A.x") ",\"b\"]}", "A={}", "A={\"x\":1}", false},
    {"{\"ge\":[" AFTER("A.x") ",\"b\"]}", "A={}", "A={\"x\":1}", false},
    {"{\"lt\":[" AFTER("A.x") ",true]}", "A={}", "A={\"x\":false}", false},
    {"{\"lt\":[" AFTER("A.x") ",1]}", "A={}", "A={}\nB={}", false},
    {"{\"in\":[" AFTER("A.x") ",[1,\"a\",null]]}", "A={}", "A={\"x\":\"a\"}", true},
    {"{\"in\":[" AFTER("A.x") ",[1,\"a\",null]]}", "A={}", "A={\"x\":null}", true},
    {"{\"in\":[" AFTER("A.x") ",[1,\"a\",null]]}", "A={}", "A={\"x\":\"b\"}", false},
    {"{\"in\":[" AFTER("A.x") ",[1," BEFORE("A.x") "]]}", "A={\"x\":3}", "A={\"x\":3}\nB={}", true},
    {"{\"in\":[{\"caller\":\"account\"}," BEFORE("A.list") "]}", "A={\"list\":[\"bob\",\"ann\"]}", "B={}",
     true},
    {"{\"in\":[{\"caller\":\"account\"}," BEFORE("A.list") "]}", "A={\"list\":[\"bob\"]}",
     "A={\"list\":[\"ann\"]}", false},
    {"{\"in\":[{\"caller\":\"account\"}," BEFORE("A.list") "]}", "A={\"list\":\"ann\"}", "B={}", false},
    {"{\"in\":[{\"caller\":\"account\"}," BEFORE("A.list") "]}", "A={\"list\":{\"ann\":1}}", "B={}", false},
    {"{\"in\":[\"editor\",{\"caller\":\"roles\"}]}", "A={}", "B={}", true},
    {"{\"in\":[\"Editor\",{\"caller\":\"roles\"}]}", "A={}", "B={}", false},
    {"{\"in\":[" BEFORE("A.role") ",{\"caller\":\"roles\"}]}", "A={\"role\":\"editor\"}", "B={}", true},
    {"{\"in\":[1,{\"caller\":\"roles\"}]}", "A={}", "B={}", false},
    {"{\"eq\":[{\"caller\":\"account\"}," AFTER("A.by") "]}", "A={}", "A={\"by\":\"ann\"}", true},
    {"{\"eq\":[{\"caller\":\"account\"}," AFTER("A.by") "]}", "A={}", "A={\"by\":\"bob\"}", false},
    {"{\"exists\":" AFTER("A.x") "}", "A={}", "A={\"x\":null}", true},
    {"{\"exists\":" AFTER("A.x") "}", "A={\"x\":1}", "A={}", false},
    {"{\"exists\":" BEFORE("A.x") "}", "A={\"x\":1}", "A={}", true},
    {"{\"exists\":" AFTER("A.x") "}", "A={\"x\":1}", "A-", false},
    {"{\"exists\":{\"caller\":\"account\"}}", "A={}", "B={}", true},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":1}", "A={\"x\":1.0,\"y\":2}", true},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":1}", "A={\"x\":2}", false},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":1}", "A={}", false},
    {"{\"unchanged\":\"A.x\"}", "A={}", "A={\"x\":null}", false},
    {"{\"unchanged\":\"A.x\"}", "A={}", "A={\"y\":1}", true},
    {"{\"unchanged\":\"A.x\"}", "B={}", "B={\"x\":1}", true},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":1}", "A-", false},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":1}", "A:{\"x\":1}", false},
    {"{\"unchanged\":\"A.x\"}", "A={\"x\":{\"b\":[1],\"c\":\"d\"}}",
     "A={\"x\":{\"c\":\"\\u0064\",\"b\":[1e0]}}", true},
    {"{\"not\":{\"eq\":[" AFTER("A.x") ",1]}}", "A={}", "B={}", true},
    {"{\"not\":{\"eq\":[" AFTER("A.x") ",1]}}", "A={}", "A={\"x\":1}", false},
    {"{\"all\":[{\"exists\":" AFTER("A.x") "},{\"exists\":" AFTER("A.y") "}]}", "A={}", "A={\"x\":1,\"y\":1}",
     true},
    {"{\"all\":[{\"exists\":" AFTER("A.x") "},{\"exists\":" AFTER("A.y") "}]}", "A={}", "A={\"x\":1}", false},
    {"{\"any\":[{\"exists\":" AFTER("A.x") "},{\"exists\":" AFTER("A.y") "}]}", "A={}", "A={\"y\":1}", true},
    {"{\"any\":[{\"exists\":" AFTER("A.x") "},{\"exists\":" AFTER("A.y") "}]}", "A={}", "A={\"z\":1}", false},
};

static void conditions(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *rules =
            arena_printf(rules_world_arena,
                         "{\"Note\":{\"read\":[\"anybody\"],\"update\":[{\"to\":\"account\",\"if\":%s}]}}",
                         cases[i].condition);
        rules_world_alter(rules, "ann author,editor", cases[i].before, cases[i].after,
                          cases[i].holds ? "Note.update[0]" : "!Note.update");
    }
}

static void conditions_of_creation_and_end(void **state UNUSED)
{
    static const char rules[] =
        "{\"Note\":{\"read\":[\"anybody\"],\"create\":[{\"to\":\"anybody\",\"if\":{\"all\":["
        "{\"not\":{\"exists\":{\"before\":\"A.x\"}}},{\"eq\":[{\"after\":\"A.x\"},1]}]}}],"
        "\"delete\":[{\"to\":\"anybody\",\"if\":{\"all\":[{\"eq\":[{\"before\":\"A.x\"},1]},"
        "{\"not\":{\"exists\":{\"after\":\"A.x\"}}}]}}]}}";
    rules_world_alter(rules, "", NULL, "A={\"x\":1}", "Note.create[0]");
    rules_world_alter(rules, "", NULL, "A={\"x\":2}", "!Note.create");
    rules_world_alter(rules, "", "A={\"x\":1}", NOTHING, "Note.delete[0]");
    rules_world_alter(rules, "", "A={\"x\":2}", NOTHING, "!Note.delete");
    rules_world_alter(rules, "", "A={\"x\":1}", AGAIN "A={\"x\":1}", "!Note.delete");
    /* The caller's account is missing when nobody has signed in. */
    rules_world_alter(
        "{\"Note\":{\"create\":[{\"to\":\"anybody\",\"if\":{\"ne\":[{\"caller\":\"account\"},\"x\"]}}]}}", "",
        NULL, "A={}", "!Note.create");
    rules_world_alter(
        "{\"Note\":{\"create\":[{\"to\":\"anybody\",\"if\":{\"exists\":{\"caller\":\"account\"}}}]}}", "",
        NULL, "A={}", "!Note.create");
}

/* A decision that compares too much grants NOTHING, whatever its conditions. */
static void costly(void **state UNUSED)
{
    struct builder text = {0}, rules = {0};
    builder_add_text(&text, "A={\"x\":[");
    for (int i = 0; i < 60000; i++)
        builder_printf(&text, "%s%d", i ? "," : "", i);
    builder_add(&text, "]}", 3);
    builder_add_text(
        &rules,
        "{\"Note\":{\"read\":[\"anybody\"],\"update\":[{\"to\":\"anybody\",\"if\":{\"not\":{\"any\":[");
    for (int i = 0; i < 60; i++)
        builder_printf(&rules, "%s{\"in\":[%d,{\"before\":\"A.x\"}]}", i ? "," : "", i - 100);
    builder_add(&rules, "]}}}]}}", 8);
    rules_world_alter(rules.data, "", text.data, "B={}", "!Note.update");
    builder_free(&text);
    builder_free(&rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(conditions, rules_world_set_up, rules_world_tear_down),
        cmocka_unit_test_setup_teardown(conditions_of_creation_and_end, rules_world_set_up,
                                        rules_world_tear_down),
        cmocka_unit_test_setup_teardown(costly, rules_world_set_up, rules_world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
