/* test_blob_part: uploads in parts: offsets, one holder, limits, what a crash leaves; their metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena_fixture.h"
#include "blob/blob_part.h"
#include "blob/blob_sealed.h"
#include "model/document/upload_metadata.h"

static char room[] = "/tmp/test_blob_part.XXXXXX";
static const struct bytes database = BYTES("one");
static const struct blob_part_limits wide = {100, 1000000, 100, 1000000};
static struct blob_store *store;
static char id[BLOB_PART_ID + 1];
static struct sealing_keys data_key;
static const struct sealed_file_keys encrypted = {&data_key, 1}, *keys; /* NULL: in clear */

static int begin(void **state)
{
    char folder[sizeof room + 16];
    assert_non_null(mkdtemp(room));
    snprintf(folder, sizeof folder, "%s/files", room);
    store = blob_store_open(folder, BLOB_NO_GROUP);
    return arena_set_up(state);
}

static int end(void **state)
{
    assert_int_equal(blob_store_remove_database(store, database), FAULT_NONE);
    blob_store_close(store);
    return arena_tear_down(state);
}

static enum fault create(int64_t size, struct bytes owner, const struct blob_part_limits *limits,
                         enum blob_part_limit *limit_r)
{
    const struct blob_part_state state = {.size = size, .owner = owner, .note = BYTES("a note")};
    blob_part_draw_id(id);
    return blob_part_create(store, database, id, &state, limits, limit_r);
}

static struct blob_part *created(int64_t size)
{
    enum blob_part_limit limit;
    struct blob_part *part;
    assert_int_equal(create(size, NO_BYTES, &wide, &limit), FAULT_NONE);
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &part), FAULT_NONE);
    return part;
}

static struct blob_upload *continued(struct blob_part *part, const char *text)
{
    struct blob_upload *upload;
    assert_int_equal(blob_part_continue(part, keys, &upload), FAULT_NONE);
    assert_int_equal(blob_store_write(upload, bytes_of(text)), FAULT_NONE);
    return upload;
}

static void add(struct blob_part *part, const char *text)
{
    int64_t offset = blob_part_state(part)->offset + (int64_t)strlen(text);
    assert_int_equal(blob_store_suspend(continued(part, text)), FAULT_NONE);
    assert_int_equal(blob_part_advance(part, offset), FAULT_NONE);
}

static struct blob_digest sealed(struct blob_upload *upload, int64_t expected)
{
    struct blob_digest digest;
    int64_t size;
    assert_int_equal(blob_store_seal(upload, &digest, &size), FAULT_NONE);
    assert_int_equal(size, expected);
    return digest;
}

static void assert_abc(const struct blob_digest *digest)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void check_measure(const struct blob_digest *digest, int64_t expected)
{
    const struct blob_digest name = blob_sealed_name(keys, digest);
    int64_t size;
    assert_int_equal(blob_store_measure(store, database, &name, &size), FAULT_NONE);
    assert_int_equal(size, blob_sealed_size(keys, expected));
}

static void become_a_file(void)
{
    struct blob_part *part = created(3);
    struct blob_part_state seen;
    add(part, "a");
    blob_store_abandon(continued(part, "xyz")); /* it was not advanced: cut off */
    add(part, "b");
    struct blob_upload *upload = continued(part, "c");
    struct blob_digest digest = sealed(upload, 3);
    assert_abc(&digest);
    blob_store_abandon(upload);
    upload = continued(part, "c"); /* although it was made ready */
    (void)sealed(upload, 3);
    assert_int_equal(blob_part_note_digest(part, keys, &digest), FAULT_NONE);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    check_measure(&digest, 3);
    upload = continued(part, "c"); /* no document has it: the last part comes again */
    digest = sealed(upload, 3);
    assert_abc(&digest);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    assert_int_equal(blob_part_complete(part), FAULT_NONE);
    blob_part_close(part);
    assert_int_equal(blob_part_look(store, database, bytes_of(id), arena, &seen), FAULT_NONE);
    assert_int_equal(seen.offset, 3);
    assert_true(bytes_equal(seen.note, BYTES("a note")));
}

static void parts_become_a_file(void **state UNUSED)
{
    become_a_file();
}

static bool take_nothing(void *context UNUSED, struct bytes piece UNUSED)
{
    return true;
}

static char *path_of_data(void)
{
    static char path[sizeof room + 100];
    snprintf(path, sizeof path, "%s/files/one/part/%s.data", room, id);
    return path;
}

static void encrypted_parts_become_an_encrypted_file(void **state UNUSED)
{
    static const unsigned char secret[SEALING_KEY] = "a data key";
    sealing_derive(1, secret, &data_key);
    keys = &encrypted;
    become_a_file();
    struct blob_part *part = created(12);
    struct blob_digest digest;
    int64_t size;
    char text[200];
    add(part, "a planted ");
    int fd = open(path_of_data(), O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, sizeof text);
    close(fd);
    assert_true(got > 10 && !memmem(text, (size_t)got, "planted", 7));
    struct blob_upload *upload = continued(part, "!!");
    digest = sealed(upload, 12);
    assert_int_equal(blob_part_note_digest(part, keys, &digest), FAULT_NONE);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    assert_int_equal(unlink(path_of_data()), 0); /* what came before the last part is in the file */
    upload = continued(part, "!!");
    struct blob_digest again = sealed(upload, 12);
    assert_memory_equal(&again, &digest, sizeof again);
    blob_store_abandon(upload);
    assert_int_equal(blob_sealed_read(store, database, keys, &digest, take_nothing, NULL), FAULT_NONE);
    fd = open(path_of_data(), O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, text, 1, 45), 1);
    text[0] ^= 1; /* an altered frame */
    assert_int_equal(pwrite(fd, text, 1, 45), 1);
    close(fd);
    upload = continued(part, "!!");
    assert_int_equal(blob_store_seal(upload, &again, &size), FAULT_BCONTENT);
    blob_store_abandon(upload);
    blob_part_close(part);
    keys = NULL;
}

static void one_holds_it(void **state UNUSED)
{
    struct blob_part *part = created(3), *other;
    struct blob_part_state seen;
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &other), FAULT_XLOCKED);
    assert_int_equal(blob_part_look(store, database, bytes_of(id), arena, &seen), FAULT_NONE);
    assert_int_equal(blob_part_remove(part), FAULT_NONE);
    blob_part_close(part);
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &other), FAULT_NUPLOAD);
    assert_int_equal(blob_part_open(store, database, BYTES("../../etc/passwd"), arena, &other),
                     FAULT_NUPLOAD);
}

static void limits_hold(void **state UNUSED)
{
    char ann[BLOB_PART_OWNER + 1], bob[BLOB_PART_OWNER + 1];
    enum blob_part_limit limit;
    struct blob_part *part;
    int64_t removed;
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    memset(ann, 'a', sizeof ann);
    memset(bob, 'b', sizeof bob);
    struct bytes a = {ann, BLOB_PART_OWNER}, b = {bob, BLOB_PART_OWNER};
    const struct blob_part_limits limits = {3, 100, 2, 50};
    assert_int_equal(create(51, a, &limits, &limit), FAULT_XBUSY);
    assert_int_equal(limit, BLOB_PART_OWNER_BYTES);
    assert_int_equal(create(25, a, &limits, &limit), FAULT_NONE);
    assert_int_equal(create(25, a, &limits, &limit), FAULT_NONE);
    assert_int_equal(create(0, a, &limits, &limit), FAULT_XBUSY);
    assert_int_equal(limit, BLOB_PART_OWNER_MOST);
    assert_int_equal(create(51, NO_BYTES, &limits, &limit), FAULT_XBUSY);
    assert_int_equal(limit, BLOB_PART_BYTES);
    assert_int_equal(create(26, b, &limits, &limit), FAULT_XBUSY); /* more than it would leave */
    assert_int_equal(limit, BLOB_PART_BYTES);
    assert_int_equal(create(25, b, &limits, &limit), FAULT_NONE);
    const char *third = arena_copy(arena, id, BLOB_PART_ID);
    assert_int_equal(create(0, b, &limits, &limit), FAULT_XBUSY);
    assert_int_equal(limit, BLOB_PART_MOST);
    assert_int_equal(blob_part_open(store, database, bytes_of(third), arena, &part), FAULT_NONE);
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    assert_int_equal(removed, 2); /* the third is held */
    assert_int_equal(blob_part_complete(part), FAULT_NONE);
    blob_part_close(part);
    assert_int_equal(create(50, b, &limits, &limit), FAULT_NONE); /* what is complete does not count */
    assert_int_equal(blob_part_clear(store, database, 3600, &removed), FAULT_NONE);
    assert_int_equal(removed, 0);
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    assert_int_equal(removed, 2);
}

/* What is announced and not sent takes a chunk of the database's bytes, and what arrives takes a chunk more.
 */
static void bytes_are_reserved_as_they_come(void **state UNUSED)
{
    enum { MIB = 1 << 20 };
    enum blob_part_limit limit;
    struct blob_part *first, *second, *again;
    int64_t removed;
    const struct blob_part_limits limits = {10, 41 * MIB, 10, INT64_MAX};
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    assert_int_equal(create(100 * MIB, NO_BYTES, &limits, &limit), FAULT_NONE);
    const char *name = arena_copy(arena, id, BLOB_PART_ID);
    assert_int_equal(blob_part_open(store, database, bytes_of(name), arena, &first), FAULT_NONE);
    assert_int_equal(create(100 * MIB, NO_BYTES, &limits, &limit), FAULT_NONE);
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &second), FAULT_NONE);
    assert_int_equal(create(100 * MIB, NO_BYTES, &limits, &limit), FAULT_XBUSY);
    assert_int_equal(limit, BLOB_PART_BYTES);
    assert_int_equal(create(8 * MIB, NO_BYTES, &limits, &limit), FAULT_NONE);
    assert_int_equal(blob_part_reserve(first, BLOB_PART_CHUNK, &limits), FAULT_NONE);
    assert_int_equal(blob_part_reserve(first, BLOB_PART_CHUNK + MIB, &limits), FAULT_XBUSY);
    assert_int_equal(blob_part_reserve(second, INT64_MAX, &limits), FAULT_XBUSY);
    assert_int_equal(blob_part_remove(second), FAULT_NONE);
    blob_part_close(second);
    assert_int_equal(blob_part_reserve(first, BLOB_PART_CHUNK + MIB, &limits), FAULT_NONE);
    assert_int_equal(create(1, NO_BYTES, &limits, &limit), FAULT_XBUSY); /* 33 and 8 of 41 */
    blob_part_close(first);
    assert_int_equal(blob_part_open(store, database, bytes_of(name), arena, &again), FAULT_NONE);
    assert_int_equal(blob_part_reserve(again, 33 * MIB, &limits), FAULT_NONE); /* it is in the record */
    blob_part_close(again);
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    assert_int_equal(create(8 * MIB, NO_BYTES, &limits, &limit), FAULT_NONE);
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &again), FAULT_NONE);
    assert_int_equal(blob_part_reserve(again, INT64_MAX, &limits), FAULT_NONE); /* its size is the most */
    blob_part_close(again);
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
}

enum { MIB_OF_OWNERS = 1 << 20 };

static struct blob_part *begun_by(char owner, int64_t size, const struct blob_part_limits *limits)
{
    enum blob_part_limit limit;
    struct blob_part *part;
    char name[BLOB_PART_OWNER + 1];
    memset(name, owner, sizeof name);
    assert_int_equal(create(size, (struct bytes){name, BLOB_PART_OWNER}, limits, &limit), FAULT_NONE);
    assert_int_equal(blob_part_open(store, database, bytes_of(id), arena, &part), FAULT_NONE);
    return part;
}

/* Takes as much as it gets, and returns it: all that it has reserved. */
static int64_t filled(struct blob_part *part, const struct blob_part_limits *limits)
{
    int64_t bytes = 0;
    while (!blob_part_reserve(part, bytes + MIB_OF_OWNERS, limits))
        bytes += MIB_OF_OWNERS;
    blob_part_close(part);
    return bytes;
}

/* Owners that take all that they get leave something, however many they are; the oldest upload goes on. */
static void many_owners_leave_room(void **state UNUSED)
{
    const int64_t most = 4096 * (int64_t)MIB_OF_OWNERS;
    const struct blob_part_limits limits = {100, most, 10, most};
    struct blob_part *oldest;
    int64_t removed, left = most - BLOB_PART_CHUNK;
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
    oldest = begun_by('a', most, &limits);
    for (time_t second = time(NULL); time(NULL) == second;) /* records have seconds */
        usleep(10000);
    for (char owner = 'b'; owner < 'h'; owner++) {
        int64_t taken = filled(begun_by(owner, most, &limits), &limits);
        left -= taken;
        assert_true(taken > 2 * BLOB_PART_CHUNK);
        assert_true(left >= taken);
    }
    blob_part_close(begun_by('z', MIB_OF_OWNERS, &limits));
    left -= MIB_OF_OWNERS;
    assert_true(filled(oldest, &limits) > left);
    assert_int_equal(blob_part_clear(store, database, 0, &removed), FAULT_NONE);
}

static void metadata(void **state UNUSED)
{
    struct upload_metadata read;
    static const char *const wrong[] = {
        "",                                         /* nothing is named */
        "class Tm90ZQ==,id bjE=",                   /* no key */
        "class Tm90ZQ==,id bjE=,key ",              /* empty */
        "class Tm90ZQ==,id bjE=,key",               /* no value */
        "class Tm90ZQ==,id bjE=,key YQ",            /* no padding */
        "class Tm90ZQ==,id bjE=,key YR==",          /* another text has the same bytes */
        "class Tm90ZQ==,id bjE=,key YQ==,key YQ==", /* twice */
        "class Tm90ZQ==,id bjE=,key ,key YQ==",     /* once empty */
        "class ,id bjE=,key YQ==",                  /* no class */
        "class Tm90ZQ==,id bjE=,key AA==",          /* NUL */
        "class Tm90ZQ==,id bjE=,key /w==",          /* not UTF-8 */
        "class Tm90ZQ==,id bjE=,key _w==",          /* another alphabet */
        "class Tm90ZQ==,id bjE=,key YQ==,filetype YQ==",
        "class Tm90ZQ==,id bjE=,key YQ==,x \x01",
    };
    assert_true(upload_metadata_read(
        arena, BYTES("x,class Tm90ZQ==,id bjE=, filename YQ==,filetype YS9i,y !!"), &read));
    assert_true(bytes_equal(read.class, BYTES("Note")) && bytes_equal(read.id, BYTES("n1")) &&
                bytes_equal(read.key, BYTES("a")) && bytes_equal(read.mime, BYTES("a/b")));
    assert_true(upload_metadata_read(arena, BYTES("class Tm90ZQ==,id bjE=,filename YQ==,key Yg=="), &read));
    assert_true(bytes_equal(read.key, BYTES("b")) && !read.mime.size);
    static const char *const empty[] = {
        "class Tm90ZQ==,id bjE=,key YQ==,filetype",       "class Tm90ZQ==,id bjE=,key YQ==,filetype ",
        "class Tm90ZQ==,filetype ,id bjE=,key YQ==,note", "class Tm90ZQ==,id bjE=,key ,filename YQ==",
        "class Tm90ZQ==,id bjE=,filename YQ==,key",
    };
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        assert_true(upload_metadata_read(arena, bytes_of(empty[i]), &read));
        assert_true(bytes_equal(read.key, BYTES("a")) && !read.mime.size);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(upload_metadata_read(arena, bytes_of(wrong[i]), &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_become_a_file),
        cmocka_unit_test(encrypted_parts_become_an_encrypted_file),
        cmocka_unit_test(one_holds_it),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(bytes_are_reserved_as_they_come),
        cmocka_unit_test(many_owners_leave_room),
        cmocka_unit_test(metadata),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
