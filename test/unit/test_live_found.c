/* test_live_found: pages of searches: what is read of an answer, differences that are applied to the former
 * page, and which of them a listener gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "edge/json/json.h"
#include "live/topics/live_found.h"
#include "live/topics/live_question.h"

enum { ROWS_MOST = 12, ROUNDS = 3000 };

static struct live_page *page_of(const char *out)
{
    return live_page_read(arena, BYTES("search"), bytes_of(arena_printf(arena, "{\"out\":%s}", out)));
}

static const char *written(const struct live_found *found, uint64_t *known)
{
    struct builder text = {0};
    *known = live_found_write(found, *known, &text);
    return builder_take(&text, arena).data;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), more = strlen(end);
    return size >= more && strcmp(text + size - more, end) == 0;
}

/* --- answers --- */

static void answers_are_read(void **state UNUSED)
{
    struct live_page *page =
        page_of("{\"items\":[{\"id\":\"a\",\"v\":5,\"j\":{}},{\"id\":\"b\",\"k\":\"k\",\"v\":6,\"j\":{\"x\":["
                "1]}}],\"cursor\":\"c\"}");
    struct builder text = {0};
    live_page_write(page, &text);
    assert_string_equal(builder_take(&text, arena).data,
                        ",\"rows\":[[\"a\",\"\",5],[\"b\",\"k\",6]],\"more\":true");
    free(page);
    page = page_of("{\"ids\":[\"a\\\"b\"]}");
    live_page_write(page, &text);
    assert_string_equal(builder_take(&text, arena).data, ",\"rows\":[[\"a\\\"b\",\"\",0]]");
    free(page);
    page = page_of("{\"docs\":[{\"c\":\"Post\",\"id\":\"d\",\"v\":7,\"items\":[]}]}");
    live_page_write(page, &text);
    assert_string_equal(builder_take(&text, arena).data, ",\"rows\":[[\"d\",\"\",7]]");
    free(page);
    page = page_of("{\"count\":3,\"more\":true}");
    live_page_write(page, &text);
    assert_string_equal(builder_take(&text, arena).data, ",\"answer\":{\"count\":3,\"more\":true}");
    free(page);
    assert_null(live_page_read(arena, BYTES(""), BYTES("{\"out\":")));
    assert_null(live_page_read(arena, BYTES(""), BYTES("[]")));
}

static void stamps_are_of_pages_and_searches(void **state UNUSED)
{
    struct live_page *one = page_of("{\"ids\":[\"a\"]}"), *same = page_of("{\"ids\":[\"a\"]}"),
                     *other = page_of("{\"ids\":[\"b\"]}"),
                     *more = page_of("{\"ids\":[\"a\"],\"cursor\":\"c\"}");
    struct live_page *searched = live_page_read(arena, BYTES("other"), BYTES("{\"out\":{\"ids\":[\"a\"]}}"));
    assert_string_equal(one->stamp, same->stamp);
    assert_string_not_equal(one->stamp, other->stamp);
    assert_string_not_equal(one->stamp, more->stamp);
    assert_string_not_equal(one->stamp, searched->stamp);
    struct live_page *all[] = {one, same, other, more, searched};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        free(all[i]);
}

/* --- differences --- */

struct row {
    int64_t id, version;
};

static struct live_page *random_page(void)
{
    struct builder text = {0};
    bool is_taken[2 * ROWS_MOST] = {false};
    const char *comma = "";
    builder_add_text(&text, "{\"items\":[");
    for (int i = rand() % (ROWS_MOST + 1); i > 0; i--) {
        int id = rand() % (2 * ROWS_MOST);
        if (is_taken[id])
            continue;
        is_taken[id] = true;
        builder_printf(&text, "%s{\"id\":\"%d\",\"k\":\"%d\",\"v\":%d}", comma, id / 2, id % 2, rand() % 3);
        comma = ",";
    }
    builder_add_text(&text, "]}");
    return page_of(builder_take(&text, arena).data);
}

static int64_t number_of(const struct json *value)
{
    int64_t number = 0;
    assert_true(bytes_to_i64(value->value, &number));
    return number;
}

static int64_t id_of(const struct json *id)
{
    return 2 * number_of(id) + number_of(id->next);
}

static size_t take_out(struct row *rows, size_t count, int64_t id)
{
    size_t i = 0;
    while (i < count && rows[i].id != id)
        i++;
    assert_true(i < count);
    memmove(&rows[i], &rows[i + 1], (count - i - 1) * sizeof *rows);
    return count - 1;
}

static size_t put_in(struct row *rows, size_t count, const struct json *one)
{
    size_t place = (size_t)number_of(one->first);
    assert_true(place <= count);
    memmove(&rows[place + 1], &rows[place], (count - place) * sizeof *rows);
    rows[place] = (struct row){id_of(one->first->next), number_of(one->first->next->next->next)};
    return count + 1;
}

/* As a client does it.  Returns how many rows are moved. */
static size_t apply(struct row *rows, size_t *count, const struct json *changes)
{
    const struct json *left = json_member(changes, "left"), *entered = json_member(changes, "entered"),
                      *moved = json_member(changes, "moved"), *changed = json_member(changes, "changed");
    const struct json *a = entered ? entered->first : NULL, *b = moved ? moved->first : NULL;
    for (const struct json *one = left ? left->first : NULL; one; one = one->next)
        *count = take_out(rows, *count, id_of(one->first));
    for (const struct json *one = b; one; one = one->next)
        *count = take_out(rows, *count, id_of(one->first->next));
    while (a || b) {
        bool is_first = a && (!b || number_of(a->first) < number_of(b->first));
        *count = put_in(rows, *count, is_first ? a : b);
        if (is_first)
            a = a->next;
        else
            b = b->next;
    }
    for (const struct json *one = changed ? changed->first : NULL; one; one = one->next) {
        struct row *row = &rows[number_of(one->first)];
        assert_int_equal(row->id, id_of(one->first->next));
        row->version = number_of(one->first->next->next->next);
    }
    return moved ? moved->count : 0;
}

static size_t rows_of(const struct live_page *page, struct row *rows)
{
    for (size_t i = 0; i < page->count; i++) {
        int64_t id = 0, key = 0;
        assert_true(bytes_to_i64(page->rows[i].id, &id) && bytes_to_i64(page->rows[i].key, &key));
        rows[i] = (struct row){2 * id + key, page->rows[i].version};
    }
    return page->count;
}

static void differences_lead_to_the_page(void **state UNUSED)
{
    srand(7);
    struct live_page *former = random_page();
    for (int round = 0; round < ROUNDS; round++) {
        struct live_page *page = random_page();
        struct row rows[4 * ROWS_MOST], expected[2 * ROWS_MOST];
        size_t count = rows_of(former, rows), wanted = rows_of(page, expected);
        struct builder text = {0};
        struct json *changes;
        builder_add_text(&text, "{\"def\":0");
        live_page_write_changes(former, page, arena, &text);
        builder_add_text(&text, "}");
        assert_true(json_is_tree(arena, builder_take(&text, arena), 8, 8, &changes));
        assert_true(apply(rows, &count, changes) <= (wanted ? wanted - 1 : 0));
        assert_int_equal(count, wanted);
        for (size_t i = 0; i < count; i++)
            assert_true(rows[i].id == expected[i].id && rows[i].version == expected[i].version);
        free(former);
        former = page;
    }
    free(former);
}

static void the_fewest_are_moved(void **state UNUSED)
{
    struct live_page *former = page_of("{\"ids\":[\"1\",\"2\",\"3\",\"4\",\"5\"]}"),
                     *page = page_of("{\"ids\":[\"5\",\"1\",\"2\",\"4\",\"3\"]}");
    struct builder text = {0};
    live_page_write_changes(former, page, arena, &text);
    const char *changes = builder_take(&text, arena).data;
    assert_true(strcmp(changes, ",\"moved\":[[0,\"5\",\"\",0],[3,\"4\",\"\",0]]") == 0 ||
                strcmp(changes, ",\"moved\":[[0,\"5\",\"\",0],[4,\"3\",\"\",0]]") == 0);
    free(former);
    free(page);
}

static void more_is_told_when_it_changes(void **state UNUSED)
{
    struct live_page *former = page_of("{\"ids\":[\"1\"],\"cursor\":\"c\"}"),
                     *page = page_of("{\"ids\":[\"1\"]}");
    struct builder text = {0};
    live_page_write_changes(former, page, arena, &text);
    assert_string_equal(builder_take(&text, arena).data, ",\"more\":false");
    live_page_write_changes(page, former, arena, &text);
    assert_string_equal(builder_take(&text, arena).data, ",\"more\":true");
    free(former);
    free(page);
}

/* --- which of them --- */

static void take(struct live_found *found, int first, int last)
{
    for (int i = first; i <= last; i++)
        live_found_take(found, page_of(arena_printf(arena, "{\"ids\":[\"%d\"]}", i)), arena);
}

static void a_listener_gets_each_difference_once(void **state UNUSED)
{
    struct live_found found = {0};
    uint64_t known = 0;
    take(&found, 1, 1);
    assert_true(ends_with(written(&found, &known), ",\"rows\":[[\"1\",\"\",0]]"));
    assert_int_equal(known, found.turn);
    take(&found, 1, 1);
    assert_int_equal(known, found.turn); /* nothing new */
    take(&found, 2, 3);
    assert_true(
        ends_with(written(&found, &known), ",\"left\":[[\"1\",\"\"]],\"entered\":[[0,\"2\",\"\",0]]"));
    assert_true(
        ends_with(written(&found, &known), ",\"left\":[[\"2\",\"\"]],\"entered\":[[0,\"3\",\"\",0]]"));
    assert_int_equal(known, found.turn);
    take(&found, 4, 4 + LIVE_FOUND_STEPS);
    assert_non_null(strstr(written(&found, &known), ",\"rows\":"));
    assert_int_equal(known, found.turn);
    live_found_free(&found);
}

static void stamps_resume(void **state UNUSED)
{
    struct live_found found = {0};
    take(&found, 1, 1);
    struct bytes first = arena_keep(arena, bytes_of(found.page->stamp));
    assert_int_equal(live_found_turn_of(&found, first), found.turn);
    take(&found, 2, 1 + LIVE_FOUND_STEPS);
    uint64_t known = live_found_turn_of(&found, first);
    assert_int_equal(known, 1);
    assert_non_null(strstr(written(&found, &known), "\"entered\":[[0,\"2\""));
    take(&found, 100, 100);
    assert_int_equal(live_found_turn_of(&found, first), 0);
    assert_int_equal(live_found_turn_of(&found, BYTES("x")), 0);
    known = found.turn;
    assert_null(strstr(written(&found, &known), "rows"));
    live_found_free(&found);
}

/* --- answers of workers --- */

static bool answered_within(struct live_found *found, size_t most, const char *answer)
{
    const struct live_found_room room = {most, BYTES("{\"code\":\"XCROWDED\"}")};
    return live_found_take_answer(found, BYTES("search"), bytes_of(answer), &room, arena);
}

static bool answered(struct live_found *found, const char *answer)
{
    return answered_within(found, SIZE_MAX, answer);
}

static void refusals_are_news_unless_they_pass(void **state UNUSED)
{
    struct live_found found = {0};
    uint64_t known = 0;
    assert_false(answered(&found, NULL));
    assert_false(answered(&found, "Status: 200 OK"));
    assert_false(answered(&found, "Status: 429 X\r\n\r\n{\"code\":\"XBUSY\"}"));
    assert_false(answered(&found, "Status: 401 X\r\n\r\n{\"code\":\"SKEY\"}"));
    assert_false(answered(&found, "Status: 502 X\r\n\r\n<html>"));
    assert_int_equal(found.turn, 0);
    assert_true(answered(&found, "Status: 400 X\r\n\r\n{\"code\":\"AINDEX\"}"));
    assert_string_equal(written(&found, &known), ",\"fault\":{\"code\":\"AINDEX\"}");
    assert_true(answered(&found, "Status: 400 X\r\n\r\n{\"code\":\"AINDEX\"}"));
    assert_int_equal(found.turn, known);
    assert_true(answered(&found, "Status: 200 OK\r\n\r\n{\"out\":{\"ids\":[]}}"));
    assert_true(ends_with(written(&found, &known), ",\"rows\":[]"));
    assert_false(answered(&found, "Status: 503 X\r\n\r\n{\"code\":\"XCROWDED\"}"));
    assert_non_null(found.page);
    live_found_free(&found);
}

static void what_has_no_room_is_given_up(void **state UNUSED)
{
    const char *first = "Status: 200 OK\r\n\r\n{\"out\":{\"ids\":[\"1\"]}}",
               *second = "Status: 200 OK\r\n\r\n{\"out\":{\"ids\":[\"2\"]}}";
    struct live_found found = {0};
    uint64_t known = 0;
    assert_true(answered(&found, first));
    size_t most = live_found_bytes(&found); /* of a page alone */
    written(&found, &known);
    assert_true(answered(&found, second));
    assert_true(live_found_bytes(&found) > most); /* with a difference */
    assert_true(ends_with(written(&found, &known), "\"entered\":[[0,\"2\",\"\",0]]"));
    assert_true(answered_within(&found, most, first));
    assert_int_equal(live_found_bytes(&found), most);
    assert_true(ends_with(written(&found, &known), ",\"rows\":[[\"1\",\"\",0]]"));
    for (int i = 0; i < 2; i++) {
        assert_true(answered_within(&found, most - 1, second));
        assert_null(found.page);
        assert_int_equal(known + 1, found.turn); /* the same refusal is no news */
    }
    assert_string_equal(written(&found, &known), ",\"fault\":{\"code\":\"XCROWDED\"}");
    assert_true(answered_within(&found, most, second));
    assert_true(ends_with(written(&found, &known), ",\"rows\":[[\"2\",\"\",0]]"));
    live_found_free(&found);
}

/* --- questions --- */

static struct live_question question;

static enum fault ask(const char *definition)
{
    const char *wrong;
    struct builder body = {0};
    builder_add_text(&body, "{\"defs\":[\"Person\",");
    json_add_string(&body, bytes_of(definition));
    builder_add_text(&body, "],\"have\":[\"s\"]}");
    const struct live_source source = {.query = BYTES(""),
                                       .content_type = BYTES("application/json"),
                                       .body = builder_take(&body, arena),
                                       .definitions_most = 10,
                                       .definition_bytes_most = 2048,
                                       .records_most = 2,
                                       .searches_most = 1,
                                       .search_rows_most = 50};
    return live_question_read(arena, &source, &question, &wrong);
}

static void searches_are_read(void **state UNUSED)
{
    assert_int_equal(
        ask("find:{\"c\":\"Post\",\"i\":\"Main\",\"want\":[\"a\"],\"order\":\"-at\",\"marks\":\"w\"}"),
        FAULT_NONE);
    assert_int_equal(question.wish_count, 1);
    const struct live_wish *wish = &question.wishes[0];
    assert_string_equal(
        arena_copy(arena, wish->body.data, wish->body.size),
        "{\"param\":{\"c\":\"Post\",\"i\":\"Main\",\"order\":\"-at\",\"want\":[\"-\"],\"limit\":20}"
        "}");
    assert_int_equal(wish->position, 1);
    assert_int_equal(question.count_own, 1);
    assert_int_equal(question.count, 2);
    assert_int_equal(wish->end, 2);
    assert_int_equal(question.stamp_count, 1);
    assert_int_equal(ask("find:Post/r@a Post/r@b{\"c\":\"Post\",\"limit\":5}"), FAULT_NONE);
    assert_int_equal(question.count, 3);
    assert_true(bytes_equal(question.definitions[2].value, BYTES("b")));
    assert_int_equal(ask("find:{\"c\":\"Post\",\"want\":\"count\",\"limit\":5000}"), FAULT_NONE);
}

static void wrong_searches_are_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"find:",
                                        "find:{",
                                        "find:[]",
                                        "find:{}",
                                        "find:{\"c\":5}",
                                        "find:{\"c\":\"post\"}",
                                        "find:Post/a{\"c\":\"Post\"}",
                                        "find:Page/r@a{\"c\":\"Post\"}",
                                        "find:Post/r@a {\"c\":\"Post\"}x",
                                        "find:{\"c\":\"Post\",\"cursor\":\"x\"}"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(ask(wrong[i]), FAULT_AARG);
        assert_int_equal(question.wrong, 2);
    }
    assert_int_equal(ask("find:{\"c\":\"Post\",\"limit\":51}"), FAULT_ALIMIT);
    assert_int_equal(question.too_many_rows, 51);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(stamps_are_of_pages_and_searches),
        cmocka_unit_test(differences_lead_to_the_page),
        cmocka_unit_test(the_fewest_are_moved),
        cmocka_unit_test(more_is_told_when_it_changes),
        cmocka_unit_test(a_listener_gets_each_difference_once),
        cmocka_unit_test(stamps_resume),
        cmocka_unit_test(refusals_are_news_unless_they_pass),
        cmocka_unit_test(what_has_no_room_is_given_up),
        cmocka_unit_test(searches_are_read),
        cmocka_unit_test(wrong_searches_are_refused),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
