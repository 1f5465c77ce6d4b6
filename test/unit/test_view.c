/* view: what is hidden is in no form of a document, and changes of it do not show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/document/delta.h"
#include "rules_world.h"

#define RULES                                                                                                \
    "{\"Note\":{\"read\":[\"anybody\"],\"items\":{\"Pay\":{\"see\":[\"role:boss\"]},"                        \
    "\"Way\":{\"see\":[\"role:guide\"]}}}}"

/* Versions are small numbers here: only their order counts. */
static const struct item items[] = {
    {.iclass = {"A", 1}, .key = {"", 0}, .version = 20, .vop = 20, .content = {"1", 1}},
    {.iclass = {"B", 1}, .key = {"gone", 4}, .version = 30},
    {.iclass = {"Pay", 3}, .key = {"", 0}, .version = 80, .vop = 80, .content = {"9", 1}},
    {.iclass = {"Pay", 3}, .key = {"gone", 4}, .version = 90},
    {.iclass = {"Way", 3}, .key = {"", 0}, .version = 15, .vop = 15, .content = {"5", 1}},
};

static struct document *create(void)
{
    struct header header = {
        .class = BYTES("Note"), .id = BYTES("i"), .version = 90, .ctime = 10, .dtime = 50};
    return document_build(&header, items, COUNT_OF(items));
}

static struct view look(const char *caller, const struct document *document)
{
    struct rules_question question = rules_world_ask(RULES, caller);
    struct view view = {0};
    assert_true(rules_may_read(&question, document, &view.rules));
    view_take(&view, document, rules_world_arena);
    return view;
}

static void assert_json(const struct view *view, const struct document *document, const char *expected)
{
    struct builder builder = {0};
    view_write_json(view, document, &builder);
    assert_true(builder.size <= view_size(view, document));
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, expected);
    builder_free(&builder);
}

static const char *text(const char *format, const struct view *view)
{
    return arena_printf(rules_world_arena, format, view->name);
}

static void the_whole_is_the_ready_json(void **state UNUSED)
{
    struct document *document = create();
    struct view view = look("ann boss,guide", document);
    assert_true(view_is_whole(&view) && view_is_whole(NULL) && view_shows(NULL, BYTES("Pay")));
    assert_int_equal(view_name(&view).size, 0);
    assert_int_equal(view_version(&view, document), 90);
    assert_int_equal(view_version(NULL, document), 90);
    struct builder builder = {0};
    view_write_json(&view, document, &builder);
    assert_true(bytes_equal(builder_bytes(&builder), document->json));
    builder_free(&builder);
    document_release(document);
}

static void hidden_items_and_their_versions_are_left_out(void **state UNUSED)
{
    struct document *document = create();
    struct view view = look("", document);
    assert_false(view_is_whole(&view));
    assert_int_equal(view_version(&view, document), 30);
    assert_json(&view, document,
                text("{\"c\":\"Note\",\"id\":\"i\",\"v\":30,\"ct\":10,\"dt\":30,\"w\":\"%s\",\"items\":["
                     "{\"c\":\"A\",\"v\":20,\"j\":1}]}",
                     &view));
    struct view guide = look("ann guide", document);
    assert_int_equal(view_version(&guide, document), 30);
    assert_false(bytes_equal(view_name(&view), view_name(&guide)));
    document_release(document);
}

static void assert_delta(const char *caller, struct client_copy held, const char *w, const char *expected)
{
    struct document *document = create();
    struct view view = look(caller, document);
    struct builder builder = {0};
    struct delta delta = delta_compute_view(document, held, w ? bytes_of(w) : view_name(&view), &view);
    delta_write_json(&delta, &builder);
    assert_true(builder.size <= delta_size(&delta));
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, text(expected, &view));
    builder_free(&builder);
    document_release(document);
}

#define HEADER "{\"c\":\"Note\",\"id\":\"i\",\"v\":30,\"ct\":10,\"dt\":30,\"w\":\"%s\",\"items\":["
#define A      "{\"c\":\"A\",\"v\":20,\"j\":1}"
#define B      "{\"c\":\"B\",\"k\":\"gone\",\"v\":30}"

static void differences_have_nothing_that_is_hidden(void **state UNUSED)
{
    assert_delta("", (struct client_copy){0}, "", HEADER A "],\"dels\":[]}");
    assert_delta("", (struct client_copy){25, 9, 0}, NULL, HEADER A "],\"dels\":[]}");
    /* the document has forgotten removals up to 50: the names of what there is replace them */
    assert_delta("", (struct client_copy){25, 10, 10}, NULL, HEADER "],\"dels\":[" B "],\"clkeys\":[\"A\"]}");
    assert_delta("", (struct client_copy){30, 10, 30}, NULL, HEADER "],\"dels\":[],\"clkeys\":[\"A\"]}");
    /* a version that the view has never had */
    assert_delta("", (struct client_copy){60, 10, 30}, NULL, HEADER A "],\"dels\":[" B "],\"clkeys\":[]}");
}

static void another_view_replaces_the_copy(void **state UNUSED)
{
    assert_delta("", (struct client_copy){30, 10, 30}, "", HEADER A "],\"dels\":[" B "],\"clkeys\":[]}");
    assert_delta("", (struct client_copy){30, 10, 30}, "f00", HEADER A "],\"dels\":[" B "],\"clkeys\":[]}");
    struct document *document = create();
    struct builder builder = {0};
    struct delta delta = delta_compute_view(document, (struct client_copy){90, 10, 50}, BYTES("f00"), NULL);
    delta_write_json(&delta, &builder);
    builder_add(&builder, "", 1);
    assert_non_null(strstr(builder.data, "\"Pay\""));
    assert_non_null(strstr(builder.data, "\"clkeys\":[]}"));
    assert_null(strstr(builder.data, "\"w\""));
    builder_free(&builder);
    document_release(document);
}

static void nothing_has_changed_for_whoever_does_not_see_it(void **state UNUSED)
{
    struct header header = {
        .class = BYTES("Note"), .id = BYTES("i"), .version = 90, .ctime = 10, .dtime = 10};
    struct document *document = document_build(&header, items, COUNT_OF(items));
    struct view view = look("", document);
    struct delta delta =
        delta_compute_view(document, (struct client_copy){30, 10, 10}, view_name(&view), &view);
    struct builder builder = {0};
    assert_true(delta_is_empty(&delta));
    delta_write_json(&delta, &builder);
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, text(HEADER "],\"dels\":[]}", &view));
    builder_free(&builder);
    document_release(document);
}

static void what_does_not_exist_has_no_version(void **state UNUSED)
{
    struct header header = {.class = BYTES("Note"), .id = BYTES("i"), .version = 95};
    struct document *document = document_build(&header, NULL, 0);
    assert_int_equal(view_version(NULL, document), 0);
    document_release(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_is_the_ready_json),
        cmocka_unit_test(hidden_items_and_their_versions_are_left_out),
        cmocka_unit_test(differences_have_nothing_that_is_hidden),
        cmocka_unit_test(another_view_replaces_the_copy),
        cmocka_unit_test(nothing_has_changed_for_whoever_does_not_see_it),
        cmocka_unit_test(what_does_not_exist_has_no_version),
    };
    return cmocka_run_group_tests_name("view", tests, rules_world_set_up, rules_world_tear_down);
}
