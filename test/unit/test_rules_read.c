/* test_rules_read: texts of rules, and what is expected in those that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "base/builder.h"
#include "model/rules/rules.h"

static void accept(struct bytes text)
{
    struct rules *rules;
    struct rules_problem problem;
    if (rules_read(arena, text, &rules, &problem))
        fail_msg("%.200s: %s: %s", text.data, problem.path, problem.expected);
    assert_non_null(rules);
}

/* `expected`: a part of the sentence. */
static void refuse(struct bytes text, const char *path, const char *expected)
{
    struct rules *rules;
    struct rules_problem problem;
    if (!rules_read(arena, text, &rules, &problem))
        fail_msg("%.200s is accepted", text.data);
    assert_null(rules);
    if (strcmp(problem.path, path) != 0 || !strstr(problem.expected, expected))
        fail_msg("%.200s: %s: %s, not %s: %s", text.data, problem.path, problem.expected, path, expected);
    size_t size = strlen(problem.expected);
    assert_true(size && strchr(".?", problem.expected[size - 1]));
}

static void valid(void **state UNUSED)
{
    static const char *const texts[] = {
        "{}",
        " { } ",
        "{\"Note\":{}}",
        "{\"P\":{\"read\":[\"anybody\"]}}",
        "{\"Note\":{\"items\":{\"P\":{\"see\":[\"anybody\"],\"write\":[]}}}}",
        "{\"Note\":{\"read\":[],\"list\":[],\"create\":[],\"update\":[],\"delete\":[],\"items\":{}}}",
        "{\"Note\":{\"owner\":\"Info.owner\",\"read\":[\"owner\",\"role:a\",\"role:x/y:z-1._\"]}}",
        "{\"Note\":{\"read\":[\"owner\"],\"owner\":\"Info.owner\"}}",
        "{\"Note\":{\"owner\":\"Info.owner\",\"on_owner_deleted\":\"delete\"}}",
        "{\"Note\":{\"on_owner_deleted\":\"keep\",\"owner\":\"Info.owner\"}}",
        "{\"Note\":{\"members\":\"Share\",\"read\":[\"members\",\"members:writer\"]}}",
        "{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"Info._team-1\",\"members\":\"M\"},"
        "\"list\":[\"team\",\"team:chief\"],\"items\":{\"A\":{},\"B\":{\"see\":[\"team\"],\"write\":["
        "\"team\"]}}}}",
        "{\"Note\":{\"team\":{\"class\":\"Note\",\"id\":\"Info.team\",\"members\":\"M\"}}}",
        ("{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":{\"unchanged\":\"A.b\"}},"
         "{\"if\":{\"not\":{\"not\":{\"exists\":{\"before\":\"A.b\"}}}},\"to\":\"account\"}]}}"),
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        accept(bytes_of(texts[i]));
}

static const struct {
    const char *text, *path, *expected;
} texts_refused[] = {
    {"", "", "JSON object"},
    {"{", "", "JSON object"},
    {"{}x", "", "JSON object"},
    {"[]", "", "An object of classes"},
    {"null", "", "An object of classes"},
    {"\"Note\"", "", "An object of classes"},
    {"{\"Note\":{},\"Note\":{}}", "", "same name"},
    {"{\"Note\":{\"read\":[],\"r\\u0065ad\":[]}}", "", "same name"},
    {"{\"Note\":{}, // all\n}", "", "JSON object"},
    {"{\"Note\":\"\xff\"}", "", "UTF-8"},
    {"{\"note\":{}}", "note", "class of documents"},
    {"{\"\":{}}", "", "class of documents"},
    {"{\"Abcdefghijklmnopq\":{}}", "Abcdefghijklmnopq", "class of documents"},
    {"{\"No te\":{}}", "No te", "class of documents"},
    {"{\"Account\":{}}", "Account", "belong to the server"},
    {"{\"Login\":{}}", "Login", "belong to the server"},
    {"{\"Ticket\":{}}", "Ticket", "belong to the server"},
    {"{\"Note\":[]}", "Note", "An object is expected"},
    {"{\"Note\":null}", "Note", "An object is expected"},
    {"{\"Note\":\"anybody\"}", "Note", "An object is expected"},
    {"{\"Note\":{\"on_owner_deleted\":\"delete\"}}", "Note.on_owner_deleted",
     "needs the class's member owner"},
    {"{\"Note\":{\"on_owner_deleted\":\"keep\"}}", "Note.on_owner_deleted", "needs the class's member owner"},
    {"{\"Note\":{\"owner\":\"A.b\",\"on_owner_deleted\":true}}", "Note.on_owner_deleted", "delete, keep"},
    {"{\"Note\":{\"owner\":\"A.b\",\"on_owner_deleted\":\"Delete\"}}", "Note.on_owner_deleted",
     "delete, keep"},
    {"{\"Note\":{\"owner\":\"A.b\",\"on_owner_deleted\":null}}", "Note.on_owner_deleted", "delete, keep"},
    {"{\"Note\":{\"reads\":[]}}", "Note.reads", "did you mean \"read\"?"},
    {"{\"Note\":{\"Read\":[]}}", "Note.Read", "did you mean \"read\"?"},
    {"{\"Note\":{\"see\":[]}}", "Note.see", "Unknown member"},
    {"{\"Note\":{\"read\":\"anybody\"}}", "Note.read", "A list of at most 32"},
    {"{\"Note\":{\"read\":{}}}", "Note.read", "A list of at most 32"},
    {"{\"Note\":{\"read\":null}}", "Note.read", "A list of at most 32"},
    {"{\"Note\":{\"read\":[1]}}", "Note.read[0]", "A grant is expected"},
    {"{\"Note\":{\"read\":[null]}}", "Note.read[0]", "A grant is expected"},
    {"{\"Note\":{\"read\":[[\"anybody\"]]}}", "Note.read[0]", "A grant is expected"},
    {"{\"Note\":{\"read\":[\"anybody\",\"anybdy\"]}}", "Note.read[1]", "did you mean \"anybody\"?"},
    {"{\"Note\":{\"read\":[\"\"]}}", "Note.read[0]", "Unknown grant"},
    {"{\"Note\":{\"read\":[\"Anybody\"]}}", "Note.read[0]", "did you mean \"anybody\"?"},
    {"{\"Note\":{\"read\":[\"role\"]}}", "Note.read[0]", "role:NAME"},
    {"{\"Note\":{\"read\":[\"role:\"]}}", "Note.read[0]", "A name of a role"},
    {"{\"Note\":{\"read\":[\"role:a b\"]}}", "Note.read[0]", "A name of a role"},
    {"{\"Note\":{\"read\":[\"role:-a\"]}}", "Note.read[0]", "A name of a role"},
    {"{\"Note\":{\"read\":[\"anybody:x\"]}}", "Note.read[0]", "Unknown grant"},
    {"{\"Note\":{\"read\":[\"account:x\"]}}", "Note.read[0]", "Unknown grant"},
    {"{\"Note\":{\"owner\":\"A.b\",\"read\":[\"owner:x\"]}}", "Note.read[0]", "Unknown grant"},
    {"{\"Note\":{\"read\":[\"owner\"]}}", "Note.read[0]", "needs the class's member owner"},
    {"{\"Note\":{\"read\":[\"members\"]}}", "Note.read[0]", "needs the class's member members"},
    {"{\"Note\":{\"read\":[\"team:x\"]}}", "Note.read[0]", "needs the class's member team"},
    {"{\"Note\":{\"update\":[{\"to\":\"owner\",\"if\":{\"unchanged\":\"A.b\"}}]}}", "Note.update[0].to",
     "needs the class's member owner"},
    {"{\"Note\":{\"read\":[{\"to\":\"anybody\",\"if\":{\"unchanged\":\"A.b\"}}]}}", "Note.read[0]",
     "conditions are allowed in"},
    {"{\"Note\":{\"list\":[{}]}}", "Note.list[0]", "conditions are allowed in"},
    {"{\"Note\":{\"items\":{\"A\":{\"see\":[{\"to\":\"anybody\",\"if\":{}}]}}}}", "Note.items.A.see[0]",
     "conditions are allowed in"},
    {"{\"Note\":{\"update\":[{\"to\":\"anybody\"}]}}", "Note.update[0]", "The members to"},
    {"{\"Note\":{\"update\":[{\"if\":{\"unchanged\":\"A.b\"}}]}}", "Note.update[0]", "The members to"},
    {"{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":{\"unchanged\":\"A.b\"},\"or\":1}]}}",
     "Note.update[0].or", "Unknown member"},
    {"{\"Note\":{\"update\":[{\"to\":[\"anybody\"],\"if\":{\"unchanged\":\"A.b\"}}]}}", "Note.update[0].to",
     "A grant is expected"},
    {"{\"Note\":{\"owner\":\"owner\"}}", "Note.owner", "A member of a singleton"},
    {"{\"Note\":{\"owner\":7}}", "Note.owner", "A member of a singleton"},
    {"{\"Note\":{\"owner\":\"info.owner\"}}", "Note.owner", "class of items"},
    {"{\"Note\":{\"owner\":\"P.owner\"}}", "Note.owner", "attachments"},
    {"{\"Note\":{\"owner\":\"Info.\"}}", "Note.owner", "after the point"},
    {"{\"Note\":{\"owner\":\".owner\"}}", "Note.owner", "class of items"},
    {"{\"Note\":{\"owner\":\"Info.a.b\"}}", "Note.owner", "after the point"},
    {"{\"Note\":{\"owner\":\"Info.1a\"}}", "Note.owner", "after the point"},
    {"{\"Note\":{\"members\":\"share\"}}", "Note.members", "class of items"},
    {"{\"Note\":{\"members\":[\"Share\"]}}", "Note.members", "class of items"},
    {"{\"Note\":{\"members\":\"P\"}}", "Note.members", "attachments"},
    {"{\"Note\":{\"team\":\"Team\"}}", "Note.team", "class, id and members"},
    {"{\"Note\":{\"team\":{\"class\":\"Team\"}}}", "Note.team", "class, id and members"},
    {"{\"Note\":{\"team\":{\"class\":\"Account\",\"id\":\"A.b\",\"members\":\"Sess\"}}}", "Note.team.class",
     "belong to the server"},
    {"{\"Note\":{\"team\":{\"class\":7,\"id\":\"A.b\",\"members\":\"M\"}}}", "Note.team.class",
     "class of documents"},
    {"{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"b\",\"members\":\"M\"}}}", "Note.team.id",
     "A member of a singleton"},
    {"{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"A.b\",\"members\":\"m\"}}}", "Note.team.members",
     "class of items"},
    {"{\"Note\":{\"team\":{\"class\":\"Team\",\"id\":\"A.b\",\"members\":\"M\",\"role\":\"x\"}}}",
     "Note.team.role", "Unknown member"},
    {"{\"Note\":{\"items\":[]}}", "Note.items", "An object of classes of items"},
    {"{\"Note\":{\"items\":{\"a\":{}}}}", "Note.items.a", "class of items"},
    {"{\"Note\":{\"items\":{\"A\":[]}}}", "Note.items.A", "An object with see and write"},
    {"{\"Note\":{\"items\":{\"A\":{\"read\":[]}}}}", "Note.items.A.read", "Unknown member"},
    {"{\"Note\":{\"items\":{\"A\":{\"see\":\"anybody\"}}}}", "Note.items.A.see", "A list of at most 32"},
    {"{\"Note\":{\"items\":{\"A\":{\"write\":[\"all\"]}}}}", "Note.items.A.write[0]", "Unknown grant"},
};

static void malformed(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(texts_refused); i++)
        refuse(bytes_of(texts_refused[i].text), texts_refused[i].path, texts_refused[i].expected);
    refuse((struct bytes){"{}\0", 3}, "", "JSON object");
    refuse(NO_BYTES, "", "JSON object");
}

#define AT "Note.update[0].if"

static void malformed_conditions(void **state UNUSED)
{
    static const struct {
        const char *condition, *path, *expected;
    } cases[] = {
        {"true", AT, "A condition is expected"},
        {"[]", AT, "A condition is expected"},
        {"{}", AT, "A condition is expected"},
        {"null", AT, "A condition is expected"},
        {"{\"eq\":[1,1],\"ne\":[1,1]}", AT, "A condition is expected"},
        {"{\"equal\":[1,1]}", AT ".equal", "Unknown condition"},
        {"{\"EQ\":[1,1]}", AT ".EQ", "did you mean \"eq\"?"},
        {"{\"\":[1,1]}", AT ".", "Unknown condition"},
        {"{\"all\":{}}", AT ".all", "A list of conditions"},
        {"{\"all\":[]}", AT ".all", "A list of conditions"},
        {"{\"any\":\"x\"}", AT ".any", "A list of conditions"},
        {"{\"any\":[1]}", AT ".any[0]", "A condition is expected"},
        {"{\"not\":[]}", AT ".not", "A condition is expected"},
        {"{\"not\":[{\"unchanged\":\"A.b\"}]}", AT ".not", "A condition is expected"},
        {"{\"eq\":1}", AT ".eq", "A list of two operands"},
        {"{\"eq\":[]}", AT ".eq", "A list of two operands"},
        {"{\"eq\":[1]}", AT ".eq", "A list of two operands"},
        {"{\"eq\":[1,2,3]}", AT ".eq", "A list of two operands"},
        {"{\"eq\":[[1],2]}", AT ".eq[0]", "A text, number"},
        {"{\"eq\":[1,{}]}", AT ".eq[1]", "A text, number"},
        {"{\"eq\":[1,{\"a\":1}]}", AT ".eq[1].a", "Unknown operand"},
        {"{\"eq\":[1,{\"befor\":\"A.b\"}]}", AT ".eq[1].befor", "did you mean \"before\"?"},
        {"{\"eq\":[1,{\"before\":\"b\"}]}", AT ".eq[1].before", "A member of a singleton"},
        {"{\"eq\":[1,{\"before\":\"A.b\",\"after\":\"A.b\"}]}", AT ".eq[1]", "A text, number"},
        {"{\"eq\":[1,{\"caller\":\"roles\"}]}", AT ".eq[1].caller", "may be the list of in"},
        {"{\"eq\":[1,{\"caller\":\"name\"}]}", AT ".eq[1].caller", "\"account\" is expected"},
        {"{\"eq\":[1,{\"caller\":1}]}", AT ".eq[1].caller", "\"account\" is expected"},
        {"{\"in\":[1]}", AT ".in", "A list of two operands"},
        {"{\"in\":[1,2]}", AT ".in[1]", "A list of operands"},
        {"{\"in\":[1,[]]}", AT ".in[1]", "A list of operands"},
        {"{\"in\":[1,\"x\"]}", AT ".in[1]", "A list of operands"},
        {"{\"in\":[1,[[1]]]}", AT ".in[1][0]", "A text, number"},
        {"{\"in\":[1,[1,{\"caller\":\"roles\"}]]}", AT ".in[1][1].caller", "may be the list of in"},
        {"{\"in\":[1,{\"caller\":\"account\"}]}", AT ".in[1].caller", "\"roles\" is expected"},
        {"{\"in\":[{\"caller\":\"roles\"},[1]]}", AT ".in[0].caller", "may be the list of in"},
        {"{\"exists\":1}", AT ".exists", "A text, number"},
        {"{\"exists\":\"A.b\"}", AT ".exists", "A text, number"},
        {"{\"exists\":{\"caller\":\"roles\"}}", AT ".exists.caller", "may be the list of in"},
        {"{\"unchanged\":{\"before\":\"A.b\"}}", AT ".unchanged", "A member of a singleton"},
        {"{\"unchanged\":[\"A.b\"]}", AT ".unchanged", "A member of a singleton"},
        {"{\"unchanged\":\"A\"}", AT ".unchanged", "A member of a singleton"},
        {"{\"unchanged\":\"A.b.c\"}", AT ".unchanged", "after the point"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuse(bytes_of(arena_printf(arena, "{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":%s}]}}",
                                     cases[i].condition)),
               cases[i].path, cases[i].expected);
}

/* Appends `piece` so many times, with commas. */
static void repeat(struct builder *text, const char *piece, int times)
{
    for (int i = 0; i < times; i++)
        builder_printf(text, "%s%s", i ? "," : "", piece);
}

static void add_condition(struct builder *text, int levels)
{
    builder_clear(text, SIZE_MAX);
    builder_add_text(text, "{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":");
    for (int i = 1; i < levels; i++)
        builder_add_text(text, "{\"not\":");
    builder_add_text(text, "{\"unchanged\":\"A.b\"}");
    for (int i = 1; i < levels; i++)
        builder_add_text(text, "}");
    builder_add_text(text, "}]}}");
}

static void limits(void **state UNUSED)
{
    struct builder text = {0};
    builder_add_text(&text, "{\"Note\":{\"read\":[");
    repeat(&text, "\"anybody\"", RULES_GRANTS_MOST);
    size_t size = text.size;
    builder_add_text(&text, "]}}");
    accept(builder_bytes(&text));
    text.size = size;
    builder_add_text(&text, ",\"anybody\"]}}");
    refuse(builder_bytes(&text), "Note.read", "at most 32");

    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{");
    for (int i = 0; i < RULES_CLASSES_MOST; i++)
        builder_printf(&text, "%s\"C%d\":{}", i ? "," : "", i);
    size = text.size;
    builder_add_text(&text, "}");
    accept(builder_bytes(&text));
    text.size = size;
    builder_add_text(&text, ",\"More\":{}}");
    refuse(builder_bytes(&text), "", "At most 256 members");

    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{\"Note\":{\"items\":{");
    for (int i = 0; i < RULES_ITEMS_MOST; i++)
        builder_printf(&text, "%s\"C%d\":{\"see\":[]}", i ? "," : "", i);
    size = text.size;
    builder_add_text(&text, "}}}");
    accept(builder_bytes(&text));
    text.size = size;
    builder_add_text(&text, ",\"More\":{}}}}");
    refuse(builder_bytes(&text), "Note.items", "At most 64 members");

    add_condition(&text, 16);
    accept(builder_bytes(&text));
    add_condition(&text, 17);
    refuse(builder_bytes(&text),
           "Note.update[0].if.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not",
           "at most 16 levels");
    add_condition(&text, 1000);
    refuse(builder_bytes(&text), "", "nested deeper");

    /* A part and 255 others; an operand more. */
    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":{\"any\":[");
    repeat(&text, "{\"unchanged\":\"A.b\"}", RULES_CONDITION_NODES_MOST - 1);
    size = text.size;
    builder_add_text(&text, "]}},{\"to\":\"account\",\"if\":{\"unchanged\":\"A.b\"}}]}}");
    accept(builder_bytes(&text));
    text.size = size;
    builder_add_text(&text, ",{\"unchanged\":\"A.b\"}]}}]}}");
    refuse(builder_bytes(&text), "Note.update[0].if.any[255]", "at most 256 parts");
    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{\"Note\":{\"update\":[{\"to\":\"anybody\",\"if\":{\"in\":[1,[");
    repeat(&text, "1", 300);
    builder_add_text(&text, "]]}}]}}");
    refuse(builder_bytes(&text), "Note.update[0].if.in[1][253]", "at most 256 parts");

    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{}");
    memset(builder_reserve(&text, RULES_TEXT_MOST), ' ', RULES_TEXT_MOST);
    text.size = RULES_TEXT_MOST;
    accept(builder_bytes(&text));
    text.size++;
    refuse(builder_bytes(&text), "", "at most 262144 bytes");

    /* Very many values. */
    builder_clear(&text, SIZE_MAX);
    builder_add_text(&text, "{\"Note\":{\"read\":[");
    repeat(&text, "1", 100000);
    builder_add_text(&text, "]}}");
    refuse(builder_bytes(&text), "", "more than 65536 values");
    builder_free(&text);
}

static void roles_and_reserved_classes(void **state UNUSED)
{
    char longest[65];
    memset(longest, 'a', 65);
    assert_true(rules_is_role((struct bytes){longest, 64}));
    assert_false(rules_is_role((struct bytes){longest, 65}));
    assert_true(rules_is_role(BYTES("a")) && rules_is_role(BYTES("9")) &&
                rules_is_role(BYTES("a:b/c.d_e-f")));
    assert_false(rules_is_role(BYTES("")) || rules_is_role(BYTES("a b")) || rules_is_role(BYTES(":a")));
    assert_false(rules_is_role((struct bytes){"a\0b", 3}) || rules_is_role(BYTES("\xc3\xa9")));
    assert_true(rules_is_reserved(BYTES("Account")) && rules_is_reserved(BYTES("Login")) &&
                rules_is_reserved(BYTES("Ticket")));
    assert_false(rules_is_reserved(BYTES("account")) || rules_is_reserved(BYTES("Accounts")));
    /* A long name in a path ends at a character. */
    refuse(BYTES("{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9zz\":{}}"),
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "class of documents");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(valid),
        ARENA_TEST(malformed),
        ARENA_TEST(malformed_conditions),
        ARENA_TEST(limits),
        ARENA_TEST(roles_and_reserved_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
