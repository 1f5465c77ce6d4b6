/* handles_fixture: one segment, opened as HANDLES workers of an instance open it; for tests of what they
 * share. Included once, after HANDLES is defined. */
#ifndef STAMPD_TEST_HANDLES_FIXTURE_H
#define STAMPD_TEST_HANDLES_FIXTURE_H

#include <unistd.h>

#include "child.h"
#include "segment/processes.h"
#include "segment/segment_open.h"

enum { SLOTS = 1024, INSTANCE = 1 };

static struct segment *handles[HANDLES];

static int open_handles(void **state UNUSED)
{
    char problem[256];
    int indexes[HANDLES];
    folder_make();
    for (int i = 0; i < HANDLES; i++)
        assert_true(segment_open(&handles[i], folder_path("segment"), SLOTS, 0, problem, sizeof problem));
    assert_int_equal(processes_take(handles[0], INSTANCE, 1, HANDLES, indexes), HANDLES);
    for (int i = 0; i < HANDLES; i++) {
        processes_set(handles[0], indexes[i], PROCESS_HELD, (uint32_t)getpid());
        segment_join(handles[i], indexes[i]);
    }
    return 0;
}

static int close_handles(void **state UNUSED)
{
    for (int i = 0; i < HANDLES; i++)
        segment_close(handles[i]);
    folder_remove();
    return 0;
}

#endif
