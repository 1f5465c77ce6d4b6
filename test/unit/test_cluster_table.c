/* test_cluster_table: what a host knows without asking: the order of hosts for a key, and keys within bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cluster/cluster_map.h"
#include "cluster/cluster_table.h"

enum { ENTRY = sizeof(struct cluster_entry) };

static void test_order(void **state UNUSED)
{
    struct cluster_member members[60] = {{0}};
    for (uint32_t i = 0; i < 60; i++)
        members[i] = (struct cluster_member){
            .number = i + 1, .is_guest = i == 7, .groups = {i / 20, i / 5 % 4, i % 5}};
    struct cluster_map *map = cluster_map_create(members, 60, 3, 1);
    unsigned first[60] = {0};
    for (uint64_t digest = 1; digest <= 6000; digest++) {
        struct cluster_walk walk;
        bool is_met[60] = {false};
        int64_t before = -1, at;
        unsigned count = 0, sites = 0, site = 99;
        cluster_map_begin(&walk, map, digest * UINT64_C(0x9e3779b97f4a7c15), 3, 0);
        for (; (at = cluster_map_next(&walk)) >= 0; before = at, count++) {
            const struct cluster_member *member = cluster_map_member(map, (uint32_t)at);
            assert_false(is_met[at]);
            is_met[at] = true;
            assert_false(member->is_guest);
            assert_true(before < 0 ||
                        cluster_map_is_nearer(map, walk.digest, (uint32_t)before, (uint32_t)at));
            sites += member->groups[0] != site;
            site = (unsigned)member->groups[0];
            first[member->number - 1] += count == 0;
        }
        assert_int_equal(count, 59);
        assert_int_equal(sites, 3); /* all of a site before the next one */
        assert_int_equal(cluster_map_next(&walk), -1);
    }
    for (unsigned i = 0; i < 60; i++)
        assert_true(i == 7 ? first[i] == 0 : first[i] > 50 && first[i] < 200);
    struct cluster_walk walk;
    unsigned count = 0;
    cluster_map_begin(&walk, map, 1, 2, 25);
    for (int64_t at; (at = cluster_map_next(&walk)) >= 0; count++)
        assert_int_equal(cluster_map_member(map, (uint32_t)at)->groups[0], 1);
    assert_int_equal(count, 20);
    assert_int_equal(cluster_map_find(map, 61), -1);
    cluster_map_destroy(map);
}

static struct bytes numbered(char name[16], unsigned number)
{
    snprintf(name, 16, "%u", number);
    return bytes_of(name);
}

/* Doubtful keys are never forgotten one by one; absent ones are, the oldest first; both within their bytes.
 */
static void test_bounds_of_lists(void **state UNUSED)
{
    struct cluster_table *table =
        cluster_table_create(&(struct cluster_bounds){1 << 16, 16, 32 * (ENTRY + 4)});
    char name[16];
    for (unsigned i = 0; i < 20; i++)
        assert_non_null(cluster_table_note(table, CLUSTER_ABSENT, 1, numbered(name, i), i, 100 + i));
    assert_int_equal(cluster_table_count(table, CLUSTER_ABSENT), 8);
    assert_null(cluster_table_find(table, 1, numbered(name, 11), 11, 0));
    assert_non_null(cluster_table_find(table, 1, numbered(name, 12), 12, 0));
    for (unsigned i = 0; i < 8; i++)
        assert_non_null(cluster_table_note(table, CLUSTER_DOUBTFUL, 1, numbered(name, i), i, 100 + i));
    assert_null(cluster_table_note(table, CLUSTER_DOUBTFUL, 1, numbered(name, 9), 9, 100));
    assert_int_equal(cluster_table_count(table, CLUSTER_DOUBTFUL), 8);
    assert_int_equal(cluster_table_clear(table, CLUSTER_DOUBTFUL), 107);
    assert_non_null(cluster_table_store(table, 1, numbered(name, 12), 12, BYTES("content"), 50));
    assert_int_equal(cluster_table_count(table, CLUSTER_ABSENT), 7); /* a key is in one list */
    assert_int_equal(cluster_table_bytes(table, CLUSTER_RECORD), ENTRY + 2 + 7);
    assert_null(cluster_table_find(table, 1, numbered(name, 12), 12, 50));
    assert_int_equal(cluster_table_bytes(table, CLUSTER_RECORD), 0);
    /* What ends before copies of earlier changes do is remembered for as long, in less memory. */
    struct cluster_entry *entry = cluster_table_store(table, 1, numbered(name, 1), 1, BYTES("content"), 200);
    entry->past_ms = 300;
    entry->stamp.number = 7;
    assert_ptr_equal(cluster_table_find(table, 1, numbered(name, 1), 1, 200), entry);
    assert_true(entry->kind == CLUSTER_REMOVED && entry->stamp.number == 7);
    assert_int_equal(cluster_table_bytes(table, CLUSTER_REMOVED), ENTRY + 1);
    assert_null(cluster_table_find(table, 1, numbered(name, 1), 1, 300));
    cluster_table_expire(table, 1000);
    assert_int_equal(cluster_table_count(table, CLUSTER_ABSENT), 0);
    cluster_table_destroy(table);
}

/* A removal finds room in a memory that is full, where the record was. */
static void test_bounds_of_records(void **state UNUSED)
{
    struct cluster_table *table =
        cluster_table_create(&(struct cluster_bounds){2 * (ENTRY + 8), 16, 1 << 16});
    char name[16];
    assert_non_null(cluster_table_store(table, 1, numbered(name, 1), 1, BYTES("seven b"), 100));
    assert_non_null(cluster_table_store(table, 1, numbered(name, 2), 2, BYTES("seven b"), 100));
    assert_null(cluster_table_store(table, 1, numbered(name, 3), 3, BYTES(""), 100));
    assert_null(cluster_table_store(table, 1, numbered(name, 2), 2, BYTES("eight by"), 100));
    assert_null(cluster_table_note(table, CLUSTER_REMOVED, 1, numbered(name, 3), 3, 100));
    assert_non_null(cluster_table_note(table, CLUSTER_REMOVED, 1, numbered(name, 2), 2, 100));
    assert_int_equal(cluster_table_count(table, CLUSTER_REMOVED), 1);
    assert_true(cluster_table_has_room(table, 1, 0) == false);
    cluster_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_bounds_of_lists),
        cmocka_unit_test(test_bounds_of_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
