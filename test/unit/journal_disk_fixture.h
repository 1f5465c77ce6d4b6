/* journal_disk_fixture: a stamp-journal in a child, whose syncs of the disk wait at a gate, and its records,
 * which the test has open too. */
#ifndef STAMPD_TEST_JOURNAL_DISK_FIXTURE_H
#define STAMPD_TEST_JOURNAL_DISK_FIXTURE_H

#include "journal_peer.h"
#include "records_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "log/disk_log.h"
#include "edge/mapping.h"
#include "journal/journal.h"
#include "journal/journal_message.h"
#include "records/records_state.h"

enum { MEGABYTES = 4, OTHERS = 10, USER_WITHOUT_RIGHTS = 1 };
enum { DISK_S = 3600, IMPATIENT_S = 1 }; /* how long the daemon waits for the disk */

#define KEY_LINE "lab write 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683\n" /* "key" */

/* What the test and the child share. */
static struct shared {
    _Atomic bool is_gated, is_read_gated, is_full, is_bad;
    _Atomic bool is_unending; /* children that were killed do not end */
    _Atomic bool is_lost;     /* the daemon has logged that changes are not on disk */
    _Atomic int syncs;
    _Atomic int writer; /* the process that is at the gate */
    sem_t arrived, opened;
} * shared;

static pid_t daemon_pid;
static bool is_daemon; /* in it and its children */
static char socket_path[108], config_path[200], keys_path[200];

/* --- the disk of the child --- */

static void wait_at_gate(const _Atomic bool *is_gated)
{
    if (!atomic_load(is_gated))
        return;
    atomic_store(&shared->writer, getpid());
    sem_post(&shared->arrived);
    while (sem_wait(&shared->opened) && errno == EINTR)
        ;
}

static int sync_gated(int fd)
{
    atomic_fetch_add(&shared->syncs, 1);
    wait_at_gate(&shared->is_gated);
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

static UNUSED void await_writer(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PEER_PATIENCE_S;
    assert_int_equal(sem_clockwait(&shared->arrived, CLOCK_MONOTONIC, &until), 0);
}

static UNUSED void shut_gate(void)
{
    atomic_store(&shared->is_gated, true);
}

/* For the writer that is there, and all that come. */
static UNUSED void open_gate(void)
{
    atomic_store(&shared->is_gated, false);
    atomic_store(&shared->is_read_gated, false);
    sem_post(&shared->opened);
}

/* --- the child --- */

/* In place of the system's: with `is_unending`, as for children that wait for a disk uninterruptibly.  The
 * daemon must never wait in it. */
pid_t waitpid(pid_t pid, int *status_r, int options)
{
    static pid_t (*real)(pid_t, int *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "waitpid");
    bool is_held = is_daemon && atomic_load(&shared->is_unending);
    while (is_held && !(options & WNOHANG))
        pause();
    return is_held ? 0 : real(pid, status_r, options);
}

static void note_line(enum log_level level UNUSED, const char *text, size_t size)
{
    if (memmem(text, size, "not on disk", strlen("not on disk")))
        atomic_store(&shared->is_lost, true);
}

static void run_daemon(void *argument UNUSED)
{
    struct settings settings;
    char problem[600] = "";
    const struct journal_options options = {.keys_path = keys_path, .socket_path = socket_path};
    is_daemon = true;
    log_set_listener(note_line);
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

/* For the next daemon: how long it waits for the disk. */
static void write_config(int disk_s)
{
    char text[900];
    int used = snprintf(
        text, sizeof text,
        "records_mb = %d\nrecord_tombstone_s = %d\nrecords_disk_mb = 64\nlimit_namespace_records_mb = 64\n",
        MEGABYTES, TOMBSTONE_S);
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "debug_core = on\njournal_disk_s = %d\nrun_directory = %s\n", disk_s, folder_path(""));
    snprintf(text + used, sizeof text - (size_t)used, "records_directory = %s\n", folder_path("disk"));
    write_file(config_path, text);
}

static int open_world_of(int disk_s)
{
    folder_make();
    snprintf(socket_path, sizeof socket_path, "%s", folder_path("journal.sock"));
    snprintf(config_path, sizeof config_path, "%s", folder_path("conf"));
    snprintf(keys_path, sizeof keys_path, "%s", folder_path("keys"));
    write_file(keys_path, KEY_LINE);
    write_config(disk_s);
    shared = mapping_share(sizeof *shared);
    sem_init(&shared->arrived, 1, 0);
    sem_init(&shared->opened, 1, 0);
    records = open_at(MEGABYTES << 20);
    serve_lab();
    start_daemon();
    return 0;
}

/* Of a daemon that waits for a second only. */
static UNUSED int open_impatient_world(void **state UNUSED)
{
    return open_world_of(IMPATIENT_S);
}

static int open_world(void **state UNUSED)
{
    return open_world_of(DISK_S);
}

/* The daemon ends by itself, though the disk may not answer; one that does not is killed. */
static void expect_stop(void)
{
    int status = 0;
    pid_t ended, pid = daemon_pid;
    int64_t end_ms = clock_monotonic_ms() + PEER_PATIENCE_S * 1000;
    while (!(ended = waitpid(pid, &status, WNOHANG)) && clock_monotonic_ms() < end_ms)
        clock_sleep_ms(1);
    daemon_pid = 0;
    if (!ended)
        child_kill(pid);
    assert_true(ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int close_world(void **state)
{
    if (daemon_pid) {
        open_gate();
        kill(daemon_pid, SIGTERM);
        expect_stop();
    }
    return tear_down(state);
}

/* Reopens everything: what is there has come from the disk. */
static UNUSED void begin_again(void)
{
    daemon_pid = 0;
    records_close(records);
    start_daemon();
    records = open_at(MEGABYTES << 20);
    serve_lab();
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

#endif
