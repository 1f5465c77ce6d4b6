/* test_blob_store: files appear whole under their digest or not at all; no name leads out of the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "blob/blob_sealed.h"
#include "blob/blob_store.h"

static char room[] = "/tmp/test_blob_store.XXXXXX";
static char folder[sizeof room + 16];
static const struct bytes database = BYTES("one");
static const char ABC[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static int make_room(void **state)
{
    assert_non_null(mkdtemp(room));
    snprintf(folder, sizeof folder, "%s/files", room);
    *state = blob_store_open(folder, BLOB_NO_GROUP);
    return 0;
}

static int clear_room(void **state)
{
    blob_store_close(*state);
    rmdir(folder);
    return rmdir(room);
}

static struct blob_upload *begin(struct blob_store *store, struct bytes of)
{
    struct blob_upload *upload;
    assert_int_equal(blob_store_begin(store, of, NULL, &upload), FAULT_NONE);
    return upload;
}

/* Stores the text in two pieces. */
static struct blob_digest store_text(struct blob_store *store, struct bytes of, struct bytes text)
{
    struct blob_digest digest;
    int64_t size;
    struct blob_upload *upload = begin(store, of);
    assert_int_equal(blob_store_write(upload, (struct bytes){text.data, text.size / 2}), FAULT_NONE);
    struct bytes rest = {text.data + text.size / 2, text.size - text.size / 2};
    assert_int_equal(blob_store_write(upload, rest), FAULT_NONE);
    assert_int_equal(blob_store_seal(upload, &digest, &size), FAULT_NONE);
    assert_int_equal(size, text.size);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    return digest;
}

static int64_t measure(struct blob_store *store, struct bytes of, const struct blob_digest *digest)
{
    int64_t size;
    assert_int_equal(blob_store_measure(store, of, digest, &size), FAULT_NONE);
    return size;
}

static int64_t clear(struct blob_store *store, int64_t age_s)
{
    int64_t removed;
    assert_int_equal(blob_store_clear(store, database, age_s, &removed), FAULT_NONE);
    return removed;
}

static bool take_text(void *context, struct bytes piece)
{
    char *text = context;
    strncat(text, piece.data, piece.size);
    return true;
}

static void a_file_is_kept_under_its_digest(void **state)
{
    char text[BLOB_HEX + 1], content[16] = "";
    struct blob_digest digest = store_text(*state, database, BYTES("abc"));
    blob_store_write_digest(&digest, text);
    assert_string_equal(text, ABC);
    assert_int_equal(measure(*state, database, &digest), 3);
    assert_int_equal(measure(*state, BYTES("two"), &digest), -1);
    assert_int_equal(blob_store_read(*state, database, &digest, take_text, content), FAULT_NONE);
    assert_string_equal(content, "abc");
    assert_int_equal(blob_store_read(*state, BYTES("two"), &digest, take_text, content), FAULT_NFILE);
    assert_int_equal(blob_store_remove(*state, database, &digest), FAULT_NONE);
    assert_int_equal(blob_store_remove(*state, database, &digest), FAULT_NONE);
    assert_int_equal(measure(*state, database, &digest), -1);
}

static void the_same_bytes_are_one_file(void **state)
{
    struct blob_entry *entries;
    size_t count;
    struct blob_digest first = store_text(*state, database, BYTES("abc"));
    struct blob_digest second = store_text(*state, database, BYTES("abc"));
    assert_memory_equal(first.bytes, second.bytes, BLOB_DIGEST);
    assert_int_equal(blob_store_list(*state, database, first.bytes[0], &entries, &count), FAULT_NONE);
    assert_int_equal(count, 1);
    assert_int_equal(entries[0].size, 3);
    assert_memory_equal(entries[0].digest.bytes, first.bytes, BLOB_DIGEST);
    free(entries);
    assert_int_equal(blob_store_list(*state, database, first.bytes[0] ^ 1, &entries, &count), FAULT_NONE);
    assert_int_equal(count, 0);
    assert_int_equal(clear(*state, INT64_MIN), 0);
    assert_int_equal(blob_store_remove(*state, database, &first), FAULT_NONE);
}

static void what_is_unfinished_is_no_file(void **state)
{
    struct blob_digest digest;
    int64_t size;
    struct blob_upload *upload = begin(*state, database);
    assert_int_equal(blob_store_write(upload, BYTES("abc")), FAULT_NONE);
    assert_int_equal(blob_store_seal(upload, &digest, &size), FAULT_NONE);
    assert_int_equal(measure(*state, database, &digest), -1);
    assert_int_equal(clear(*state, 3600), 0); /* it is young */
    blob_store_abandon(upload);
    assert_int_equal(clear(*state, INT64_MIN), 0);
    blob_store_abandon(NULL);
    upload = begin(*state, database);
    assert_int_equal(clear(*state, INT64_MIN), 1); /* as of a process that died */
    blob_store_abandon(upload);
}

static void only_owner_and_group_can_read(void **state)
{
    struct stat status;
    char path[256];
    struct blob_digest digest = store_text(*state, database, BYTES("abc"));
    snprintf(path, sizeof path, "%s/one/ba/%s", folder, ABC);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0440);
    snprintf(path, sizeof path, "%s/one/ba", folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0750);
    assert_int_equal(blob_store_remove(*state, database, &digest), FAULT_NONE);
}

static void no_name_leads_elsewhere(void **state)
{
    static const char *const names[] = {"", ".", "..", "../x", "a/b", "a\\b", "\xC3\xA9"};
    struct blob_upload *upload;
    struct blob_digest digest = {{0}};
    int64_t size;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(blob_store_begin(*state, bytes_of(names[i]), NULL, &upload), FAULT_XSTORE);
        assert_int_equal(blob_store_measure(*state, bytes_of(names[i]), &digest, &size), FAULT_XSTORE);
        assert_int_equal(blob_store_remove_database(*state, bytes_of(names[i])), FAULT_XSTORE);
    }
    assert_false(blob_store_read_digest(
        BYTES("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), &digest));
    assert_false(blob_store_read_digest(
        BYTES("../../bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), &digest));
    assert_false(blob_store_read_digest(BYTES(""), &digest));
    assert_true(blob_store_read_digest(bytes_of(ABC), &digest));
}

static void a_store_that_cannot_be_written_is_a_fault(void **state UNUSED)
{
    struct blob_upload *upload;
    char path[sizeof room + 16];
    snprintf(path, sizeof path, "%s/plain", room);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    struct blob_store *store = blob_store_open(path, BLOB_NO_GROUP); /* a file, not a folder */
    assert_int_equal(blob_store_begin(store, database, NULL, &upload), FAULT_XSTORE);
    blob_store_close(store);
    unlink(path);
}

/* /dev/full refuses each write as a full disk does. */
static void a_full_disk_has_its_own_fault(void **state)
{
    char inside[256], moved[256];
    struct blob_upload *upload = begin(*state, database);
    blob_store_abandon(upload);
    snprintf(inside, sizeof inside, "%s/one/new", folder);
    snprintf(moved, sizeof moved, "%s/one/gone", folder);
    assert_int_equal(rename(inside, moved), 0);
    upload = begin(*state, database); /* the folder is made again */
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), found = -1;
    for (int fd = 3; fd < full && found < 0; fd++) {
        char link[64], target[256];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, target, sizeof target);
        if (size > (ssize_t)strlen(inside) && memcmp(target, inside, strlen(inside)) == 0)
            found = fd;
    }
    assert_true(found >= 0);
    assert_int_equal(dup2(full, found), found);
    close(full);
    assert_int_equal(blob_store_write(upload, BYTES("abc")), FAULT_XFULL);
    blob_store_abandon(upload);
    assert_int_equal(clear(*state, INT64_MIN), 0); /* nothing stays */
    assert_int_equal(rmdir(moved), 0);
}

static void a_database_goes_with_all_its_files(void **state)
{
    struct blob_digest digest = store_text(*state, BYTES("two"), BYTES("abc"));
    store_text(*state, BYTES("two"), BYTES("abcd"));
    struct blob_digest other = store_text(*state, database, BYTES("abc"));
    assert_int_equal(blob_store_remove_database(*state, BYTES("two")), FAULT_NONE);
    assert_int_equal(blob_store_remove_database(*state, BYTES("two")), FAULT_NONE);
    assert_int_equal(measure(*state, BYTES("two"), &digest), -1);
    assert_int_equal(measure(*state, database, &other), 3);
    assert_int_equal(blob_store_remove_database(*state, database), FAULT_NONE);
}

static void a_database_goes_without_following_links(void **state)
{
    char outside[sizeof room + 16], kept[sizeof outside + 16], link[sizeof folder + 16];
    struct stat status;
    snprintf(outside, sizeof outside, "%s/outside", room);
    snprintf(kept, sizeof kept, "%s/kept", outside);
    snprintf(link, sizeof link, "%s/one/cd", folder);
    assert_int_equal(mkdir(outside, 0700), 0);
    int fd = open(kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    store_text(*state, database, BYTES("abc"));
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(blob_store_remove_database(*state, database), FAULT_XSTORE);
    assert_int_equal(stat(kept, &status), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(blob_store_remove_database(*state, database), FAULT_NONE);
    assert_int_equal(unlink(kept), 0);
    assert_int_equal(rmdir(outside), 0);
}

static void an_encrypted_file_discloses_nothing(void **state)
{
    static const unsigned char secret[SEALING_KEY] = "a data key";
    struct sealing_keys key;
    sealing_derive(1, secret, &key);
    const struct sealed_file_keys keys = {&key, 1};
    struct blob_upload *upload;
    struct blob_digest digest, clear;
    int64_t size;
    char content[64] = "", path[sizeof folder + 100], sha[BLOB_HEX + 1];
    assert_int_equal(blob_store_begin(*state, database, &keys, &upload), FAULT_NONE);
    assert_int_equal(blob_store_write(upload, BYTES("planted")), FAULT_NONE);
    assert_int_equal(blob_store_seal(upload, &digest, &size), FAULT_NONE);
    assert_int_equal(size, 7);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    clear = store_text(*state, BYTES("two"), BYTES("planted"));
    assert_memory_equal(&clear, &digest, sizeof clear); /* clients see the same */
    assert_int_equal(measure(*state, database, &digest), -1);
    const struct blob_digest name = blob_sealed_name(&keys, &digest);
    assert_int_equal(measure(*state, database, &name), sealed_file_size(7));
    assert_int_equal(blob_sealed_read(*state, database, &keys, &digest, take_text, content), FAULT_NONE);
    assert_string_equal(content, "planted");
    blob_store_write_digest(&name, sha);
    snprintf(path, sizeof path, "%s/one/%.2s/%s", folder, sha, sha);
    assert_int_equal(chmod(path, 0600), 0);
    char byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pread(fd, &byte, 1, SEALED_FILE_HEADER) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, SEALED_FILE_HEADER), 1);
    close(fd);
    assert_int_equal(blob_sealed_read(*state, database, &keys, &digest, take_text, content), FAULT_BCONTENT);
    assert_int_equal(blob_store_remove_database(*state, database), FAULT_NONE);
    assert_int_equal(blob_store_remove_database(*state, BYTES("two")), FAULT_NONE);
}

enum { WAYS = 600 };

/* Both processes begin each way together.  Returns how many files could not be stored. */
static int store_in_new_folders(struct blob_store *store, atomic_int *arrived)
{
    int failures = 0;
    for (int i = 0; i < WAYS; i++) {
        char name[16];
        struct blob_upload *upload;
        struct blob_digest digest;
        int64_t size;
        snprintf(name, sizeof name, "way%d", i);
        bool is_sealed = !blob_store_begin(store, bytes_of(name), NULL, &upload) &&
                         !blob_store_seal(upload, &digest, &size);
        atomic_fetch_add(arrived, 1);
        while (atomic_load(arrived) < 2 * (i + 1))
            sched_yield();
        failures += !is_sealed || blob_store_finish(upload);
    }
    return failures;
}

static void two_processes_make_one_way(void **state)
{
    atomic_int *arrived =
        mmap(NULL, sizeof *arrived, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(arrived != MAP_FAILED);
    pid_t child = fork();
    assert_true(child >= 0);
    int failures = store_in_new_folders(*state, arrived), status;
    if (!child)
        _exit(failures != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    assert_int_equal(failures, 0);
    munmap(arrived, sizeof *arrived);
    for (int i = 0; i < WAYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "way%d", i);
        assert_int_equal(blob_store_remove_database(*state, bytes_of(name)), FAULT_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_kept_under_its_digest),
        cmocka_unit_test(the_same_bytes_are_one_file),
        cmocka_unit_test(what_is_unfinished_is_no_file),
        cmocka_unit_test(only_owner_and_group_can_read),
        cmocka_unit_test(no_name_leads_elsewhere),
        cmocka_unit_test(a_store_that_cannot_be_written_is_a_fault),
        cmocka_unit_test(a_full_disk_has_its_own_fault),
        cmocka_unit_test(a_database_goes_with_all_its_files),
        cmocka_unit_test(a_database_goes_without_following_links),
        cmocka_unit_test(an_encrypted_file_discloses_nothing),
        cmocka_unit_test(two_processes_make_one_way),
    };
    return cmocka_run_group_tests(tests, make_room, clear_room);
}
