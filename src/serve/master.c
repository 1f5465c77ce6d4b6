/* master: start, signals, reload, stop.  It touches no slots and opens no connections, so a request can only
 * break its children. */
#include "serve/master.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "model/task/cron.h"
#include "records/records_save.h"
#include "segment/slots.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/segment_open.h"
#include "segment/warnings.h"
#include "edge/fcgi.h"
#include "edge/mapping.h"
#include "operation/collections/collection_kept.h"
#include "operation/module/module.h"
#include "serve/supervisor.h"
#include "base/identity.h"
#include "serve/handover.h"
#include "serve/instance.h"
#include "serve/lease.h"
#include "serve/lineage_file.h"
#include "serve/metrics/nginx_counts.h"
#include "serve/metrics/sampler.h"
#include "http/public_reads.h"
#include "serve/metrics/task_metrics.h"

enum {
    TURN_MS = 250,     /* longest time between two calls of supervisor_tend */
    OVERLAP_MS = 3000, /* the successor's relay listens before ours ends */
    ORPHANS_MS = 2000, /* for workers of a killed master, which are about to end */
    PROBLEM_BYTES = 600,
};

struct master {
    const struct master_options *options;
    struct settings settings[2]; /* the current ones, and room for the next */
    int present;
    struct identity identity;
    struct segment *segment;
    struct instance *instance;
    struct supervisor *supervisor;
    int *listeners;
    int listener_count;
    int live_listener, files_listener; /* -1: none */
    struct in_flight *in_flight;
    int in_flight_memory; /* its descriptor */
    int pid_file;
    char program[PATH_MAX]; /* what SIGUSR2 starts; the path is resolved each time */
    pid_t successor;        /* 0: none */
    int successor_ready;    /* readable when it serves, or has ended; -1: no successor, or it serves */
    int64_t leave_ms;       /* when this server gives way to it; 0: not yet */
    bool is_ready;
    bool is_left;      /* on request: another host of a pair takes over, and systemd starts this one again */
    bool is_succeeded; /* sockets and pid file belong to the successor from now on */
    bool is_pid_written;
    enum stop stopping;
};

static const struct settings *present_settings(const struct master *master)
{
    return &master->settings[master->present];
}

void master_open_log(const struct settings *settings)
{
    settings_open_log(settings, "stampd");
}

/* --- start --- */

/* Each connection of nginx is a descriptor. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit))
            log_warning("cannot raise the limit of descriptors: %m");
    }
}

/* Created while we may be root, written when we are ready.  It must be a regular file, since it is removed at
 * the end. */
static bool open_pid_file(struct master *master, char *problem)
{
    const char *path = master->options->pid_path;
    struct stat status;
    if (!path)
        return true;
    master->pid_file = handover_find("pidfile");
    if (master->pid_file < 0)
        master->pid_file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (master->pid_file < 0 || fstat(master->pid_file, &status)) {
        snprintf(problem, PROBLEM_BYTES, "%s: %m", path);
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        snprintf(problem, PROBLEM_BYTES, "%s: exists and is no regular file", path);
        return false;
    }
    return true;
}

static void write_pid_file(struct master *master)
{
    if (master->pid_file < 0)
        return;
    master->is_pid_written = true;
    if (ftruncate(master->pid_file, 0) || lseek(master->pid_file, 0, SEEK_SET) ||
        dprintf(master->pid_file, "%d\n", (int)getpid()) < 0)
        log_warning("%s: %m", master->options->pid_path);
}

/* Removes the file that we wrote, but not another that has replaced it. */
static void remove_pid_file(const struct master *master)
{
    struct stat ours, there;
    if (!master->is_pid_written || master->is_succeeded || fstat(master->pid_file, &ours) ||
        lstat(master->options->pid_path, &there) || ours.st_dev != there.st_dev ||
        ours.st_ino != there.st_ino)
        return;
    /* In a directory without write permission, the file stays, empty. */
    if (unlink(master->options->pid_path) && ftruncate(master->pid_file, 0))
        log_warning("%s: %m", master->options->pid_path);
}

/* Inherited by the children. */
static bool take_zone(const struct settings *settings, char *problem)
{
    if (cron_set_zone(settings->zone))
        return true;
    snprintf(problem, PROBLEM_BYTES, "zone = %s: there is no such time zone", settings->zone);
    return false;
}

static bool open_segment(struct master *master, char *problem)
{
    const struct settings *settings = present_settings(master);
    char path[PATH_MAX];
    if (!settings_segment_path(settings, path, sizeof path)) {
        snprintf(problem, PROBLEM_BYTES, "segment: the path is too long");
        return false;
    }
    const struct board_sizes sizes = {.slots = (uint32_t)settings->segment_slots,
                                      .shared_cache_bytes = (size_t)settings->shared_cache_mb << 20,
                                      .public_answers_bytes = (size_t)settings->public_answers_mb << 20};
    if (!segment_open_sized(&master->segment, path, &sizes, problem, PROBLEM_BYTES))
        return false;
    collection_kept_clear(settings);
    public_answers_set_form(master->segment, public_reads_form(settings));
    warnings_start(master->segment);
    lineage_file_read(settings, master->segment);
    if (settings->hosts == HOSTS_PAIR)
        slots_need_lease(master->segment);
    return instance_start(settings, master->segment, path, &master->instance, problem, PROBLEM_BYTES);
}

static bool open_records(struct master *master, char *problem)
{
    const struct settings *settings = present_settings(master);
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/records", settings->run_directory);
    if (!settings->records_mb)
        return true;
    if (size < 0 || (size_t)size >= sizeof path) {
        snprintf(problem, PROBLEM_BYTES, "run_directory: the path is too long");
        return false;
    }
    return records_open(&master->segment->records, path, (size_t)settings->records_mb << 20,
                        settings->record_tombstone_s, problem, PROBLEM_BYTES) &&
           records_save_into(master->segment->records, settings->records_directory,
                             (size_t)settings->records_disk_mb << 20, problem, PROBLEM_BYTES);
}

static bool socket_path(const struct master *master, const char *name, char path_r[PATH_MAX])
{
    int size = snprintf(path_r, PATH_MAX, "%s/%s.sock", present_settings(master)->run_directory, name);
    return size > 0 && size < PATH_MAX;
}

/* The name of a worker's socket; the last one is that of the thumbnail process. */
static void name_worker(const struct master *master, int position, char name_r[HANDOVER_NAME_BYTES])
{
    if (position < present_settings(master)->workers)
        snprintf(name_r, HANDOVER_NAME_BYTES, "worker-%d", position);
    else
        snprintf(name_r, HANDOVER_NAME_BYTES, "thumbnails");
}

/* Retries for a while: workers of a master killed a moment ago may still be ending, and their sockets seem
 * alive. */
static bool listen_patiently(const char *name, const char *path, int64_t group, int *listener_r,
                             char *problem)
{
    *listener_r = handover_find_socket(name, path);
    if (*listener_r >= 0)
        return true;
    int64_t until_ms = clock_monotonic_ms() + ORPHANS_MS;
    while (!fcgi_listen(path, group, listener_r, problem, PROBLEM_BYTES)) {
        if (!strstr(problem, "living process") || clock_monotonic_ms() >= until_ms)
            return false;
        clock_sleep_ms(50);
    }
    return true;
}

static bool listen_at(const struct master *master, const char *name, int *listener_r, char *problem)
{
    char path[PATH_MAX];
    if (socket_path(master, name, path))
        return listen_patiently(name, path, master->identity.socket_group, listener_r, problem);
    snprintf(problem, PROBLEM_BYTES, "run_directory: the path is too long");
    return false;
}

static bool open_listeners(struct master *master, char *problem)
{
    int count = (int)present_settings(master)->workers;
    master->listeners = memory_zeroed((size_t)count + 1, sizeof *master->listeners, "opening sockets");
    for (int i = 0; i <= count; i++) {
        char name[HANDOVER_NAME_BYTES];
        name_worker(master, i, name);
        if (!listen_at(master, name, &master->listeners[i], problem))
            return false;
        master->listener_count++;
    }
    if (!listen_at(master, "live", &master->live_listener, problem) ||
        !listen_at(master, "files", &master->files_listener, problem))
        return false;
    if (!handover_close_rest() && handover_has_predecessor()) {
        snprintf(problem, PROBLEM_BYTES,
                 "workers = %d: the server that is to be succeeded has more, and nginx uses them: restart "
                 "for that",
                 count);
        return false;
    }
    return true;
}

/* The next server shares the table of in-flight requests. */
static bool open_in_flight(struct master *master, char *problem)
{
    master->in_flight_memory = handover_find("begun");
    master->in_flight = in_flight_open(PROCESSES_MOST, clock_monotonic_ms(), &master->in_flight_memory,
                                       !handover_has_predecessor());
    if (!master->in_flight && !handover_has_predecessor()) {
        close(master->in_flight_memory);
        master->in_flight_memory = -1;
        master->in_flight =
            in_flight_open(PROCESSES_MOST, clock_monotonic_ms(), &master->in_flight_memory, true);
    }
    if (!master->in_flight)
        snprintf(problem, PROBLEM_BYTES,
                 "the server that is to be succeeded is of another make: restart for that");
    return master->in_flight != NULL;
}

static void close_listener(const struct master *master, const char *name, bool is_kept, int *listener)
{
    char path[PATH_MAX];
    if (*listener < 0 || !socket_path(master, name, path))
        return;
    if (!is_kept)
        unlink(path);
    close(*listener);
    *listener = -1;
}

/* Removes the paths first, so that no new connections arrive; workers still accept the waiting ones.  The
 * paths stay if another process continues to listen there. */
static void close_listeners(struct master *master)
{
    bool is_kept = master->is_succeeded || handover_is_watched(), is_own = master->live_listener >= 0;
    close_listener(master, "live", is_kept, &master->live_listener);
    close_listener(master, "files", is_kept, &master->files_listener);
    if (is_own && !is_kept)
        nginx_counts_remove(present_settings(master));
    for (int i = 0; i < master->listener_count; i++) {
        char name[HANDOVER_NAME_BYTES];
        name_worker(master, i, name);
        close_listener(master, name, is_kept, &master->listeners[i]);
    }
    master->listener_count = 0;
}

static bool open_master(struct master *master, char *problem)
{
    if (!open_pid_file(master, problem) ||
        !identity_take(present_settings(master), &master->identity, problem, PROBLEM_BYTES) ||
        !take_zone(present_settings(master), problem) ||
        !module_load_all(present_settings(master), problem, PROBLEM_BYTES) ||
        !open_in_flight(master, problem) || !open_segment(master, problem) ||
        !open_records(master, problem) || !open_listeners(master, problem))
        return false;
    raise_descriptors();
    return true;
}

static void close_master(struct master *master)
{
    close_listeners(master);
    free(master->listeners);
    if (master->supervisor)
        supervisor_destroy(master->supervisor);
    if (master->instance)
        instance_stop(master->instance);
    if (master->segment) {
        warnings_stop();
        records_erase(master->segment->records);
        records_close(master->segment->records);
        collection_kept_clear(present_settings(master));
        segment_open_erase(master->segment);
    }
    segment_close(master->segment);
    remove_pid_file(master);
    if (master->pid_file >= 0)
        close(master->pid_file);
    settings_free(&master->settings[master->present]);
}

/* --- reload --- */

static void keep_text(const char *name, char **next, const char *present)
{
    if (strcmp(*next, present) == 0)
        return;
    log_warning("%s = %s: takes effect at the next start; keeping %s", name, *next,
                *present ? present : "none");
    free(*next);
    *next = strdup(present);
    if (!*next)
        log_fatal("out of memory reading settings");
}

static void keep_number(const char *name, int64_t *next, int64_t present)
{
    if (*next != present)
        log_warning("%s = %lld: takes effect at the next start; keeping %lld", name, (long long)*next,
                    (long long)present);
    *next = present;
}

/* Keeps the settings that the present segment, sockets, user and code depend on. */
static void keep_what_is_made(struct settings *next, const struct settings *present)
{
    keep_number("debug_core", &next->debug_core, present->debug_core);
    keep_text("modules", &next->modules, present->modules);
    keep_text("records_directory", &next->records_directory, present->records_directory);
    keep_text("run_directory", &next->run_directory, present->run_directory);
    keep_text("segment", &next->segment, present->segment);
    keep_text("site_key_command", &next->site_key_command, present->site_key_command);
    keep_text("site_key_file", &next->site_key_file, present->site_key_file);
    keep_text("site_key_former_file", &next->site_key_former_file, present->site_key_former_file);
    keep_text("socket_group", &next->socket_group, present->socket_group);
    keep_text("user", &next->user, present->user);
    if ((next->hosts == HOSTS_PAIR) != (present->hosts == HOSTS_PAIR))
        keep_number("hosts", &next->hosts, present->hosts);
    keep_number("public_answers_mb", &next->public_answers_mb, present->public_answers_mb);
    keep_number("record_tombstone_s", &next->record_tombstone_s, present->record_tombstone_s);
    keep_number("records_disk_mb", &next->records_disk_mb, present->records_disk_mb);
    keep_number("records_mb", &next->records_mb, present->records_mb);
    keep_number("segment_slots", &next->segment_slots, present->segment_slots);
    keep_number("shared_cache_mb", &next->shared_cache_mb, present->shared_cache_mb);
    keep_number("workers", &next->workers, present->workers);
}

static void reload(struct master *master)
{
    char problem[PROBLEM_BYTES] = "";
    struct settings *next = &master->settings[!master->present];
    bool is_read = settings_load(next, master->options->settings_path, problem, sizeof problem);
    if (!is_read || !take_zone(next, problem)) {
        log_error("settings not reloaded, keeping the present ones: %s", problem);
        if (is_read)
            settings_free(next);
        return;
    }
    keep_what_is_made(next, present_settings(master));
    master_open_log(next);
    crash_arm(next->debug_die_at, mapping_share);
    public_answers_set_form(master->segment, public_reads_form(next)); /* before workers have them */
    supervisor_renew(master->supervisor, next);
    settings_free(&master->settings[master->present]);
    master->present = !master->present;
    log_info("settings reloaded, replacing the workers");
}

/* --- the loop --- */

/* A second request to stop means at once. */
static void stop(struct master *master, enum stop how)
{
    if (how == STOP_NOW || master->stopping != STOP_NOT)
        how = STOP_NOW;
    if (how > master->stopping)
        log_info(how == STOP_NOW ? "stopping at once"
                                 : "stopping, connections are served until nginx lets them go");
    master->stopping = how;
    if (master->successor_ready >= 0) { /* it is not ready: both end */
        kill(master->successor, SIGTERM);
        master->is_succeeded = false;
    }
    close_listeners(master);
    supervisor_stop(master->supervisor, how);
}

/* --- a successor --- */

/* Lists all descriptors that outlive this server, for the next one. */
static size_t list_handed(const struct master *master, struct handed handed_r[HANDOVER_MOST])
{
    size_t count = 0;
    for (int i = 0; i < master->listener_count; i++) {
        name_worker(master, i, handed_r[count].name);
        handed_r[count++].fd = master->listeners[i];
    }
    handed_r[count++] = (struct handed){"live", master->live_listener};
    handed_r[count++] = (struct handed){"files", master->files_listener};
    handed_r[count++] = (struct handed){"begun", master->in_flight_memory};
    return count;
}

/* Does not resolve links now, so that a link changed later leads to the new program. */
static void find_program(struct master *master)
{
    const char *name = master->options->arguments ? master->options->arguments[0] : "";
    char here[PATH_MAX / 2];
    ssize_t size = -1;
    if (*name == '/')
        size = snprintf(master->program, sizeof master->program, "%s", name);
    else if (strchr(name, '/') && getcwd(here, sizeof here))
        size = snprintf(master->program, sizeof master->program, "%s/%s", here, name);
    if (size > 0 && (size_t)size < sizeof master->program)
        return;
    size = readlink("/proc/self/exe", master->program, sizeof master->program - 1);
    master->program[size > 0 ? size : 0] = '\0';
}

static void succeed_myself(struct master *master)
{
    struct handed handed[HANDOVER_MOST];
    if (master->successor || !master->options->arguments) {
        log_warning("a successor is starting already pid=%d", (int)master->successor);
        return;
    }
    size_t count = list_handed(master, handed);
    if (master->pid_file >= 0)
        handed[count++] = (struct handed){"pidfile", master->pid_file};
    pid_t pid =
        handover_start(master->program, master->options->arguments, handed, count, &master->successor_ready);
    if (pid < 0)
        return;
    master->successor = pid;
    log_info("starting a successor program=%s pid=%d", master->program, (int)pid);
}

/* The successor serves, or has ended before it could. */
static void read_successor(struct master *master)
{
    char word;
    ssize_t size = read(master->successor_ready, &word, 1);
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    close(master->successor_ready);
    master->successor_ready = -1;
    if (size == 1) {
        log_info("the successor serves, stopping pid=%d", (int)master->successor);
        handover_name_successor(master->successor);
        master->is_succeeded = true;
        master->leave_ms = clock_monotonic_ms() + OVERLAP_MS;
    } else {
        log_error("the successor did not start, continuing to serve pid=%d", (int)master->successor);
        master->successor = 0;
    }
}

static void watch_successor(struct master *master, bool has_message)
{
    if (has_message)
        read_successor(master);
    if (master->leave_ms && master->stopping == STOP_NOT && clock_monotonic_ms() >= master->leave_ms)
        stop(master, STOP_DRAIN);
}

/* Sent once: to the predecessor, which may stop now, and to systemd. */
static void check_ready(struct master *master)
{
    struct handed handed[HANDOVER_MOST];
    if (master->is_ready || master->stopping != STOP_NOT || !supervisor_is_ready(master->supervisor))
        return;
    master->is_ready = true;
    write_pid_file(master);
    handover_ready(handed, list_handed(master, handed));
}

static void master_heed_signals(struct master *master)
{
    for (int number; (number = stop_next());) {
        switch (number) {
        case SIGCHLD:
            supervisor_reap(master->supervisor);
            break;
        case SIGHUP:
            if (master->stopping == STOP_NOT)
                reload(master);
            break;
        case SIGUSR2:
            if (master->stopping == STOP_NOT)
                succeed_myself(master);
            break;
        case SIGUSR1: /* of the lease process */
        case SIGTERM:
        case SIGINT:
            master->is_left |= number == SIGUSR1;
            stop(master, STOP_DRAIN);
            break;
        case SIGQUIT:
            stop(master, STOP_NOW);
            break;
        default:
            break;
        }
    }
}

static void run_master(struct master *master, int signals)
{
    struct pollfd sources[] = {
        {.fd = signals, .events = POLLIN},
        {.fd = supervisor_descriptor(master->supervisor), .events = POLLIN},
        {.events = POLLIN},
    };
    do {
        supervisor_tend(master->supervisor);
        sampler_tend(master->segment);
        public_answers_beat(master->segment, clock_monotonic_ms());
        sources[2].fd = master->successor_ready;
        sources[2].revents = 0;
        if (poll(sources, COUNT_OF(sources), TURN_MS) < 0 && errno != EINTR)
            log_fatal("cannot poll: %m");
        supervisor_receive(master->supervisor);
        check_ready(master);
        watch_successor(master, sources[2].fd >= 0 && sources[2].revents);
        master_heed_signals(master);
    } while (master->stopping == STOP_NOT || !supervisor_is_empty(master->supervisor));
}

int master_run(struct settings *settings, const struct master_options *options)
{
    struct master master = {.options = options,
                            .settings = {*settings},
                            .pid_file = -1,
                            .live_listener = -1,
                            .files_listener = -1,
                            .in_flight_memory = -1,
                            .successor_ready = -1};
    char problem[PROBLEM_BYTES] = "";
    int signals = stop_open();
    task_metrics_start();
    crash_arm(settings->debug_die_at, mapping_share);
    if (settings->debug_clock[0] && !clock_follow(settings->debug_clock))
        log_fatal("debug_clock: %s cannot be read", settings->debug_clock);
    bool has_failed = !open_master(&master, problem);
    if (!has_failed) {
        find_program(&master);
        master.supervisor = supervisor_create(present_settings(&master), master.segment, master.instance,
                                              master.in_flight, master.listeners, master.listener_count,
                                              master.live_listener, master.files_listener, options->live_run);
        log_info("ready version=%s workers=%d run_directory=%s", PACKAGE_VERSION,
                 (int)present_settings(&master)->workers, present_settings(&master)->run_directory);
        run_master(&master, signals);
        if (!master.is_succeeded)
            lease_release(present_settings(&master), master.segment);
        has_failed = master.is_left || slots_have_lost_lease(master.segment); /* systemd starts it again */
        log_info("stopped");
    } else {
        log_error("cannot start: %s", problem);
    }
    close_master(&master);
    return has_failed ? 1 : 0;
}
