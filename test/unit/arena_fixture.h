/* arena_fixture: an arena for each test, or for all tests of a program; after cmocka.h. */
#ifndef STAMPD_TEST_ARENA_FIXTURE_H
#define STAMPD_TEST_ARENA_FIXTURE_H

#include "base/builder.h"
#include "base/base.h"

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, arena_set_up, arena_tear_down)

static struct arena *arena;

static int arena_set_up(void **state UNUSED)
{
    arena = arena_create("test");
    return 0;
}

static int arena_tear_down(void **state UNUSED)
{
    arena_destroy(arena);
    return 0;
}

#endif
