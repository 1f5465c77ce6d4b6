/* test_disk_table: texts by key on disk, of several processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child.h"
#include "edge/disk_table.h"

enum { TABLE_BYTES = 8 << 20 };

static struct disk_table *disk;
static struct builder text;

static struct disk_table *open_table(void)
{
    char problem[300] = "";
    struct disk_table *opened = disk_table_open(folder_path("disk"), TABLE_BYTES, problem, sizeof problem);
    if (!opened)
        child_demand(false, problem, __FILE__, __LINE__);
    return opened;
}

static int set_up(void **state UNUSED)
{
    folder_make();
    disk = open_table();
    return 0;
}

static int tear_down(void **state UNUSED)
{
    disk_table_close(disk);
    builder_free(&text);
    text = (struct builder){0};
    folder_remove();
    return 0;
}

static void put(const char *key, struct bytes content)
{
    DEMAND(!disk_table_begin(disk));
    DEMAND(!disk_table_put(disk, bytes_of(key), content));
    DEMAND(!disk_table_commit(disk));
}

/* NULL: nothing is there. */
static void expect(const char *key, const char *content)
{
    bool is_there = !content;
    size_t before = text.size;
    DEMAND(!disk_table_get(disk, bytes_of(key), &text, &is_there));
    DEMAND(is_there == (content != NULL));
    DEMAND(bytes_equal((struct bytes){text.data + before, text.size - before},
                       content ? bytes_of(content) : BYTES("")));
}

static void what_was_committed_is_got(void **state UNUSED)
{
    expect("key", NULL);
    put("key", BYTES("one"));
    put("void", BYTES(""));
    expect("key", "one");
    expect("void", ""); /* behind what the builder had */
    assert_int_equal(text.size, 3);
    put("key", BYTES("two"));
    put("void", NO_BYTES);
    put("void", NO_BYTES);
    expect("key", "two");
    expect("void", NULL);
    disk_table_close(disk);
    disk = open_table();
    expect("key", "two");
    expect("void", NULL);
}

static void a_change_under_way_is_not_seen(void **state UNUSED)
{
    put("key", BYTES("one"));
    for (int is_committed = 0; is_committed < 2; is_committed++) {
        assert_null(disk_table_begin(disk));
        assert_null(disk_table_put(disk, BYTES("key"), BYTES("two")));
        assert_null(disk_table_put(disk, BYTES("other"), BYTES("three")));
        expect("key", "one");
        expect("other", NULL);
        if (is_committed)
            assert_null(disk_table_commit(disk));
        else
            disk_table_abandon(disk);
        expect("key", is_committed ? "two" : "one");
        expect("other", is_committed ? "three" : NULL);
    }
}

static void put_as_other(void *content)
{
    disk = open_table();
    put("key", bytes_of(content));
}

static void another_process_is_seen_at_once(void **state UNUSED)
{
    char one[] = "one", two[] = "two";
    child_expect(child_start(put_as_other, one));
    expect("key", "one");
    child_expect(child_start(put_as_other, two));
    expect("key", "two");
    put("key", BYTES("three"));
    expect("key", "three");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_committed_is_got),
        TEST(a_change_under_way_is_not_seen),
        TEST(another_process_is_seen_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
