/* live_records: which definitions of records have changed, for whom, and that nothing is done while nobody
 * follows. */
#include "records/records_private.h"

#include "records_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/live_audience_private.h"
#include "live/topics/live_records.h"

#define RULES                                                                                                \
    "{\"records\":[{\"prefix\":\"open.\",\"read\":\"anyone\"},{\"prefix\":\"shut.\",\"read\":\"account\"}]}"

enum { DEFINITIONS = 12, CROWD = 500, KEYS = 400, PAUSE_MS = 1000 };

static struct settings settings;
static struct live_records *all;
static struct live_access *access_of_lab;
static struct live_audiences *audiences;
static struct live_audience *audience;
static struct live_listener admin, guest;
static int begun;

static void note_begin(void *context UNUSED)
{
    begun++;
}

static void configure(const char *conf)
{
    live_access_take(access_of_lab, &(struct live_access_texts){.code = NS, .conf = bytes_of(conf)});
}

static int begin(void **state)
{
    set_up(state);
    begun = 0;
    all = live_records_create(records, note_begin, NULL);
    audiences = live_audiences_create(&settings, NULL, all, NULL);
    access_of_lab = live_access_create();
    configure(RULES);
    live_access_begin(access_of_lab); /* as if it had been queried */
    configure(RULES);
    audience = live_audience_create(audiences, "lab", "stampd_lab", access_of_lab);
    admin = (struct live_listener){
        .audience = audience, .state = LIVE_OPEN, .trust = LIVE_TRUSTED, .is_administrator = true};
    guest = (struct live_listener){
        .audience = audience, .state = LIVE_OPEN, .trust = LIVE_TRUSTED, .next = &admin};
    audience->listeners = &guest;
    return 0;
}

static int end(void **state)
{
    live_records_leave(&admin);
    live_records_leave(&guest);
    assert_false(live_records_are_followed(all));
    live_audience_destroy(audience);
    live_audiences_destroy(audiences);
    live_access_destroy(access_of_lab);
    live_records_destroy(all);
    return tear_down(state);
}

static void follow(struct live_listener *listener, const char *const texts[], size_t count)
{
    struct definition definitions[DEFINITIONS];
    struct arena *arena = arena_create("test");
    for (size_t i = 0; i < count; i++)
        assert_true(definition_read_records(arena, bytes_of(texts[i]), &definitions[i]));
    live_records_join(listener, definitions, count);
    arena_destroy(arena);
}

#define FOLLOW(listener, ...)                                                                                \
    follow(listener, (const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__})))

/* What has changed for the listener, "a b ". */
static const char *changed(struct live_listener *listener)
{
    static char list[200];
    struct builder text = {0};
    while (live_index_take_matched(audience->records.index))
        ;
    for (struct live_mark *mark; (mark = live_index_take_changed(&listener->records));) {
        assert_int_equal(mark->version, 0);
        builder_add_bytes(&text, mark->text);
        builder_add_text(&text, " ");
    }
    snprintf(list, sizeof list, "%.*s", (int)text.size, text.data ? text.data : "");
    builder_free(&text);
    return list;
}

static void nobody_looks_where_nobody_follows(void **state UNUSED)
{
    set("open.1", "x");
    assert_false(live_records_are_followed(all) || live_records_look(all));
    FOLLOW(&admin, "record:a");
    FOLLOW(&guest, "record:open.1");
    assert_int_equal(begun, 1);
    assert_true(live_records_look(all)); /* what came between its position and now */
    assert_false(live_records_look(all));
    live_records_leave(&admin);
    admin.records = (struct live_feed){0};
    assert_true(live_records_are_followed(all));
    live_records_leave(&guest);
    guest.records = (struct live_feed){0};
    assert_false(live_records_are_followed(all) || live_records_look(all));
    FOLLOW(&guest, "records:");
    assert_int_equal(begun, 2);
}

static void keys_and_prefixes(void **state UNUSED)
{
    set("a.0", "before");
    FOLLOW(&admin, "record:a.1", "records:a.", "records:a.10");
    set("a.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "record:a.1 records:a. ");
    set("a.10", "x");
    set("a.100", "x");
    set("b", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "records:a. records:a.10 ");
    assert_false(live_records_look(all));
    assert_int_equal(RUN(.deed = RECORDS_DELETE, .key = BYTES("a.1")), RECORDS_OK);
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "record:a.1 records:a. ");
}

static void a_range_has_both_its_ends(void **state UNUSED)
{
    FOLLOW(&admin, "records:b/d", "records:c/", "records:/b.", "record:b");
    const struct {
        const char *key, *seen;
    } cases[] = {{"a", "records:/b. "},
                 {"b", "record:b records:/b. records:b/d "},
                 {"b.", "records:/b. records:b/d "},
                 {"b.0", "records:b/d "},
                 {"c", "records:b/d records:c/ "},
                 {"d", "records:b/d records:c/ "},
                 {"d0", "records:c/ "},
                 {"\xc3\xa9", "records:c/ "}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        set(cases[i].key, "x");
        assert_true(live_records_look(all));
        assert_string_equal(changed(&admin), cases[i].seen);
    }
}

/* Any number of ranges, which come and go, beside a comparison of each key with each of them. */
static bool is_in(const char *key, const char *from, const char *to)
{
    return strcmp(key, from) >= 0 && (!*to || strcmp(key, to) <= 0);
}

static const char *draw(void)
{
    static char texts[4][4];
    static int next;
    char *text = texts[next++ % 4];
    snprintf(text, 4, "%c%c%c", 'a' + rand() % 4, rand() % 3 ? 'a' + rand() % 4 : 0, 'a' + rand() % 4);
    return text;
}

struct drawn {
    char text[20], from[4], to[4];
};

static size_t draw_ranges(struct drawn drawn[DEFINITIONS])
{
    size_t count = 1 + (size_t)rand() % DEFINITIONS;
    for (size_t i = 0; i < count; i++) {
        const char *one = draw(), *other = draw();
        bool is_ordered = strcmp(one, other) <= 0;
        snprintf(drawn[i].from, 4, "%s", rand() % 8 ? is_ordered ? one : other : "");
        snprintf(drawn[i].to, 4, "%s", rand() % 8 || !*drawn[i].from ? is_ordered ? other : one : "");
        snprintf(drawn[i].text, sizeof drawn[i].text, "records:%s/%s", drawn[i].from, drawn[i].to);
    }
    return count;
}

static void ranges_are_found_like_in_a_list(void **state UNUSED)
{
    struct live_listener *const both[] = {&admin, &guest};
    struct drawn drawn[2][DEFINITIONS];
    size_t counts[2] = {0};
    srand(7);
    guest.is_administrator = true;
    for (int round = 0; round < 1000; round++) {
        size_t chosen = (size_t)rand() % 2;
        const char *texts[DEFINITIONS];
        live_records_leave(both[chosen]);
        counts[chosen] = draw_ranges(drawn[chosen]);
        for (size_t i = 0; i < counts[chosen]; i++)
            texts[i] = drawn[chosen][i].text;
        follow(both[chosen], texts, counts[chosen]);
        for (int change = 0; change < 3; change++) {
            const char *key = draw();
            (void)live_records_look(all);
            (void)changed(&admin), (void)changed(&guest);
            set(key, "x");
            assert_true(live_records_look(all));
            for (size_t listener = 0; listener < 2; listener++)
                for (size_t i = 0; i < counts[listener]; i++)
                    assert_int_equal(both[listener]->records.marks[i].is_changed,
                                     is_in(key, drawn[listener][i].from, drawn[listener][i].to));
            (void)changed(&admin), (void)changed(&guest);
        }
    }
}

static void a_range_needs_a_key_that_may_be_read(void **state UNUSED)
{
    FOLLOW(&guest, "records:a/p", "records:open./open.", "records:open.1/open.2", "records:op/");
    assert_false(live_records_refused(&guest).data);
    static const char *const refused[] = {"records:a/open", "records:p/", "records:/open", "records:shut./"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        live_records_leave(&guest);
        FOLLOW(&guest, "records:op/", refused[i]);
        assert_true(bytes_equal(live_records_refused(&guest), bytes_of(refused[i])));
    }
    live_records_leave(&guest);
    FOLLOW(&guest, "records:a/z");
    set("shut.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "");
    set("open.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "records:a/z ");
}

static void a_prefix_is_followed_until_its_last_listener_leaves(void **state UNUSED)
{
    FOLLOW(&guest, "records:open.");
    FOLLOW(&admin, "records:open.");
    live_records_leave(&guest);
    set("open.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "records:open. ");
}

static void another_namespace_is_another_matter(void **state UNUSED)
{
    FOLLOW(&admin, "records:");
    const struct records_command command = {.deed = RECORDS_SET, .key = BYTES("a")};
    assert_int_equal(records_run(records, BYTES("demo"), 0, &command, &found), RECORDS_OK);
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "");
}

static void what_ends_has_changed(void **state UNUSED)
{
    FOLLOW(&admin, "record:a");
    assert_int_equal(RUN(.deed = RECORDS_SET, .key = BYTES("a"), .expires_ms = clock_present_ms() + 20),
                     RECORDS_OK);
    do /* whoever reads after each event finds the end */
        while (!live_records_look(all) || !*changed(&admin))
            clock_sleep_ms(1);
    while (RUN(.deed = RECORDS_GET, .key = BYTES("a")) == RECORDS_OK);
}

static void rights_are_judged_for_each_key(void **state UNUSED)
{
    FOLLOW(&guest, "records:", "record:shut.1", "record:open.1");
    FOLLOW(&admin, "records:");
    set("shut.1", "x");
    set("other", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "");
    assert_string_equal(changed(&admin), "records: ");
    set("open.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "record:open.1 records: ");
    assert_true(bytes_equal(live_records_refused(&guest), BYTES("record:shut.1")));
    assert_false(live_records_refused(&admin).data);
}

static void a_prefix_needs_a_key_that_may_be_read(void **state UNUSED)
{
    FOLLOW(&guest, "records:op", "records:open.", "records:open.1");
    assert_false(live_records_refused(&guest).data);
    live_records_leave(&guest);
    FOLLOW(&guest, "records:open");
    configure("{}");
    assert_true(bytes_equal(live_records_refused(&guest), BYTES("records:open")));
    configure(RULES);
    live_records_leave(&guest);
    FOLLOW(&guest, "records:open.", "records:nope");
    assert_true(bytes_equal(live_records_refused(&guest), BYTES("records:nope")));
}

static void nothing_changes_before_it_is_open_or_while_in_doubt(void **state UNUSED)
{
    FOLLOW(&guest, "record:open.1");
    guest.state = LIVE_WAITS_FOR_HORIZON;
    set("open.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "");
    guest.state = LIVE_OPEN;
    guest.trust = LIVE_REQUESTED;
    set("open.1", "y");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "");
    guest.trust = LIVE_TRUSTED;
    set("open.1", "z");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "record:open.1 ");
}

/* Then the ring waits for it, and nothing is lost. */
static void while_the_access_may_have_changed_nothing_is_judged(void **state UNUSED)
{
    FOLLOW(&guest, "record:open.1");
    live_access_doubt(access_of_lab);
    set("open.1", "x");
    (void)live_records_look(all);
    assert_string_equal(changed(&guest), "");
    live_access_begin(access_of_lab);
    (void)live_records_look(all);
    assert_string_equal(changed(&guest), "");
    configure(RULES);
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "record:open.1 ");
    assert_false(live_records_look(all));
}

static void an_overrun_is_an_event_of_everything(void **state UNUSED)
{
    char key[RECORDS_KEY_MOST + 1];
    FOLLOW(&guest, "record:open.1", "records:open.2", "record:shut.1");
    FOLLOW(&admin, "record:other");
    memset(key, 'k', RECORDS_KEY_MOST);
    key[RECORDS_KEY_MOST] = '\0';
    for (int i = 0; i < 100; i++)
        set(key, "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "record:open.1 records:open.2 record:shut.1 ");
    assert_string_equal(changed(&admin), "record:other ");
    assert_false(live_records_look(all));
    set("open.1", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&guest), "record:open.1 ");
}

static void much_is_read_in_parts(void **state UNUSED)
{
    char key[RECORDS_KEY_MOST + 1];
    FOLLOW(&admin, "record:last");
    memset(key, 'k', RECORDS_KEY_MOST);
    key[RECORDS_KEY_MOST] = '\0';
    for (int i = 0; i < 40; i++) /* more than one reading, less than the ring keeps */
        set(key, "x");
    set("last", "x");
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "record:last ");
    assert_false(live_records_look(all));
}

/* Keys times definitions have a limit in one look; the rest follows, and nothing is skipped. */
static void a_crowd_is_served_in_parts(void **state UNUSED)
{
    static struct live_listener crowd[CROWD];
    const char *seen = "";
    char key[20];
    int looks = 0;
    FOLLOW(&admin, "record:last");
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = guest;
        crowd[i].records = (struct live_feed){0};
        FOLLOW(&crowd[i], "records:shut."); /* which it may not read: it is judged for each key */
    }
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "shut.%d", i);
        set(key, "x");
    }
    set("last", "x");
    while (!*seen) {
        assert_true(live_records_look(all));
        seen = changed(&admin);
        looks++;
    }
    assert_string_equal(seen, "record:last ");
    assert_in_range(looks, 2, 3);
    assert_false(live_records_look(all));
    for (int i = 0; i < CROWD; i++) {
        assert_string_equal(changed(&crowd[i]), "");
        live_records_leave(&crowd[i]);
    }
}

/* A process that holds the lock and does not run: the others are served, and it is caught up with. */
static void busy_records_are_read_later(void **state UNUSED)
{
    int status;
    FOLLOW(&admin, "record:a");
    pid_t pid = fork();
    if (!pid) {
        if (records_enter(records)) {
            raise(SIGSTOP);
            records_leave(records);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    int64_t begin_ms = clock_monotonic_ms();
    (void)live_records_look(all);
    bool has_looked = live_records_look(all);
    assert_true(!has_looked || clock_monotonic_ms() - begin_ms >= PAUSE_MS); /* not before a pause */
    FOLLOW(&guest, "record:open.1");
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    set("a", "x");
    const char *seen = "";
    while (!*seen) {
        clock_sleep_ms(1);
        (void)live_records_look(all);
        seen = changed(&admin);
    }
    assert_string_equal(seen, "record:a ");
}

/* Where no position could be had, anything may have changed since. */
static void a_position_that_is_not_known_is_a_loss(void **state UNUSED)
{
    FOLLOW(&admin, "record:a");
    audience->records.is_known = false;
    assert_true(live_records_look(all));
    assert_string_equal(changed(&admin), "record:a ");
    assert_false(live_records_look(all));
}

static void a_configuration_that_changes_is_counted(void **state UNUSED)
{
    uint64_t before = live_access_configured(access_of_lab);
    configure(RULES);
    assert_int_equal(live_access_configured(access_of_lab), before);
    configure("{}");
    assert_int_equal(live_access_configured(access_of_lab), before + 1);
    assert_null(live_access_records(access_of_lab));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(nobody_looks_where_nobody_follows),
        TEST(keys_and_prefixes),
        TEST(a_range_has_both_its_ends),
        TEST(ranges_are_found_like_in_a_list),
        TEST(a_range_needs_a_key_that_may_be_read),
        TEST(a_prefix_is_followed_until_its_last_listener_leaves),
        TEST(another_namespace_is_another_matter),
        TEST(what_ends_has_changed),
        TEST(rights_are_judged_for_each_key),
        TEST(a_prefix_needs_a_key_that_may_be_read),
        TEST(nothing_changes_before_it_is_open_or_while_in_doubt),
        TEST(while_the_access_may_have_changed_nothing_is_judged),
        TEST(an_overrun_is_an_event_of_everything),
        TEST(much_is_read_in_parts),
        TEST(a_crowd_is_served_in_parts),
        TEST(busy_records_are_read_later),
        TEST(a_position_that_is_not_known_is_a_loss),
        TEST(a_configuration_that_changes_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
