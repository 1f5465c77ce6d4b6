/* test_pieces: memory in pieces: none overlap, neighbours are joined, and a change that is taken back leaves
 * no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "records/pieces.h"

enum { WORDS = 4096, PIECES_AT = 8, START = PIECES_AT + sizeof(struct pieces) / sizeof(uint32_t), MOST = 64 };
enum { IS_FREE = 1, FLAGS = 3, FLAG_BITS = 2 };

static uint32_t words[WORDS];
static struct undo undo;
static const struct memory memory = {words, &undo};
static struct pieces *const pieces = (struct pieces *)(words + PIECES_AT);

static int set_up(void **state UNUSED)
{
    memset(words, 0, sizeof words);
    memset(&undo, 0, sizeof undo);
    pieces_init(&memory, pieces, START, WORDS - START);
    return 0;
}

/* All that is not its owners': heads, and of free pieces the links and the size at the end.  Returns how many
 * pieces. */
static int read_frame(uint32_t frame_r[WORDS])
{
    int count = 0;
    memset(frame_r, 0, sizeof words);
    memcpy(frame_r, words, START * sizeof *words);
    for (uint32_t piece = START, units; (units = words[piece] >> FLAG_BITS) != 0;
         count++, piece += 2 * units) {
        assert_true(piece + 2 * units < WORDS);
        frame_r[piece] = words[piece];
        if (words[piece] & IS_FREE) {
            frame_r[piece + 1] = words[piece + 1];
            frame_r[piece + 2] = words[piece + 2];
            assert_int_equal(words[piece + 2 * units - 1], units);
            frame_r[piece + 2 * units - 1] = units;
        }
    }
    return count;
}

struct owned {
    uint32_t piece, content;
};

static void fill(struct owned *owned, unsigned *seed)
{
    uint32_t *own = pieces_at(&memory, owned->piece);
    owned->content = 0x80000000u | (uint32_t)rand_r(seed);
    for (size_t i = 0; i + 1 < pieces_size(&memory, owned->piece) / sizeof *own; i++)
        own[i] = owned->content;
}

static void check_contents(const struct owned *owned, int count)
{
    for (int i = 0; i < count; i++) {
        const uint32_t *own = pieces_at(&memory, owned[i].piece);
        for (size_t word = 0; word + 1 < pieces_size(&memory, owned[i].piece) / sizeof *own; word++)
            assert_int_equal(own[word], owned[i].content);
    }
}

/* Takes some, then gives some back: a change.  Returns how many there are then. */
static int change(struct owned *owned, int count, unsigned *seed)
{
    for (int i = rand_r(seed) % 4; i > 0 && count < MOST; i--) {
        uint32_t piece = pieces_take(&memory, pieces, (size_t)(rand_r(seed) % 300));
        if (!piece)
            continue;
        owned[count].piece = piece;
        fill(&owned[count++], seed);
    }
    for (int i = rand_r(seed) % 4; i > 0 && count > 0; i--) {
        int one = rand_r(seed) % count;
        pieces_give(&memory, pieces, owned[one].piece);
        owned[one] = owned[--count];
    }
    return count;
}

static void a_change_that_is_taken_back_leaves_no_trace(void **state UNUSED)
{
    static uint32_t before[WORDS], after[WORDS];
    struct owned owned[MOST], tried[MOST];
    int count = 0;
    unsigned seed = 11;
    for (int i = 0; i < 20000; i++) {
        int pieces_before = read_frame(before);
        memcpy(tried, owned, sizeof owned);
        change(tried, count, &seed);
        undo_back(&memory);
        assert_int_equal(read_frame(after), pieces_before);
        assert_memory_equal(after, before, sizeof after);
        check_contents(owned, count);
        count = change(owned, count, &seed);
        undo_commit(&memory);
        check_contents(owned, count);
    }
}

static void all_that_is_given_back_is_one_piece(void **state UNUSED)
{
    static uint32_t before[WORDS], after[WORDS];
    struct owned owned[MOST];
    int count = 0;
    unsigned seed = 5;
    read_frame(before);
    while (count < MOST) {
        count = change(owned, count, &seed);
        undo_commit(&memory);
        if (pieces->free_units < 100)
            break;
    }
    while (count > 0) {
        pieces_give(&memory, pieces, owned[--count].piece);
        undo_commit(&memory);
    }
    assert_int_equal(read_frame(after), 1);
    assert_memory_equal(after, before, sizeof after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_change_that_is_taken_back_leaves_no_trace, set_up),
        cmocka_unit_test_setup(all_that_is_given_back_is_one_piece, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
