/* homes: which workers a namespace prefers, as stampctl writes it for nginx and as workers read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "control/nginx/homes.h"
#include "serve/home.h"

static struct arena *arena;

static const char *text_of(struct bytes text)
{
    return arena_copy(arena, text.data, text.size);
}

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (; (text = strstr(text, word)); text++)
        count++;
    return count;
}

/* Each worker has room for the sessions of the namespaces that prefer it, and one more. */
static void homes_of_namespaces(void **state UNUSED)
{
    static char run_directory[] = "/run/stampd";
    struct settings settings = {.workers = 4, .connections = 4, .run_directory = run_directory};
    assert_int_equal(homes_width(&settings, 3), 4);
    assert_int_equal(homes_width(&settings, 4), 3);
    assert_int_equal(homes_width(&settings, 6), 2);
    assert_int_equal(homes_width(&settings, 7), 1);
    assert_int_equal(homes_width(&settings, 1000), 1);
    settings.connections = 1;
    assert_int_equal(homes_width(&settings, 1), 4);
    assert_int_equal(homes_width(&settings, 2), 2);

    settings.connections = 4;
    const struct namespace_conf confs[] = {
        {.code = "a", .database = "x"}, {.code = "b", .database = "x"}, {.code = "default", .database = "x"},
        {.code = "d", .database = "x"}, {.code = "e", .database = "x"}, {.code = "f", .database = "x"},
        {.code = "z", .database = "x"}};
    const char *few = text_of(homes_compose(arena, &settings, confs, 3, NULL));
    assert_null(strstr(few, "upstream"));
    assert_null(strstr(few, "0/"));
    assert_int_equal(count_words(few, "default stampd;"), 2);
    const char *many = text_of(homes_compose(arena, &settings, confs, 7, "z"));
    assert_non_null(strstr(many, "    a 0/2;\n    b 1/2;\n    \\default 2/2;\n    d 3/2;\n    e 0/2;\n"));
    assert_null(strstr(many, "z 2/2"));
    assert_int_equal(count_words(many, "upstream stampd_home_"), 4);
    assert_int_equal(count_words(many, " max_conns="), 8);
    assert_int_equal(count_words(many, " backup;"), 8);
    const char *large = strstr(many, "upstream stampd_large_3 {");
    assert_non_null(large);
    assert_int_equal(count_words(large, "server "), 1);
    assert_non_null(strstr(large, "server unix:/run/stampd/worker-0.sock max_fails=0;"));
    const char *last = strstr(many, "upstream stampd_only_3 {");
    assert_non_null(last);
    assert_int_equal(count_words(last, "server ") - count_words(large, "server "), 2);
    assert_non_null(strstr(last, "server unix:/run/stampd/worker-3.sock max_fails=0;"));
    assert_non_null(strstr(last, "server unix:/run/stampd/worker-0.sock max_fails=0;"));
}

static void homes_are_read(void **state UNUSED)
{
    assert_true(home_has(NO_BYTES, 3, 4));
    assert_true(home_has(BYTES("2/2"), 2, 4));
    assert_true(home_has(BYTES("2/2"), 3, 4));
    assert_false(home_has(BYTES("2/2"), 0, 4));
    assert_true(home_has(BYTES("3/2"), 0, 4)); /* the first follows the last */
    assert_false(home_has(BYTES("3/2"), 1, 4));
    static const char *const malformed[] = {"2", "/", "2/", "/2", "x/2", "4/1", "-1/1", "0/0"};
    for (size_t i = 0; i < COUNT_OF(malformed); i++)
        assert_true(home_has(bytes_of(malformed[i]), 1, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(homes_of_namespaces),
        cmocka_unit_test(homes_are_read),
    };
    arena = arena_create("homes");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
