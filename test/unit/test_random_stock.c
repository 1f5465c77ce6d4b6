/* test_random_stock: no two draws are the same, in one process and in children that are forked while the
 * stock is partly used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "seal/random_stock.h"

enum { DRAW = 24, DRAWS = 400 /* more than a page */, CHILDREN = 6 };

static unsigned char drawn[DRAWS * (2 * CHILDREN + 2)][DRAW];
static size_t count;

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, DRAW);
}

static void all_differ(void)
{
    qsort(drawn, count, DRAW, compare);
    for (size_t i = 1; i < count; i++)
        assert_memory_not_equal(drawn[i - 1], drawn[i], DRAW);
    count = 0;
}

static void draw(unsigned char (*list)[DRAW], size_t draws)
{
    for (size_t i = 0; i < draws; i++)
        random_stock_take(list[i], DRAW);
}

/* What a child has drawn, and what its own child has. */
static void fork_and_draw(void)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        static unsigned char own[DRAWS][DRAW];
        pid_t grandchild = fork();
        draw(own, DRAWS);
        for (size_t sent = 0; sent < sizeof own;) {
            ssize_t size = write(ends[1], (char *)own + sent, sizeof own - sent);
            sent += size > 0 ? (size_t)size : 0;
            if (size <= 0)
                _exit(1);
        }
        _exit(grandchild > 0 ? waitpid(grandchild, &status, 0) != grandchild || status : grandchild != 0);
    }
    close(ends[1]);
    for (size_t whole = sizeof drawn[0] * DRAWS * 2, got = 0; got < whole;) {
        ssize_t size = read(ends[0], (char *)drawn[count] + got, whole - got);
        assert_true(size > 0);
        got += (size_t)size;
    }
    count += (size_t)2 * DRAWS;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void no_two_draws_are_the_same(void **state UNUSED)
{
    draw(drawn, count = DRAWS);
    all_differ();
}

static void children_draw_other_bytes(void **state UNUSED)
{
    draw(drawn, count = DRAWS);
    for (int i = 0; i < CHILDREN; i++)
        fork_and_draw();
    draw(&drawn[count], DRAWS);
    count += DRAWS;
    all_differ();
}

static void draws_of_every_size_are_filled(void **state UNUSED)
{
    static unsigned char large[3 * 4096], zeros[64];
    static const size_t sizes[] = {64, 4087, 4088, 4089, 4096, 4097, sizeof large};
    random_stock_take(large, 0);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        memset(large, 0, sizeof large);
        random_stock_take(large, sizes[i]);
        assert_memory_not_equal(large, zeros, sizeof zeros);
        assert_memory_not_equal(large + sizes[i] - sizeof zeros, zeros, sizeof zeros);
        if (sizes[i] < sizeof large)
            assert_int_equal(large[sizes[i]], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_draws_are_the_same),
        cmocka_unit_test(children_draw_other_bytes),
        cmocka_unit_test(draws_of_every_size_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
