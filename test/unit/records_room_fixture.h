/* records_room_fixture: contents that show whose they are, and whether the disk alone has them, for the tests
 * of records that take more than the memory. */
#ifndef STAMPD_TEST_RECORDS_ROOM_FIXTURE_H
#define STAMPD_TEST_RECORDS_ROOM_FIXTURE_H

#include "records/records_private.h" /* before the other fixtures, which have a variable of this name */

#include "records_disk_fixture.h"

#include <string.h>

enum { TEXT_MOST = 60000 };

/* A content that shows whose it is, which version, and each byte of it. */
static UNUSED struct bytes content_of(const char *key, int version, size_t size)
{
    static char text[TEXT_MOST];
    char head[40];
    int length = snprintf(head, sizeof head, "%s/%d/", key, version);
    assert_true(size <= TEXT_MOST);
    for (size_t i = 0; i < size; i++)
        text[i] = i < (size_t)length ? head[i] : (char)('a' + (i * 7 + (size_t)version) % 26);
    return (struct bytes){text, size};
}

static UNUSED bool is_content(struct bytes content, const char *key, int version, size_t size)
{
    return bytes_equal(content, content_of(key, version, size));
}

static UNUSED enum records_outcome set_version(const char *key, int version, size_t size, bool is_persisted)
{
    return RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
               .content = content_of(key, version, size), .may_overwrite = true,
               .is_persisted = is_persisted);
}

static UNUSED void keep_version(const char *key, int version, size_t size)
{
    enum records_outcome outcome = set_version(key, version, size, true);
    if (outcome != RECORDS_OK || !records_save(records, found.saving))
        fail_msg("%s is not kept: %s", key, records_outcome_word(outcome));
}

static UNUSED void expect_version(const char *key, int version, size_t size)
{
    enum records_outcome outcome = RUN(.deed = RECORDS_GET, .key = bytes_of(key));
    if (outcome != RECORDS_OK || !is_content(found.content, key, version, size))
        fail_msg("%s is not version %d of %zu bytes: %s, %zu", key, version, size,
                 records_outcome_word(outcome), found.content.size);
    assert_int_equal(found.size, size);
}

static UNUSED uint64_t away(void)
{
    struct records_sums sums;
    records_sum(records, NO_BYTES, &sums);
    return sums.away;
}

static UNUSED bool is_away(const char *key)
{
    bool is_in = records_enter(records);
    assert_true(is_in);
    int space = records_find_space(records, NS, false);
    uint32_t piece = records_find(records, space, bytes_of(key));
    bool found_away = piece && records_is_away(records_value(records, records_key(records, piece)->value));
    records_leave(records);
    return found_away;
}

/* Others take the place of its content. */
static UNUSED void push_out(const char *key)
{
    for (int i = 0; i < 400 && !is_away(key); i++) {
        char other[16];
        snprintf(other, sizeof other, "push%d", i % 100);
        keep_version(other, i, 20000);
    }
    assert_true(is_away(key));
}

#endif
