/* disk_fixture: a table on disk in a folder of its own, for its tests. */
#ifndef STAMPD_TEST_DISK_FIXTURE_H
#define STAMPD_TEST_DISK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "child.h"
#include "log/disk_log.h"
#include "log/disk_table.h"

enum { TABLE_BYTES = 8 << 20 };

static struct disk_table *disk;
static struct builder text;
static struct disk_log_system sound;
static size_t table_bytes = TABLE_BYTES;
static char problem[300];

static UNUSED int sync_nothing(int fd UNUSED)
{
    return 0;
}

/* False: `problem`. */
static bool try_open(void)
{
    *problem = 0;
    disk = disk_table_open(folder_path("disk"), table_bytes, problem, sizeof problem);
    return disk;
}

static void open_table(void)
{
    if (!try_open())
        child_demand(false, problem, __FILE__, __LINE__);
}

static UNUSED void reopen(void)
{
    disk_table_close(disk);
    open_table();
}

static int set_up(void **state UNUSED)
{
    sound = disk_log_system;
    folder_make();
    open_table();
    return 0;
}

static int tear_down(void **state UNUSED)
{
    disk_log_system = sound;
    table_bytes = TABLE_BYTES;
    disk_table_close(disk);
    disk = NULL;
    builder_free(&text);
    text = (struct builder){0};
    folder_remove();
    return 0;
}

/* NULL, or why it is not there. */
static const char *try_put(const char *key, struct bytes content)
{
    const char *error = disk_table_begin(disk);
    if (error)
        return error;
    DEMAND(!disk_table_put(disk, bytes_of(key), content));
    return disk_table_commit(disk);
}

static void put(const char *key, struct bytes content)
{
    const char *error = try_put(key, content);
    if (error)
        child_demand(false, error, __FILE__, __LINE__);
}

/* Appends it to `text`. */
static bool get(const char *key)
{
    bool is_there = false;
    DEMAND(!disk_table_get(disk, bytes_of(key), &text, &is_there));
    return is_there;
}

/* NULL: nothing is there. */
static UNUSED void expect(const char *key, const char *content)
{
    size_t before = text.size;
    DEMAND(get(key) == (content != NULL));
    DEMAND(bytes_equal((struct bytes){text.data + before, text.size - before},
                       content ? bytes_of(content) : BYTES("")));
}

#endif
