/* test_lineage: histories that a host meets: the first, the next, a former one, another cluster; processes
 * that die while they meet one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/lineage.h"
#include "segment/segment_open.h"

enum { HANDLES = 1, LAB = 0, DEMO = 1, EPOCH = 5, END = 8000 };
enum { CLUSTER = 70, OTHER_CLUSTER = 71 };

#include "handles_fixture.h"

static enum lineage_verdict meet(uint64_t system, uint32_t timeline, uint64_t start, uint64_t position)
{
    const struct lineage_met met = {.system = system,
                                    .timeline = timeline,
                                    .start = start,
                                    .position = position,
                                    .mark = lineage_mark(handles[0], LAB)};
    return lineage_meet(handles[0], LAB, &met);
}

/* The first history, with a commit of LAB there, and one of DEMO before. */
static void begin(uint32_t timeline)
{
    assert_int_equal(meet(CLUSTER, timeline, 0, END), LINEAGE_SAME);
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_false(lineage_has_lost(handles[0], DEMO, EPOCH));
    lineage_note(handles[0], DEMO, timeline, END - 800);
    lineage_note(handles[0], LAB, timeline, END);
}

static void what_the_standby_had_is_not_lost(void **state UNUSED)
{
    begin(1);
    uint64_t drops = lineage_drops(handles[0]);
    assert_int_equal(meet(CLUSTER, 2, END, END + 800), LINEAGE_NEW);
    assert_true(lineage_drops(handles[0]) > drops);
    assert_true(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_false(lineage_has_lost(handles[0], DEMO, EPOCH));
    assert_true(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH + 1)); /* ns restored */
    assert_int_equal(meet(CLUSTER, 1, 0, END), LINEAGE_FORMER);
    drops = lineage_drops(handles[0]);
    assert_int_equal(meet(CLUSTER, 2, END, END + 800), LINEAGE_SAME);
    assert_int_equal(lineage_drops(handles[0]), drops);
}

/* It has kept the timeline, so that no session of the former one is used, and has dropped no copy. */
static void who_dies_while_it_meets_a_history_leaves_the_rest_to_others(void **state UNUSED)
{
    begin(1);
    uint64_t drops = lineage_drops(handles[0]);
    atomic_store(&handles[0]->lineage->cells[0].timeline, 2);
    assert_int_equal(meet(CLUSTER, 1, 0, END), LINEAGE_FORMER);
    assert_int_equal(meet(CLUSTER, 2, END + 800, END + 1600), LINEAGE_NEW);
    assert_true(lineage_drops(handles[0]) > drops);
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_int_equal(meet(CLUSTER, 2, END + 800, END + 1600), LINEAGE_SAME);
}

static void after_two_failovers_nobody_knows(void **state UNUSED)
{
    begin(1);
    assert_int_equal(meet(CLUSTER, 3, END + 800, END + 1600), LINEAGE_NEW);
    assert_true(lineage_has_lost(handles[0], LAB, EPOCH) && lineage_has_lost(handles[0], DEMO, EPOCH));
}

/* A crash without fsync. */
static void a_database_that_has_gone_back_has_lost_commits(void **state UNUSED)
{
    begin(1);
    assert_int_equal(meet(CLUSTER, 1, 0, END + 8), LINEAGE_SAME);
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_int_equal(meet(CLUSTER, 1, 0, END), LINEAGE_SAME);
    assert_true(lineage_has_lost(handles[0], LAB, EPOCH));
}

/* With a lower timeline, and met by a process that dies before it has said which cluster it is. */
static void another_cluster_is_used_from_its_first_session_on(void **state UNUSED)
{
    begin(4);
    assert_int_equal(meet(OTHER_CLUSTER, 1, 0, END + 800), LINEAGE_NEW);
    atomic_store(&handles[0]->lineage->cells[0].system, CLUSTER);
    assert_int_equal(meet(OTHER_CLUSTER, 1, 0, END + 800), LINEAGE_NEW);
    assert_int_equal(meet(OTHER_CLUSTER, 1, 0, END + 800), LINEAGE_SAME);
    assert_int_equal(lineage_timeline(handles[0], LAB), 1);
    assert_true(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH + 1));
}

/* Two clusters beside each other: neither is a new history of the other. */
static void cells_have_histories_of_their_own(void **state UNUSED)
{
    assert_int_equal(namespaces_find(handles[0], BYTES("stampd_lab")), LAB);
    assert_int_equal(namespaces_find(handles[0], BYTES("stampd_demo")), DEMO);
    int west = namespaces_find(handles[0], BYTES("stampd_lab@west"));
    assert_int_equal(namespaces_cell(handles[0], LAB), 0);
    assert_int_equal(namespaces_cell(handles[0], west), 1);
    assert_int_equal(namespaces_cell(handles[0], namespaces_find(handles[0], BYTES("other@west"))), 1);
    assert_int_equal(namespaces_cell(handles[0], namespaces_find(handles[0], BYTES("other@east"))), 2);
    begin(4);
    const struct lineage_met first = {.system = OTHER_CLUSTER, .timeline = 1, .position = END};
    uint64_t drops = lineage_drops(handles[0]);
    assert_int_equal(lineage_meet(handles[0], west, &first), LINEAGE_SAME);
    lineage_note(handles[0], west, 1, END);
    assert_int_equal(meet(CLUSTER, 4, 0, END + 800), LINEAGE_SAME);
    assert_int_equal(lineage_drops(handles[0]), drops);
    const struct lineage_met next = {.system = OTHER_CLUSTER,
                                     .timeline = 2,
                                     .start = END,
                                     .position = END + 8,
                                     .mark = lineage_mark(handles[0], west)};
    assert_int_equal(lineage_meet(handles[0], west, &next), LINEAGE_NEW);
    assert_int_equal(lineage_meet(handles[0], west, &first), LINEAGE_FORMER);
    assert_true(lineage_has_lost(handles[0], west, EPOCH));
    assert_false(lineage_has_lost(handles[0], LAB, EPOCH));
    assert_int_equal(lineage_timeline(handles[0], LAB), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_standby_had_is_not_lost),
        TEST(who_dies_while_it_meets_a_history_leaves_the_rest_to_others),
        TEST(after_two_failovers_nobody_knows),
        TEST(a_database_that_has_gone_back_has_lost_commits),
        TEST(another_cluster_is_used_from_its_first_session_on),
        TEST(cells_have_histories_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
