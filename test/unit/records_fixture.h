/* records_fixture: records in a folder of their own, for the tests of records. */
#ifndef STAMPD_TEST_RECORDS_FIXTURE_H
#define STAMPD_TEST_RECORDS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "records/records.h"

enum { BYTES_SMALL = 1 << 20, TOMBSTONE_S = 60 };

/* The build defines it where the tests of the disk are run for an encrypted namespace. */
#ifndef RECORDS_ENCRYPTED
#define RECORDS_ENCRYPTED false
#endif

static struct records *records;
static struct records_found found;
static const struct bytes NS = {"lab", 3};
static bool is_encrypted = RECORDS_ENCRYPTED; /* the namespace */

static struct records *open_at(size_t bytes)
{
    char problem[300] = "";
    struct records *opened;
    if (!records_open(&opened, folder_path("records"), bytes, TOMBSTONE_S, problem, sizeof problem))
        child_demand(false, problem, __FILE__, __LINE__);
    return opened;
}

static UNUSED int set_up(void **state UNUSED)
{
    folder_make();
    records = open_at(BYTES_SMALL);
    return 0;
}

static int tear_down(void **state UNUSED)
{
    records_check(records);
    records_close(records);
    folder_remove();
    return 0;
}

static enum records_outcome run(struct records_command *command)
{
    command->is_encrypted = is_encrypted;
    return records_run(records, NS, 0, command, &found);
}

/* The clock of expiry is a file, once clock_follow has its name: folder_path("clock"). */
static UNUSED void move_clock(int64_t minutes)
{
    int fd = open(folder_path("clock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, &minutes, sizeof minutes, 0), sizeof minutes);
    close(fd);
}

#define RUN(...) run(&(struct records_command){__VA_ARGS__})

static UNUSED enum records_outcome set(const char *key, const char *text)
{
    return RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING, .content = bytes_of(text),
               .may_overwrite = true);
}

static UNUSED void expect(const char *key, const char *text)
{
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key)), text ? RECORDS_OK : RECORDS_NOT_FOUND);
    if (text && !bytes_equal(found.content, bytes_of(text)))
        fail_msg("%s is %.*s, expected %s", key, (int)found.content.size, found.content.data, text);
}

static UNUSED enum records_outcome lock(const char *key, const char *owner, int64_t ms)
{
    return RUN(.deed = RECORDS_LOCK, .key = bytes_of(key), .owner = bytes_of(owner), .lease_ms = ms,
               .may_overwrite = true);
}

#endif
