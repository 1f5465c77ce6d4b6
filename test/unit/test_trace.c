/* trace: which headers of the W3C's Trace Context are kept, and their parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "arena_fixture.h"
#include "model/trace.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* What is kept of the state beside a right parent. */
static const char *kept(const char *state)
{
    struct bytes trace = trace_read(arena, BYTES(PARENT), bytes_of(state)), part = trace_state(trace);
    assert_true(bytes_equal(trace_parent(trace), BYTES(PARENT)));
    assert_true(trace.data[trace.size] == '\0');
    return part.data ? part.data : "";
}

static void a_state_goes_with_its_parent(void **state UNUSED)
{
    assert_string_equal(kept("shop=t61rcWkgMzE"), "shop=t61rcWkgMzE");
    assert_null(trace_read(arena, NO_BYTES, BYTES("shop=1")).data);
    assert_null(trace_read(arena, BYTES("00-0"), BYTES("shop=1")).data);
    assert_null(trace_parent(NO_BYTES).data);
    assert_null(trace_state(NO_BYTES).data);
    assert_null(trace_state(trace_read(arena, BYTES(PARENT), NO_BYTES)).data);
}

static void what_is_well_formed_is_kept(void **state UNUSED)
{
    static const char *const right[] = {"a=1",      "a=1,b=2",       "a=1 ,\t b=2,,c=3", "0t@a=x y",
                                        "k_-*/9=~", "tenant@sys=!:", "a=\"q\" \\"};
    for (size_t i = 0; i < COUNT_OF(right); i++)
        assert_string_equal(kept(right[i]), right[i]);
    assert_string_equal(kept(" a=1\t"), "a=1");
    const struct bytes broken = {"a\0=1", 4};
    assert_null(trace_state(trace_read(arena, BYTES(PARENT), broken)).data);
}

static void what_is_malformed_is_dropped(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",        " ",          ",",     "a",     "=1",          "a=",      "a= ",  "A=1",
        "a=1,a=2", "a==1",       "a=b=c", "@a=1",  "a@=1",        "a@b@c=1", "_a=1", "a@-b=1",
        "a=\x7f",  "a=\xc3\xa4", "a=1\n", "a b=1", "a=1;b\x01=2", "a =1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_string_equal(kept(wrong[i]), "");
}

/* `count` members of five bytes, with their commas. */
static const char *many(size_t count)
{
    static char text[1024];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%sk%02zu=v", i ? "," : "", i);
    return text;
}

static void its_size_is_bounded(void **state UNUSED)
{
    char text[TRACE_STATE_MOST + 2] = "a=";
    memset(text + 2, 'v', sizeof text - 3);
    text[sizeof text - 1] = '\0';
    assert_string_equal(kept(text), "");
    memcpy(text + 250, ",b=", 3);
    memcpy(text + 508, ",c=", 3); /* no value is too long */
    assert_int_equal(strlen(text), TRACE_STATE_MOST + 1);
    assert_string_equal(kept(text), "");
    text[TRACE_STATE_MOST] = '\0';
    assert_string_equal(kept(text), text);
    assert_string_equal(kept(many(32)), many(32));
    assert_string_equal(kept(many(33)), "");
}

static void a_key_and_a_value_have_at_most_256_bytes(void **state UNUSED)
{
    char key[300], value[300];
    for (size_t size = 256; size <= 257; size++) {
        memset(key, 'k', sizeof key);
        strcpy(key + size, "=1");
        assert_string_equal(kept(key), size == 256 ? key : "");
        memset(value, 'v', sizeof value);
        memcpy(value, "a=", 2);
        value[2 + size] = '\0';
        assert_string_equal(kept(value), size == 256 ? value : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_goes_with_its_parent),
        cmocka_unit_test(what_is_well_formed_is_kept),
        cmocka_unit_test(what_is_malformed_is_dropped),
        cmocka_unit_test(its_size_is_bounded),
        cmocka_unit_test(a_key_and_a_value_have_at_most_256_bytes),
    };
    return cmocka_run_group_tests_name("trace", tests, arena_set_up, arena_tear_down);
}
