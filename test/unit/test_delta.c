/* delta: each case of catching up, as JSON and as a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "model/document/delta.h"

/* Versions are small numbers here: only their order counts. */
static const struct item source_items[] = {
    {.iclass = {"A", 1}, .key = {"new", 3}, .version = 90, .vop = 90, .content = {"1", 1}},
    {.iclass = {"A", 1}, .key = {"old.\"q\"", 7}, .version = 15, .vop = 15, .content = {"2", 1}},
    {.iclass = {"B", 1}, .key = {"gone", 4}, .version = 60},
    {.iclass = {"B", 1}, .key = {"gone2", 5}, .version = 85},
    {.iclass = {"S", 1}, .key = {"", 0}, .version = 10, .vop = 10, .content = {"s", 1}, .raw = true},
    {.iclass = {"T", 1}, .key = {"", 0}, .version = 70, .vop = 70, .content = {"[]", 2}},
};

#define HEADER(v, dt) "{\"c\":\"Doc\",\"id\":\"i\",\"v\":" v ",\"ct\":10,\"dt\":" dt
#define NEW           "{\"c\":\"A\",\"k\":\"new\",\"v\":90,\"j\":1}"
#define OLD           "{\"c\":\"A\",\"k\":\"old.\\\"q\\\"\",\"v\":15,\"j\":2}"
#define GONE          "{\"c\":\"B\",\"k\":\"gone\",\"v\":60}"
#define GONE2         "{\"c\":\"B\",\"k\":\"gone2\",\"v\":85}"
#define S             "{\"c\":\"S\",\"v\":10,\"s\":\"s\"}"
#define T             "{\"c\":\"T\",\"v\":70,\"j\":[]}"

static struct document *source_create(void)
{
    struct header header = {.class = BYTES("Doc"), .id = BYTES("i"), .version = 90, .ctime = 10, .dtime = 50};
    return document_build(&header, source_items, COUNT_OF(source_items));
}

static void assert_json(const struct document *source, struct client_copy held, const char *expected)
{
    struct builder builder = {0};
    builder_add_text(&builder, "before ");
    struct delta delta = delta_compute(source, held);
    delta_write_json(&delta, &builder);
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data + strlen("before "), expected);
    builder_free(&builder);
}

/* Each case of compute, as the client gets it. */
static void json_says_each_case(void **state UNUSED)
{
    struct document *source = source_create();
    static const struct {
        struct client_copy held;
        const char *json;
    } cases[] = {
        /* nothing held: no tombstone, and the dtime confesses it */
        {{0, 0, 0}, HEADER("90", "85") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[]}"},
        {{0, 10, 60}, HEADER("90", "85") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[]}"},
        {{-5, 10, 0}, HEADER("90", "85") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[]}"},
        /* another life, earlier or later */
        {{70, 9, 50}, HEADER("90", "85") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[]}"},
        {{90, 11, 50}, HEADER("90", "85") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[]}"},
        /* unchanged; the holder forgot more than the source, or less */
        {{90, 10, 50}, HEADER("90", "50") ",\"items\":[],\"dels\":[]}"},
        {{90, 10, 10}, HEADER("90", "50") ",\"items\":[],\"dels\":[]}"},
        {{90, 10, 88}, HEADER("90", "88") ",\"items\":[],\"dels\":[]}"},
        /* case 1, down to the very dtime */
        {{84, 10, 50}, HEADER("90", "50") ",\"items\":[" NEW "],\"dels\":[" GONE2 "]}"},
        {{85, 10, 50}, HEADER("90", "50") ",\"items\":[" NEW "],\"dels\":[]}"},
        {{69, 10, 66}, HEADER("90", "66") ",\"items\":[" NEW "," T "],\"dels\":[" GONE2 "]}"},
        {{50, 10, 20}, HEADER("90", "50") ",\"items\":[" NEW "," T "],\"dels\":[" GONE "," GONE2 "]}"},
        /* case 2 */
        {{49, 10, 20},
         HEADER("90", "50") ",\"items\":[" NEW "," T "],\"dels\":[" GONE "," GONE2
                            "],\"clkeys\":[\"A.old.\\\"q\\\"\",\"S\"]}"},
        {{12, 10, 10},
         HEADER("90", "50") ",\"items\":[" NEW "," OLD "," T "],\"dels\":[" GONE "," GONE2
                            "],\"clkeys\":[\"S\"]}"},
        {{9, 10, 9},
         HEADER("90", "50") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[" GONE "," GONE2
                            "],\"clkeys\":[]}"},
        /* a holder of what the source has never been: everything comes, nothing else stays */
        {{91, 10, 50},
         HEADER("90", "50") ",\"items\":[" NEW "," OLD "," S "," T "],\"dels\":[" GONE "," GONE2
                            "],\"clkeys\":[]}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_json(source, cases[i].held, cases[i].json);
    document_release(source);
}

static void a_first_copy_without_tombstones_keeps_its_dtime(void **state UNUSED)
{
    struct header header = {.class = BYTES("Doc"), .id = BYTES("i"), .version = 90, .ctime = 10, .dtime = 50};
    struct document *source = document_build(&header, source_items, 2);
    assert_json(source, (struct client_copy){0},
                HEADER("90", "50") ",\"items\":[" NEW "," OLD "],\"dels\":[]}");
    document_release(source);
}

/* A tombstone that should have been purged is still none of the items that exist. */
static void a_forgotten_tombstone_is_not_named(void **state UNUSED)
{
    struct header header = {.class = BYTES("Doc"), .id = BYTES("i"), .version = 90, .ctime = 10, .dtime = 80};
    struct document *source = document_build(&header, source_items, 3);
    assert_json(source, (struct client_copy){70, 10, 70},
                HEADER("90", "80") ",\"items\":[" NEW "],\"dels\":[],\"clkeys\":[\"A.old.\\\"q\\\"\"]}");
    document_release(source);
}

static void what_does_not_exist_is_a_header(void **state UNUSED)
{
    struct header header = {.class = BYTES("Doc"), .id = BYTES("i"), .version = 95};
    struct document *source = document_build(&header, NULL, 0);
    struct document *copy = source_create();
    assert_json(source, (struct client_copy){90, 10, 50},
                "{\"c\":\"Doc\",\"id\":\"i\",\"v\":0,\"ct\":0,\"dt\":0}");
    assert_json(source, (struct client_copy){0}, "{\"c\":\"Doc\",\"id\":\"i\",\"v\":0,\"ct\":0,\"dt\":0}");
    struct delta delta = delta_compute(source, (struct client_copy){90, 10, 50});
    struct document *after = delta_apply(&delta, copy);
    assert_false(document_exists(after));
    assert_int_equal(after->header.version, 0);
    assert_int_equal(after->item_count, 0);
    document_release(after);
    document_release(copy);
    document_release(source);
}

/* What the holder has after catching up, as `Class.key@version`, `-` before tombstones. */
static void assert_applied(const struct document *source, const struct document *copy, int64_t dtime,
                           const char *expected)
{
    struct client_copy held = {0};
    if (copy)
        held = (struct client_copy){copy->header.version, copy->header.ctime, copy->header.dtime};
    struct delta delta = delta_compute(source, held);
    struct document *after = delta_apply(&delta, copy);
    struct builder builder = {0};
    for (size_t i = 0; i < after->item_count; i++) {
        const struct item *item = &after->items[i];
        builder_printf(&builder, "%s%s%.*s.%.*s@%d", i ? " " : "", item_is_tombstone(item) ? "-" : "",
                       (int)item->iclass.size, item->iclass.data, (int)item->key.size, item->key.data,
                       (int)item->version);
        const struct item *has = document_find_item(source, item->iclass, item->key);
        if (!item_is_tombstone(item)) {
            assert_non_null(has);
            assert_true(bytes_equal(item->json, has->json));
        }
    }
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, expected);
    assert_int_equal(after->header.version, source->header.version);
    assert_int_equal(after->header.ctime, source->header.ctime);
    assert_int_equal(after->header.dtime, dtime);
    assert_int_equal(after->header.v1, source->header.v1);
    builder_free(&builder);
    document_release(after);
}

static struct document *copy_create(int64_t version, int64_t dtime, const struct item *items, size_t count)
{
    struct header header = {
        .class = BYTES("Doc"), .id = BYTES("i"), .version = version, .ctime = 10, .dtime = dtime};
    return document_build(&header, items, count);
}

#define LIVE "A.new@90 A.old.\"q\"@15"

static void copies_catch_up(void **state UNUSED)
{
    struct document *source = source_create();
    assert_applied(source, NULL, 85, LIVE " S.@10 T.@70");

    /* case 1: `gone` was there at 55, `early` was removed before, and known to be */
    const struct item at_55[] = {
        source_items[1],
        {.iclass = {"B", 1}, .key = {"early", 5}, .version = 53},
        {.iclass = {"B", 1}, .key = {"gone", 4}, .version = 20, .vop = 20, .content = {"1", 1}},
        source_items[4],
    };
    struct document *copy = copy_create(55, 50, at_55, COUNT_OF(at_55));
    assert_applied(source, copy, 50, LIVE " -B.early@53 -B.gone@60 -B.gone2@85 S.@10 T.@70");
    document_release(copy);

    /* the same, but the holder has forgotten up to 54 */
    copy = copy_create(55, 54, at_55, COUNT_OF(at_55));
    assert_applied(source, copy, 54, LIVE " -B.gone@60 -B.gone2@85 S.@10 T.@70");
    document_release(copy);

    /* case 2: `lost` went between 30 and the source's dtime: only the list of what exists tells it */
    const struct item at_30[] = {
        source_items[1],
        {.iclass = {"B", 1}, .key = {"gone", 4}, .version = 20, .vop = 20, .content = {"1", 1}},
        {.iclass = {"B", 1}, .key = {"lost", 4}, .version = 21, .vop = 21, .content = {"1", 1}},
        {.iclass = {"B", 1}, .key = {"never", 5}, .version = 25},
        source_items[4],
    };
    copy = copy_create(30, 10, at_30, COUNT_OF(at_30));
    assert_applied(source, copy, 50, LIVE " -B.gone@60 -B.gone2@85 S.@10 T.@70");
    document_release(copy);

    /* unchanged */
    copy = copy_create(
        90, 85, (struct item[]){source_items[0], source_items[1], source_items[4], source_items[5]}, 4);
    assert_applied(source, copy, 85, LIVE " S.@10 T.@70");
    document_release(copy);

    /* from a future that was lost: an item and a tombstone that the source never had */
    const struct item at_99[] = {
        {.iclass = {"A", 1}, .key = {"dream", 5}, .version = 95, .vop = 95, .content = {"1", 1}},
        {.iclass = {"A", 1}, .key = {"new", 3}, .version = 99},
        {.iclass = {"Z", 1}, .key = {"", 0}, .version = 98},
    };
    copy = copy_create(99, 80, at_99, COUNT_OF(at_99));
    assert_applied(source, copy, 50, LIVE " -B.gone@60 -B.gone2@85 S.@10 T.@70");
    document_release(copy);

    /* another life */
    struct header header = {.class = BYTES("Doc"), .id = BYTES("i"), .version = 8, .ctime = 5, .dtime = 5};
    copy = document_build(
        &header,
        (struct item[]){{.iclass = {"S", 1}, .key = {"", 0}, .version = 8, .vop = 8, .content = {"0", 1}}},
        1);
    assert_applied(source, copy, 85, LIVE " S.@10 T.@70");
    document_release(copy);
    document_release(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_says_each_case),
        cmocka_unit_test(a_first_copy_without_tombstones_keeps_its_dtime),
        cmocka_unit_test(a_forgotten_tombstone_is_not_named),
        cmocka_unit_test(what_does_not_exist_is_a_header),
        cmocka_unit_test(copies_catch_up),
    };
    return cmocka_run_group_tests_name("delta", tests, NULL, NULL);
}
