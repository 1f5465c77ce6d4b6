/* test_records_death: records beside a model, many processes, and death in the middle of a change. */
#include "records_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "edge/mapping.h"

/* --- random commands --- */

enum { MODEL_KEYS = 24, MODEL_VALUES = 3 };

struct model_record {
    bool is_there;
    char text[64];
};

static void name_of(int number, char name_r[8])
{
    snprintf(name_r, 8, "key%02d", number);
}

/* One step of model and records; each content begins with its key. */
static void step(struct model_record *model, unsigned *seed)
{
    int number = rand_r(seed) % MODEL_KEYS, other = rand_r(seed) % MODEL_KEYS;
    char key[8], to[8], text[64];
    name_of(number, key);
    name_of(other, to);
    struct model_record *own = &model[number], *target = &model[other];
    switch (rand_r(seed) % 5) {
    case 0:
    case 1:
        snprintf(text, sizeof text, "%s %.*s", key, rand_r(seed) % 50,
                 "..................................................");
        DEMAND(set(key, text) == RECORDS_OK);
        own->is_there = true;
        memcpy(own->text, text, sizeof text);
        return;
    case 2:
        DEMAND(RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = rand_r(seed) % 2) ==
               (own->is_there ? RECORDS_OK : RECORDS_NOT_FOUND));
        own->is_there = false;
        return;
    case 3: {
        enum records_outcome outcome =
            RUN(.deed = RECORDS_RENAME, .key = bytes_of(key), .to = bytes_of(to), .may_overwrite = true);
        DEMAND(outcome == (own->is_there ? RECORDS_OK : RECORDS_NOT_FOUND));
        if (own->is_there && own != target) {
            *target = *own;
            own->is_there = false;
        }
        return;
    }
    default:
        DEMAND((RUN(.deed = RECORDS_GET, .key = bytes_of(key)) == RECORDS_OK) == own->is_there);
        DEMAND(!own->is_there || bytes_equal(found.content, bytes_of(own->text)));
    }
}

static void random_commands_agree_with_a_model(void **state UNUSED)
{
    struct model_record model[MODEL_KEYS] = {0};
    unsigned seed = 7;
    for (int i = 0; i < 60000; i++) {
        step(model, &seed);
        if (i % 1000 == 0)
            records_check(records);
    }
}

/* --- death --- */

static void count_up(void *argument)
{
    char number[8];
    records_write_integer(number, 1);
    for (int i = 0; i < *(int *)argument; i++)
        DEMAND(RUN(.deed = RECORDS_ADD, .key = BYTES("n"), .type = RECORDS_INTEGER,
                   .content = ((struct bytes){number, 8}), .may_overwrite = true) == RECORDS_OK);
}

/* Everything that a change can touch: a record with two keys, an end and a lock, in the place of others. */
static void change_much(void *argument UNUSED)
{
    static char large[500];
    const struct bytes more[] = {BYTES("second")};
    memset(large, 'x', sizeof large);
    run(&(struct records_command){.deed = RECORDS_SET,
                                  .key = BYTES("first"),
                                  .more = more,
                                  .more_count = 1,
                                  .type = RECORDS_STRING,
                                  .content = {large, sizeof large},
                                  .expires_ms = clock_present_ms() + 60000,
                                  .may_overwrite = true});
    lock("first", "me", 60000);
    run(&(struct records_command){.deed = RECORDS_RENAME,
                                  .key = BYTES("first"),
                                  .to = BYTES("third"),
                                  .owner = BYTES("me"),
                                  .may_overwrite = true});
    run(&(struct records_command){.deed = RECORDS_DELETE, .key = BYTES("second"), .owner = BYTES("me")});
}

static bool has_died(void (*function)(void *argument))
{
    int status = 0;
    pid_t pid = child_start(function, NULL);
    if (waitpid(pid, &status, 0) != pid)
        fail_msg("the child is gone");
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* A process dies before each word that it writes, in turn. */
static void a_change_is_whole_or_not_at_all(void **state UNUSED)
{
    int deaths = 0;
    for (bool is_over = false; !is_over; deaths++) {
        char list[40];
        snprintf(list, sizeof list, "records-noted:%d", deaths + 1);
        RUN(.deed = RECORDS_DELETE, .key = BYTES("first"), .owner = BYTES("me"), .is_immediate = true);
        RUN(.deed = RECORDS_DELETE, .key = BYTES("third"), .owner = BYTES("me"), .is_immediate = true);
        assert_int_equal(set("first", "before"), RECORDS_OK);
        assert_int_equal(set("third", "in the way"), RECORDS_OK);
        crash_arm(list, mapping_share);
        is_over = !has_died(change_much);
        crash_arm("", mapping_share);
        records_check(records);
        bool has_first = RUN(.deed = RECORDS_GET, .key = BYTES("first")) == RECORDS_OK;
        bool is_changed = !has_first || found.content.size == 500;
        bool has_second = RUN(.deed = RECORDS_GET, .key = BYTES("second")) == RECORDS_OK;
        bool has_third = RUN(.deed = RECORDS_GET, .key = BYTES("third")) == RECORDS_OK;
        bool is_moved = has_third && found.content.size == 500;
        assert_true(is_changed ? has_second == (has_first || is_moved) : !has_second);
        assert_true(has_first ? !is_moved : is_moved || !has_third);
    }
    assert_true(deaths > 100);
    crash_arm("records-done:3", mapping_share);
    assert_true(has_died(change_much));
    crash_arm("", mapping_share);
}

/* In the place of another one of the same size. */
static void set_letters(int64_t timestamp_us, char letter)
{
    char letters[500];
    memset(letters, letter, sizeof letters);
    DEMAND(RUN(.deed = RECORDS_SET, .key = BYTES("first"), .type = RECORDS_STRING,
               .content = ((struct bytes){letters, sizeof letters}), .timestamp_us = timestamp_us,
               .may_overwrite = true) == RECORDS_OK);
}

static int64_t letters_us;

static void change_letters(void *argument UNUSED)
{
    set_letters(letters_us + 1, 'y');
}

static void a_content_is_that_of_its_timestamp(void **state UNUSED)
{
    int deaths = 0;
    letters_us = clock_present_ms() * 1000;
    for (bool is_over = false; !is_over; deaths++, letters_us += 2) {
        char list[40], expected[500];
        snprintf(list, sizeof list, "records-noted:%d", deaths + 1);
        set_letters(letters_us, 'x');
        crash_arm(list, mapping_share);
        is_over = !has_died(change_letters);
        crash_arm("", mapping_share);
        assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("first")), RECORDS_OK);
        assert_true(!is_over || found.timestamp_us == letters_us + 1);
        memset(expected, found.timestamp_us == letters_us ? 'x' : 'y', sizeof expected);
        assert_true(bytes_equal(found.content, (struct bytes){expected, sizeof expected}));
    }
    assert_true(deaths > 2);
}

static void churn(void *argument)
{
    struct model_record model[MODEL_KEYS];
    unsigned seed = (unsigned)*(int *)argument + 1;
    for (;;) {
        memset(model, 0, sizeof model);
        for (int i = 0; i < MODEL_KEYS; i++) {
            char key[8], text[64];
            int number = rand_r(&seed) % MODEL_KEYS;
            name_of(number, key);
            snprintf(text, sizeof text, "%s %.*s", key, rand_r(&seed) % 50,
                     "..................................................");
            enum records_outcome outcome =
                rand_r(&seed) % 3
                    ? set(key, text)
                    : RUN(.deed = RECORDS_DELETE, .key = bytes_of(key), .is_immediate = rand_r(&seed) % 2);
            DEMAND(outcome != RECORDS_BUSY);
            if (RUN(.deed = RECORDS_GET, .key = bytes_of(key)) == RECORDS_OK)
                DEMAND(found.content.size >= 6 && memcmp(found.content.data, key, 5) == 0);
        }
    }
}

static void killed_processes_leave_nothing(void **state UNUSED)
{
    enum { CROWD = 3, KILLS = 60 };
    pid_t pids[CROWD];
    unsigned seed = 3;
    for (int i = 0; i < CROWD; i++)
        pids[i] = child_start(churn, &i);
    for (int i = 0; i < KILLS; i++) {
        int one = rand_r(&seed) % CROWD;
        clock_sleep_ms(rand_r(&seed) % 8);
        child_kill(pids[one]);
        records_check(records);
        int number = i + CROWD;
        pids[one] = child_start(churn, &number);
    }
    for (int i = 0; i < CROWD; i++)
        child_kill(pids[i]);
}

static void count_thousand(void *number UNUSED)
{
    count_up(&(int){1000});
}

static void nothing_is_lost_among_many(void **state UNUSED)
{
    child_crowd(4, count_thousand);
    assert_int_equal(RUN(.deed = RECORDS_GET, .key = BYTES("n")), RECORDS_OK);
    assert_int_equal(records_read_integer(found.content), 4000);
}

/* A lock is never held twice: whoever has it finds the owner's word alone. */
static void enter_alone(void *number)
{
    char owner[16];
    snprintf(owner, sizeof owner, "owner%d", *(int *)number);
    for (int i = 0; i < 200; i++) {
        while (lock("mutex", owner, 60000) != RECORDS_OK)
            clock_sleep_ms(0);
        DEMAND(RUN(.deed = RECORDS_SET, .key = BYTES("inside"), .type = RECORDS_STRING,
                   .content = bytes_of(owner)) == RECORDS_OK);
        DEMAND(RUN(.deed = RECORDS_DELETE, .key = BYTES("inside")) == RECORDS_OK);
        DEMAND(RUN(.deed = RECORDS_UNLOCK, .key = BYTES("mutex"), .owner = bytes_of(owner)) == RECORDS_OK);
    }
}

static void a_lock_has_one_owner(void **state UNUSED)
{
    child_crowd(4, enter_alone);
}

/* --- ends and locks, while processes die --- */

enum { CLIENTS = 4, SHORT_KEYS = 6, LOCKS = 2 };

/* What the processes have met, and who holds a lock for certain: since when, and until when, as ms from
 * `zero_ms`. */
struct met {
    int64_t zero_ms;
    _Atomic int seen, expired, locked, lapsed;
    _Atomic uint64_t holders[LOCKS]; /* since << 32 | until; 0: nobody */
};
static struct met *met;

static int steps_met(void)
{
    return atomic_load(&met->seen) + atomic_load(&met->expired) + atomic_load(&met->locked);
}

/* On a slow machine too, some step is made between two deaths.  All that fail end: then there is none. */
static void await_step(void)
{
    int before = steps_met();
    for (int i = 0; i < 10000 && steps_met() == before; i++)
        clock_sleep_ms(1);
}

/* Kills `function` in process after process, until `is_enough`. */
static void kill_many(void (*function)(void *number), bool (*is_enough)(void))
{
    pid_t pids[CLIENTS];
    unsigned seed = 5;
    met = mapping_share(sizeof *met);
    met->zero_ms = clock_present_ms() - 1;
    for (int i = 0; i < CLIENTS; i++)
        pids[i] = child_start(function, &i);
    for (int number = CLIENTS; number < CLIENTS + 40 || !is_enough(); number++) {
        int one = rand_r(&seed) % CLIENTS;
        await_step();
        clock_sleep_ms(rand_r(&seed) % 20);
        child_kill(pids[one]);
        records_check(records);
        pids[one] = child_start(function, &number);
    }
    for (int i = 0; i < CLIENTS; i++)
        child_kill(pids[i]);
}

/* A content is the end of its record, which was set with it: no read that begins behind that end sees it. */
static void set_and_read(void *number)
{
    unsigned seed = (unsigned)*(int *)number + 1;
    for (;;) {
        char key[8], text[24];
        name_of(rand_r(&seed) % SHORT_KEYS, key);
        int64_t before_ms = clock_present_ms(), end_ms = before_ms + rand_r(&seed) % 12;
        snprintf(text, sizeof text, "%lld", (long long)end_ms);
        if (rand_r(&seed) % 8 == 0) {
            DEMAND(RUN(.deed = RECORDS_SET, .key = bytes_of(key), .type = RECORDS_STRING,
                       .content = bytes_of(text), .expires_ms = end_ms, .may_overwrite = true) == RECORDS_OK);
            continue;
        }
        bool is_get = rand_r(&seed) % 2;
        bool is_there = (is_get ? RUN(.deed = RECORDS_GET, .key = bytes_of(key))
                                : records_next(records, NS, false, BYTES("key"), NO_BYTES, NO_BYTES,
                                               &found)) == RECORDS_OK;
        if (is_there) {
            snprintf(text, sizeof text, "%.*s", (int)found.content.size, found.content.data);
            DEMAND((is_get ? atoll(text) : found.expires_ms) >= before_ms);
        }
        atomic_fetch_add(is_there ? &met->seen : &met->expired, 1);
    }
}

static bool has_read_enough(void)
{
    return atomic_load(&met->seen) > 300 && atomic_load(&met->expired) > 300;
}

static void an_expired_record_is_never_seen(void **state UNUSED)
{
    kill_many(set_and_read, has_read_enough);
}

static uint32_t since_zero(int64_t ms)
{
    return (uint32_t)(ms - met->zero_ms);
}

/* Two that are both certain to hold it at one moment are one too many: the later `since` lies before both
 * ends, and neither had begun to give it back when the second one read the note of the first. */
static void compare_holders(uint64_t own, uint64_t other)
{
    uint32_t since = (uint32_t)(own >> 32), other_since = (uint32_t)(other >> 32);
    uint32_t latest = since > other_since ? since : other_since;
    if (other)
        DEMAND(latest >= (uint32_t)own || latest >= (uint32_t)other);
}

/* Some keep it beyond its end; who dies has it until then. */
static void lock_and_rest(void *number)
{
    char owner[24], key[8];
    unsigned seed = (unsigned)*(int *)number + 1;
    snprintf(owner, sizeof owner, "owner%d", *(int *)number);
    for (;;) {
        int place = rand_r(&seed) % LOCKS;
        name_of(place, key);
        if (lock(key, owner, 2 + rand_r(&seed) % 15) != RECORDS_OK) {
            clock_sleep_ms(1);
            continue;
        }
        uint64_t own = (uint64_t)since_zero(clock_present_ms()) << 32 | since_zero(found.locked_until_ms);
        compare_holders(own, atomic_exchange(&met->holders[place], own));
        atomic_fetch_add(&met->locked, 1);
        clock_sleep_ms(rand_r(&seed) % 12);
        atomic_compare_exchange_strong(&met->holders[place], &own, 0);
        if (RUN(.deed = RECORDS_UNLOCK, .key = bytes_of(key), .owner = bytes_of(owner)) != RECORDS_OK)
            atomic_fetch_add(&met->lapsed, 1);
    }
}

static bool has_locked_enough(void)
{
    return atomic_load(&met->locked) > 100 && atomic_load(&met->lapsed) > 5;
}

static void a_lock_has_one_owner_while_owners_die(void **state UNUSED)
{
    kill_many(lock_and_rest, has_locked_enough);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(random_commands_agree_with_a_model), TEST(a_change_is_whole_or_not_at_all),
        TEST(a_content_is_that_of_its_timestamp), TEST(killed_processes_leave_nothing),
        TEST(nothing_is_lost_among_many),         TEST(a_lock_has_one_owner),
        TEST(an_expired_record_is_never_seen),    TEST(a_lock_has_one_owner_while_owners_die),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
