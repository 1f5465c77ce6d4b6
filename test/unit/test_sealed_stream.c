/* test_sealed_stream: what was written comes back; whatever was altered, cut off or moved is never returned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/builder.h"
#include "edge/crypto/crypto.h"
#include "seal/sealed_stream.h"

enum { SEALED = SEALED_STREAM_CHUNK + CRYPTO_TAG };

static const struct bytes secret = BYTES("0123456789abcdef0123456789abcdef");

static bool append(void *context, struct bytes bytes)
{
    builder_add_bytes(context, bytes);
    return true;
}

static void seal(struct bytes text, size_t piece, struct builder *sealed)
{
    struct sealed_stream_writer *writer = sealed_stream_create(secret, append, sealed);
    for (size_t at = 0; at < text.size; at += piece)
        assert_true(sealed_stream_write(
            writer, (struct bytes){text.data + at, text.size - at < piece ? text.size - at : piece}));
    assert_true(sealed_stream_finish(writer));
    sealed_stream_destroy(writer);
}

struct source {
    struct bytes left;
    size_t piece;
};

static bool take(void *context, struct bytes *bytes_r)
{
    struct source *source = context;
    size_t size = source->left.size < source->piece ? source->left.size : source->piece;
    *bytes_r = (struct bytes){source->left.data, size};
    source->left = (struct bytes){source->left.data + size, source->left.size - size};
    return true;
}

/* NULL: it was read to its end.  What comes before is always the beginning of `text`. */
static const char *open_sealed(struct bytes key, struct bytes sealed, size_t piece, struct bytes text)
{
    struct source source = {sealed, piece};
    struct sealed_stream_reader *reader = sealed_stream_open(key, take, &source);
    size_t done = 0;
    struct bytes got = NO_BYTES;
    bool is_read;
    while ((is_read = sealed_stream_read(reader, &got)) && got.size) {
        assert_true(done + got.size <= text.size && memcmp(text.data + done, got.data, got.size) == 0);
        done += got.size;
    }
    const char *problem = sealed_stream_problem(reader);
    assert_true(is_read == !problem);
    assert_true(problem || done == text.size);
    sealed_stream_close(reader);
    return problem;
}

static char clear[3 * SEALED_STREAM_CHUNK];

static void it_comes_back(void **state UNUSED)
{
    static const size_t sizes[] = {
        0, 1, SEALED_STREAM_CHUNK - 1, SEALED_STREAM_CHUNK, SEALED_STREAM_CHUNK + 1, sizeof clear};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const struct bytes text = {clear, sizes[i]};
        struct builder sealed = {0}, again = {0};
        seal(text, 1000, &sealed);
        seal(text, sizeof clear, &again);
        assert_int_equal(sealed.size, again.size);
        assert_memory_not_equal(sealed.data, again.data, sealed.size);
        assert_true(sealed_stream_is(builder_bytes(&sealed)));
        assert_null(open_sealed(secret, builder_bytes(&sealed), 7777, text));
        assert_null(open_sealed(secret, builder_bytes(&sealed), sealed.size, text));
        builder_free(&sealed);
        builder_free(&again);
    }
}

static void what_was_altered_is_refused(void **state UNUSED)
{
    const struct bytes text = {clear, sizeof clear};
    struct builder sealed = {0};
    seal(text, sizeof clear, &sealed);
    for (size_t at = 0; at < sealed.size; at += at < SEALED_STREAM_HEADER ? 1 : 4099) {
        sealed.data[at] ^= 16;
        assert_non_null(open_sealed(secret, builder_bytes(&sealed), sealed.size, text));
        sealed.data[at] ^= 16;
    }
    for (size_t size = 0; size < sealed.size; size += size < SEALED_STREAM_HEADER ? 1 : 4099)
        assert_non_null(open_sealed(secret, (struct bytes){sealed.data, size}, sealed.size, text));
    for (size_t chunk = 0; chunk <= 3; chunk++) /* at the end of a chunk */
        assert_non_null(open_sealed(
            secret, (struct bytes){sealed.data, SEALED_STREAM_HEADER + chunk * SEALED - (chunk == 3)},
            sealed.size, text));
    builder_add_text(&sealed, "x");
    assert_non_null(open_sealed(secret, builder_bytes(&sealed), sealed.size, text));
    builder_free(&sealed);
}

static void chunks_keep_their_places(void **state UNUSED)
{
    const struct bytes text = {clear, sizeof clear};
    static char kept[SEALED];
    struct builder sealed = {0};
    seal(text, sizeof clear, &sealed);
    char *first = sealed.data + SEALED_STREAM_HEADER, *second = first + SEALED;
    memcpy(kept, first, SEALED);
    memcpy(first, second, SEALED);
    memcpy(second, kept, SEALED);
    assert_non_null(open_sealed(secret, builder_bytes(&sealed), sealed.size, text));
    memcpy(first, kept, SEALED); /* the first one twice */
    assert_non_null(open_sealed(secret, builder_bytes(&sealed), sealed.size, text));
    builder_free(&sealed);
}

static void a_wrong_key_is_named(void **state UNUSED)
{
    const struct bytes text = BYTES("text");
    struct builder sealed = {0};
    seal(text, text.size, &sealed);
    assert_string_equal(
        open_sealed(BYTES("0123456789abcdef0123456789abcdeF"), builder_bytes(&sealed), 9, text),
        "this key is not the right one");
    assert_string_equal(open_sealed(secret, BYTES("not encrypted at all"), 9, text),
                        "not encrypted, but a key is named");
    sealed.data[SEALED_STREAM_MARK - 1]++;
    assert_string_equal(open_sealed(secret, builder_bytes(&sealed), 9, text),
                        "encrypted by another version of the format");
    builder_free(&sealed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back),
        cmocka_unit_test(what_was_altered_is_refused),
        cmocka_unit_test(chunks_keep_their_places),
        cmocka_unit_test(a_wrong_key_is_named),
    };
    for (size_t i = 0; i < sizeof clear; i++)
        clear[i] = (char)(i * 7 + i / 251);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
