/* Texts compressed with gzip: whole, in members, cut off, changed, and larger than they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <zlib.h>

#include "edge/gzip.h"

enum { MOST = 1 << 20, RATIO = 100 };

static struct bytes pack(struct bytes text, struct builder *packed)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&stream, text.size);
    stream.next_in = (Bytef *)(uintptr_t)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = (Bytef *)builder_reserve(packed, room);
    stream.avail_out = (uInt)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed->size += room - stream.avail_out;
    deflateEnd(&stream);
    return builder_bytes(packed);
}

/* A text that cannot be made much smaller. */
static void add_noise(struct builder *text, size_t size)
{
    uint32_t state = 1;
    while (text->size < size) {
        state = state * 1664525 + 1013904223;
        builder_printf(text, "%08x", (unsigned)state);
    }
    text->size = size;
}

static void test_texts_of_all_sizes_come_back(void **state UNUSED)
{
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 300000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct builder text = {0}, packed = {0}, back = {0};
        builder_add_text(&back, "before");
        add_noise(&text, sizes[i]);
        assert_int_equal(gzip_unpack(pack(builder_bytes(&text), &packed), MOST, RATIO, &back), GZIP_DONE);
        assert_int_equal(back.size, 6 + sizes[i]);
        assert_memory_equal(back.data, "before", 6);
        if (sizes[i])
            assert_memory_equal(back.data + 6, text.data, sizes[i]);
        builder_free(&text);
        builder_free(&packed);
        builder_free(&back);
    }
}

static void test_members_are_one_text(void **state UNUSED)
{
    struct builder packed = {0}, back = {0};
    pack(BYTES("one "), &packed);
    pack(BYTES("text"), &packed);
    assert_int_equal(gzip_unpack(builder_bytes(&packed), MOST, RATIO, &back), GZIP_DONE);
    assert_true(bytes_equal(builder_bytes(&back), BYTES("one text")));
    builder_free(&packed);
    builder_free(&back);
}

static void test_what_is_not_whole_is_broken(void **state UNUSED)
{
    struct builder packed = {0}, back = {0};
    struct bytes whole = pack(BYTES("a text of some length"), &packed);
    for (size_t size = 0; size < whole.size; size++) {
        builder_clear(&back, 0);
        assert_int_equal(gzip_unpack((struct bytes){whole.data, size}, MOST, RATIO, &back), GZIP_BROKEN);
    }
    packed.data[packed.size - 6] ^= 1; /* of its sum */
    assert_int_equal(gzip_unpack(whole, MOST, RATIO, &back), GZIP_BROKEN);
    packed.data[packed.size - 6] ^= 1;
    builder_add_text(&packed, "x");
    assert_int_equal(gzip_unpack(builder_bytes(&packed), MOST, RATIO, &back), GZIP_BROKEN);
    assert_int_equal(gzip_unpack(BYTES("{\"param\":{}}"), MOST, RATIO, &back), GZIP_BROKEN);
    builder_free(&packed);
    builder_free(&back);
}

static void test_no_more_than_the_limits_is_made(void **state UNUSED)
{
    struct builder text = {0}, packed = {0}, back = {0};
    add_noise(&text, 200000);
    struct bytes noise = pack(builder_bytes(&text), &packed);
    assert_int_equal(gzip_unpack(noise, 200000, RATIO, &back), GZIP_DONE);
    builder_clear(&back, 0);
    assert_int_equal(gzip_unpack(noise, 199999, RATIO, &back), GZIP_TOO_LARGE);
    assert_int_equal(back.size, 199999);
    builder_clear(&back, 0);
    builder_clear(&packed, 0);
    memset(text.data, 'a', text.size);
    struct bytes dense = pack(builder_bytes(&text), &packed);
    assert_int_equal(gzip_unpack(dense, MOST, RATIO, &back), GZIP_TOO_DENSE);
    assert_int_equal(back.size, GZIP_FREE);
    builder_clear(&back, 0);
    assert_int_equal(gzip_unpack(dense, MOST, 1100, &back), GZIP_DONE);
    builder_clear(&back, 0);
    assert_int_equal(gzip_unpack(dense, 1000, RATIO, &back), GZIP_TOO_LARGE);
    builder_clear(&packed, 0);
    builder_clear(&back, 0);
    text.size = GZIP_FREE;
    assert_int_equal(gzip_unpack(pack(builder_bytes(&text), &packed), MOST, 10, &back), GZIP_DONE);
    builder_free(&text);
    builder_free(&packed);
    builder_free(&back);
}

/* In pieces of several sizes, of which most give nothing yet. */
static void test_what_is_packed_comes_back(void **state UNUSED)
{
    static const size_t pieces[] = {1, 1000, 65536, 65537, 300000};
    struct builder text = {0}, packed = {0}, back = {0};
    add_noise(&text, 400000);
    memset(text.data, 'a', 100000);
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        for (size_t size = 0; size <= text.size; size += text.size / 2) {
            struct gzip_packer *packer = gzip_packer_create();
            struct bytes rest = {text.data, size};
            do {
                struct bytes piece = {rest.data, rest.size < pieces[i] ? rest.size : pieces[i]};
                rest = (struct bytes){rest.data + piece.size, rest.size - piece.size};
                gzip_packer_add(packer, piece, !rest.size, &packed);
            } while (rest.size);
            gzip_packer_destroy(packer);
            assert_int_equal(gzip_unpack(builder_bytes(&packed), MOST, 1100, &back), GZIP_DONE);
            assert_int_equal(back.size, size);
            assert_true(bytes_equal(builder_bytes(&back), (struct bytes){text.data, size}));
            builder_clear(&packed, 0);
            builder_clear(&back, 0);
        }
    gzip_packer_destroy(NULL);
    builder_free(&text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_of_all_sizes_come_back),
        cmocka_unit_test(test_members_are_one_text),
        cmocka_unit_test(test_what_is_not_whole_is_broken),
        cmocka_unit_test(test_no_more_than_the_limits_is_made),
        cmocka_unit_test(test_what_is_packed_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
