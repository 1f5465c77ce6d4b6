/* test_names: which name was meant by one that is not known, and where a value of a JSON text stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include "base/names.h"
#include "edge/json/json.h"

#define DOCUMENT "c id if items delete"
#define E8       "éééééééé"

static void known_names_are_found(void **state UNUSED)
{
    assert_true(names_have(DOCUMENT, BYTES("c")));
    assert_true(names_have(DOCUMENT, BYTES("id")));
    assert_true(names_have(DOCUMENT, BYTES("delete")));
    assert_false(names_have(DOCUMENT, BYTES("If")));
    assert_false(names_have(DOCUMENT, BYTES("item")));
    assert_false(names_have(DOCUMENT, BYTES("itemss")));
    assert_false(names_have(DOCUMENT, BYTES("c id")));
    assert_false(names_have(DOCUMENT, BYTES("")));
    assert_false(names_have("", BYTES("c")));
    assert_false(names_have("", BYTES("")));
}

static void the_nearest_name_is_found(void **state UNUSED)
{
    static const struct {
        const char *known, *name, *nearest;
    } cases[] = {
        {DOCUMENT, "If", "if"},
        {DOCUMENT, "fi", NULL}, /* of two letters nothing is left when both are wrong */
        {DOCUMENT, "item", "items"},
        {DOCUMENT, "Items", "items"},
        {DOCUMENT, "delte", "delete"},
        {DOCUMENT, "deleet", "delete"},
        {DOCUMENT, "ID", "id"},
        {DOCUMENT, "C", "c"},
        {DOCUMENT, "x", NULL},
        {DOCUMENT, "version", NULL},
        {DOCUMENT, "", NULL},
        {"c i where id want limit cursor", "were", "where"},
        {"c i where id want limit cursor", "Limits", "limit"},
        {"c collection value token cursor limit want stream", "tokn", "token"},
        {"c collection value token cursor limit want stream", "coll", "collection"},
        {"c collection value token cursor limit want stream", "orderby", NULL},
        {"", "orderby", NULL},
        {"c", "a name that is much longer than any that there is", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes nearest = names_nearest(cases[i].known, bytes_of(cases[i].name));
        assert_true(cases[i].nearest ? bytes_equal(nearest, bytes_of(cases[i].nearest)) : !nearest.data);
    }
}

static void explains(const char *known, const char *name, const char *sentence)
{
    struct builder text = {0};
    names_explain(known, "member", bytes_of(name), &text);
    builder_add(&text, "", 1);
    assert_string_equal(text.data, sentence);
    builder_free(&text);
}

static void unknown_names_are_explained(void **state UNUSED)
{
    explains(DOCUMENT, "If", "Unknown member \"If\"; did you mean \"if\"?");
    explains(DOCUMENT, "version", "Unknown member \"version\"; known are c, id, if, items and delete.");
    explains("c id", "version", "Unknown member \"version\"; known are c and id.");
    explains("c", "version", "Unknown member \"version\"; known is only c.");
    explains("", "version", "Unknown member \"version\"; no member is expected here.");
    /* cut between characters */
    explains("c", E8 E8 E8 E8 "é", "Unknown member \"" E8 E8 E8 E8 "...\"; known is only c.");
    explains("c", "x" E8 E8 E8 E8 "é", "Unknown member \"x" E8 E8 E8 "ééééééé...\"; known is only c.");
}

static void points(const struct json *root, const struct json *value, const char *pointer)
{
    struct builder text = {0};
    assert_int_equal(json_add_pointer(&text, root, value), pointer != NULL);
    builder_add(&text, "", 1);
    assert_string_equal(text.data, pointer ? pointer : "");
    builder_free(&text);
}

static void values_are_pointed_at(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct json *root, *other;
    struct json_problem problem;
    const struct json_limits limits = {.depth = 32, .tree_depth = 5};
    assert_int_equal(
        json_read(arena,
                  BYTES("{\"docs\":[{\"c\":\"A\"},{\"c\":\"B\",\"items\":[{\"c\":1,\"j\":[1]}]}],"
                        "\"a/b~c\":{\"x\":2},\"\":3}"),
                  &limits, &root, &problem),
        FAULT_NONE);
    assert_int_equal(json_read(arena, BYTES("{\"c\":1}"), &limits, &other, &problem), FAULT_NONE);
    const struct json *docs = json_member(root, "docs"), *second = docs->first->next;
    points(root, root, "");
    points(root, docs, "/docs");
    points(root, second, "/docs/1");
    points(root, json_member(second, "items"), "/docs/1/items");
    points(root, json_member(json_member(second, "items")->first, "j"), "/docs/1/items/0/j");
    points(root, json_member(json_member(root, "a/b~c"), "x"), "/a~1b~0c/x");
    points(root, json_member(root, ""), "/");
    points(second, docs, NULL);
    points(root, other->first, NULL);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_names_are_found),
        cmocka_unit_test(the_nearest_name_is_found),
        cmocka_unit_test(unknown_names_are_explained),
        cmocka_unit_test(values_are_pointed_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
