/* test_letter: addresses, templates, and the text of mails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena_fixture.h"
#include "model/account/letter.h"

static void addresses(void **state UNUSED)
{
    static const char *const good[] = {"a@b", "Ann.O'Neil+tag@example.org", "a@1.2.3.4", "x-y@b-c.d",
                                       "!#$%&'*+-/=?^_`{|}~@b"};
    static const char *const wrong[] = {"",        "a",      "@",          "a@",     "@b",    "a@b@c",
                                        "a b@c",   "a@b\r",  "a@b,c@d",    "<a@b>",  "a@b>",  "\"x\"@y",
                                        "a@[::1]", "a@b..c", ".a@b",       "a.@b",   "a@.b",  "a@b.",
                                        "a@-b",    "a@b_c",  "a@\xc3\xa9", "a(x)@b", "a@b c", "a\n@b",
                                        "a:b@c",   "a;b@c",  "a\\b@c",     "a@b\x7f"};
    char long_one[LETTER_ADDRESS_MOST + 2];
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(letter_is_address(bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (letter_is_address(bytes_of(wrong[i])))
            fail_msg("%s", wrong[i]);
    assert_false(letter_is_address((struct bytes){"a\0@b", 4}));
    memset(long_one, 'a', sizeof long_one);
    long_one[64] = '@';
    for (size_t i = 127; i < sizeof long_one; i += 63)
        long_one[i] = '.';
    assert_true(letter_is_address((struct bytes){long_one, LETTER_ADDRESS_MOST - 1}));
    assert_false(letter_is_address((struct bytes){long_one, LETTER_ADDRESS_MOST + 1}));
    long_one[100] = '@';
    assert_false(letter_is_address((struct bytes){long_one, LETTER_ADDRESS_MOST - 1}));
}

static void names_are_tamed(void **state UNUSED)
{
    struct bytes tame = letter_tame(arena, BYTES("https://evil.example/a_b-1"));
    assert_int_equal(tame.size, 26);
    assert_memory_equal(tame.data, "https   evil example a_b-1", tame.size);
}

static const struct letter_templates *read_templates(const char *text)
{
    const struct letter_templates *templates = NULL;
    return letter_read_templates(arena, bytes_of(text), &templates) ? templates : NULL;
}

static void templates(void **state UNUSED)
{
    static const char *const wrong[] = {"[]",
                                        "{\"from\":1}",
                                        "{\"from\":\"a\"}",
                                        "{\"reset\":[]}",
                                        "{\"reset\":{\"subject\":\"\"}}",
                                        "{\"reset\":{\"subject\":1}}",
                                        "{\"reset\":{\"text\":\"a\\u0000\"}}",
                                        "{\"reset\":{\"link\":\"a b\"}}",
                                        "{\"reset\":{\"html\":\"a\"}}",
                                        "{\"reset\":{\"text\":{}}}",
                                        "{\"resets\":{}}"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (read_templates(wrong[i]))
            fail_msg("%s", wrong[i]);
    assert_non_null(read_templates("{}"));
    const struct letter_templates *read = read_templates("{\"from\":\"a@b\",\"exists\":{\"text\":\"x\"}}");
    assert_memory_equal(read->from.data, "a@b", 3);
    assert_memory_equal(read->kinds[LETTER_EXISTS].text.data, "x", 1);
    assert_null(read->kinds[LETTER_EXISTS].subject.data);
}

static const char *write(const char *templates_text, const char *site, const char *name)
{
    struct builder text = {0};
    const struct letter letter = {.kind = LETTER_RESET,
                                  .templates = templates_text ? read_templates(templates_text) : NULL,
                                  .from = BYTES("a@b.c"),
                                  .to = BYTES("d@e.f"),
                                  .site = bytes_of(site),
                                  .name = bytes_of(name),
                                  .token = BYTES("TOKEN"),
                                  .id = BYTES("id"),
                                  .now_ms = INT64_C(1795000000000)};
    letter_write(&text, &letter);
    const char *result = arena_copy(arena, text.data, text.size);
    builder_free(&text);
    return result;
}

static void expect_part(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %s", part, text);
}

static void a_letter(void **state UNUSED)
{
    const char *text = write(
        "{\"reset\":{\"subject\":\"{site}: {name}\",\"text\":\"{link} \\n=\\u00e4{link\"}}", "Lab", "Ann");
    assert_string_equal(
        text, "From: \"Lab\"\r\n <a@b.c>\r\nTo: <d@e.f>\r\nDate: Wed, 18 Nov 2026 11:06:40 +0000\r\n"
              "Message-ID: <id@b.c>\r\nSubject: Lab: Ann\r\nMIME-Version: 1.0\r\n"
              "Content-Type: text/plain; charset=utf-8\r\n"
              "Content-Transfer-Encoding: quoted-printable\r\nAuto-Submitted: auto-generated\r\n\r\n"
              "TOKEN=20\r\n=3D=C3=A4{link\r\n");
    expect_part(write("{\"reset\":{\"text\":\"{link}\",\"link\":\"https://x\"}}", "Lab", "Ann"),
                "\r\n\r\nhttps://x#ticket=3DTOKEN\r\n");
    expect_part(write("{\"reset\":{\"text\":\"{link}\",\"link\":\"a{token}b{token}\"}}", "Lab", "Ann"),
                "\r\n\r\naTOKENb{token}\r\n");
    assert_null(strstr(write("{\"reset\":{\"subject\":\"{link}\"}}", "Lab", "{link}"), "Subject: TOKEN"));
}

static void words_are_encoded(void **state UNUSED)
{
    const char *text =
        write("{\"reset\":{\"subject\":\"a\\r\\nBcc: x{site}\"}}", "\xc3\xa9\" <x@y>", "{site}\r\nBcc: x");
    expect_part(text, "From: =?UTF-8?B?w6kiIDx4QHk+?=\r\n <a@b.c>\r\n");
    expect_part(text, "Subject: =?UTF-8?B?YSAgQmNjOiB4w6kiIDx4QHk+?=\r\nMIME"); /* blanks for CR LF */
    assert_true(strstr(text, "\nBcc") > strstr(text, "\r\n\r\n"));              /* in the text alone */
    text = write("{\"reset\":{\"subject\":\"{name}\"}}", "x",
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9\xc3\xa9");
    expect_part(text, "Subject: =?UTF-8?B?YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=?=\r\n "
                      "=?UTF-8?B?w6nDqQ==?=\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(addresses), ARENA_TEST(names_are_tamed),   ARENA_TEST(templates),
        ARENA_TEST(a_letter),  ARENA_TEST(words_are_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
