/* test_records_room: records on disk that take more than the memory: what is given up, comes back as it was,
 * by every command. */
#include "records_room_fixture.h"

#include <stdlib.h>

/* --- what is kept --- */

static void ten_times_the_memory(void **state UNUSED)
{
    enum { MANY = 2500, SIZE = 4000, OTHERS = 100 };
    char key[24];
    for (int i = 0; i < OTHERS; i++) {
        snprintf(key, sizeof key, "other%d", i);
        assert_int_equal(set_version(key, i, 500, false), RECORDS_OK);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(set_version(key, i, SIZE, true), RECORDS_OK);
        if (i % 50 == 49)
            assert_true(records_save(records, found.saving));
    }
    records_check(records);
    assert_true(away() > MANY / 2);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(key, sizeof key, "key%d", round ? i : MANY - 1 - i);
            expect_version(key, round ? i : MANY - 1 - i, SIZE);
        }
        for (int i = 0; i < OTHERS; i++) {
            snprintf(key, sizeof key, "other%d", i);
            if (round == 0)
                expect_version(key, i, 500);
            else
                assert_int_equal(RUN(.deed = RECORDS_GET, .key = bytes_of(key)), RECORDS_NOT_FOUND);
        }
        if (round == 0)
            restart();
    }
    assert_true(away() > MANY / 2);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = true), RECORDS_OK);
        if (i % 100 == 99)
            assert_true(records_save(records, found.saving));
    }
    assert_int_equal(away(), 0);
    struct records_sums sums;
    records_sum(records, NO_BYTES, &sums);
    assert_int_equal(sums.bytes, 0);
    assert_int_equal(sums.away_bytes, 0);
}

static void what_is_used_stays(void **state UNUSED)
{
    keep_version("used", 1, 4000);
    keep_version("unused", 1, 4000);
    for (int i = 0; i < 1000; i++) {
        char key[20];
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(set_version(key, i, 4000, true), RECORDS_OK);
        if (i % 20 == 19)
            assert_true(records_save(records, found.saving));
        expect_version("used", 1, 4000);
        assert_false(is_away("used"));
    }
    assert_true(is_away("unused"));
    expect_version("unused", 1, 4000);
    assert_false(is_away("unused"));
}

/* The list has more than one change of the disk takes: what was written with its first entry is given up
 * before its last one is. */
static void what_is_listed_again_may_be_given_up(void **state UNUSED)
{
    enum { OTHERS = 1000 };
    char key[20];
    assert_int_equal(set_version("key", 1, 4000, true), RECORDS_OK);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(key, sizeof key, "other%d", i);
        assert_int_equal(set_version(key, i, 20, true), RECORDS_OK);
    }
    assert_int_equal(set_version("key", 2, 4000, true), RECORDS_OK);
    assert_true(records_save(records, 1));
    for (int i = 0; i < 1000 && !is_away("key"); i++) {
        snprintf(key, sizeof key, "fill%d", i);
        assert_int_equal(set_version(key, i, 4000, false), RECORDS_OK);
    }
    assert_true(is_away("key") && records->head->unsaved_first);
    records_save_rest(records);
    assert_int_equal(records->head->unsaved_first, 0);
    expect_version("key", 2, 4000);
    restart();
    expect_version("key", 2, 4000);
    expect_version("other999", 999, 20);
}

/* Between the first entry of a key and that of its new name are more than one change of the disk takes. */
static void a_renamed_record_is_always_on_disk(void **state UNUSED)
{
    enum { OTHERS = 1000 };
    char key[20];
    keep_version("key", 1, 4000);
    assert_int_equal(set_version("key", 2, 4000, true), RECORDS_OK);
    uint64_t number = found.saving;
    for (int i = 0; i < OTHERS; i++) {
        snprintf(key, sizeof key, "other%d", i);
        assert_int_equal(set_version(key, i, 20, true), RECORDS_OK);
    }
    assert_int_equal(
        RUN(.deed = RECORDS_RENAME, .key = BYTES("key"), .to = BYTES("to"), .is_immediate = true),
        RECORDS_OK);
    assert_true(records_save(records, number));
    restart();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("to")), RECORDS_OK);
    assert_true(is_content(found.content, "key", 2, 4000));
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key")), RECORDS_NOT_FOUND);
}

/* A quota is about what a namespace has, wherever it is. */
static void a_quota_counts_what_is_on_disk_alone(void **state UNUSED)
{
    struct records_sums before, after;
    keep_version("key", 1, 4000);
    records_sum(records, NS, &before);
    push_out("key");
    for (int i = 0; i < 100; i++) {
        char other[16];
        snprintf(other, sizeof other, "push%d", i);
        KEEP(.deed = RECORDS_DELETE, .key = bytes_of(other), .is_immediate = true);
    }
    assert_true(is_away("key"));
    records_sum(records, NS, &after);
    assert_int_equal(before.bytes, after.bytes);
    assert_int_equal(after.away, 1);
    assert_int_equal(after.away_bytes, 4000);
}

static void small_contents_stay(void **state UNUSED)
{
    keep_version("small", 1, RECORDS_APART_LEAST - 1);
    keep_version("just", 1, RECORDS_APART_LEAST);
    assert_int_equal(set_version("memory", 1, 4000, false), RECORDS_OK);
    push_out("just");
    assert_false(is_away("small"));
    assert_false(is_away("memory"));
    expect_version("small", 1, RECORDS_APART_LEAST - 1);
    expect_version("just", 1, RECORDS_APART_LEAST);
    expect_version("memory", 1, 4000);
    /* it is no longer kept on disk: nothing of it may be given up */
    push_out("just");
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("just"), .type = RECORDS_STRING,
                         .content = content_of("just", 2, 4000), .may_overwrite = true),
                     RECORDS_OK);
    for (int i = 0; i < 200; i++) {
        char other[16];
        snprintf(other, sizeof other, "push%d", i % 100);
        keep_version(other, i, 20000);
    }
    assert_false(is_away("just"));
    expect_version("just", 2, 4000);
}

/* --- every command --- */

static const struct variant {
    const char *name;
    struct records_command command;
} variants[] = {
    {"get", {.deed = RECORDS_GET}},
    {"probe", {.deed = RECORDS_GET, .is_probe = true}},
    {"work", {.deed = RECORDS_GET, .lease_ms = 60000}},
    {"probe to work", {.deed = RECORDS_GET, .is_probe = true, .lease_ms = 60000}},
    {"idle", {.deed = RECORDS_GET, .leaves_worked = true}},
    {"listen", {.deed = RECORDS_GET, .is_listened = true}},
    {"longer", {.deed = RECORDS_GET, .expires_ms = RECORDS_MS_MOST}},
    {"set", {.deed = RECORDS_SET, .type = RECORDS_STRING, .content = {"other", 5}, .is_persisted = true}},
    {"overwrite",
     {.deed = RECORDS_SET, .type = RECORDS_STRING, .content = {"other", 5}, .may_overwrite = true}},
    {"older",
     {.deed = RECORDS_SET,
      .type = RECORDS_VOID,
      .timestamp_us = 5,
      .may_overwrite = true,
      .is_persisted = true}},
    {"delete", {.deed = RECORDS_DELETE}},
    {"delete at once", {.deed = RECORDS_DELETE, .is_immediate = true}},
    {"add",
     {.deed = RECORDS_ADD,
      .type = RECORDS_INTEGER,
      .content = {"\0\0\0\0\0\0\0\1", 8},
      .may_overwrite = true}},
    {"not", {.deed = RECORDS_NOT}},
    {"cut", {.deed = RECORDS_TRUNCATE, .size = 100}},
    {"cut much", {.deed = RECORDS_TRUNCATE, .size = 3}},
    {"cut to nothing", {.deed = RECORDS_TRUNCATE}},
    {"lengthen", {.deed = RECORDS_TRUNCATE, .size = 5000}},
    {"lock", {.deed = RECORDS_LOCK, .owner = {"me", 2}, .lease_ms = 60000}},
    {"unlock", {.deed = RECORDS_UNLOCK, .owner = {"me", 2}}},
    {"rename", {.deed = RECORDS_RENAME, .to = {"to", 2}}},
    {"rename at once", {.deed = RECORDS_RENAME, .to = {"to", 2}, .is_immediate = true}},
    {"rename onto", {.deed = RECORDS_RENAME, .to = {"taken", 5}}},
    {"rename over", {.deed = RECORDS_RENAME, .to = {"taken", 5}, .may_overwrite = true}},
    {"link", {.deed = RECORDS_LINK, .to = {"to", 2}}},
    {"unlink", {.deed = RECORDS_UNLINK}},
    {"expire", {.deed = RECORDS_EXPIRE, .expires_ms = INT64_C(7258118400000)}},
    {"never end", {.deed = RECORDS_EXPIRE}},
    {"end now", {.deed = RECORDS_EXPIRE, .expires_ms = 1}},
};

struct result {
    enum records_outcome outcome;
    struct records_found found;
    char content[8000];
};

static void note_result(enum records_outcome outcome, struct result *result)
{
    memset(result, 0, sizeof *result);
    result->outcome = outcome;
    result->found = found;
    assert_true(found.content.size < sizeof result->content);
    if (found.content.size)
        memcpy(result->content, found.content.data, found.content.size);
}

static void expect_same(const char *name, const char *what, const struct result *one,
                        const struct result *other)
{
    const struct records_found *a = &one->found, *b = &other->found;
    bool is_same = one->outcome == other->outcome && a->content.size == b->content.size &&
                   memcmp(one->content, other->content, a->content.size) == 0 && a->size == b->size &&
                   a->type == b->type && a->is_persisted == b->is_persisted && a->touch_s == b->touch_s &&
                   !a->expires_ms == !b->expires_ms && !a->locked_until_ms == !b->locked_until_ms &&
                   !a->worked_until_ms == !b->worked_until_ms && !a->saving == !b->saving;
    if (!is_same)
        fail_msg("%s, %s: in memory %s, %zu bytes; away %s, %zu bytes", name, what,
                 records_outcome_word(one->outcome), a->content.size, records_outcome_word(other->outcome),
                 b->content.size);
}

/* The command on the record, and then what is under each key, also after a restart. */
static void run_variant(const struct variant *variant, bool is_buffer, bool is_pushed,
                        struct result results_r[9])
{
    static const char *const keys[] = {"key", "second", "to", "taken"};
    const struct bytes more[] = {BYTES("second")};
    struct records_command command = variant->command;
    int count = 0;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        KEEP(.deed = RECORDS_DELETE, .key = bytes_of(keys[i]), .owner = BYTES("me"), .is_immediate = true);
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("key"), .more = more, .more_count = 1,
                          .type = is_buffer ? RECORDS_BUFFER : RECORDS_STRING, .is_persisted = true,
                          .content = content_of("key", 1, 4000), .timestamp_us = 10,
                          .expires_ms = clock_present_ms() + 3600000, .touch_s = 5),
                     RECORDS_OK);
    keep_version("taken", 1, 3000);
    if (is_pushed)
        push_out("key");
    command.key = BYTES("key");
    note_result(keep(&command), &results_r[count++]);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(keys); i++)
            note_result(RUN(.deed = RECORDS_GET, .key = bytes_of(keys[i])), &results_r[count++]);
        restart();
    }
}

static void every_command_finds_the_content(void **state UNUSED)
{
    static struct result in_memory[9], pushed[9];
    bool deeds[RECORDS_DEEDS] = {false};
    for (size_t i = 0; i < COUNT_OF(variants) * 2; i++) {
        const struct variant *variant = &variants[i / 2];
        deeds[variant->command.deed] = true;
        run_variant(variant, i % 2, false, in_memory);
        run_variant(variant, i % 2, true, pushed);
        for (int j = 0; j < 9; j++) {
            char what[32];
            snprintf(what, sizeof what, "%s %d", i % 2 ? "buffer" : "string", j);
            expect_same(variant->name, what, &in_memory[j], &pushed[j]);
        }
    }
    for (size_t i = 0; i < RECORDS_DEEDS; i++)
        assert_true(deeds[i]); /* a new command has its line */
}

static void a_moved_end_is_kept(void **state UNUSED)
{
    int64_t end_ms = clock_present_ms() + 3600000;
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_STRING,
                          .content = content_of("key", 1, 4000), .expires_ms = end_ms, .is_persisted = true),
                     RECORDS_OK);
    push_out("key");
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key"), .expires_ms = end_ms + 5000), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms + 5000);
    records_save_rest(records);
    restart();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("key")), RECORDS_OK);
    assert_int_equal(found.expires_ms, end_ms + 5000);
}

/* A content of more than an eighth of the memory is read without taking the place of others. */
static void a_large_content_passes_by(void **state UNUSED)
{
    enum { LARGE = 300000 };
    char *large = calloc(1, LARGE);
    int64_t end_ms = clock_present_ms() + 3600000;
    assert_non_null(large);
    memset(large, 'z', LARGE);
    large[LARGE - 1] = 'e';
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("large"), .type = RECORDS_STRING,
                          .content = {large, LARGE}, .expires_ms = end_ms, .is_persisted = true),
                     RECORDS_OK);
    push_out("large");
    uint64_t before = away();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("large"), .expires_ms = end_ms + 5000),
                     RECORDS_OK);
    assert_true(bytes_equal(found.content, (struct bytes){large, LARGE}));
    assert_int_equal(away(), before);
    /* a command that changes it brings it back, and then the disk has the end too */
    assert_int_equal(KEEP(.deed = RECORDS_LINK, .key = BYTES("large"), .to = BYTES("second")), RECORDS_OK);
    assert_false(is_away("large"));
    restart();
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("second")), RECORDS_OK);
    assert_true(bytes_equal(found.content, (struct bytes){large, LARGE}));
    assert_int_equal(found.expires_ms, end_ms + 5000);
    free(large);
}

/* Nor is its return. */
static void to_give_up_is_no_change(void **state UNUSED)
{
    enum records_changes_end end;
    struct builder changed = {0};
    uint64_t position;
    keep_version("key", 1, 4000);
    assert_true(records_changes_position(records, &position));
    push_out("key");
    expect_version("key", 1, 4000);
    do {
        struct bytes key;
        uint64_t next;
        changed.size = 0;
        end = records_changes_read(records, NS, is_encrypted, &position, &changed);
        for (struct bytes rest = builder_bytes(&changed); records_changes_take(&rest, &key, &next);)
            assert_false(bytes_equal(key, BYTES("key")));
    } while (end == RECORDS_CHANGES_MORE);
    assert_int_equal(end, RECORDS_CHANGES_ALL);
    builder_free(&changed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(ten_times_the_memory),
        TEST(what_is_used_stays),
        TEST(what_is_listed_again_may_be_given_up),
        TEST(a_renamed_record_is_always_on_disk),
        TEST(a_quota_counts_what_is_on_disk_alone),
        TEST(small_contents_stay),
        TEST(every_command_finds_the_content),
        TEST(a_moved_end_is_kept),
        TEST(a_large_content_passes_by),
        TEST(to_give_up_is_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
