/* spool_fixture: a spool in a folder of its own, in memory, for the tests of the spool. */
#ifndef STAMPD_TEST_SPOOL_FIXTURE_H
#define STAMPD_TEST_SPOOL_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "spool/spool_step.h"
#include "spool/stampd_spool.h"

/* In memory: deaths of processes lose nothing of it, and no fsync waits. */
static char top[] = "/dev/shm/test-spool-XXXXXX";
static char folder[128];
static int cases; /* of the matrix in doc/explanation/reliability.md */

/* PATIENCE_MS: on a machine that is busy nobody is to give up. */
enum { SMALL_SEGMENT = 1024, TAIL_RECORDS = 5, PATIENCE_MS = 120000 };

static UNUSED void run_shell(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pid_t child = fork();
    if (!child) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Files by the calls that a shell would make: thousands of shells would take most of the time of these tests.
 */
static int remove_one(const char *path, const struct stat *stat_, int kind, struct FTW *place)
{
    (void)stat_, (void)kind, (void)place;
    return remove(path);
}

static UNUSED void remove_folder(const char *path)
{
    assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void copy_file(const char *from, const char *to, const struct stat *stat_)
{
    char piece[4096];
    ssize_t got;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, stat_->st_mode & 07777);
    assert_true(in >= 0 && out >= 0);
    while ((got = read(in, piece, sizeof piece)) > 0)
        assert_int_equal(write(out, piece, (size_t)got), got);
    assert_int_equal(got, 0);
    close(in);
    close(out);
}

/* With the files of all folders in it. */
static UNUSED void copy_folder(const char *from, const char *to)
{
    struct stat stat_;
    assert_int_equal(stat(from, &stat_), 0);
    assert_int_equal(mkdir(to, stat_.st_mode & 07777), 0);
    DIR *entries = opendir(from);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char old[512], new[512];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(old, sizeof old, "%s/%s", from, entry->d_name);
        snprintf(new, sizeof new, "%s/%s", to, entry->d_name);
        assert_int_equal(stat(old, &stat_), 0);
        if (S_ISDIR(stat_.st_mode))
            copy_folder(old, new);
        else
            copy_file(old, new, &stat_);
    }
    closedir(entries);
}

static UNUSED int fresh(void **state)
{
    static int number;
    (void)state;
    spool_step_lock_ms = PATIENCE_MS;
    snprintf(folder, sizeof folder, "%s/%d", top, number++);
    const struct stampd_spool_limits limits = {.segment_bytes = SMALL_SEGMENT, .limit_bytes = 64 << 10};
    assert_int_equal(stampd_spool_create(folder, &limits), 0);
    return 0;
}

static UNUSED struct stampd_spool *open_spool(void)
{
    struct stampd_spool *spool;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), 0);
    return spool;
}

/* The param of this number, longer by as many spaces. */
static size_t write_param(uint64_t number, int spaces, char param_r[128])
{
    return (size_t)snprintf(param_r, 128, "{\"n\":%" PRIu64 "%*s}", number, spaces, "");
}

static UNUSED int put_long(struct stampd_spool *spool, uint64_t number, int spaces, uint64_t *sequence_r)
{
    char param[128];
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    request.ns = "demo";
    request.operation = "put";
    request.domain = "d";
    request.param = param;
    request.param_size = write_param(number, spaces, param);
    return stampd_spool_put(spool, &request, sequence_r);
}

static UNUSED int put_number(struct stampd_spool *spool, uint64_t number, uint64_t *sequence_r)
{
    return put_long(spool, number, 0, sequence_r);
}

enum { APPENDED_MOST = 400 };

static UNUSED struct stampd_spool_request *make_requests(uint64_t first, size_t count)
{
    static struct stampd_spool_request requests[APPENDED_MOST];
    static char params[APPENDED_MOST][128];
    assert_true(count <= APPENDED_MOST);
    for (size_t i = 0; i < count; i++) {
        requests[i] = STAMPD_SPOOL_REQUEST;
        requests[i].ns = "demo";
        requests[i].operation = "put";
        requests[i].domain = "d";
        requests[i].param = params[i];
        requests[i].param_size = write_param(first + i, 0, params[i]);
    }
    return requests;
}

static UNUSED int append_numbers(struct stampd_spool *spool, uint64_t first, size_t count,
                                 struct stampd_spool_range *stored_r)
{
    return stampd_spool_append(spool, make_requests(first, count), count, stored_r);
}

static UNUSED struct stampd_spool_range append_all(struct stampd_spool *spool, uint64_t first, size_t count)
{
    struct stampd_spool_range stored;
    assert_int_equal(append_numbers(spool, first, count, &stored), 0);
    assert_int_equal(stored.last - stored.first + 1, count);
    return stored;
}

static UNUSED void use_large_segments(void)
{
    remove_folder(folder);
    assert_int_equal(stampd_spool_create(folder, NULL), 0);
}

static uint64_t number_of(const struct stampd_spool_record *record)
{
    return strtoull(record->request.param + strlen("{\"n\":"), NULL, 10);
}

/* It is as it was put. */
static void check_record(const struct stampd_spool_record *record)
{
    char param[128];
    const struct stampd_spool_request *request = &record->request;
    write_param(number_of(record), (int)strspn(strpbrk(request->param, " }"), " "), param);
    assert_string_equal(request->ns, "demo");
    assert_string_equal(request->operation, "put");
    assert_string_equal(request->domain, "d");
    assert_string_equal(request->param, param);
    assert_int_equal(request->param_size, strlen(param));
}

static UNUSED void put_many(struct stampd_spool *spool, uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++) {
        uint64_t sequence;
        assert_int_equal(put_number(spool, number, &sequence), 0);
        assert_int_equal(sequence, number);
    }
}

/* Reads all; a bit for each number that is there; returns how many, and how many are reported as damaged. */
static UNUSED int read_all(struct stampd_spool *spool, unsigned char *seen, size_t most, int *damaged_r)
{
    struct stampd_spool_record record;
    uint64_t after = 0;
    int count = 0;
    memset(seen, 0, most);
    *damaged_r = 0;
    for (int error; (error = stampd_spool_next(spool, after, &record)) != EAGAIN; after = record.sequence) {
        assert_true(record.sequence > after);
        if (error == EBADMSG) {
            *damaged_r += (int)(record.sequence - record.first + 1);
            continue;
        }
        assert_int_equal(error, 0);
        check_record(&record);
        assert_true(number_of(&record) < most);
        assert_int_equal(seen[number_of(&record)], 0);
        seen[number_of(&record)] = 1;
        count++;
    }
    return count;
}

/* As after the start of the machine. */
static UNUSED void forget_board(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/board", folder);
    assert_true(!unlink(path) || errno == ENOENT);
}

/* Bytes of all records, without what is allocated in advance. */
static UNUSED uint64_t real_bytes(struct stampd_spool *spool)
{
    struct stampd_spool_state state;
    assert_int_equal(stampd_spool_read_state(spool, &state), 0);
    return state.bytes;
}

static UNUSED void last_segment(char *path, size_t size)
{
    char last[64] = "";
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *ending = strrchr(entry->d_name, '.');
        if (ending && !strcmp(ending, ".segment") && strcmp(entry->d_name, last) > 0)
            assert_true((size_t)snprintf(last, sizeof last, "%.63s", entry->d_name) < sizeof last);
    }
    closedir(entries);
    assert_true(last[0]);
    snprintf(path, size, "%s/%s", folder, last);
}

static int end(void **state)
{
    (void)state;
    printf("spool: %d cases of the matrix\n", cases);
    remove_folder(top);
    return 0;
}

#endif
