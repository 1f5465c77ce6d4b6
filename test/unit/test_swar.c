/* Unit tests of base/eight and of what is built on it: every place in a word, every byte, and texts that end
 * where their memory does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/coding/swar.h"
#include "edge/json/json.h"
#include "edge/json/json_fast.h"
#include "edge/json/json_string.h"

enum { SIZE_MOST = 27 };

/* A page, and behind it one that nobody may touch. */
static char *page_end;

static int make_pages(void **state UNUSED)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + size, size, PROT_NONE))
        return -1;
    page_end = pages + size;
    return 0;
}

static int drop_pages(void **state UNUSED)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    return munmap(page_end - size, 2 * size);
}

/* The text, moved to the end of the page. */
static struct bytes at_end(const char *data, size_t size)
{
    memcpy(page_end - size, data, size);
    return (struct bytes){page_end - size, size};
}

static bool is_plain(unsigned char byte)
{
    return byte >= ' ' && byte != '"' && byte != '\\';
}

/* --- masks --------------------------------------------------------------------------------------- */

static void masks_show_the_first_of_any_two(void **state UNUSED)
{
    char text[9] = "aaaaaaaa";
    for (unsigned place = 0; place < 8; place++) {
        for (unsigned first = 0; first < 256; first++) {
            for (unsigned second = 0; second < 256; second++) {
                memset(text, 'a', 8);
                text[place] = (char)first;
                if (place < 7)
                    text[place + 1] = (char)second;
                uint64_t word = swar_load(text), below = swar_below(word, ' '), equal = swar_equal(word, '"');
                bool second_counts = place < 7;
                unsigned wanted = first < ' ' ? place : second_counts && second < ' ' ? place + 1 : 8;
                assert_int_equal(below ? swar_first(below) : 8, wanted);
                wanted = first == '"' ? place : second_counts && second == '"' ? place + 1 : 8;
                assert_int_equal(equal ? swar_first(equal) : 8, wanted);
            }
        }
    }
}

static void digits_are_told_from_all_else(void **state UNUSED)
{
    for (unsigned place = 0; place < 8; place++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[9] = "90909090";
            text[place] = (char)byte;
            uint64_t others = swar_no_digits(swar_load(text));
            bool is_digit = byte >= '0' && byte <= '9';
            assert_int_equal(others == 0, is_digit);
            if (!is_digit)
                assert_int_equal(swar_first(others), place);
            else
                assert_int_equal(swar_digits(swar_load(text)), (uint64_t)strtoull(text, NULL, 10));
        }
    }
}

/* --- integers ------------------------------------------------------------------------------------ */

static void integers_of_every_length_are_read(void **state UNUSED)
{
    static const char digits[] = "9182736450918273645";
    for (size_t size = 1; size < sizeof digits; size++) {
        for (int sign = 0; sign < 2; sign++) {
            char text[32];
            int64_t value;
            int length = snprintf(text, sizeof text, "%s%.*s", sign ? "-" : "", (int)size, digits);
            int64_t wanted = strtoll(text, NULL, 10);
            bool fits = wanted != INT64_MAX && wanted != INT64_MIN;
            assert_int_equal(bytes_to_i64(at_end(text, (size_t)length), &value), fits);
            if (fits)
                assert_true(value == wanted);
        }
    }
}

static void one_wrong_byte_makes_no_integer(void **state UNUSED)
{
    for (size_t size = 1; size <= 19; size++) {
        for (size_t place = 0; place < size; place++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                char text[20];
                int64_t value;
                memset(text, '1', sizeof text);
                text[place] = (char)byte;
                bool is_sign = byte == '-' && place == 0 && size > 1;
                bool is_right = (byte >= '0' && byte <= '9') || is_sign;
                assert_int_equal(bytes_to_i64(at_end(text, size), &value), is_right);
            }
        }
    }
}

/* --- strings ------------------------------------------------------------------------------------- */

static void strings_end_at_every_place_and_byte(void **state UNUSED)
{
    char text[SIZE_MOST];
    for (size_t size = 0; size <= SIZE_MOST; size++) {
        for (size_t place = 0; place < size; place++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                memset(text, 0xE9, sizeof text);
                text[place] = (char)byte;
                struct bytes whole = at_end(text, size);
                assert_int_equal(json_fast_size(whole.data, whole.size),
                                 is_plain((unsigned char)byte) ? size : place);
            }
        }
        memset(text, '!', sizeof text);
        assert_int_equal(json_fast_size(at_end(text, size).data, size), size);
    }
}

/* --- texts: the quick road gives what yajl gives ------------------------------------------------- */

static void compare(const struct json *a, const struct json *b)
{
    assert_int_equal(!a, !b);
    if (!a)
        return;
    assert_true(a->kind == b->kind && a->count == b->count && a->is_shallow == b->is_shallow);
    assert_true(a->text.data == b->text.data && a->text.size == b->text.size);
    assert_true(bytes_equal(a->value, b->value) && bytes_equal(a->name, b->name));
    compare(a->first, b->first);
    compare(a->next, b->next);
}

static void check_paths(struct arena *arena, const char *data, size_t size)
{
    static const struct json_limits limits[] = {{.depth = 9, .tree_depth = 9},
                                                {.depth = 9, .tree_depth = 1},
                                                {.depth = 2, .tree_depth = 2, .nodes = 3}};
    struct bytes text = at_end(data, size);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct json *quick, *full;
        struct json_problem problem, other;
        enum fault fault = json_read(arena, text, &limits[i], &quick, &problem);
        assert_int_equal(json_fast_avoid(arena, text, &limits[i], &full, &other), fault);
        assert_int_equal(problem.offset, other.offset);
        compare(quick, full);
    }
    arena_reset(arena);
}

/* Is it read without yajl? */
static bool is_quick(struct arena *arena, const char *text)
{
    static const struct json_limits limits = {.depth = 9, .tree_depth = 9};
    bool is = json_fast_read(arena, at_end(text, strlen(text)), &limits) != NULL;
    arena_reset(arena);
    return is;
}

static void strings_of_every_length_stand_anywhere(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    char text[128], filled[SIZE_MOST + 1];
    for (int before = 0; before < 9; before++) {
        for (int size = 0; size <= SIZE_MOST; size++) {
            memset(filled, 'k', sizeof filled);
            int length = snprintf(text, sizeof text, "%*s{\"%.*s\":\"%.*s\",\"n\":%.*s}", before, "", size,
                                  filled, size, filled, size % 17 + 1, "12345678901234567");
            check_paths(arena, text, (size_t)length);
            assert_true(is_quick(arena, text));
        }
    }
    arena_destroy(arena);
}

static void texts_cut_or_spoilt_anywhere_are_judged_alike(void **state UNUSED)
{
    static const char *const texts[] = {
        "{\"c\":\"Note\",\"id\":\"a name that is longer\",\"v\":261121103000123,\"ct\":-0.5e+10,\"dt\":0}",
        "[[],{},[1,[2]],{\"a\":{\"b\":[null,true,false]}},\"\",1234567890123456789]",
        " { \"a\" : [ 1 , 2 ] , \"b\" : { } }\n",
        "{\"beginning_1_ending\":1,\"beginning_2_ending\":2,\"\":3,\"12345678\":4,\"12345679\":5}"};
    static const unsigned char bytes[] = {0,   1,   '\n', ' ', '"', '\\', '[', ']',
                                          '{', '}', ',',  ':', '-', '0',  'e', 0xFF};
    struct arena *arena = arena_create("test");
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        size_t size = strlen(texts[i]);
        assert_true(is_quick(arena, texts[i]));
        for (size_t cut = 0; cut <= size; cut++)
            check_paths(arena, texts[i], cut);
        for (size_t place = 0; place < size; place++) {
            for (size_t j = 0; j < COUNT_OF(bytes); j++) {
                char spoilt[128];
                memcpy(spoilt, texts[i], size);
                spoilt[place] = (char)bytes[j];
                check_paths(arena, spoilt, size);
            }
        }
    }
    arena_destroy(arena);
}

/* Names that differ in one byte, and the same name twice, short and long, early and at the very end. */
static void same_names_are_found_wherever_they_stand(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    char text[160], name[SIZE_MOST + 1], other[SIZE_MOST + 1];
    for (int size = 0; size <= SIZE_MOST; size++) {
        memset(name, 'n', sizeof name);
        memset(other, 'n', sizeof other);
        int length = snprintf(text, sizeof text, "{\"%.*s\":1,\"x\":2,\"%.*s\":3}", size, name, size, other);
        check_paths(arena, text, (size_t)length);
        assert_false(is_quick(arena, text));
        for (int place = 0; place < size; place++) {
            other[place] = 'm';
            length = snprintf(text, sizeof text, "{\"%.*s\":1,\"x\":2,\"%.*s\":3}", size, name, size, other);
            check_paths(arena, text, (size_t)length);
            assert_true(is_quick(arena, text));
            other[place] = 'n';
        }
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_show_the_first_of_any_two),
        cmocka_unit_test(digits_are_told_from_all_else),
        cmocka_unit_test(integers_of_every_length_are_read),
        cmocka_unit_test(one_wrong_byte_makes_no_integer),
        cmocka_unit_test(strings_end_at_every_place_and_byte),
        cmocka_unit_test(strings_of_every_length_stand_anywhere),
        cmocka_unit_test(texts_cut_or_spoilt_anywhere_are_judged_alike),
        cmocka_unit_test(same_names_are_found_wherever_they_stand),
    };
    return cmocka_run_group_tests_name("eight", tests, make_pages, drop_pages);
}
