/* test_records_sealed: what the disk has of encrypted namespaces, under which keys, and what is not taken for
 * it.  (test_records_disk and test_records_room run for such a namespace too.) */
#include "records/records_private.h" /* before the fixtures, which have a variable of this name */

#include "records_sealed_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/disk_table.h"
#include "records/records_changes.h"
#include "records/records_seal.h"
#include "records/records_state.h"

static const char *const clear_words[] = {"secret-key", "second-key", "secret-value", "secret-owner"};

static int set_up_without_key(void **state)
{
    is_encrypted = true;
    set_up(state);
    load_site_keys("", "");
    assert_true(bring(DISK_BYTES));
    return 0;
}

/* --- in clear --- */

static bool disk_has(const char *word)
{
    struct builder text = {0};
    read_file("log", &text);
    read_file("data.mdb", &text);
    bool has = memmem(text.data, text.size, word, strlen(word)) != NULL;
    builder_free(&text);
    return has;
}

static void keep_secrets(void)
{
    const struct bytes more[] = {bytes_of(clear_words[1])};
    assert_int_equal(KEEP(.deed = RECORDS_SET, .key = bytes_of(clear_words[0]), .more = more, .more_count = 1,
                          .type = RECORDS_STRING, .content = bytes_of(clear_words[2]), .is_persisted = true),
                     RECORDS_OK);
    assert_int_equal(KEEP(.deed = RECORDS_LOCK, .key = bytes_of(clear_words[0]),
                          .owner = bytes_of(clear_words[3]), .lease_ms = 600000),
                     RECORDS_OK);
}

/* In the log and in the table, into which the log is emptied at each start. */
static void nothing_is_in_clear(void **state UNUSED)
{
    unsigned char digest[CRYPTO_SHA256];
    keep_secrets();
    crypto_sha256(bytes_of(clear_words[0]), digest);
    for (int i = 0; i < 2; i++) {
        struct builder text = {0};
        for (size_t word = 0; word < COUNT_OF(clear_words); word++)
            assert_false(disk_has(clear_words[word]));
        read_file("log", &text);
        read_file("data.mdb", &text);
        assert_null(memmem(text.data, text.size, digest, sizeof digest));
        builder_free(&text);
        restart();
        expect(clear_words[1], clear_words[2]);
        assert_int_equal(lock(clear_words[1], "other", 1000), RECORDS_LOCKED);
    }
    is_encrypted = false; /* the same of another namespace is found: the search is one */
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = bytes_of(clear_words[0]),
                                      .type = RECORDS_STRING,
                                      .content = bytes_of(clear_words[2]),
                                      .is_persisted = true};
    assert_int_equal(records_run(records, BYTES("plain"), 0, &command, &found), RECORDS_OK);
    assert_true(records_save(records, found.saving));
    assert_true(disk_has(clear_words[0]) && disk_has(clear_words[2]));
}

/* Each text is another one, also of the same record. */
static void a_text_is_never_sealed_twice_as_the_same(void **state UNUSED)
{
    unsigned char place[RECORDS_PLACE_BYTES] = "lab";
    struct builder one = {0}, other = {0};
    records_seal_place(records->seal, BYTES("key"), place);
    struct bytes at = {(char *)place, sizeof place};
    records_seal_text(records->seal, at, BYTES("text"), &one);
    records_seal_text(records->seal, at, BYTES("text"), &other);
    assert_int_equal(one.size, other.size);
    assert_memory_not_equal(one.data, other.data, one.size);
    assert_memory_not_equal(one.data + 16, other.data + 16, SEALING_NONCE);
    builder_free(&one);
    builder_free(&other);
}

/* --- other places, other bytes --- */

static void find_place(struct bytes ns, const char *key, unsigned char place_r[RECORDS_PLACE_BYTES])
{
    memset(place_r, 0, RECORDS_PLACE_BYTES);
    memcpy(place_r, ns.data, ns.size);
    records_seal_place(records->seal, bytes_of(key), place_r);
}

static void read_place(const unsigned char *place, struct builder *text)
{
    bool is_there = false;
    struct disk_table *disk = open_disk();
    text->size = 0;
    assert_null(
        disk_table_get(disk, (struct bytes){(const char *)place, RECORDS_PLACE_BYTES}, text, &is_there));
    assert_true(is_there);
    disk_table_close(disk);
}

static void write_place(const unsigned char *place, struct bytes text)
{
    struct disk_table *disk = open_disk();
    assert_null(disk_table_begin(disk));
    assert_null(disk_table_put(disk, (struct bytes){(const char *)place, RECORDS_PLACE_BYTES}, text));
    assert_null(disk_table_commit(disk));
    disk_table_close(disk);
}

static void an_entry_at_another_place_is_refused(void **state UNUSED)
{
    unsigned char one[RECORDS_PLACE_BYTES], two[RECORDS_PLACE_BYTES], other[RECORDS_PLACE_BYTES];
    struct builder text = {0}, own = {0};
    keep_text("one", "1");
    keep_text("two", "2");
    find_place(NS, "one", one);
    find_place(NS, "two", two);
    find_place(BYTES("other"), "one", other);
    assert_memory_not_equal(one + RECORDS_CODE_MOST, other + RECORDS_CODE_MOST, CRYPTO_SHA256);
    read_place(one, &text);
    read_place(two, &own);
    write_place(two, builder_bytes(&text));
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "a record is damaged"));
    write_place(two, builder_bytes(&own));
    write_place(other, builder_bytes(&text));
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "a record is damaged"));
    write_place(other, NO_BYTES);
    for (size_t at = 0; at < text.size; at += 7) {
        text.data[at] ^= 1;
        write_place(one, builder_bytes(&text));
        assert_false(starts("site.key", ""));
        text.data[at] ^= 1;
    }
    write_place(one, (struct bytes){text.data, text.size - 1});
    assert_false(starts("site.key", ""));
    write_place(one, (struct bytes){text.data, 10});
    assert_false(starts("site.key", ""));
    write_place(one, builder_bytes(&text));
    assert_true(starts("site.key", ""));
    expect("one", "1");
    expect("two", "2");
    builder_free(&text);
    builder_free(&own);
}

/* A record in clear in the place of an encrypted one is damage; where records in clear are, it is none of the
 * encrypted namespace. */
static void a_record_in_clear_is_no_encrypted_one(void **state UNUSED)
{
    unsigned char sealed[RECORDS_PLACE_BYTES], clear[RECORDS_PLACE_BYTES] = "lab";
    struct builder text = {0};
    is_encrypted = false;
    keep_text("key", "of somebody");
    crypto_sha256(BYTES("key"), clear + RECORDS_CODE_MOST);
    read_place(clear, &text);
    is_encrypted = true;
    expect("key", NULL);
    find_place(NS, "key", sealed);
    write_place(sealed, builder_bytes(&text));
    assert_false(starts("site.key", ""));
    write_place(sealed, NO_BYTES);
    assert_true(starts("site.key", ""));
    expect("key", NULL);
    builder_free(&text);
}

/* --- keys --- */

static void another_site_key_is_refused(void **state UNUSED)
{
    keep_secrets();
    write_site_key("other.key", 'b');
    assert_false(starts("other.key", ""));
    assert_non_null(strstr(problem, "another site key"));
    assert_false(starts("", ""));
    assert_non_null(strstr(problem, "site_key_file"));
    assert_true(starts("site.key", ""));
    expect(clear_words[0], clear_words[2]);
}

static void the_site_key_is_replaced(void **state UNUSED)
{
    struct builder before = {0}, after = {0};
    keep_secrets();
    read_file("key", &before);
    write_site_key("other.key", 'b');
    struct records *running = records; /* a former server, which has the key */
    let_go(running);
    load_site_keys("other.key", "site.key");
    records = open_at(BYTES_SMALL);
    assert_true(bring(DISK_BYTES));
    read_file("key", &after);
    assert_false(bytes_equal(builder_bytes(&before), builder_bytes(&after)));
    keep_text("by the new one", "x");
    records_close(records);
    records = running;
    keep_text("by the former one", "y");
    assert_true(starts("other.key", ""));
    expect(clear_words[0], clear_words[2]);
    expect("by the new one", "x");
    expect("by the former one", "y");
    assert_false(starts("site.key", ""));
    assert_true(starts("other.key", ""));
    builder_free(&before);
    builder_free(&after);
}

/* Neither is a new key made in the place of one that is missing, nor is another one taken for it. */
static void a_missing_key_is_said(void **state UNUSED)
{
    struct builder key = {0}, other = {0};
    char path[300];
    keep_secrets();
    read_file("key", &key);
    snprintf(path, sizeof path, "%s/key", folder_path("disk"));
    remove_file("key");
    for (int i = 0; i < 2; i++) {
        assert_false(starts("site.key", ""));
        assert_non_null(strstr(problem, "the file key is missing"));
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_null(records_seal_write(&records->seal, folder_path("disk")));
    read_file("key", &other);
    assert_false(bytes_equal(builder_bytes(&key), builder_bytes(&other)));
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "under another key"));
    write_file("key", (struct bytes){key.data, key.size / 2});
    assert_false(starts("site.key", ""));
    assert_non_null(strstr(problem, "damaged"));
    write_file("key", BYTES(""));
    assert_false(starts("site.key", ""));
    write_file("key", builder_bytes(&key));
    write_file("key.new", BYTES("of a process that died"));
    assert_true(starts("site.key", ""));
    expect(clear_words[0], clear_words[2]);
    builder_free(&key);
    builder_free(&other);
}

static void without_a_site_key_nothing_is_persisted(void **state UNUSED)
{
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("key"), .type = RECORDS_VOID, .content = BYTES(""),
                         .is_persisted = true),
                     RECORDS_NO_DISK);
    assert_int_equal(set("key", "in memory"), RECORDS_OK);
    expect("key", "in memory");
    is_encrypted = false;
    keep_text("other", "in clear");
}

/* Two processes without a key and with one: the first saves nothing of it, and says so. */
static void a_process_without_the_key_saves_nothing(void **state UNUSED)
{
    keep_text("key", "saved");
    struct records_seal *seal = records->seal;
    records->seal = NULL;
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("key"), .size = 2), RECORDS_OK);
    assert_false(records_save(records, found.saving));
    records->seal = seal;
    assert_true(records_save(records, found.saving));
    restart();
    expect("key", "sa");
}

/* --- a namespace in the place of another one --- */

static void apply_state(bool is_there)
{
    struct records_reading reading;
    const struct records_state state = {.ns = NS, .is_encrypted = is_encrypted};
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, &state, is_there);
}

static uint64_t count(void)
{
    struct records_sums sums;
    records_sum(records, NO_BYTES, &sums);
    return sums.records;
}

/* Dropped and created while no state was read: by the first command, or the first reading. */
static void a_former_namespace_leaves_nothing(void **state UNUSED)
{
    for (int by_state = 0; by_state < 2; by_state++)
        for (int from = 0; from < 2; from++) {
            char former[48], present[48]; /* what was deleted may still be in a file */
            snprintf(former, sizeof former, "former-value-%d-%d", by_state, from);
            snprintf(present, sizeof present, "present-value-%d-%d", by_state, from);
            is_encrypted = from;
            apply_state(true);
            keep_text("former", former);
            assert_int_equal(disk_has(former), !from);
            restart();
            is_encrypted = !from;
            if (by_state)
                apply_state(true);
            else
                keep_text("other", "x");
            expect("former", NULL);
            keep_text("former", present);
            assert_int_equal(disk_has(present), from);
            apply_state(true);
            expect("former", present);
            assert_int_equal(count(), by_state ? 1 : 2);
            records_save_rest(records);
            restart();
            expect("former", present);
            assert_int_equal(count(), by_state ? 1 : 2);
            apply_state(true);
            apply_state(false);
            assert_int_equal(count(), 0);
            records_save_rest(records);
        }
}

/* A change that does not persist by itself is of a record that is. */
static void no_command_of_an_encrypted_namespace_reaches_a_record_in_clear(void **state UNUSED)
{
    is_encrypted = false;
    keep_text("former", "in clear");
    restart();
    is_encrypted = true;
    assert_int_equal(RUN(.deed = RECORDS_TRUNCATE, .key = BYTES("former"), .size = 2), RECORDS_NOT_FOUND);
    assert_int_equal(RUN(.deed = RECORDS_RENAME, .key = BYTES("former"), .to = BYTES("secret-key")),
                     RECORDS_NOT_FOUND);
    assert_int_equal(set("former", "secret-value"), RECORDS_OK);
    records_save_rest(records);
    assert_false(disk_has("secret-key") || disk_has("secret-value"));
}

/* Before any state is read, by commands that persist nothing themselves; and listed. */
static void no_command_finds_a_record_of_the_other_kind(void **state UNUSED)
{
    for (int from = 0; from < 2; from++) {
        is_encrypted = from;
        keep_text("former", "of the former");
        restart();
        is_encrypted = !from;
        assert_int_equal(records_next(records, NS, is_encrypted, BYTES(""), NO_BYTES, NO_BYTES, &found),
                         RECORDS_NOT_FOUND);
        expect("former", NULL);
        assert_int_equal(set("own", "in memory"), RECORDS_OK);
        keep_text("kept", "x");
        expect("own", "in memory");
        apply_state(true);
        expect("own", "in memory");
        assert_int_equal(records_next(records, NS, is_encrypted, BYTES(""), NO_BYTES, NO_BYTES, &found),
                         RECORDS_OK);
        assert_true(bytes_equal(found.key, BYTES("kept")));
        assert_int_equal(count(), 2);
        apply_state(false);
        records_save_rest(records);
        restart();
    }
}

/* However often a namespace is dropped, and another one made with its code. */
static void a_code_takes_no_more_room_in_the_table(void **state UNUSED)
{
    for (int i = 0; i < 20; i++) {
        is_encrypted = i % 2;
        apply_state(true);
        assert_int_equal(set("key", "in memory"), RECORDS_OK);
        if (!is_encrypted)
            keep_text("key", "on disk");
        apply_state(false);
        assert_int_equal(count(), 0);
    }
    assert_in_range(records->head->spaces, 1, 3);
}

/* The removal of the former records was not on disk when all processes died: the disk has both kinds. */
static void both_kinds_are_told_apart(void **state UNUSED)
{
    for (int kind = 0; kind < 2; kind++) {
        is_encrypted = !kind;
        keep_text("key", "of the former");
        keep_text("more", "of the former");
        is_encrypted = kind;
        keep_text("key", "of the present");
        restart();
        assert_int_equal(count(), 3);
        apply_state(true);
        assert_int_equal(count(), 1);
        expect("key", "of the present");
        expect("more", NULL);
        keep_text("key", "again");
        records_save_rest(records);
        restart();
        assert_int_equal(count(), 1);
        expect("key", "again");
        apply_state(true);
        apply_state(false);
        records_save_rest(records);
        restart();
        assert_int_equal(count(), 0);
    }
}

/* It shows the records of a former kind, until a state is read. */
static void an_outdated_configuration_hides_nothing_for_long(void **state UNUSED)
{
    for (int kind = 0; kind < 2; kind++) {
        is_encrypted = kind;
        keep_text("key", "right");
        is_encrypted = !kind;
        keep_text("key", "outdated");
        is_encrypted = kind;
        apply_state(true);
        expect("key", "right");
        assert_int_equal(count(), 1);
        apply_state(false);
        records_save_rest(records);
    }
}

/* The keys that have changed since, as listeners read them. */
static size_t count_changes(uint64_t *position)
{
    struct builder read = {0};
    struct bytes rest, key;
    size_t keys = 0;
    assert_int_equal(records_changes_read(records, NS, is_encrypted, position, &read), RECORDS_CHANGES_ALL);
    for (rest = builder_bytes(&read); records_changes_take(&rest, &key, &(uint64_t){0});)
        keys++;
    builder_free(&read);
    return keys;
}

/* Its records end before any state is read; a listener of the present one is shown no key of it. */
static void the_end_of_a_former_record_is_no_change(void **state UNUSED)
{
    uint64_t position;
    move_clock(0);
    assert_true(clock_follow(folder_path("clock")));
    for (int from = 0; from < 2; from++) {
        is_encrypted = from;
        assert_int_equal(KEEP(.deed = RECORDS_SET, .key = BYTES("former"), .type = RECORDS_STRING,
                              .content = BYTES("x"), .expires_ms = clock_present_ms() + 30000,
                              .is_persisted = true),
                         RECORDS_OK);
        restart();
        assert_int_equal(count(), 1);
        is_encrypted = !from;
        assert_true(records_changes_position(records, &position));
        move_clock(from + 1);
        assert_int_equal(count_changes(&position), 0);
        assert_int_equal(count(), 0);
        keep_text("own", "in the present one");
        assert_int_equal(count_changes(&position), 1);
        apply_state(true);
        apply_state(false);
        records_save_rest(records);
        restart();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_sealed, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_in_clear),
        TEST(a_text_is_never_sealed_twice_as_the_same),
        TEST(an_entry_at_another_place_is_refused),
        TEST(a_record_in_clear_is_no_encrypted_one),
        TEST(another_site_key_is_refused),
        TEST(the_site_key_is_replaced),
        TEST(a_missing_key_is_said),
        cmocka_unit_test_setup_teardown(without_a_site_key_nothing_is_persisted, set_up_without_key,
                                        tear_down),
        TEST(a_process_without_the_key_saves_nothing),
        TEST(a_former_namespace_leaves_nothing),
        TEST(no_command_of_an_encrypted_namespace_reaches_a_record_in_clear),
        TEST(no_command_finds_a_record_of_the_other_kind),
        TEST(a_code_takes_no_more_room_in_the_table),
        TEST(both_kinds_are_told_apart),
        TEST(an_outdated_configuration_hides_nothing_for_long),
        TEST(the_end_of_a_former_record_is_no_change), /* the last one: the clock stays followed */
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    site_key_forget();
    return failures;
}
