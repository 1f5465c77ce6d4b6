/* base: UTF-8, integers, builders, arenas, settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "base/settings.h"

static void utf8_is_judged_by_rfc_3629(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        bool good;
    } cases[] = {
        {"", 0, true},
        {"plain ascii, longer than one word", 33, true},
        {"\xC3\xA9", 2, true},
        {"\xE2\x82\xAC", 3, true},
        {"\xF0\x9F\x98\x80", 4, true},
        {"\xF4\x8F\xBF\xBF", 4, true},
        {"12345678\xC3", 9, false},        /* truncated */
        {"\x80", 1, false},                 /* continuation alone */
        {"\xC0\x80", 2, false},             /* overlong NUL */
        {"\xE0\x9F\xBF", 3, false},         /* overlong */
        {"\xF0\x8F\xBF\xBF", 4, false},     /* overlong */
        {"\xED\xA0\x80", 3, false},         /* surrogate */
        {"\xF4\x90\x80\x80", 4, false},     /* above U+10FFFF */
        {"\xF8\x88\x80\x80\x80", 5, false}, /* five bytes */
        {"abc\xFFxyzuvwtsrq", 15, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(bytes_is_utf8((struct bytes){cases[i].text, cases[i].size}), cases[i].good);
}

static void integers_are_whole_and_fit(void **state)
{
    (void)state;
    int64_t n;
    assert_true(bytes_to_i64(BYTES("9223372036854775807"), &n) && n == INT64_MAX);
    assert_true(bytes_to_i64(BYTES("-9223372036854775808"), &n) && n == INT64_MIN);
    assert_true(bytes_to_i64(BYTES("0"), &n) && n == 0);
    assert_false(bytes_to_i64(BYTES("9223372036854775808"), &n));
    assert_false(bytes_to_i64(BYTES("-9223372036854775809"), &n));
    assert_false(bytes_to_i64(BYTES(""), &n));
    assert_false(bytes_to_i64(BYTES("-"), &n));
    assert_false(bytes_to_i64(BYTES("1e3"), &n));
    assert_false(bytes_to_i64(BYTES(" 1"), &n));
}

static void a_builder_grows_and_keeps(void **state)
{
    (void)state;
    struct builder builder = {0};
    builder_add_i64(&builder, INT64_MIN);
    builder_add_text(&builder, " ");
    builder_add_i64(&builder, 0);
    for (int i = 0; i < 1000; i++)
        builder_add_text(&builder, "0123456789");
    builder_printf(&builder, "%s", "end");
    assert_int_equal(builder.size, 20 + 2 + 10000 + 3);
    assert_memory_equal(builder.data, "-9223372036854775808 0", 22);
    builder_clear(&builder, 1 << 20);
    assert_int_equal(builder.size, 0);
    assert_true(builder.capacity > 0);
    builder_clear(&builder, 16);
    assert_int_equal(builder.capacity, 0);
    builder_free(&builder);
}

static int freed[3], freed_count;

static void note_freed(void *pointer)
{
    freed[freed_count++] = *(int *)pointer;
}

static void an_arena_gives_back_in_reverse(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    static int one = 1, two = 2;
    arena_defer(arena, note_freed, &one);
    arena_defer(arena, note_freed, &two);
    char *big = arena_alloc(arena, 1 << 20);
    big[(1 << 20) - 1] = 'x';
    assert_string_equal(arena_printf(arena, "%d-%s", 7, "b"), "7-b");
    for (int i = 0; i < 1000; i++)
        assert_int_equal(((uintptr_t)arena_alloc(arena, 13)) % _Alignof(max_align_t), 0);
    arena_reset(arena);
    assert_int_equal(freed_count, 2);
    assert_int_equal(freed[0], 2);
    assert_int_equal(arena_used(arena), 0);
    arena_destroy(arena);
}

static bool load(struct settings *settings, const char *text, char *problem, size_t size)
{
    char path[] = "/tmp/stampd-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
    bool good = settings_load(settings, path, problem, size);
    unlink(path);
    return good;
}

static void settings_are_checked(void **state)
{
    (void)state;
    struct settings settings;
    char problem[512];
    assert_true(load(&settings, "workers = 3\ndatabase = host=/tmp user=x\n", problem, sizeof problem));
    assert_int_equal(settings.workers, 3);
    assert_int_equal(settings.limit_documents, 32);
    assert_string_equal(settings.database, "host=/tmp user=x");
    settings_free(&settings);
    assert_false(load(&settings, "# x\nworkers = 0\n", problem, sizeof problem));
    assert_non_null(strstr(problem, ":2: workers = 0: expected a number of processes from 1 to 128"));
    assert_false(load(&settings, "worker = 1\n", problem, sizeof problem));
    assert_non_null(strstr(problem, "no such setting"));
    assert_false(load(&settings, "hosts = some\n", problem, sizeof problem));
    assert_false(load(&settings, "segment_slots = 1025\n", problem, sizeof problem));
    assert_false(load(&settings, "admin_key_sha256 = abc\n", problem, sizeof problem));
    assert_false(settings_load(&settings, "/nonexistent/x.conf", problem, sizeof problem));
}

static void faults_know_their_class(void **state)
{
    (void)state;
    assert_string_equal(fault_code(FAULT_AVERSION), "AVERSION");
    assert_int_equal(fault_major(FAULT_NPATH), 1);
    assert_int_equal(fault_major(FAULT_SKEY), 7);
    assert_int_equal(fault_major(FAULT_CONTENTION), 5);
    assert_true(fault_is_retried(FAULT_STALE));
    assert_false(fault_is_retried(FAULT_XUNKNOWN));
    for (int i = 0; i < FAULT_COUNT; i++)
        assert_non_null(fault_words((enum fault)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_judged_by_rfc_3629), cmocka_unit_test(integers_are_whole_and_fit),
        cmocka_unit_test(a_builder_grows_and_keeps),  cmocka_unit_test(an_arena_gives_back_in_reverse),
        cmocka_unit_test(settings_are_checked),       cmocka_unit_test(faults_know_their_class),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
