/* test_blob_reseal: a file that is encrypted again is the same file under the newest key; whoever was given
 * the key of the former one still reads it for a time; damaged files stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "blob/blob_reseal.h"
#include "blob/blob_sealed.h"
#include "edge/mapping.h"

enum { SIZE = 3 * SEALED_FILE_CHUNK + 5 };

static char room[] = "/tmp/test_blob_reseal.XXXXXX";
static const struct bytes database = BYTES("one");
static struct sealing_keys data_keys[3];
static const struct sealed_file_keys former = {data_keys, 1}, both = {data_keys, 2}, all = {data_keys, 3};
static char clear[SIZE];

static int make_room(void **state)
{
    static const unsigned char secrets[][SEALING_KEY] = {"the first", "the second", "the third"};
    for (size_t i = 0; i < COUNT_OF(secrets); i++)
        sealing_derive((int64_t)i + 1, secrets[i], &data_keys[i]);
    for (size_t i = 0; i < SIZE; i++)
        clear[i] = (char)(i % 251);
    assert_non_null(mkdtemp(room));
    *state = blob_store_open(room, BLOB_NO_GROUP);
    return 0;
}

static int clear_room(void **state)
{
    assert_int_equal(blob_store_remove_database(*state, database), FAULT_NONE);
    blob_store_close(*state);
    return rmdir(room);
}

static struct blob_digest store_file(struct blob_store *store, size_t size)
{
    struct blob_upload *upload;
    struct blob_digest digest;
    int64_t stored;
    assert_int_equal(blob_store_begin(store, database, &former, &upload), FAULT_NONE);
    assert_int_equal(blob_store_write(upload, (struct bytes){clear, size}), FAULT_NONE);
    assert_int_equal(blob_store_seal(upload, &digest, &stored), FAULT_NONE);
    assert_int_equal(blob_store_finish(upload), FAULT_NONE);
    return blob_sealed_name(&former, &digest);
}

static bool compare(void *context, struct bytes piece)
{
    size_t *at = context;
    assert_true(*at + piece.size <= SIZE);
    assert_memory_equal(piece.data, clear + *at, piece.size);
    *at += piece.size;
    return true;
}

static int64_t read_file(struct blob_store *store, const struct sealed_file_keys *keys,
                         const struct blob_digest *name)
{
    size_t at = 0;
    struct sealed_file_head head;
    assert_int_equal(blob_sealed_read_name(store, database, keys, name, compare, &at), FAULT_NONE);
    assert_int_equal(blob_sealed_begin(store, database, keys, name, &head), FAULT_NONE);
    assert_int_equal(head.size, at);
    return sealed_file_key_id(&head);
}

/* As the decrypter does it, with the head of a ticket. */
static enum sealed_file_state read_by_head(struct blob_store *store, const struct blob_digest *name,
                                           const struct sealed_file_head *head)
{
    int fd;
    size_t at = 0;
    struct bytes piece;
    enum sealed_file_state state;
    assert_int_equal(blob_reseal_open(store, database, name, head, &fd), FAULT_NONE);
    struct sealed_file_reader *reader = sealed_file_open(fd, head);
    while ((state = sealed_file_read(reader, (int64_t)at, &piece)) == SEALED_FILE_FINE && piece.size)
        (void)compare(&at, piece);
    assert_true(state != SEALED_FILE_FINE || (int64_t)at == head->size);
    sealed_file_close(reader);
    close(fd);
    return state;
}

static void reseal(struct blob_store *store, const struct sealed_file_keys *keys,
                   const struct blob_digest *name, bool is_to_do)
{
    struct blob_resealing *resealing;
    assert_int_equal(blob_reseal_begin(store, database, keys, name, &resealing), FAULT_NONE);
    assert_int_equal(resealing != NULL, is_to_do);
    if (resealing)
        assert_int_equal(blob_reseal_finish(resealing), FAULT_NONE);
}

static int64_t count_cleared(struct blob_store *store, int64_t age_s)
{
    int64_t removed;
    assert_int_equal(blob_store_clear_former(store, database, age_s, &removed), FAULT_NONE);
    return removed;
}

static void it_is_the_same_file_under_the_newest_key(void **state)
{
    static const size_t sizes[] = {0, 1, SEALED_FILE_CHUNK, SIZE};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int64_t before, after;
        struct blob_digest name = store_file(*state, sizes[i]);
        assert_int_equal(blob_store_measure(*state, database, &name, &before), FAULT_NONE);
        assert_int_equal(read_file(*state, &both, &name), 1);
        reseal(*state, &both, &name, true);
        assert_int_equal(read_file(*state, &both, &name), 2);
        reseal(*state, &both, &name, false);
        assert_int_equal(blob_store_measure(*state, database, &name, &after), FAULT_NONE);
        assert_int_equal(before, after);
    }
    assert_int_equal(count_cleared(*state, BLOB_FORMER_S), 0);
    assert_int_equal(count_cleared(*state, INT64_MIN), COUNT_OF(sizes));
}

static void a_ticket_of_the_former_file_opens_it(void **state)
{
    struct sealed_file_head first, second;
    struct blob_digest name = store_file(*state, SIZE - 3);
    assert_int_equal(blob_sealed_begin(*state, database, &all, &name, &first), FAULT_NONE);
    reseal(*state, &both, &name, true);
    assert_int_equal(blob_sealed_begin(*state, database, &all, &name, &second), FAULT_NONE);
    assert_int_equal(read_by_head(*state, &name, &first), SEALED_FILE_FINE);
    reseal(*state, &all, &name, true);
    assert_int_equal(read_by_head(*state, &name, &first), SEALED_FILE_FINE);
    assert_int_equal(read_by_head(*state, &name, &second), SEALED_FILE_FINE);
    assert_int_equal(count_cleared(*state, INT64_MIN), 2);
    assert_int_equal(read_by_head(*state, &name, &second), SEALED_FILE_ALTERED);
    assert_int_equal(blob_sealed_begin(*state, database, &all, &name, &first), FAULT_NONE);
    assert_int_equal(read_by_head(*state, &name, &first), SEALED_FILE_FINE);
}

static void what_was_altered_or_is_unknown_stays(void **state)
{
    char path[sizeof room + BLOB_HEX + 16], sha[BLOB_HEX + 1], byte = 0;
    struct blob_resealing *resealing;
    struct blob_digest name = store_file(*state, SIZE - 1), none = {{1}};
    const struct sealed_file_keys unknown = {data_keys + 1, 2};
    assert_int_equal(blob_reseal_begin(*state, database, &both, &none, &resealing), FAULT_NFILE);
    assert_int_equal(blob_reseal_begin(*state, database, &unknown, &name, &resealing), FAULT_BCONTENT);
    blob_store_write_digest(&name, sha);
    snprintf(path, sizeof path, "%s/one/%.2s/%s", room, sha, sha);
    assert_int_equal(chmod(path, 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pread(fd, &byte, 1, 2 * SEALED_FILE_CHUNK) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 2 * SEALED_FILE_CHUNK), 1);
    assert_int_equal(blob_reseal_begin(*state, database, &both, &name, &resealing), FAULT_BCONTENT);
    assert_null(resealing);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 2 * SEALED_FILE_CHUNK), 1);
    close(fd);
    int64_t removed;
    assert_int_equal(blob_store_clear(*state, database, INT64_MIN, &removed), FAULT_NONE);
    assert_int_equal(removed, 0); /* nothing unfinished stays */
    assert_int_equal(read_file(*state, &both, &name), 1);
    reseal(*state, &both, &name, true);
}

/* Wherever it dies, the file is whole, under one key or the other, and the next run completes it. */
static void it_may_die_between_any_two_steps(void **state)
{
    static const char *const points[] = {"blob-written", "blob-sealed", "blob-former", "blob-replaced"};
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        int status = 0;
        struct blob_digest name = store_file(*state, SIZE - 10 - i);
        pid_t child = fork();
        if (!child) {
            crash_arm(points[i], mapping_share);
            reseal(*state, &both, &name, true);
            _exit(0);
        }
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        bool is_replaced = strcmp(points[i], "blob-replaced") == 0;
        assert_int_equal(read_file(*state, &both, &name), is_replaced ? 2 : 1);
        reseal(*state, &both, &name, !is_replaced);
        assert_int_equal(read_file(*state, &both, &name), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_file_under_the_newest_key),
        cmocka_unit_test(a_ticket_of_the_former_file_opens_it),
        cmocka_unit_test(what_was_altered_or_is_unknown_stays),
        cmocka_unit_test(it_may_die_between_any_two_steps),
    };
    return cmocka_run_group_tests(tests, make_room, clear_room);
}
