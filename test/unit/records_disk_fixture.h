/* records_disk_fixture: records that are kept on disk, in a folder of their own, for the tests of them. */
#ifndef STAMPD_TEST_RECORDS_DISK_FIXTURE_H
#define STAMPD_TEST_RECORDS_DISK_FIXTURE_H

#include "records/records_private.h" /* first: it has parameters of the name of the variable */
#include "records_fixture.h"

#include <stdio.h>
#include <sys/stat.h>

#include "seal/site_key.h"
#include "log/disk_table.h"
#include "records/records_save.h"

enum { DISK_BYTES = 64 << 20 };

static char problem[600];

/* A process opens a folder once: with the first of two handles that it closes, LMDB gives up the locks of
 * both. The records open theirs again when they need it. */
static UNUSED void let_go(struct records *holder)
{
    if (holder->disk && disk_table_is_own(holder->disk))
        disk_table_close(holder->disk);
    holder->disk = NULL;
}

static UNUSED bool bring(size_t bytes)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s", folder_path("disk"));
    *problem = 0;
    return records_save_into(records, folder, bytes, problem, sizeof problem);
}

static void write_site_key(const char *name, char digit)
{
    FILE *file = fopen(folder_path(name), "we");
    assert_non_null(file);
    for (int i = 0; i < 2 * SEALING_KEY; i++)
        assert_int_equal(fputc(digit, file), digit);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(folder_path(name), 0600), 0);
}

/* `former` may be "". */
static void load_site_keys(const char *name, const char *former)
{
    char path[200] = "", former_path[200] = "", none[] = "", wrong[300] = "";
    struct settings settings = {
        .site_key_file = path, .site_key_former_file = former_path, .site_key_command = none};
    if (*name)
        snprintf(path, sizeof path, "%s", folder_path(name));
    if (*former)
        snprintf(former_path, sizeof former_path, "%s", folder_path(former));
    if (!site_key_load(&settings, wrong, sizeof wrong))
        fail_msg("%s", wrong);
}

static UNUSED int set_up_disk(void **state)
{
    set_up(state);
    if (is_encrypted) {
        write_site_key("site.key", 'a');
        load_site_keys("site.key", "");
    }
    assert_true(bring(DISK_BYTES));
    return 0;
}

/* All processes stop, and start: the memory is lost. */
static UNUSED void restart(void)
{
    records_check(records);
    records_close(records);
    records = open_at(BYTES_SMALL);
    if (!bring(DISK_BYTES))
        fail_msg("%s", problem);
    records_check(records);
}

/* A command, and the wait that belongs to it. */
static UNUSED enum records_outcome keep(struct records_command *command)
{
    enum records_outcome outcome = run(command);
    assert_true(records_save(records, found.saving));
    return outcome;
}

#define KEEP(...) keep(&(struct records_command){__VA_ARGS__})

static UNUSED void keep_text(const char *key, const char *text)
{
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                          .content = bytes_of(text), .may_overwrite = true, .is_persisted = true),
                     RECORDS_OK);
    assert_true(found.is_persisted);
}

#endif
