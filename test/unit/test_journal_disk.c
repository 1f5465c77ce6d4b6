/* test_journal_disk: a stamp-journal whose changes wait for the disk. */
#include "journal_disk_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal/journal_message.h"

/* --- the tests --- */

/* Sends a change of its own that is kept on disk, with requests around it; the sync is held. */
struct held {
    int client;
    unsigned before, set, after, other, last;
};

static void hold(struct held *held)
{
    struct builder text = {0};
    held->client = peer_enter(socket_path);
    peer_set(held->client, "first", "1", JOURNAL_PERSIST);
    shut_gate();
    held->before = peer_add_get(&text, "first");
    held->set = peer_add_set(&text, "held", "2", JOURNAL_PERSIST);
    held->after = peer_add_get(&text, "held");
    held->other = peer_add_set(&text, "memory", "3", 0);
    held->last = peer_add_get(&text, "memory");
    peer_send(held->client, &text);
    await_writer();
}

static void expect_held(struct held *held)
{
    peer_expect_answer(held->client, held->before, "1");
    peer_expect_answer(held->client, held->set, "");
    peer_expect_answer(held->client, held->after, "2");
    peer_expect_answer(held->client, held->other, "");
    peer_expect_answer(held->client, held->last, "3");
}

static void others_are_served_while_the_disk_is_waited_for(void **state UNUSED)
{
    struct held held;
    int early = peer_enter(socket_path);
    hold(&held);
    int late = peer_enter(socket_path);
    peer_set(early, "of early", "a", 0);
    peer_get(late, "of early", "a");
    peer_get(late, "held", "2"); /* a moment before it is on disk */
    assert_int_not_equal(atomic_load(&shared->writer), daemon_pid);
    peer_expect_nothing(held.client);
    open_gate();
    expect_held(&held);
    close(early);
    close(late);
    close(held.client);
}

/* True: it has happened in memory. */
static bool is_there(int reader, const char *key)
{
    struct peer_answer answer;
    peer_send_get(reader, key);
    assert_true(peer_receive(reader, &answer));
    return !*answer.error;
}

static void changes_that_gather_share_a_sync(void **state UNUSED)
{
    struct held held;
    int others[OTHERS], reader = peer_enter(socket_path);
    unsigned sent[OTHERS];
    char keys[OTHERS][24];
    hold(&held);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(keys[i], sizeof keys[i], "key %d", i);
        others[i] = peer_enter(socket_path);
        sent[i] = peer_send_set(others[i], keys[i], "x", JOURNAL_PERSIST);
        peer_expect_nothing(others[i]);
    }
    for (int i = 0; i < OTHERS; i++)
        while (!is_there(reader, keys[i]))
            ;
    int before = atomic_load(&shared->syncs);
    open_gate();
    expect_held(&held);
    for (int i = 0; i < OTHERS; i++) {
        peer_expect_answer(others[i], sent[i], "");
        close(others[i]);
    }
    assert_int_equal(atomic_load(&shared->syncs), before + 1);
    close(reader);
    close(held.client);
}

static void a_writer_that_is_killed_is_replaced(void **state UNUSED)
{
    struct held held;
    int other = peer_enter(socket_path), reader = peer_enter(socket_path);
    hold(&held);
    assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    await_writer();
    unsigned more = peer_send_set(other, "more", "4", JOURNAL_PERSIST); /* for the second one too */
    while (!is_there(reader, "more"))
        ;
    peer_get(reader, "held", "2");
    open_gate();
    expect_held(&held);
    peer_expect_answer(other, more, "");
    close(reader);
    close(other);
    close(held.client);
}

/* Each child that gets the number is killed: the daemon gives up, and serves on. */
static void writers_that_are_killed_again_refuse(void **state UNUSED)
{
    struct held held;
    int other = peer_enter(socket_path);
    hold(&held);
    for (int i = 0; i < 2; i++) {
        if (i)
            await_writer();
        assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    }
    peer_expect_end(held.client);
    peer_get(other, "held", "2"); /* it is in memory, and on disk with the next change */
    atomic_store(&shared->is_gated, false);
    peer_set(other, "more", "4", JOURNAL_PERSIST);
    close(other);
}

static void nothing_acknowledged_is_lost_when_all_are_killed(void **state UNUSED)
{
    struct held held;
    hold(&held);
    pid_t writer = atomic_load(&shared->writer);
    child_kill(daemon_pid);
    assert_int_equal(waitpid(writer, NULL, 0), writer); /* it dies with the daemon; the test is its reaper */
    peer_expect_end(held.client);
    atomic_store(&shared->is_gated, false);
    begin_again();
    int client = peer_enter(socket_path);
    peer_get(client, "first", "1");
    peer_send_get(client, "memory");
    peer_expect_error(client, "NOT_FOUND"); /* so the memory was lost, and the disk has the rest */
    close(client);
}

static void stopping_waits_for_what_is_under_way(void **state UNUSED)
{
    struct held held;
    int idle = peer_enter(socket_path);
    hold(&held);
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    peer_expect_end(idle); /* it stops */
    peer_expect_nothing(held.client);
    open_gate();
    expect_held(&held);
    peer_expect_end(held.client);
    child_expect(daemon_pid);
    begin_again();
    int client = peer_enter(socket_path);
    peer_get(client, "held", "2");
    close(client);
}

static void a_second_signal_waits_for_nothing(void **state UNUSED)
{
    struct held held;
    int idle = peer_enter(socket_path);
    hold(&held);
    pid_t writer = atomic_load(&shared->writer);
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    peer_expect_end(idle);
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    peer_expect_end(held.client);
    expect_stop();
    assert_true(waitpid(writer, NULL, 0) == writer || errno == ECHILD); /* the daemon may have reaped it */
    atomic_store(&shared->is_gated, false);
    begin_again();
}

/* What is left is unsaved, and nobody waits for it. */
static void leave_unsaved(void)
{
    struct held held;
    hold(&held);
    for (int i = 0; i < 2; i++) {
        if (i)
            await_writer();
        assert_int_equal(kill(atomic_load(&shared->writer), SIGKILL), 0);
    }
    peer_expect_end(held.client);
}

static void a_stop_saves_what_nobody_waits_for_elsewhere(void **state UNUSED)
{
    leave_unsaved();
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    await_writer();
    assert_int_not_equal(atomic_load(&shared->writer), daemon_pid);
    open_gate();
    expect_stop();
    assert_false(atomic_load(&shared->is_lost));
    begin_again();
    int client = peer_enter(socket_path);
    peer_get(client, "held", "2");
    close(client);
}

static void a_stop_ends_while_the_disk_does_not_answer(void **state UNUSED)
{
    leave_unsaved();
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    await_writer();
    expect_stop();
    assert_true(atomic_load(&shared->is_lost));
    atomic_store(&shared->is_gated, false);
    begin_again();
}

static void a_second_signal_waits_for_no_last_save(void **state UNUSED)
{
    leave_unsaved();
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    await_writer();
    assert_int_equal(kill(daemon_pid, SIGTERM), 0);
    expect_stop();
    assert_true(atomic_load(&shared->is_lost));
    atomic_store(&shared->is_gated, false);
    begin_again();
}

static void reading_the_keys_again_waits_for_what_is_under_way(void **state UNUSED)
{
    struct held held;
    int idle = peer_enter(socket_path);
    hold(&held);
    assert_int_equal(kill(daemon_pid, SIGHUP), 0);
    peer_expect_end(idle);
    int client = peer_enter(socket_path);
    peer_get(client, "held", "2");
    peer_expect_nothing(held.client);
    open_gate();
    expect_held(&held);
    peer_expect_end(held.client);
    close(client);
}

static void a_disk_that_refuses_ends_connections_that_wait(void **state UNUSED)
{
    _Atomic bool *const faults[] = {&shared->is_full, &shared->is_bad};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        int client = peer_enter(socket_path), other = peer_enter(socket_path);
        peer_set(client, "first", "1", JOURNAL_PERSIST);
        atomic_store(faults[i], true);
        peer_send_set(client, "refused", "2", JOURNAL_PERSIST);
        peer_expect_end(client);
        peer_set(other, "in memory", "3", 0);
        peer_get(other, "refused", "2");
        atomic_store(faults[i], false);
        peer_set(other, "kept", "4", JOURNAL_PERSIST);
        close(other);
    }
}

enum { LARGE_BYTES = 60000, LARGE_MOST = 3 * (MEGABYTES << 20) / LARGE_BYTES };

/* Only what is on disk can be given up: as nothing gets there, the memory fills. */
static void a_message_without_room_waits_alone(void **state UNUSED)
{
    static char large[LARGE_BYTES + 1], key[24];
    struct held held;
    int clients[LARGE_MOST], count = 0, other = peer_enter(socket_path);
    unsigned sent[LARGE_MOST];
    memset(large, 'x', LARGE_BYTES);
    peer_set(other, "memory", "3", 0);
    hold(&held);
    while (count < LARGE_MOST) {
        snprintf(key, sizeof key, "large %d", count);
        clients[count] = peer_enter(socket_path);
        sent[count] = peer_send_set(clients[count], key, large, JOURNAL_PERSIST);
        count++;
        peer_get(other, "memory", "3");
    }
    peer_send_get(other, key);
    peer_expect_error(other, "NOT_FOUND"); /* there is no room for the last one */
    open_gate();
    for (int i = 0; i < count; i++) {
        peer_expect_answer(clients[i], sent[i], "");
        close(clients[i]);
    }
    expect_held(&held);
    peer_get(other, "memory", "3");
    close(held.client);
    close(other);
}

static void without_room_a_disk_that_refuses_is_no_end(void **state UNUSED)
{
    static char large[LARGE_BYTES + 1], key[24];
    int client = peer_enter(socket_path), refused = 0;
    memset(large, 'x', LARGE_BYTES);
    assert_int_equal(chmod(folder_path("disk"), 0), 0); /* nothing has been saved: no writer has it open */
    peer_set(client, "memory", "3", 0);
    for (int i = 0; i < LARGE_MOST && !refused; i++) {
        struct peer_answer answer;
        int other = peer_enter(socket_path);
        snprintf(key, sizeof key, "large %d", i);
        peer_send_set(other, key, large, JOURNAL_PERSIST);
        if (peer_receive(other, &answer)) {
            assert_string_equal(answer.error, "OUT_OF_MEMORY");
            refused = i;
        }
        close(other);
    }
    assert_true(refused > 0);
    peer_get(client, "memory", "3");
    assert_int_equal(chmod(folder_path("disk"), 0700), 0);
    peer_set(client, key, large, JOURNAL_PERSIST);
    close(client);
}

int main(void)
{
    give_up_root();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#define TEST(name)           cmocka_unit_test_setup_teardown(name, open_world, close_world)
#define TEST_IMPATIENT(name) cmocka_unit_test_setup_teardown(name, open_impatient_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(others_are_served_while_the_disk_is_waited_for),
        TEST(changes_that_gather_share_a_sync),
        TEST(a_writer_that_is_killed_is_replaced),
        TEST(writers_that_are_killed_again_refuse),
        TEST(nothing_acknowledged_is_lost_when_all_are_killed),
        TEST(stopping_waits_for_what_is_under_way),
        TEST(a_second_signal_waits_for_nothing),
        TEST(a_stop_saves_what_nobody_waits_for_elsewhere),
        TEST_IMPATIENT(a_stop_ends_while_the_disk_does_not_answer),
        TEST(a_second_signal_waits_for_no_last_save),
        TEST(reading_the_keys_again_waits_for_what_is_under_way),
        TEST(a_disk_that_refuses_ends_connections_that_wait),
        TEST(a_message_without_room_waits_alone),
        TEST(without_room_a_disk_that_refuses_is_no_end),
    };
#undef TEST
#undef TEST_IMPATIENT
    return cmocka_run_group_tests(tests, NULL, NULL);
}
