/* test_resp: requests of RESP in pieces of every size, what is refused, and replies; patterns; cursors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "journal/resp/resp_scan.h"

static const struct resp_limits limits = {RESP_WORDS_MOST, 1000, 100000};

/* --- requests --- */

static const struct {
    const char *text;
    size_t count;
    const char *words[4];
} requests[] = {
    {"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", 2, {"GET", "a"}},
    {"*1\r\n$0\r\n\r\n", 1, {""}},
    {"*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$4\r\n$1\r\n\r\n", 3, {"SET", "\r\n", "$1\r\n"}},
    {"*0\r\n", 0, {0}},
    {"*-1\r\n", 0, {0}},
    {"PING\r\n", 1, {"PING"}},
    {"\r\n", 0, {0}},
    {"  set  a \"b c\"\n", 3, {"set", "a", "b c"}},
    {"a\"\\x41\\n\\\\\\q\" 'it\\'s\\n' \"\"\r\n", 3, {"aA\n\\q", "it's\\n", ""}},
};

static void expect_request(const struct resp_reader *reader, size_t number)
{
    assert_int_equal(reader->count, requests[number].count);
    assert_int_equal(reader->at, strlen(requests[number].text));
    for (size_t i = 0; i < reader->count; i++)
        assert_true(bytes_equal(resp_word(reader, i), bytes_of(requests[number].words[i])));
}

/* Two cuts, of which the bytes are elsewhere each time. */
static void a_request_may_come_in_pieces(void **state UNUSED)
{
    struct resp_reader reader = {0};
    char places[3][100];
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        size_t size = strlen(requests[i].text), cuts[3] = {0, 0, size};
        for (cuts[0] = 0; cuts[0] <= size; cuts[0]++)
            for (cuts[1] = cuts[0]; cuts[1] <= size; cuts[1]++) {
                enum resp_reading reading = RESP_PARTIAL;
                resp_next(&reader);
                for (size_t k = 0; k < COUNT_OF(cuts); k++) {
                    memcpy(places[k], requests[i].text, cuts[k]);
                    reading = resp_read(&reader, (struct bytes){places[k], cuts[k]}, &limits);
                    assert_int_equal(reading, cuts[k] == size ? RESP_WHOLE : RESP_PARTIAL);
                }
                expect_request(&reader, i);
            }
    }
    resp_free(&reader);
}

static void what_follows_a_request_is_left(void **state UNUSED)
{
    struct resp_reader reader = {0};
    struct bytes text = BYTES("*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nECHO\r\n*1\r");
    const char *const words[] = {"PING", "PING", "ECHO"};
    resp_next(&reader);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        assert_int_equal(resp_read(&reader, text, &limits), RESP_WHOLE);
        assert_true(reader.count == 1 && bytes_are(resp_word(&reader, 0), words[i]));
        text.data += reader.at;
        text.size -= reader.at;
        resp_next(&reader);
    }
    assert_int_equal(resp_read(&reader, text, &limits), RESP_PARTIAL);
    resp_free(&reader);
}

static void what_is_no_request_is_refused(void **state UNUSED)
{
    static const struct resp_limits few = {2, 10, 30};
    static const char *const wrong[] = {"*x\r\n",
                                        "*3\r\n",
                                        "*01\r\n",
                                        "*99999999999999999999\r\n",
                                        "*1111111111111111111111111111",
                                        "*1\r\r",
                                        "*1\r\n$-1\r\n",
                                        "*1\r\n$11\r\n",
                                        "*1\r\n$x\r\n",
                                        "*1\r\n:1\r\n",
                                        "*1\r\n*1\r\n",
                                        "*1\r\n$1\r\naXY",
                                        "*2\r\n$10\r\n0123456789\r\n$10\r\n",
                                        "a b c\r\n",
                                        "\"a\r\n",
                                        "\"a\"b\r\n",
                                        "'a\r\n",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "aaaaaaaaaaa\r\n"};
    struct resp_reader reader = {0};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        resp_next(&reader);
        if (resp_read(&reader, bytes_of(wrong[i]), &few) != RESP_MALFORMED)
            fail_msg("%s", wrong[i]);
        assert_non_null(reader.problem);
    }
    resp_free(&reader);
}

static void integers_are_those_of_redis(void **state UNUSED)
{
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        "01",
                                        "-0",
                                        "00",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "0x1",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999"};
    int64_t number;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (resp_to_integer(bytes_of(wrong[i]), &number))
            fail_msg("%s", wrong[i]);
    assert_true(resp_to_integer(BYTES("0"), &number) && number == 0);
    assert_true(resp_to_integer(BYTES("-12"), &number) && number == -12);
    assert_true(resp_to_integer(BYTES("9223372036854775807"), &number) && number == INT64_MAX);
    assert_true(resp_to_integer(BYTES("-9223372036854775808"), &number) && number == INT64_MIN);
}

static void replies_are_those_of_a_version(void **state UNUSED)
{
    struct builder out = {0};
    resp_add_simple(&out, "OK");
    resp_add_error(&out, "ERR a\r\nb");
    resp_add_integer(&out, INT64_MIN);
    resp_add_bulk(&out, BYTES("a\r\n"));
    resp_add_bulk(&out, BYTES(""));
    resp_add_array(&out, 0);
    for (int version = 2; version <= 3; version++) {
        resp_add_null(&out, version);
        resp_add_map(&out, version, 2);
        resp_add_push(&out, version, 3);
    }
    assert_true(bytes_equal(
        builder_bytes(&out),
        BYTES(
            "+OK\r\n-ERR a  b\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n$0\r\n\r\n*0\r\n$-1\r\n*4\r\n*3\r\n"
            "_\r\n%2\r\n>3\r\n")));
    builder_free(&out);
}

/* --- patterns --- */

static bool matches(const char *pattern, const char *text)
{
    int64_t steps = 1000;
    return resp_glob_matches(bytes_of(pattern), bytes_of(text), &steps);
}

static void patterns_match_whole_texts(void **state UNUSED)
{
    assert_true(matches("*", "") && matches("", "") && !matches("", "a") && !matches("a", "") &&
                matches("a*c*e", "abcde"));
    assert_true(matches("h[a-c]t", "hbt") && !matches("h[^a-c]t", "hbt") && matches("h[\\]]t", "h]t") &&
                matches("h[c-a]t", "hbt"));
    assert_true(matches("\\*", "*") && !matches("\\*", "a") && matches("a?c", "abc") &&
                !matches("a?c", "ac") && matches("*aab", "aaaab"));
    assert_true(matches("[", "") == false && matches("a[b", "ab") && matches("\\", "\\") &&
                !matches("*b", "ba"));
}

static void many_stars_cost_no_more_than_allowed(void **state UNUSED)
{
    char text[1000], pattern[200];
    int64_t steps = 5000;
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[sizeof pattern - 1] = 'b';
    assert_false(resp_glob_matches((struct bytes){pattern, sizeof pattern}, (struct bytes){text, sizeof text},
                                   &steps));
    steps = 5000;
    assert_false(
        resp_glob_matches(BYTES("*aaaaaaaaaaaaaaaaaaaaaaab"), (struct bytes){text, sizeof text}, &steps));
    assert_true(steps < 0);
}

static void a_pattern_shows_how_texts_begin(void **state UNUSED)
{
    char prefix[100];
    assert_int_equal(resp_glob_prefix(BYTES("user:\\*1*"), prefix), 7);
    assert_memory_equal(prefix, "user:*1", 7);
    assert_int_equal(resp_glob_prefix(BYTES("*a"), prefix), 0);
    assert_int_equal(resp_glob_prefix(BYTES("ab[c]"), prefix), 2);
}

/* --- cursors --- */

static void a_scan_has_two_pages(void **state UNUSED)
{
    struct resp_cursors *cursors = resp_scan_open();
    struct bytes last;
    uint64_t first = resp_scan_note(cursors, 0, 0, BYTES("a")),
             second = resp_scan_note(cursors, 0, first, BYTES("b"));
    assert_true(first && second && first != second && second < UINT64_C(1) << 53);
    assert_true(resp_scan_find(cursors, 0, first, &last) && bytes_are(last, "a")); /* its answer was lost */
    assert_int_equal(resp_scan_note(cursors, 0, first, BYTES("b")), second);
    uint64_t third = resp_scan_note(cursors, 0, second, BYTES("c"));
    assert_false(resp_scan_find(cursors, 0, first, &last));
    assert_true(resp_scan_find(cursors, 0, third, &last) && bytes_are(last, "c"));
    assert_true(resp_scan_find(cursors, 0, second, &last) && bytes_are(last, "b"));
    assert_false(resp_scan_find(cursors, 1, third, &last)); /* another key of the file */
    for (int i = 0; i < 3; i++)                             /* another one is used meanwhile */
        for (uint64_t k = 0; k < RESP_CURSORS_MOST - 1; k++) {
            assert_true(resp_scan_note(cursors, 0, 0, BYTES("x")) != 0);
            assert_true(resp_scan_find(cursors, 0, third, &last));
        }
    for (uint64_t k = 0; k < RESP_CURSORS_MOST; k++)
        resp_scan_note(cursors, 0, 0, BYTES("x"));
    assert_false(resp_scan_find(cursors, 0, third, &last));
    first = resp_scan_note(cursors, JOURNAL_KEYS_MOST - 1, 0, BYTES("a"));
    resp_scan_forget(cursors);
    assert_false(resp_scan_find(cursors, JOURNAL_KEYS_MOST - 1, first, &last));
    resp_scan_close(cursors);
}

/* Pages are numbered in 16 bits. */
static void a_scan_may_be_long(void **state UNUSED)
{
    struct resp_cursors *cursors = resp_scan_open();
    struct bytes last;
    char key[16];
    uint64_t cursor = 0;
    for (int i = 0; i < 140000; i++) {
        int size = snprintf(key, sizeof key, "%d", i);
        cursor = resp_scan_note(cursors, 7, cursor, (struct bytes){key, (size_t)size});
        assert_true(resp_scan_find(cursors, 7, cursor, &last) && bytes_are(last, key));
    }
    resp_scan_close(cursors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_may_come_in_pieces),
        cmocka_unit_test(what_follows_a_request_is_left),
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(integers_are_those_of_redis),
        cmocka_unit_test(replies_are_those_of_a_version),
        cmocka_unit_test(patterns_match_whole_texts),
        cmocka_unit_test(many_stars_cost_no_more_than_allowed),
        cmocka_unit_test(a_pattern_shows_how_texts_begin),
        cmocka_unit_test(a_scan_has_two_pages),
        cmocka_unit_test(a_scan_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
