/* test_journal_disk: a stamp-journal in a child, whose syncs of the disk wait at a gate. */
#include "journal_peer.h"
#include "records_fixture.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/settings.h"
#include "edge/disk_log.h"
#include "edge/mapping.h"
#include "journal/journal.h"
#include "journal/journal_message.h"
#include "records/records_state.h"

enum { MEGABYTES = 4, OTHERS = 10, USER_WITHOUT_RIGHTS = 1 };

#define KEY_LINE "lab write 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n" /* "key" */

/* What the test and the child share. */
static struct shared {
    _Atomic bool is_gated, is_full, is_bad;
    _Atomic int syncs;
    _Atomic int writer; /* the process that is at the gate */
    sem_t arrived, opened;
} * shared;

static pid_t daemon_pid;
static char socket_path[108], config_path[200], keys_path[200];

/* --- the disk of the child --- */

static int sync_gated(int fd)
{
    atomic_fetch_add(&shared->syncs, 1);
    if (atomic_load(&shared->is_gated)) {
        atomic_store(&shared->writer, getpid());
        sem_post(&shared->arrived);
        while (sem_wait(&shared->opened) && errno == EINTR)
            ;
    }
    if (!atomic_load(&shared->is_bad))
        return fdatasync(fd);
    errno = EIO;
    return -1;
}

static ssize_t write_limited(int fd, const void *data, size_t size, off_t at)
{
    if (!atomic_load(&shared->is_full))
        return pwrite(fd, data, size, at);
    errno = ENOSPC;
    return -1;
}

static void await_writer(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PEER_PATIENCE_S;
    assert_int_equal(sem_clockwait(&shared->arrived, CLOCK_MONOTONIC, &until), 0);
}

static void shut_gate(void)
{
    atomic_store(&shared->is_gated, true);
}

/* For the writer that is there, and all that come. */
static void open_gate(void)
{
    atomic_store(&shared->is_gated, false);
    sem_post(&shared->opened);
}

/* --- the child --- */

static void run_daemon(void *argument UNUSED)
{
    struct settings settings;
    char problem[600] = "";
    const struct journal_options options = {.keys_path = keys_path, .socket_path = socket_path};
    disk_log_system.sync = sync_gated;
    disk_log_system.write = write_limited;
    if (!settings_load(&settings, config_path, problem, sizeof problem))
        child_demand(false, problem, __FILE__, __LINE__);
    DEMAND(journal_serve(&settings, &options) == 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void serve_lab(void)
{
    const struct records_state states[] = {{.ns = BYTES("lab"), .state = NS_ON}};
    struct records_reading reading;
    records_state_begin(records, &reading);
    records_state_apply(records, &reading, states, COUNT_OF(states));
}

/* --- the world --- */

static void start_daemon(void)
{
    int status, client;
    daemon_pid = child_start(run_daemon, NULL);
    while ((client = peer_connect(socket_path)) < 0) {
        assert_int_equal(waitpid(daemon_pid, &status, WNOHANG), 0);
        clock_sleep_ms(2);
    }
    close(client);
}

static int open_world(void **state UNUSED)
{
    char text[900];
    folder_make();
    snprintf(socket_path, sizeof socket_path, "%s", folder_path("journal.sock"));
    snprintf(config_path, sizeof config_path, "%s", folder_path("conf"));
    snprintf(keys_path, sizeof keys_path, "%s", folder_path("keys"));
    write_file(keys_path, KEY_LINE);
    int used = snprintf(
        text, sizeof text,
        "records_mb = %d\nrecord_tombstone_s = %d\nrecords_disk_mb = 64\nlimit_namespace_records_mb = 64\n",
        MEGABYTES, TOMBSTONE_S);
    used += snprintf(text + used, sizeof text - (size_t)used, "run_directory = %s\n", folder_path(""));
    snprintf(text + used, sizeof text - (size_t)used, "records_directory = %s\n", folder_path("disk"));
    write_file(config_path, text);
    shared = mapping_share(sizeof *shared);
    sem_init(&shared->arrived, 1, 0);
    sem_init(&shared->opened, 1, 0);
    records = open_at(MEGABYTES << 20);
    serve_lab();
    start_daemon();
    return 0;
}

static int close_world(void **state)
{
    if (daemon_pid) {
        open_gate();
        kill(daemon_pid, SIGTERM);
        child_expect(daemon_pid);
    }
    daemon_pid = 0;
    return tear_down(state);
}

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

/* Reopens everything: what is there has come from the disk. */
static void begin_again(void)
{
    daemon_pid = 0;
    records_close(records);
    start_daemon();
    records = open_at(MEGABYTES << 20);
    serve_lab();
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
    child_expect(daemon_pid);
    assert_true(waitpid(writer, NULL, 0) == writer || errno == ECHILD); /* the daemon may have reaped it */
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

/* The daemon would give up root for good, and the test would keep it. */
static void give_up_root(void)
{
    if (geteuid())
        return;
    if (setgid(USER_WITHOUT_RIGHTS) || setuid(USER_WITHOUT_RIGHTS))
        abort();
    prctl(PR_SET_DUMPABLE, 1); /* for the sanitizers */
}

int main(void)
{
    give_up_root();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(others_are_served_while_the_disk_is_waited_for),
        TEST(changes_that_gather_share_a_sync),
        TEST(a_writer_that_is_killed_is_replaced),
        TEST(writers_that_are_killed_again_refuse),
        TEST(nothing_acknowledged_is_lost_when_all_are_killed),
        TEST(stopping_waits_for_what_is_under_way),
        TEST(a_second_signal_waits_for_nothing),
        TEST(reading_the_keys_again_waits_for_what_is_under_way),
        TEST(a_disk_that_refuses_ends_connections_that_wait),
        TEST(a_message_without_room_waits_alone),
        TEST(without_room_a_disk_that_refuses_is_no_end),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
