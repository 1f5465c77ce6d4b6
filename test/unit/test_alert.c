/* alert and form: the text of a mail, whatever an exception says; the arguments of a manager's door. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/stamp.h"
#include "queue/alert.h"
#include "queue/form.h"

static const char *composed(struct builder *mail, const struct alert_cause *causes, size_t count, size_t more)
{
    static char from[] = "stampd@example.org", to[] = "one@example.org  two@example.org";
    struct settings settings = {.mail_from = from, .mail_to = to};
    builder_clear(mail, 1 << 20);
    alert_compose(mail, &settings, causes, count, more, stamp_to_epoch_ms(INT64_C(261120103000000)));
    builder_add(mail, "", 1);
    return mail->data;
}

static void a_mail_says_what_and_what_to_do(void **state UNUSED)
{
    struct builder mail = {0};
    struct alert_cause cause = {.ns = "demo",
                                .task = "abc12345",
                                .operation = BYTES("Report"),
                                .code = BYTES("XDISK"),
                                .words = BYTES("No room."),
                                .detail = BYTES("on /srv"),
                                .failures = 3,
                                .startat = INT64_C(261120113000000)};
    const char *text = composed(&mail, &cause, 1, 0);
    static const char *const parts[] = {
        "From: stampd <stampd@example.org>\r\n",
        "To: one@example.org,\r\n two@example.org\r\n",
        "Date: Fri, 20 Nov 2026 10:30:00 +0000\r\n",
        "Subject: stampd demo: Report failed with XDISK\r\n",
        "A task has failed 3 times.",
        "exception   XDISK\r\n",
        "message     No room.\r\n",
        "detail      on /srv\r\n",
        "next try    2026-11-20 11:30:00 UTC\r\n",
        "stampctl task run demo abc12345",
        "stampctl task drop demo abc12345",
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        assert_non_null(strstr(text, parts[i]));
    assert_null(strstr(text, "more"));
    for (const char *end = text; (end = strchr(end, '\n')) != NULL; end++)
        assert_int_equal(end[-1], '\r');
    cause.startat = STAMP_MAX;
    struct alert_cause causes[] = {
        cause, {.task = "second99", .code = BYTES("XNET"), .failures = 1, .startat = STAMP_MAX}};
    text = composed(&mail, causes, 2, 12);
    assert_non_null(strstr(text, "Subject: stampd demo: Report is parked after XDISK\r\n"));
    assert_non_null(strstr(text, "next try    none"));
    assert_non_null(strstr(text, "    second99  parked after 1 failure, XNET\r\nand to 12 more.\r\n"));
    builder_free(&mail);
}

/* SMTP allows lines of 998 bytes. */
static void no_line_is_too_long(void **state UNUSED)
{
    enum { WORDS = 1999, RECEIVERS = 60 };
    char words[WORDS + 1], to[RECEIVERS * 24];
    struct builder mail = {0};
    for (size_t i = 0; i < WORDS; i++)
        words[i] = "\xc3\xa9z"[i % 3];
    words[WORDS] = '\0';
    to[0] = '\0';
    for (size_t i = 0; i < RECEIVERS; i++)
        snprintf(to + strlen(to), sizeof to - strlen(to), "someone%02zu@example.org ", i);
    char from[] = "stampd@example.org";
    const struct settings settings = {.mail_from = from, .mail_to = to};
    struct alert_cause cause = {.ns = "demo",
                                .task = "abc12345",
                                .operation = bytes_of(words),
                                .code = BYTES("X"),
                                .words = bytes_of(words),
                                .detail = bytes_of(words),
                                .failures = 1};
    builder_clear(&mail, 1 << 20);
    alert_compose(&mail, &settings, &cause, 1, 0, stamp_to_epoch_ms(INT64_C(261120103000000)));
    builder_add(&mail, "", 1);
    size_t letters = 0;
    for (const char *line = mail.data; *line; line = strchr(line, '\n') + 1) {
        assert_in_range(strcspn(line, "\r"), 0, 400);
        assert_true(((unsigned char)*line & 0xc0) != 0x80); /* no character is cut */
    }
    for (const char *at = strstr(mail.data, "\nmessage"); at && at < strstr(mail.data, "\ndetail"); at++)
        letters += *at == 'z';
    assert_int_equal(letters, WORDS / 3); /* nothing is lost */
    builder_free(&mail);
}

static void no_exception_writes_headers(void **state UNUSED)
{
    struct builder mail = {0};
    struct alert_cause cause = {.ns = "demo",
                                .task = "abc12345",
                                .operation = BYTES("Bad\r\nBcc: evil@example.org"),
                                .code = BYTES("X\nY"),
                                .words = BYTES("a\r\n\r\n.\r\nMAIL FROM:<x>"),
                                .failures = 1};
    const char *text = composed(&mail, &cause, 1, 0);
    assert_null(strstr(text, "\nBcc"));
    assert_null(strstr(text, "\n.\r\n"));
    assert_null(strstr(text, "\nMAIL"));
    builder_free(&mail);
}

static void a_endpoint_takes_forms_and_json(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct form form;
    assert_int_equal(form_read(arena, BYTES("op=list"), BYTES("application/x-www-form-urlencoded"),
                               BYTES("key=a%2Bb+c&param=%7B%22ns%22%3A%22demo%22%7D"), &form),
                     FAULT_NONE);
    assert_true(bytes_equal(form.op, BYTES("list")));
    assert_true(bytes_equal(form.key, BYTES("a+b c")));
    assert_true(bytes_equal(json_member(form.param, "ns")->value, BYTES("demo")));
    assert_int_equal(form_read(arena, BYTES(""), BYTES("application/json; charset=utf-8"),
                               BYTES("{\"op\":\"scan\",\"key\":\"k\",\"param\":{}}"), &form),
                     FAULT_NONE);
    assert_true(bytes_equal(form.op, BYTES("scan")));
    assert_true(bytes_equal(form.key, BYTES("k")));
    assert_int_equal(form_read(arena, BYTES("op=list"), BYTES(""), BYTES(""), &form), FAULT_NONE);
    assert_null(form.key.data);
    assert_int_equal(form_read(arena, BYTES("op=list"), BYTES("application/x-www-form-urlencoded"),
                               BYTES("key=k&other=1"), &form),
                     FAULT_AARG);
    arena_destroy(arena);
}

static void a_endpoint_refuses_the_rest(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct form form;
    static const struct {
        const char *query, *type, *body;
        enum fault fault;
    } cases[] = {
        {"op=list&key=secret", "", "", FAULT_SKEY},
        {"op=%zz", "", "", FAULT_AARG},
        {"op=%00", "", "", FAULT_AARG},
        {"op=%ff", "", "", FAULT_AARG},
        {"op=%4", "", "", FAULT_AARG},
        {"", "text/plain", "key=a", FAULT_ATYPE},
        {"", "application/json", "[]", FAULT_AARG},
        {"", "application/json", "{\"key\":1}", FAULT_AARG},
        {"", "application/json", "{\"param\":1}", FAULT_AARG},
        {"", "application/json", "{", FAULT_AJSON},
        {"", "application/x-www-form-urlencoded", "param=[1]", FAULT_AARG},
        {"", "application/x-www-form-urlencoded", "param=x", FAULT_AJSON},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(form_read(arena, bytes_of(cases[i].query), bytes_of(cases[i].type),
                                   bytes_of(cases[i].body), &form),
                         cases[i].fault);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mail_says_what_and_what_to_do), cmocka_unit_test(no_line_is_too_long),
        cmocka_unit_test(no_exception_writes_headers),     cmocka_unit_test(a_endpoint_takes_forms_and_json),
        cmocka_unit_test(a_endpoint_refuses_the_rest),
    };
    return cmocka_run_group_tests_name("alert", tests, NULL, NULL);
}
