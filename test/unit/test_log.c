/* log: lines that may be many are limited by their kind, and counted. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/logging/log_json.h"

static int errors;       /* the former standard error */
static FILE *written;    /* the present one */
static char text[65536]; /* what was written since the last call */

static const char *log_text(void)
{
    size_t size = fread(text, 1, sizeof text - 1, written);
    clearerr(written);
    text[size] = '\0';
    return text;
}

static size_t count_of(const char *words)
{
    size_t count = 0;
    for (const char *found = text; (found = strstr(found, words)); found += strlen(words))
        count++;
    return count;
}

static int catch_lines(void **state UNUSED)
{
    char path[] = "/tmp/stampd-log-XXXXXX";
    int file = mkstemp(path);
    errors = dup(STDERR_FILENO);
    written = fopen(path, "r");
    return file < 0 || !written || unlink(path) || dup2(file, STDERR_FILENO) < 0 || close(file);
}

static int release_lines(void **state UNUSED)
{
    fclose(written);
    return dup2(errors, STDERR_FILENO) < 0 || close(errors);
}

static void complain(const char *kind, int number)
{
    log_often(LOG_LEVEL_WARNING, kind, "it is slow kind=%s number=%d", kind, number);
}

static void a_minute_later(void)
{
    log_flush(clock_monotonic_ms() + 60000);
}

static void a_line_has_the_trace_of_its_task(void **state UNUSED)
{
    char words[4096];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    log_set_request_id("feed");
    log_set_trace("00-trace\n-01");
    log_warning("it is slow");
    log_warning("%s", words);
    log_often(LOG_LEVEL_WARNING, "t", "many");
    log_often(LOG_LEVEL_WARNING, "t", "many");
    log_often(LOG_LEVEL_WARNING, "t", "many");
    assert_non_null(strstr(log_text(), "warning: it is slow request=feed trace=00-trace -01\n"));
    assert_non_null(strstr(text, "www request=feed trace=00-trace -01\n"));
    log_set_trace("00-trace-01 a=x y,b=\n");
    log_warning("it is slow");
    log_warning("%s", words);
    assert_non_null(
        strstr(log_text(), "warning: it is slow request=feed trace=00-trace-01 tracestate=a=x y,b= \n"));
    assert_non_null(strstr(text, "www request=feed trace=00-trace-01 tracestate=a=x y,b= \n"));
    a_minute_later();
    assert_non_null(strstr(log_text(), "repeated times=2 seconds=60: many\n"));
    log_set_trace(NULL);
    log_warning("it is slow");
    log_set_request_id(NULL);
    assert_non_null(strstr(log_text(), "warning: it is slow request=feed\n"));
}

static void one_line_at_once_and_a_count_after_the_minute(void **state UNUSED)
{
    for (int i = 0; i < 1000; i++)
        complain("a", i);
    complain("b", 7);
    log_flush(clock_monotonic_ms());
    log_text();
    assert_int_equal(count_of("\n"), 2);
    assert_non_null(strstr(text, "warning: it is slow kind=a number=0\n"));
    log_set_request_id("of-another");
    a_minute_later();
    log_set_request_id(NULL);
    log_text();
    assert_int_equal(count_of("\n"), 1); /* what came once is not repeated */
    assert_non_null(strstr(text, "warning: repeated times=999 seconds=60: it is slow kind=a number=0\n"));
    complain("a", 5);
    assert_non_null(strstr(log_text(), "kind=a number=5\n"));
    a_minute_later();
    assert_string_equal(log_text(), "");
}

static void a_child_leaves_counts_to_its_parent(void **state UNUSED)
{
    complain("a", 1);
    complain("a", 2);
    log_text();
    log_close();
    log_flush(INT64_MAX);
    assert_string_equal(log_text(), "");
    complain("a", 3);
    assert_non_null(strstr(log_text(), "kind=a number=3\n"));
    a_minute_later();
    log_text();
}

static void formats_and_levels_are_kinds_too(void **state UNUSED)
{
    complain("a", 1);
    log_often(LOG_LEVEL_ERROR, "a", "it is gone");
    log_often(LOG_LEVEL_ERROR, "a", "it is gone");
    log_often(LOG_LEVEL_DEBUG, "a", "not wanted");
    log_text();
    assert_int_equal(count_of("\n"), 2);
    log_flush(INT64_MAX);
    assert_non_null(strstr(log_text(), "error: repeated times=1 seconds=60: it is gone\n"));
}

/* However a client varies its requests. */
static void too_many_kinds_are_one(void **state UNUSED)
{
    char kind[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(kind, sizeof kind, "k%d", i);
        complain(kind, i);
    }
    log_text();
    assert_int_equal(count_of("\n"), 33);
    a_minute_later();
    log_text();
    assert_int_equal(count_of("\n"), 1);
    assert_non_null(strstr(text, "repeated times=4967 seconds=60: and others\n"));
}

static void json_is(struct bytes message, const char *expected)
{
    char line[LOG_JSON_BYTES + 1];
    struct log_event event = {.time = "T", .level = "info", .program = "p", .pid = 7, .message = message};
    line[log_json_compose(line, &event)] = '\0';
    assert_string_equal(line, expected);
}

static void json_escapes_what_it_must(void **state UNUSED)
{
#define JSON_HEAD "{\"time\":\"T\",\"level\":\"info\",\"program\":\"p\",\"pid\":7,\"message\":\""
    json_is(BYTES(""), JSON_HEAD "\"}");
    json_is(BYTES("a=\"b\" c\\d/"), JSON_HEAD "a=\\\"b\\\" c\\\\d/\"}");
    json_is(BYTES("\0\n\x1f\x7f"), JSON_HEAD "\\u0000\\u000a\\u001f\x7f\"}");
    json_is(BYTES("\u00e9\u20ac\U0001F600"), JSON_HEAD "\u00e9\u20ac\U0001F600\"}");
    /* a lonely byte, an overlong form, a surrogate, above the last character, one that is cut off */
    json_is(BYTES("\xff.\xc0\xaf.\xed\xa0\x80.\xf4\x90\x80\x80.\xe2\x82"),
            JSON_HEAD "\ufffd.\ufffd\ufffd.\ufffd\ufffd\ufffd.\ufffd\ufffd\ufffd\ufffd.\ufffd\ufffd\"}");
}

/* Of each size, from a message that fits to one that does not. */
static void json_cuts_between_characters(void **state UNUSED)
{
    static const char *const letters[] = {"w", "\u20ac", "\"", "\n"};
    static const char *const written_as[] = {"w", "\u20ac", "\\\"", "\\u000a"};
    char line[LOG_JSON_BYTES + 1], message[3 * LOG_JSON_BYTES];
    for (size_t letter = 0; letter < COUNT_OF(letters); letter++)
        for (size_t before = 0; before < 8; before++) {
            size_t size = strlen(letters[letter]), used = before, end, count = 0;
            memset(message, '-', before);
            for (; used + size <= sizeof message; used += size)
                memcpy(message + used, letters[letter], size);
            struct log_event event = {
                .time = "T", .level = "info", .program = "p", .message = {message, used}};
            end = log_json_compose(line, &event);
            assert_in_range(end, LOG_JSON_BYTES - 5, LOG_JSON_BYTES);
            assert_memory_equal(line + end - 2, "\"}", 2);
            line[end - 2] = '\0';
            const char *at = strstr(line, "\"message\":\"") + strlen("\"message\":\"") + before;
            for (; strncmp(at, written_as[letter], strlen(written_as[letter])) == 0; count++)
                at += strlen(written_as[letter]);
            assert_int_equal(*at, '\0');
            assert_true(count > LOG_JSON_BYTES / 8);
        }
}

static void json_has_the_ids_of_a_line(void **state UNUSED)
{
    log_open("test_log", LOG_LEVEL_INFO, false, LOG_FORMAT_JSON);
    log_set_request_id("feed");
    log_set_trace("00-trace-01 a=\"x y\"");
    log_warning("two\nlines");
    log_set_trace(NULL);
    log_set_request_id(NULL);
    log_text();
    log_open("test_log", LOG_LEVEL_INFO, false, LOG_FORMAT_TEXT);
    assert_int_equal(count_of("\n"), 1);
    assert_non_null(strstr(text, "{\"time\":\"20"));
    assert_non_null(strstr(text, "Z\",\"level\":\"warning\",\"program\":\"test_log\",\"pid\":"));
    assert_non_null(strstr(text,
                           ",\"request\":\"feed\",\"trace\":\"00-trace-01\",\"tracestate\":\"a=\\\"x y\\\"\","
                           "\"message\":\"two\\u000alines\"}\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_trace_of_its_task),
        cmocka_unit_test(one_line_at_once_and_a_count_after_the_minute),
        cmocka_unit_test(a_child_leaves_counts_to_its_parent),
        cmocka_unit_test(formats_and_levels_are_kinds_too),
        cmocka_unit_test(too_many_kinds_are_one),
        cmocka_unit_test(json_escapes_what_it_must),
        cmocka_unit_test(json_cuts_between_characters),
        cmocka_unit_test(json_has_the_ids_of_a_line),
    };
    return cmocka_run_group_tests(tests, catch_lines, release_lines);
}
