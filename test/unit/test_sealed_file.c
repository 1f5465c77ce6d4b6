/* test_sealed_file: what was written is read, at any place; whatever was altered, cut off, exchanged or put
 * together of others is never returned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "edge/crypto/crypto.h"
#include "seal/sealed_feed.h"
#include "seal/sealed_file.h"

enum { SEALED = SEALED_FILE_CHUNK + SEALING_TAG };

static struct sealing_keys data_keys[3];
static const struct sealed_file_keys first_only = {data_keys, 1}, both = {data_keys, 2},
                                     other = {data_keys + 2, 1};
static unsigned char first_name[SEALED_FILE_NAME] = "one", second_name[SEALED_FILE_NAME] = "two";
static char clear[3 * SEALED_FILE_CHUNK];

static int set_up(void **state UNUSED)
{
    static const unsigned char secrets[][SEALING_KEY] = {"of the first", "of the second", "of another"};
    for (size_t i = 0; i < COUNT_OF(secrets); i++)
        sealing_derive((int64_t)i % 2 + 1, secrets[i], &data_keys[i]);
    crypto_random(clear, sizeof clear);
    return 0;
}

static int make(const struct sealed_file_keys *keys, const unsigned char *name, size_t size, size_t piece)
{
    char path[] = "/tmp/stampd-sealed-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0);
    struct sealed_file_writer *writer = sealed_file_create(fd, keys);
    for (size_t at = 0; at < size; at += piece)
        assert_true(
            sealed_file_write(writer, (struct bytes){clear + at, size - at < piece ? size - at : piece}));
    assert_true(sealed_file_finish(writer, name));
    sealed_file_destroy(writer);
    return fd;
}

static bool compare(void *context, struct bytes piece)
{
    size_t *at = context;
    assert_memory_equal(piece.data, clear + *at, piece.size);
    *at += piece.size;
    return true;
}

/* The same bytes as they come from elsewhere, in pieces of no regular size. */
static enum sealed_file_state feed_whole(int fd, const struct sealed_file_keys *keys,
                                         const unsigned char *name)
{
    static char piece[70001];
    size_t at = 0, size = 1;
    ssize_t got;
    int64_t from = 0;
    struct sealed_feed *feed = sealed_feed_create(keys, name, lseek(fd, 0, SEEK_END), compare, &at);
    while ((got = pread(fd, piece, size, from)) > 0 &&
           sealed_feed_add(feed, (struct bytes){piece, (size_t)got})) {
        from += got;
        size = size * 3 % sizeof piece + 1;
    }
    enum sealed_file_state state = sealed_feed_end(feed);
    sealed_feed_destroy(feed);
    return state;
}

/* Reads from a place on to the end; what is returned is always what was written. */
static enum sealed_file_state read_at(int fd, const struct sealed_file_keys *keys, const unsigned char *name,
                                      int64_t at)
{
    struct sealed_file_head head;
    struct bytes piece;
    enum sealed_file_state state = sealed_file_begin(fd, keys, name, &head);
    if (state != SEALED_FILE_FINE)
        return state;
    struct sealed_file_reader *reader = sealed_file_open(fd, &head);
    while ((state = sealed_file_read(reader, at, &piece)) == SEALED_FILE_FINE && piece.size) {
        assert_memory_equal(piece.data, clear + at, piece.size);
        at += (int64_t)piece.size;
    }
    assert_true(state != SEALED_FILE_FINE || at == head.size);
    sealed_file_close(reader);
    return state;
}

static enum sealed_file_state read_from(int fd, const struct sealed_file_keys *keys,
                                        const unsigned char *name, int64_t at)
{
    enum sealed_file_state state = read_at(fd, keys, name, at);
    if (!at)
        assert_int_equal(feed_whole(fd, keys, name), state);
    return state;
}

static bool refuse_more(void *context, struct bytes piece UNUSED)
{
    ++*(int *)context;
    return false;
}

static void a_feed_ends_early_or_is_too_long(void **state UNUSED)
{
    static char whole[SEALED_FILE_HEADER + 2 * SEALED];
    int fd = make(&first_only, first_name, SEALED_FILE_CHUNK + 9, 70000), calls = 0;
    const int64_t size = sealed_file_size(SEALED_FILE_CHUNK + 9);
    assert_int_equal(pread(fd, whole, sizeof whole, 0), size);
    struct sealed_feed *feed = sealed_feed_create(&both, first_name, size, refuse_more, &calls);
    assert_false(sealed_feed_add(feed, (struct bytes){whole, (size_t)size}));
    assert_int_equal(calls, 1);
    assert_int_equal(sealed_feed_end(feed), SEALED_FILE_FINE);
    assert_memory_equal(sealed_feed_header(feed), whole, SEALED_FILE_HEADER);
    sealed_feed_destroy(feed);
    feed = sealed_feed_create(&both, first_name, size, NULL, NULL);
    assert_true(sealed_feed_add(feed, (struct bytes){whole, (size_t)size}));
    assert_int_equal(sealed_feed_end(feed), SEALED_FILE_FINE);
    assert_false(sealed_feed_add(feed, BYTES("x")));
    assert_int_equal(sealed_feed_end(feed), SEALED_FILE_ALTERED);
    sealed_feed_destroy(feed);
    close(fd);
}

static void flip(int fd, int64_t at)
{
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static const size_t sizes[] = {
    0, 1, SEALED_FILE_CHUNK - 1, SEALED_FILE_CHUNK, SEALED_FILE_CHUNK + 1, sizeof clear - 7, sizeof clear};

static void it_is_read_from_any_place(void **state UNUSED)
{
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int fd = make(&first_only, first_name, sizes[i], 1000);
        int64_t size = lseek(fd, 0, SEEK_END);
        assert_int_equal(size, sealed_file_size((int64_t)sizes[i]));
        assert_int_equal(sealed_file_clear_size(size), sizes[i]);
        for (int64_t at = 0; at <= (int64_t)sizes[i]; at += 32771)
            assert_int_equal(read_from(fd, &both, first_name, at), SEALED_FILE_FINE);
        assert_int_equal(read_from(fd, &first_only, first_name, (int64_t)sizes[i]), SEALED_FILE_FINE);
        close(fd);
    }
}

static void no_size_is_ambiguous(void **state UNUSED)
{
    static const int64_t wrong[] = {-1,
                                    0,
                                    SEALED_FILE_HEADER,
                                    SEALED_FILE_HEADER + SEALING_TAG - 1,
                                    SEALED_FILE_HEADER + SEALED + 1,
                                    SEALED_FILE_HEADER + SEALED + SEALING_TAG};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(sealed_file_clear_size(wrong[i]), -1);
    assert_int_equal(sealed_file_clear_size(sealed_file_size((int64_t)10 << 30)), (int64_t)10 << 30);
}

static void every_flipped_bit_is_noticed(void **state UNUSED)
{
    int fd = make(&first_only, first_name, sizeof clear, 70000);
    for (int64_t at = 0; at < SEALED_FILE_HEADER; at++) {
        flip(fd, at);
        assert_int_not_equal(read_from(fd, &first_only, first_name, 0), SEALED_FILE_FINE);
        flip(fd, at);
    }
    for (int64_t at = SEALED_FILE_HEADER; at < sealed_file_size(sizeof clear); at += 9973) {
        flip(fd, at);
        assert_int_equal(read_from(fd, &first_only, first_name, 0), SEALED_FILE_ALTERED);
        flip(fd, at);
    }
    assert_int_equal(read_from(fd, &first_only, first_name, 0), SEALED_FILE_FINE);
    close(fd);
}

static void a_file_that_is_cut_off_is_noticed(void **state UNUSED)
{
    int64_t whole = sealed_file_size(sizeof clear);
    const int64_t cuts[] = {whole - 1,
                            whole - SEALED,
                            whole - 2 * SEALED,
                            SEALED_FILE_HEADER + SEALING_TAG,
                            SEALED_FILE_HEADER,
                            10,
                            0};
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        int fd = make(&first_only, first_name, sizeof clear, 70000);
        assert_int_equal(ftruncate(fd, cuts[i]), 0);
        assert_int_equal(read_from(fd, &first_only, first_name, 0), SEALED_FILE_ALTERED);
        close(fd);
    }
}

static void copy_chunk(int from, int64_t from_number, int to, int64_t to_number)
{
    static char chunk[SEALED];
    assert_int_equal(pread(from, chunk, SEALED, SEALED_FILE_HEADER + from_number * SEALED), SEALED);
    assert_int_equal(pwrite(to, chunk, SEALED, SEALED_FILE_HEADER + to_number * SEALED), SEALED);
}

static void chunks_of_others_and_other_places_are_noticed(void **state UNUSED)
{
    int one = make(&first_only, first_name, sizeof clear, 70000);
    int same = make(&first_only, first_name, sizeof clear, 70000);
    for (int64_t number = 0; number < 3; number++) {
        copy_chunk(one, (number + 1) % 3, same, number); /* another place */
        assert_int_equal(read_from(same, &first_only, first_name, number * SEALED_FILE_CHUNK),
                         SEALED_FILE_ALTERED);
        copy_chunk(one, number, same, number); /* the same place, of another file with the same content */
        assert_int_equal(read_from(same, &first_only, first_name, number * SEALED_FILE_CHUNK),
                         SEALED_FILE_ALTERED);
    }
    copy_chunk(one, 1, one, 0); /* another place of the same file */
    assert_int_equal(read_from(one, &first_only, first_name, 0), SEALED_FILE_ALTERED);
    close(one);
    close(same);
}

static void a_file_stands_under_its_own_name_and_key_only(void **state UNUSED)
{
    int fd = make(&both, first_name, 5, 5);
    assert_int_equal(read_from(fd, &both, first_name, 0), SEALED_FILE_FINE);
    assert_int_equal(read_from(fd, &both, second_name, 0), SEALED_FILE_ALTERED);
    assert_int_equal(read_from(fd, &first_only, first_name, 0),
                     SEALED_FILE_UNKNOWN); /* it is under the second */
    close(fd);
    fd = make(&first_only, first_name, 5, 5);
    assert_int_equal(read_from(fd, &other, first_name, 0),
                     SEALED_FILE_ALTERED); /* the same id, another key */
    close(fd);
}

static void an_unfinished_file_is_none(void **state UNUSED)
{
    char path[] = "/tmp/stampd-sealed-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && unlink(path) == 0);
    struct sealed_file_writer *writer = sealed_file_create(fd, &first_only);
    assert_true(sealed_file_write(writer, (struct bytes){clear, sizeof clear}));
    sealed_file_destroy(writer);
    assert_int_equal(read_from(fd, &first_only, first_name, 0), SEALED_FILE_ALTERED);
    close(fd);
}

static void names_disclose_nothing_and_stay(void **state UNUSED)
{
    unsigned char digest[SEALED_FILE_NAME], name[SEALED_FILE_NAME], again[SEALED_FILE_NAME],
        foreign[SEALED_FILE_NAME];
    crypto_random(digest, sizeof digest);
    sealed_file_name(&first_only, digest, name);
    sealed_file_name(&both, digest, again); /* a new data key changes no name */
    sealed_file_name(&other, digest, foreign);
    assert_memory_equal(name, again, sizeof name);
    assert_memory_not_equal(name, digest, sizeof name);
    assert_memory_not_equal(name, foreign, sizeof name);
}

static void equal_contents_are_encrypted_differently(void **state UNUSED)
{
    static char a[SEALED_FILE_HEADER + 100 + SEALING_TAG], b[sizeof a];
    int one = make(&first_only, first_name, 100, 100), two = make(&first_only, first_name, 100, 100);
    assert_int_equal(pread(one, a, sizeof a, 0), sizeof a);
    assert_int_equal(pread(two, b, sizeof b, 0), sizeof b);
    assert_memory_not_equal(a + SEALED_FILE_HEADER, b + SEALED_FILE_HEADER, 100);
    assert_null(memmem(a, sizeof a, clear, 16));
    close(one);
    close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_from_any_place),
        cmocka_unit_test(no_size_is_ambiguous),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(a_file_that_is_cut_off_is_noticed),
        cmocka_unit_test(chunks_of_others_and_other_places_are_noticed),
        cmocka_unit_test(a_file_stands_under_its_own_name_and_key_only),
        cmocka_unit_test(an_unfinished_file_is_none),
        cmocka_unit_test(names_disclose_nothing_and_stay),
        cmocka_unit_test(equal_contents_are_encrypted_differently),
        cmocka_unit_test(a_feed_ends_early_or_is_too_long),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
