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

/* --- the fence --- */

enum { FENCE_AT = 4, ABOVE_AT = START, DIVIDED = ABOVE_AT + sizeof(struct pieces) / sizeof(uint32_t) };
static struct pieces *const above = (struct pieces *)(words + ABOVE_AT);
static uint32_t *const fence = words + FENCE_AT;

static int set_up_divided(void **state UNUSED)
{
    memset(words, 0, sizeof words);
    memset(&undo, 0, sizeof undo);
    pieces_divide(&memory, pieces, above, fence, DIVIDED, WORDS - DIVIDED);
    return 0;
}

/* What is free is counted on its side of the fence, and no two free pieces are neighbours. */
static void check_sides(void)
{
    uint32_t below_units = 0, above_units = 0;
    bool has_fence = false, was_free = false;
    for (uint32_t piece = DIVIDED; piece; piece = pieces_next(&memory, piece)) {
        bool is_free = pieces_is_free(&memory, piece);
        assert_false(is_free && was_free);
        was_free = is_free;
        has_fence = has_fence || piece == *fence;
        if (is_free)
            *(has_fence ? &above_units : &below_units) += (uint32_t)(pieces_size(&memory, piece) / 8);
    }
    assert_true(has_fence);
    assert_int_equal(below_units, pieces->free_units);
    assert_int_equal(above_units, above->free_units);
}

/* A piece more or less on one side, or another place of the fence. */
static int change_sides(struct owned *owned, int count, unsigned *seed)
{
    size_t bytes = (size_t)(rand_r(seed) % 1000);
    int one = count ? rand_r(seed) % count : 0;
    switch (rand_r(seed) % 6) {
    case 0:
        (void)!pieces_lower(&memory, pieces, above, fence, bytes);
        return count;
    case 1:
        (void)!pieces_raise(&memory, pieces, above, fence, bytes);
        return count;
    case 2:
    case 3: {
        uint32_t piece = count < MOST ? pieces_take(&memory, rand_r(seed) % 2 ? pieces : above, bytes) : 0;
        if (!piece)
            return count;
        owned[count].piece = piece;
        fill(&owned[count], seed);
        return count + 1;
    }
    default:
        if (!count)
            return 0;
        pieces_give(&memory, owned[one].piece < *fence ? pieces : above, owned[one].piece);
        owned[one] = owned[count - 1];
        return count - 1;
    }
}

static void a_fence_divides(void **state UNUSED)
{
    static uint32_t before[WORDS];
    struct owned owned[MOST], tried[MOST];
    int count = 0;
    uint32_t lowest = *fence, first = *fence;
    unsigned seed = 3;
    for (int i = 0; i < 40000; i++) {
        memcpy(before, words, sizeof words);
        memcpy(tried, owned, sizeof owned);
        change_sides(tried, count, &seed);
        undo_back(&memory);
        assert_memory_equal(words, before, DIVIDED * sizeof *words);
        check_sides();
        check_contents(owned, count);
        count = change_sides(owned, count, &seed);
        undo_commit(&memory);
        check_sides();
        check_contents(owned, count);
        lowest = *fence < lowest ? *fence : lowest;
    }
    assert_true(lowest < first);
    for (; count > 0; undo_commit(&memory)) {
        count--;
        pieces_give(&memory, owned[count].piece < *fence ? pieces : above, owned[count].piece);
    }
    (void)!pieces_raise(&memory, pieces, above, fence, pieces_size(&memory, *fence + 2));
    undo_commit(&memory);
    check_sides();
}

static void a_piece_of_the_room_for_it_is_found(void **state UNUSED)
{
    for (size_t bytes = 1; bytes < 8000; bytes += 7) {
        set_up_divided(NULL);
        assert_true(pieces_lower(&memory, pieces, above, fence, pieces_room_for(bytes)));
        undo_commit(&memory);
        assert_int_not_equal(pieces_take(&memory, above, bytes), 0);
        undo_commit(&memory);
        check_sides();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_change_that_is_taken_back_leaves_no_trace, set_up),
        cmocka_unit_test_setup(all_that_is_given_back_is_one_piece, set_up),
        cmocka_unit_test_setup(a_fence_divides, set_up_divided),
        cmocka_unit_test_setup(a_piece_of_the_room_for_it_is_found, set_up_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
