/* test_beats: which rows of a standby count: of the present process and history, and acknowledged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/beats.h"
#include "segment/lineage.h"
#include "segment/segment_open.h"

enum { HANDLES = 1, LAB = 0, DEMO = 1, SENT = 1000, NONCE = 77 };

#include "handles_fixture.h"

static void only_what_was_acknowledged_counts(void **state UNUSED)
{
    struct segment *segment = handles[0];
    assert_false(beats_prove(segment, LAB, 0, 0)); /* nobody has written one */
    beats_begin(segment, NONCE);
    uint64_t nonce = beats_nonce(segment);
    assert_false(beats_prove(segment, LAB, nonce, SENT));
    beats_acknowledge(segment, LAB, SENT);
    assert_true(beats_prove(segment, LAB, nonce, SENT));
    assert_true(beats_prove(segment, LAB, nonce, SENT - 1));
    assert_false(beats_prove(segment, LAB, nonce, SENT + 1));
    assert_false(beats_prove(segment, DEMO, nonce, SENT));
    assert_false(beats_prove(segment, LAB, nonce + 1, SENT));
}

static void another_history_or_process_begins_anew(void **state UNUSED)
{
    struct segment *segment = handles[0];
    beats_begin(segment, NONCE);
    uint64_t nonce = beats_nonce(segment);
    beats_acknowledge(segment, LAB, SENT);
    lineage_drop(segment);
    assert_false(beats_prove(segment, LAB, nonce, SENT));
    assert_true(beats_prove(segment, LAB, beats_nonce(segment), SENT));
    beats_begin(segment, 2 * NONCE);
    assert_false(beats_prove(segment, LAB, nonce, SENT));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_what_was_acknowledged_counts),
        TEST(another_history_or_process_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
