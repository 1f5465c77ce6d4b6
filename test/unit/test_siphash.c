/* test_siphash: the digests of the reference implementation, and names of requests that are made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/coding/siphash.h"
#include "http/request_id.h"

/* Key 00 01 … 0f, text 00 01 … of so many bytes: `openssl mac -macopt size:16 … SIPHASH` gives the same. */
static void digests_are_those_of_the_reference(void **state UNUSED)
{
    static const struct {
        size_t size;
        unsigned char digest[16];
    } cases[] = {
        {0, {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93}},
        {1, {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45}},
        {7, {0xa1, 0xf1, 0xeb, 0xbe, 0xd8, 0xdb, 0xc1, 0x53, 0xc0, 0xb8, 0x4a, 0xa6, 0x1f, 0xf0, 0x82, 0x39}},
        {8, {0x3b, 0x62, 0xa9, 0xba, 0x62, 0x58, 0xf5, 0x61, 0x0f, 0x83, 0xe2, 0x64, 0xf3, 0x14, 0x97, 0xb4}},
        {9, {0x26, 0x44, 0x99, 0x06, 0x0a, 0xd9, 0xba, 0xab, 0xc4, 0x7f, 0x8b, 0x02, 0xbb, 0x6d, 0x71, 0xed}},
        {15,
         {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3, 0xd9}},
        {16,
         {0x6e, 0xe2, 0xa4, 0xca, 0x67, 0xb0, 0x54, 0xbb, 0xfd, 0x33, 0x15, 0xbf, 0x85, 0x23, 0x05, 0x77}},
        {27,
         {0xab, 0xf2, 0x48, 0xaf, 0x69, 0xa6, 0xea, 0xe4, 0xbf, 0xd3, 0xeb, 0x2f, 0x12, 0x9e, 0xeb, 0x94}},
        {63,
         {0x51, 0x50, 0xd1, 0x77, 0x2f, 0x50, 0x83, 0x4a, 0x50, 0x3e, 0x06, 0x9a, 0x97, 0x3f, 0xbd, 0x7c}},
    };
    const struct siphash_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    char text[64];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t digest[2];
        siphash(&key, (struct bytes){text, cases[i].size}, digest);
        assert_true(siphash_short(&key, (struct bytes){text, cases[i].size}) == digest[0]);
        for (int byte = 0; byte < 16; byte++)
            assert_int_equal(digest[byte / 8] >> (8 * (byte % 8)) & 255, cases[i].digest[byte]);
    }
}

static void a_name_shows_nothing_of_its_token(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    const struct bytes token = BYTES("14281-3863-1-1795315662.242"),
                       next = BYTES("14281-3864-1-1795315662.242");
    request_id_draw_key();
    const char *name = request_id_make(arena, token);
    assert_int_equal(strlen(name), 32);
    assert_int_equal(strspn(name, "0123456789abcdef"), 32);
    assert_string_equal(request_id_make(arena, token), name);
    assert_string_not_equal(request_id_make(arena, next), name);
    request_id_draw_key(); /* another server */
    assert_string_not_equal(request_id_make(arena, token), name);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_reference),
        cmocka_unit_test(a_name_shows_nothing_of_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
