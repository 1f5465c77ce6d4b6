/* Parameters in the binary format, the meaning of error codes, the range of a prefix: what needs no server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arena_fixture.h"
#include "model/schema/search_prefix.h"
#include "edge/pg/pg.h"

/* The last parameter is exactly these bytes. */
#define expect_wire(params, ...)                                                                             \
    do {                                                                                                     \
        static const unsigned char wire[] = {__VA_ARGS__};                                                   \
        assert_int_equal((params).lengths[(params).count - 1], sizeof wire);                                 \
        assert_memory_equal((params).values[(params).count - 1], wire, sizeof wire);                         \
    } while (0)

static void numbers_are_big_endian(void **state UNUSED)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_i64(&params, INT64_C(0x0102030405060708));
    expect_wire(params, 1, 2, 3, 4, 5, 6, 7, 8);
    pg_params_add_i64(&params, -2);
    expect_wire(params, 255, 255, 255, 255, 255, 255, 255, 254);
    pg_params_add_i32(&params, INT32_MIN);
    expect_wire(params, 128, 0, 0, 0);
    assert_int_equal(params.count, 3);
    assert_int_equal(params.bytes, 20);
}

static void texts_are_borrowed(void **state UNUSED)
{
    struct pg_params params;
    struct bytes text = BYTES("a\0b");
    pg_params_start(&params, arena);
    pg_params_add_text(&params, text);
    assert_ptr_equal(params.values[0], text.data);
    assert_int_equal(params.lengths[0], 3);
    pg_params_add_text(&params, BYTES(""));
    assert_non_null(params.values[1]);
    assert_int_equal(params.lengths[1], 0);
    pg_params_add_text(&params, NO_BYTES);
    assert_null(params.values[2]);
}

static void arrays_bear_type_and_bounds(void **state UNUSED)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_i64_array(&params, (const int64_t[]){1, -1}, 2);
    expect_wire(params, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1, /* head */
                0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255);
    pg_params_add_i32_array(&params, (const int32_t[]){258}, 1);
    expect_wire(params, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 1, 2);
    pg_params_add_bool_array(&params, (const bool[]){true, false}, 2);
    expect_wire(params, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0,
                1, 0);
    const struct bytes texts[] = {BYTES("ab"), NO_BYTES, BYTES("")};
    pg_params_add_text_array(&params, texts, 3);
    expect_wire(params, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 3, 0, 0, 0, 1, /* a null is announced */
                0, 0, 0, 2, 'a', 'b', 255, 255, 255, 255, 0, 0, 0, 0);
}

static void an_empty_array_has_no_dimension(void **state UNUSED)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text_array(&params, NULL, 0);
    expect_wire(params, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25);
    pg_params_add_i64_array(&params, NULL, 0);
    expect_wire(params, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20);
}

static void a_parameter_is_shared(void **state UNUSED)
{
    struct pg_params params, other;
    pg_params_start(&params, arena);
    pg_params_add_i32(&params, 7);
    pg_params_add_text(&params, BYTES("shared"));
    pg_params_start(&other, arena);
    pg_params_add_same(&other, &params, 1);
    assert_ptr_equal(other.values[0], params.values[1]);
    assert_int_equal(other.lengths[0], 6);
    assert_int_equal(other.bytes, 6);
}

static void what_is_too_large_does_not_fit(void **state UNUSED)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, (struct bytes){"", (size_t)600 << 20}); /* never read */
    assert_true(pg_params_fit(&params));
    pg_params_add_text(&params, (struct bytes){"", (size_t)600 << 20});
    assert_false(pg_params_fit(&params));
    pg_params_start(&params, arena);
    const struct bytes texts[] = {{"", (size_t)600 << 20}, {"", (size_t)5 << 30}};
    pg_params_add_text_array(&params, texts, 2);
    assert_false(pg_params_fit(&params));
}

static void sqlstates_have_their_faults(void **state UNUSED)
{
    static const struct {
        const char *sqlstate;
        enum fault fault;
    } cases[] = {
        {"40001", FAULT_STALE},     {"40P01", FAULT_STALE},     {"55P03", FAULT_STALE},
        {"57014", FAULT_XTIME},     {"53100", FAULT_XFULL},     {"53300", FAULT_XAWAY},
        {"25006", FAULT_XAWAY},     {"08006", FAULT_XAWAY},     {"57P01", FAULT_XAWAY},
        {"57P03", FAULT_XAWAY},     {"3D000", FAULT_ODATABASE}, {"23505", FAULT_XDATABASE},
        {"53200", FAULT_XDATABASE}, {"42P01", FAULT_XDATABASE}, {"25P02", FAULT_XDATABASE},
        {"ST001", FAULT_XDATABASE}, {"", FAULT_XDATABASE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (pg_fault_of_sqlstate(cases[i].sqlstate) != cases[i].fault)
            fail_msg("%s: %s", cases[i].sqlstate, fault_code(pg_fault_of_sqlstate(cases[i].sqlstate)));
}

static void a_prefix_ends_before_the_next_text(void **state UNUSED)
{
    static const struct {
        const char *prefix, *end; /* NULL: no end */
    } cases[] = {
        {"a", "b"},
        {"ab", "ac"},
        {"\x7f", "\xc2\x80"},                 /* one byte to two */
        {"x\xc3\xa9", "x\xc3\xaa"},           /* é */
        {"\xdf\xbf", "\xe0\xa0\x80"},         /* U+07FF */
        {"\xed\x9f\xbf", "\xee\x80\x80"},     /* U+D7FF: surrogates are no text */
        {"\xef\xbf\xbf", "\xf0\x90\x80\x80"}, /* U+FFFF */
        {"a\xf4\x8f\xbf\xbf", "b"},           /* U+10FFFF carries on */
        {"\x7f\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf", "\xc2\x80"},
        {"", NULL},
        {"\xf4\x8f\xbf\xbf", NULL},
        {"\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes prefix = bytes_of(cases[i].prefix), end = NO_BYTES;
        assert_int_equal(search_prefix_end(arena, prefix, &end), cases[i].end != NULL);
        if (!cases[i].end)
            continue;
        assert_true(bytes_equal(end, bytes_of(cases[i].end)));
        assert_true(bytes_is_utf8(end));
        assert_true(bytes_compare(prefix, end) < 0);
    }
}

static size_t encode(uint32_t code, char *text)
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i; i--, code >>= 6)
        text[i] = (char)(0x80 | (code & 0x3F));
    text[0] = (char)((0xFF00u >> size & 0xFF) | code); /* as many ones as bytes */
    return size;
}

/* The end of each single character is the very next character: nothing lies between. */
static void every_character_is_followed_by_the_next(void **state UNUSED)
{
    char one[4], other[4], *before = one, *now = other;
    size_t before_size = encode(1, before);
    for (uint32_t code = 2; code <= 0x10FFFF; code++) {
        if (code == 0xD800)
            code = 0xE000;
        size_t size = encode(code, now);
        struct bytes end;
        if (!search_prefix_end(arena, (struct bytes){before, before_size}, &end) ||
            !bytes_equal(end, (struct bytes){now, size}))
            fail_msg("U+%04X does not follow", code);
        char *swap = before;
        before = now;
        now = swap;
        before_size = size;
        if (code % 4096 == 0)
            arena_reset(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(numbers_are_big_endian),
        ARENA_TEST(texts_are_borrowed),
        ARENA_TEST(arrays_bear_type_and_bounds),
        ARENA_TEST(an_empty_array_has_no_dimension),
        ARENA_TEST(a_parameter_is_shared),
        ARENA_TEST(what_is_too_large_does_not_fit),
        ARENA_TEST(sqlstates_have_their_faults),
        ARENA_TEST(a_prefix_ends_before_the_next_text),
        ARENA_TEST(every_character_is_followed_by_the_next),
    };
    return cmocka_run_group_tests_name("pg", tests, NULL, NULL);
}
