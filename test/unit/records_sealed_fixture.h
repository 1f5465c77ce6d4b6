/* records_sealed_fixture: records of an encrypted namespace on disk, with their keys, for the tests of them.
 */
#ifndef STAMPD_TEST_RECORDS_SEALED_FIXTURE_H
#define STAMPD_TEST_RECORDS_SEALED_FIXTURE_H

#include "records_disk_fixture.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "log/disk_table.h"
#include "records/records_seal.h"

static UNUSED int set_up_sealed(void **state)
{
    is_encrypted = true;
    return set_up_disk(state);
}

static UNUSED void read_file(const char *name, struct builder *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder_path("disk"), name);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    for (ssize_t size = 1; size > 0; text->size += (size_t)size) {
        size = read(fd, builder_reserve(text, 1 << 16), 1 << 16);
        assert_true(size >= 0);
    }
    close(fd);
}

static UNUSED void write_file(const char *name, struct bytes text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder_path("disk"), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, text.data, text.size) == (ssize_t)text.size);
    close(fd);
}

static UNUSED void remove_file(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder_path("disk"), name);
    assert_int_equal(unlink(path), 0);
}

static UNUSED struct disk_table *open_disk(void)
{
    if (records)
        let_go(records);
    struct disk_table *disk = disk_table_open(folder_path("disk"), DISK_BYTES, problem, sizeof problem);
    assert_non_null(disk);
    return disk;
}

/* All processes stop, and one starts with these site keys: does it? */
static UNUSED bool starts(const char *site_key, const char *former)
{
    records_close(records);
    load_site_keys(site_key, former);
    records = open_at(BYTES_SMALL);
    return bring(DISK_BYTES);
}

#endif
