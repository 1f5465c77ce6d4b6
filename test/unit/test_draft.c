/* draft: what an operation sees of its changes, what its commit writes, and the snapshot after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/builder.h"
#include "model/document/draft.h"
#include "model/document/stamp.h"

#define BIRTH   INT64_C(230501100000000)
#define COMMIT  (BIRTH + 50)
#define HORIZON (BIRTH + 3)

static const struct item base_items[] = {
    {.iclass = {"A", 1}, .key = {"1", 1}, .version = BIRTH, .vop = BIRTH, .content = {"11", 2}},
    {.iclass = {"A", 1}, .key = {"2", 1}, .version = BIRTH + 2},
    {.iclass = {"A", 1}, .key = {"3", 1}, .version = BIRTH, .vop = BIRTH - 9, .content = {"33", 2}},
    {.iclass = {"A", 1}, .key = {"4", 1}, .version = BIRTH + 4},
    {.iclass = {"R", 1},
     .key = {"", 0},
     .version = BIRTH + 5,
     .vop = BIRTH + 5,
     .content = {"\"", 1},
     .raw = true},
};
#define BASE_VOLUME (3 + 3 + 1)

struct bench {
    struct arena *arena;
    struct document *living, *zombie, *nothing;
};

static int setup(void **state)
{
    static struct bench bench;
    struct header header = {.class = BYTES("Doc"),
                            .id = BYTES("i"),
                            .version = BIRTH + 5,
                            .ctime = BIRTH,
                            .dtime = BIRTH,
                            .v2 = 77};
    bench.arena = arena_create("test");
    bench.living = document_build(&header, base_items, COUNT_OF(base_items));
    header = (struct header){.class = BYTES("Doc"), .id = BYTES("i"), .version = BIRTH + 5};
    bench.zombie = document_build(&header, NULL, 0);
    header.version = 0;
    header.floor = BIRTH + 8;
    bench.nothing = document_build(&header, NULL, 0);
    *state = &bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(bench->living->references, 1);
    document_release(bench->living);
    document_release(bench->zombie);
    document_release(bench->nothing);
    arena_destroy(bench->arena);
    return 0;
}

static void set(struct draft *draft, const char *iclass, const char *key, const char *content)
{
    draft_set_item(draft, bytes_of(iclass), bytes_of(key), false, bytes_of(content));
}

static void drop(struct draft *draft, const char *iclass, const char *key)
{
    draft_remove_item(draft, bytes_of(iclass), bytes_of(key));
}

static void assert_item(const struct draft *draft, const char *iclass, const char *key, const char *content)
{
    const struct item *item = draft_find_item(draft, bytes_of(iclass), bytes_of(key));
    if (!content) {
        assert_null(item);
        return;
    }
    assert_non_null(item);
    assert_true(bytes_equal(item->iclass, bytes_of(iclass)) && bytes_equal(item->key, bytes_of(key)));
    assert_true(bytes_equal(item->content, bytes_of(content)));
}

/* Items as "A.1=11", tombstones as "A.1-", then the names of the purged. */
static void assert_rows(const struct draft_rows *rows, const char *expected)
{
    struct builder builder = {0};
    for (size_t i = 0; i < rows->item_count; i++) {
        const struct item *item = rows->items[i];
        builder_printf(&builder, "%.*s.%.*s", (int)item->iclass.size, item->iclass.data, (int)item->key.size,
                       item->key.data);
        if (item_is_tombstone(item))
            builder_add_text(&builder, "- ");
        else
            builder_printf(&builder, "=%.*s ", (int)item->content.size, item->content.data);
        assert_int_equal(item->version, rows->header.version);
        assert_int_equal(item->vop, item_is_tombstone(item) ? 0 : rows->header.version);
    }
    builder_add_text(&builder, "|");
    for (size_t i = 0; i < rows->purge_count; i++)
        builder_printf(&builder, " %.*s.%.*s", (int)rows->purges[i]->iclass.size,
                       rows->purges[i]->iclass.data, (int)rows->purges[i]->key.size,
                       rows->purges[i]->key.data);
    builder_add(&builder, "", 1);
    assert_string_equal(builder.data, expected);
    builder_free(&builder);
}

static void a_draft_untouched_is_read(void **state)
{
    struct bench *bench = *state;
    struct draft *draft = draft_open(bench->arena, bench->living);
    assert_ptr_equal(draft_base(draft), bench->living);
    assert_true(draft_exists(draft));
    assert_int_equal(draft_act(draft), DRAFT_READ);
    assert_false(draft_is_changed(draft));
    assert_int_equal(draft_volume(draft), BASE_VOLUME);
    assert_item(draft, "A", "1", "11");
    assert_item(draft, "A", "2", NULL); /* a tombstone is none */
    assert_item(draft, "B", "", NULL);
    draft_create(draft);
    assert_false(draft_is_changed(draft));
    draft = draft_open(bench->arena, bench->zombie);
    assert_false(draft_exists(draft) || draft_is_changed(draft));
    assert_int_equal(draft_volume(draft), 0);
    draft_delete(draft);
    drop(draft, "A", "1");
    assert_false(draft_exists(draft) || draft_is_changed(draft));
}

static void equal_content_is_no_change(void **state)
{
    struct bench *bench = *state;
    struct draft *draft = draft_open(bench->arena, bench->living);
    set(draft, "A", "1", "11");
    drop(draft, "A", "2");
    drop(draft, "A", "9");
    draft_set_item(draft, BYTES("R"), BYTES(""), true, BYTES("\""));
    assert_false(draft_is_changed(draft));

    /* there and back */
    set(draft, "A", "1", "other");
    assert_int_equal(draft_act(draft), DRAFT_WRITE);
    assert_item(draft, "A", "1", "other");
    assert_int_equal(draft_find_item(draft, BYTES("A"), BYTES("1"))->version, 0);
    set(draft, "A", "1", "11");
    assert_false(draft_is_changed(draft));
    assert_int_equal(draft_find_item(draft, BYTES("A"), BYTES("1"))->version, BIRTH);
    drop(draft, "A", "3");
    assert_item(draft, "A", "3", NULL);
    assert_true(draft_is_changed(draft));
    set(draft, "A", "3", "33");
    set(draft, "A", "2", "new over a tombstone");
    set(draft, "B", "new", "1");
    assert_true(draft_is_changed(draft));
    drop(draft, "A", "2");
    drop(draft, "B", "new");
    assert_false(draft_is_changed(draft));
    assert_item(draft, "A", "2", NULL);
    assert_int_equal(draft_volume(draft), BASE_VOLUME);

    /* another kind is another item */
    draft_set_item(draft, BYTES("A"), BYTES("1"), true, BYTES("11"));
    assert_true(draft_is_changed(draft));
    assert_int_equal(draft_volume(draft), BASE_VOLUME);
}

static void changes_become_rows_and_a_snapshot(void **state)
{
    struct bench *bench = *state;
    struct draft *draft = draft_open(bench->arena, bench->living);
    set(draft, "Z", "", "null");
    set(draft, "A", "0", "zero");
    set(draft, "A", "2", "two");
    drop(draft, "A", "3");
    drop(draft, "R", "");
    set(draft, "R", "", "{}"); /* was raw */
    set(draft, "A", "0", "0");
    assert_int_equal(draft_act(draft), DRAFT_WRITE);
    assert_int_equal(draft_volume(draft), 3 + (1 + 1) + (1 + 3) + 2 + 4);
    struct draft_rows rows;
    draft_seal(draft, COMMIT, BIRTH + 4, &rows);
    assert_rows(&rows, "A.0=0 A.2=two A.3- R.={} Z.=null | A.4");
    assert_int_equal(rows.header.version, COMMIT);
    assert_int_equal(rows.header.ctime, BIRTH);
    assert_int_equal(rows.header.dtime, BIRTH + 4);
    assert_int_equal(rows.header.v1, draft_volume(draft));
    assert_int_equal(rows.header.v2, 77);

    struct document *after = draft_snapshot(draft, &rows);
    const struct item expected[] = {*rows.items[0], base_items[0],  *rows.items[1],
                                    *rows.items[2], *rows.items[3], *rows.items[4]};
    struct document *same = document_build(&rows.header, expected, COUNT_OF(expected));
    assert_true(bytes_equal(after->json, same->json));
    assert_int_equal(after->item_count, same->item_count);
    assert_int_equal(after->newest_tombstone, COMMIT);
    assert_int_equal(after->tombstone_count, 1);
    assert_int_equal(after->header.v1, rows.header.v1);
    document_release(after);
    document_release(same);
}

/* seal_purges finds what the commit deletes. */
static void tombstones_are_purged_up_to_the_horizon(void **state)
{
    struct bench *bench = *state;
    static const struct {
        int64_t horizon, dtime;
        const char *rows;
    } cases[] = {
        {BIRTH - 1000, BIRTH, "A.1=x |"},          {BIRTH + 1, BIRTH + 1, "A.1=x |"},
        {BIRTH + 2, BIRTH + 2, "A.1=x | A.2"},     {BIRTH + 3, BIRTH + 3, "A.1=x | A.2"},
        {BIRTH + 4, BIRTH + 4, "A.1=x | A.2 A.4"}, {COMMIT - 1, COMMIT - 1, "A.1=x | A.2 A.4"},
        {COMMIT, COMMIT - 1, "A.1=x | A.2 A.4"}, /* a horizon that is not below the version */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct draft *draft = draft_open(bench->arena, bench->living);
        set(draft, "A", "1", "x");
        struct draft_rows rows;
        draft_seal(draft, COMMIT, cases[i].horizon, &rows);
        assert_rows(&rows, cases[i].rows);
        assert_int_equal(rows.header.dtime, cases[i].dtime);
        struct document *after = draft_snapshot(draft, &rows);
        assert_int_equal(after->tombstone_count, 2 - rows.purge_count);
        document_release(after);
    }
    struct draft *draft = draft_open(bench->arena, bench->living);
    drop(draft, "A", "1");
    struct draft_rows rows;
    draft_seal(draft, COMMIT, COMMIT + 9, &rows);
    assert_rows(&rows, "A.1- | A.2 A.4"); /* what this commit removes is remembered */
    struct document *after = draft_snapshot(draft, &rows);
    assert_int_equal(after->tombstone_count, 1);
    document_release(after);
}

static void a_life_begins(void **state)
{
    struct bench *bench = *state;
    struct document *const bases[] = {bench->zombie, bench->nothing};
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        struct draft *draft = draft_open(bench->arena, bases[i]);
        draft_create(draft);
        assert_true(draft_exists(draft));
        assert_int_equal(draft_act(draft), DRAFT_WRITE);
        struct draft_rows rows;
        draft_seal(draft, COMMIT, HORIZON, &rows);
        assert_rows(&rows, "|");
        assert_int_equal(rows.header.ctime, COMMIT);
        assert_int_equal(rows.header.dtime, COMMIT);

        draft = draft_open(bench->arena, bases[i]);
        set(draft, "B", "", "1");
        set(draft, "A", "", "2");
        set(draft, "C", "", "3");
        drop(draft, "B", "");
        draft_seal(draft, COMMIT, HORIZON, &rows);
        assert_rows(&rows, "A.=2 C.=3 |"); /* no tombstone of what was never seen */
        assert_int_equal(rows.header.v1, 2);
        struct document *after = draft_snapshot(draft, &rows);
        assert_true(document_exists(after));
        assert_int_equal(after->header.ctime, COMMIT);
        assert_int_equal(after->item_count, 2);
        document_release(after);

        draft_delete(draft); /* a life of one operation is no change */
        assert_false(draft_exists(draft) || draft_is_changed(draft));
        assert_int_equal(draft_volume(draft), 0);
    }
}

static void a_life_ends(void **state)
{
    struct bench *bench = *state;
    struct draft *draft = draft_open(bench->arena, bench->living);
    set(draft, "A", "1", "x");
    draft_delete(draft);
    drop(draft, "A", "3");
    assert_false(draft_exists(draft));
    assert_item(draft, "A", "1", NULL);
    assert_item(draft, "A", "3", NULL);
    assert_int_equal(draft_volume(draft), 0);
    assert_int_equal(draft_act(draft), DRAFT_DELETE);
    struct draft_rows rows;
    draft_seal(draft, COMMIT, HORIZON, &rows);
    assert_rows(&rows, "|");
    assert_int_equal(rows.header.version, COMMIT);
    assert_int_equal(rows.header.ctime, 0);
    assert_int_equal(rows.header.dtime, 0);
    assert_int_equal(rows.header.v1, 0);
    assert_int_equal(rows.header.v2, 0);
    struct document *after = draft_snapshot(draft, &rows);
    assert_false(document_exists(after));
    assert_int_equal(after->header.version, COMMIT);
    document_release(after);
}

static void a_life_follows_another(void **state)
{
    struct bench *bench = *state;
    struct draft *draft = draft_open(bench->arena, bench->living);
    draft_delete(draft);
    draft_create(draft);
    assert_int_equal(draft_act(draft), DRAFT_RENEW);
    set(draft, "A", "1", "11"); /* equal to the former life's, and yet to be written */
    set(draft, "A", "3", "x");
    drop(draft, "A", "3");
    drop(draft, "A", "4");
    assert_item(draft, "A", "1", "11");
    assert_item(draft, "R", "", NULL);
    struct draft_rows rows;
    draft_seal(draft, COMMIT, HORIZON, &rows);
    assert_rows(&rows, "A.1=11 |");
    assert_int_equal(rows.header.ctime, COMMIT);
    assert_int_equal(rows.header.dtime, COMMIT);
    assert_int_equal(rows.header.v1, 3);
    assert_int_equal(rows.header.v2, 0);
    struct document *after = draft_snapshot(draft, &rows);
    assert_int_equal(after->item_count, 1);
    assert_int_equal(after->header.ctime, COMMIT);
    document_release(after);
}

/* Any order of many items costs little and comes out sorted. */
static void many_items_come_out_sorted(void **state)
{
    struct bench *bench = *state;
    enum { MANY = 20000 };
    for (int order = 0; order < 3; order++) {
        struct draft *draft = draft_open(bench->arena, bench->nothing);
        int64_t volume = 0;
        for (int i = 0; i < MANY; i++) {
            int number = order == 0 ? i : order == 1 ? MANY - 1 - i : (int)((int64_t)i * 7919 % MANY);
            const char *key = arena_printf(bench->arena, "%06d", number);
            set(draft, "K", key, key);
            volume += 12;
        }
        assert_int_equal(draft_volume(draft), volume);
        struct draft_rows rows;
        draft_seal(draft, COMMIT, HORIZON, &rows);
        assert_int_equal(rows.item_count, MANY);
        struct document *after = draft_snapshot(draft, &rows); /* asserts the order */
        assert_int_equal(after->item_count, MANY);
        assert_int_equal(after->header.v1, volume);
        for (int i = 0; i < MANY; i += 777) {
            char key[16];
            snprintf(key, sizeof key, "%06d", i);
            assert_item(draft, "K", key, key);
            assert_ptr_equal(document_find_item(after, BYTES("K"), bytes_of(key)), &after->items[i]);
        }
        document_release(after);
    }
}

/* Its row is still there, and versions of the row only grow; a clock that was set back may give it one below
 * the floor, which is of documents without a row. */
static void a_life_behind_a_row_need_not_be_above_the_floor(void **state)
{
    struct bench *bench = *state;
    struct header header = {
        .class = BYTES("Doc"), .id = BYTES("i"), .version = BIRTH + 5, .floor = BIRTH + 1000};
    struct document *zombie = document_build(&header, NULL, 0);
    struct draft *draft = draft_open(bench->arena, zombie);
    struct draft_rows rows;
    draft_create(draft);
    draft_seal(draft, BIRTH + 6, HORIZON, &rows);
    assert_int_equal(rows.header.version, BIRTH + 6);
    assert_int_equal(rows.header.ctime, BIRTH + 6);
    document_release(zombie);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draft_untouched_is_read),
        cmocka_unit_test(equal_content_is_no_change),
        cmocka_unit_test(changes_become_rows_and_a_snapshot),
        cmocka_unit_test(tombstones_are_purged_up_to_the_horizon),
        cmocka_unit_test(a_life_begins),
        cmocka_unit_test(a_life_ends),
        cmocka_unit_test(a_life_follows_another),
        cmocka_unit_test(a_life_behind_a_row_need_not_be_above_the_floor),
        cmocka_unit_test(many_items_come_out_sorted),
    };
    return cmocka_run_group_tests_name("draft", tests, setup, teardown);
}
