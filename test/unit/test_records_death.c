/* test_records_death: records beside a model, many processes, and death in the middle of a change. */
#include "records_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(random_commands_agree_with_a_model),
        TEST(a_change_is_whole_or_not_at_all),
        TEST(killed_processes_leave_nothing),
        TEST(nothing_is_lost_among_many),
        TEST(a_lock_has_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
