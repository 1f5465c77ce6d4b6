/* journal: the listener, the signals, and the connections. */
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process/reaper.h"
#include "base/stop.h"
#include "edge/events.h"
#include "edge/fcgi.h"
#include "journal/hosts/hosts.h"
#include "journal/hosts/hosts_door.h"
#include "journal/journal_child.h"
#include "journal/journal_connection.h"
#include "journal/journal_reader.h"
#include "journal/journal_remote.h"
#include "journal/journal_tasks.h"
#include "journal/journal_turns.h"
#include "journal/resp/resp_scan.h"
#include "records/records.h"
#include "records/records_changes.h"
#include "records/records_road.h"
#include "records/records_save.h"
#include "seal/site_key.h"

/* A child process (journal_child.h) that saves records in place of the loop. */

struct journal_saver;

enum { TRIES_MOST = 2 };

struct journal_saver {
    struct records *records;
    struct watch *watch;
    struct events_timer *refusal; /* of a save for which there is no child */
    struct journal_child child;
    uint64_t wanted, sent; /* the last one that is not answered, and the last one that the child has got; 0 */
    int tries;             /* children that have got one, and have not answered since */
    bool is_retired;       /* the child ends with the answer to the last one that it has got */
    void (*saved)(void *context, uint64_t number, bool is_saved);
    void *context;
};

struct saver_answer {
    uint64_t number;
    bool is_saved;
};

/* --- the child --- */

static void journal_saver_run_child(struct records *records, int fd)
{
    struct saver_answer answer = {0};
    while (recv(fd, &answer.number, sizeof answer.number, 0) == sizeof answer.number) {
        while (recv(fd, &answer.number, sizeof answer.number, MSG_DONTWAIT) == sizeof answer.number)
            ;
        answer.is_saved = records_save(records, answer.number);
        if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
        log_flush(clock_monotonic_ms());
    }
}

/* --- the parent --- */

static void end_child(struct journal_saver *saver)
{
    if (!saver->child.pid)
        return;
    events_watch_set(saver->watch, -1, false);
    journal_child_end(&saver->child);
    saver->sent = 0;
    saver->is_retired = false;
}

static bool start_child(struct journal_saver *saver)
{
    static const struct journal_child_work work = {"journal-saver", SOCK_SEQPACKET, journal_saver_run_child};
    if (!journal_child_start(&saver->child, &work, saver->records))
        return false;
    events_watch_set(saver->watch, saver->child.fd, false);
    return true;
}

static void journal_saver_report(struct journal_saver *saver, uint64_t number, bool is_saved)
{
    if (saver->wanted <= number)
        saver->wanted = 0;
    saver->saved(saver->context, number, is_saved);
}

/* When the sockets are full, the next answer comes before there is a need to send more. */
static bool try_to_send(struct journal_saver *saver)
{
    ssize_t size = send(saver->child.fd, &saver->wanted, sizeof saver->wanted, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size != sizeof saver->wanted)
        return size < 0 && (errno == EAGAIN || errno == EINTR) && saver->sent;
    saver->sent = saver->wanted;
    return true;
}

static void send_wanted(struct journal_saver *saver)
{
    if (saver->is_retired)
        return; /* it is for the next child */
    while (saver->child.pid || (saver->tries < TRIES_MOST && start_child(saver))) {
        saver->tries += !saver->sent;
        if (try_to_send(saver))
            return;
        end_child(saver);
    }
    events_timer_start(saver->refusal, 0);
}

static void on_ready(void *context)
{
    struct journal_saver *saver = context;
    struct saver_answer answer;
    ssize_t size = recv(saver->child.fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size == sizeof answer) {
        saver->tries = 0;
        if (saver->sent <= answer.number)
            saver->sent = 0;
        bool is_over = saver->is_retired && !saver->sent;
        if (is_over)
            end_child(saver);
        journal_saver_report(saver, answer.number, answer.is_saved);
        if (is_over && saver->wanted)
            send_wanted(saver);
        return;
    }
    log_warning("the process that saves records has ended");
    end_child(saver);
    if (saver->wanted)
        send_wanted(saver);
}

static void on_refusal(void *context)
{
    struct journal_saver *saver = context;
    saver->tries = 0;
    journal_saver_report(saver, saver->wanted, false);
}

/* `saved` is called once for each journal_saver_save, from the loop: all changes up to the number are on
 * disk; or they are not, and the log has the reason. */
__attribute__((returns_nonnull)) static struct journal_saver *
journal_saver_create(struct events *events, struct records *records,
                     void (*saved)(void *context, uint64_t number, bool is_saved), void *context)
{
    struct journal_saver *saver = memory_zeroed(1, sizeof *saver, "starting the process that saves records");
    *saver = (struct journal_saver){.records = records, .saved = saved, .context = context};
    saver->watch = events_watch_create(events, on_ready, saver);
    saver->refusal = events_timer_create(events, on_refusal, saver);
    return saver;
}

/* Kills the child, which is safe at any moment; does not wait for the disk. */
static void journal_saver_destroy(struct journal_saver *saver)
{
    end_child(saver);
    events_watch_destroy(saver->watch);
    events_timer_destroy(saver->refusal);
    free(saver);
}

/* A new child, without what the present one has inherited, saves from now on: the present one ends at once,
 * or after what it has begun. */
static void journal_saver_retire(struct journal_saver *saver)
{
    if (saver->sent)
        saver->is_retired = true;
    else
        end_child(saver);
}

/* Also when it is busy: what has come until it begins with the next sync shares it.  A child that has died is
 * replaced, and the new one tries once more. */
static void journal_saver_save(struct journal_saver *saver, uint64_t number)
{
    if (number <= saver->wanted && saver->sent == saver->wanted)
        return;
    saver->wanted = number > saver->wanted ? number : saver->wanted;
    send_wanted(saver);
}

/* A listener is sent a change so much later at most. */
enum { PROBLEM_BYTES = 600, TICK_MS = RECORDS_CHANGES_STEP_MS };
/* An end waits so long for processes that were killed; only a disk that does not answer holds them. */
enum { KILLED_MS = 1000 };

struct journal {
    const struct settings *settings;
    const struct journal_options *options;
    struct events *events;
    struct records *records;
    struct journal_keys *keys;
    struct journal_tasks *tasks;
    struct resp_cursors *cursors;
    struct hosts *hosts; /* NULL: this host is none of several */
    struct hosts_door *door;
    struct journal_remote *remote; /* NULL: there is no TCP listener */
    struct watch *arrivals, *remote_arrivals, *signals;
    struct events_timer *tick, *save, *stop;
    struct journal_saver *saver;
    struct journal_reader *reader;
    struct journal_turns *turns;
    bool is_to_save; /* `save` runs */
    bool is_ticking, has_unsent, is_stopping;
    uint64_t rest;      /* the number of the last save, before the end; 0: there is none */
    size_t former;      /* connections with former keys, whose answers wait for the disk */
    uint64_t changes;   /* of the records, at the last tick */
    int64_t expired_ms; /* when what had expired was removed */
    int listener;
    struct journal_connection *connections[JOURNAL_CONNECTIONS_MOST];
    size_t count;
};

/* Nobody waits any more.  What nobody has waited for is saved by the child too, as the disk may not answer.
 */
static void journal_end(struct journal *journal)
{
    if (journal->rest)
        return;
    journal->rest = records_save_number(journal->records);
    if (journal->rest)
        journal_saver_save(journal->saver, journal->rest);
    else
        events_stop(journal->events);
}

/* Children begin with a copy of this process: with keys that are no longer in the file. */
static void retire_children(struct journal *journal)
{
    journal_saver_retire(journal->saver);
    journal_reader_retire(journal->reader);
}

static void on_end(void *context, struct journal_connection *connection)
{
    struct journal *journal = context;
    size_t place = 0;
    bool is_former = journal->former && journal_connection_is_finished(connection);
    while (journal->connections[place] != connection)
        place++;
    journal->connections[place] = journal->connections[--journal->count];
    journal_connection_destroy(connection);
    if (is_former && !--journal->former)
        retire_children(journal);
    if (journal->is_stopping && !journal->count)
        journal_end(journal);
}

static void on_listens(void *context)
{
    struct journal *journal = context;
    if (journal->is_ticking)
        return;
    journal->is_ticking = true;
    events_timer_start(journal->tick, TICK_MS);
}

static void on_saves(void *context)
{
    struct journal *journal = context;
    if (!journal->is_to_save)
        events_timer_start(journal->save, 0); /* after all that is ready now: one sync serves them */
    journal->is_to_save = true;
}

static void on_reads(void *context, struct journal_contents *reading)
{
    struct journal *journal = context;
    journal_reader_read(journal->reader, reading);
}

static void on_save(void *context)
{
    struct journal *journal = context;
    uint64_t most = 0;
    journal->is_to_save = false;
    for (size_t i = 0; i < journal->count; i++) {
        uint64_t number = journal_connection_saving(journal->connections[i]);
        most = number > most ? number : most;
    }
    if (most)
        journal_saver_save(journal->saver, most);
}

static void on_saved(void *context, uint64_t number, bool is_saved)
{
    struct journal *journal = context;
    if (journal->rest && number >= journal->rest) {
        journal->rest = is_saved ? 0 : journal->rest;
        events_stop(journal->events);
        return;
    }
    for (size_t i = journal->count; i-- > 0;) {
        uint64_t waits = i < journal->count ? journal_connection_saving(journal->connections[i]) : 0;
        if (waits && waits <= number)
            journal_connection_saved(journal->connections[i], is_saved);
    }
    on_saves(journal);
}

/* A connection that ends takes the last one's place: from the last to the first all are visited. */
static void on_tick(void *context)
{
    struct journal *journal = context;
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms >= journal->expired_ms + RECORDS_CHANGES_EXPIRY_MS) {
        records_changes_expire(journal->records);
        journal->expired_ms = now_ms;
    }
    uint64_t changes = records_changes(journal->records);
    if (journal->has_unsent || changes != journal->changes) {
        journal->has_unsent = false;
        for (size_t i = journal->count; i-- > 0;)
            if (i < journal->count && journal_connection_listens(journal->connections[i]) &&
                !journal_connection_report(journal->connections[i]))
                journal->has_unsent = true;
        journal->changes = changes;
    }
    journal->is_ticking = false;
    for (size_t i = 0; i < journal->count && !journal->is_ticking; i++)
        if (journal_connection_listens(journal->connections[i]))
            on_listens(journal);
}

/* All, but for those whose answers wait for the disk: they end with them. */
static void finish_connections(struct journal *journal)
{
    for (size_t i = journal->count; i-- > 0;)
        journal_connection_finish(journal->connections[i]);
}

static void close_connections(struct journal *journal)
{
    while (journal->count)
        journal_connection_destroy(journal->connections[--journal->count]);
}

static void add_connection(struct journal *journal, const struct journal_arrival *arrival)
{
    const struct journal_owner owner = {.ended = on_end,
                                        .saves = on_saves,
                                        .reads = on_reads,
                                        .listens = on_listens,
                                        .context = journal,
                                        .turns = journal->turns};
    const struct journal_session session = {.settings = journal->settings,
                                            .records = journal->records,
                                            .keys = journal->keys,
                                            .tasks = journal->tasks,
                                            .cursors = journal->cursors,
                                            .hosts = journal->hosts};
    journal->connections[journal->count++] =
        journal_connection_create(journal->events, arrival, &session, &owner);
}

static void on_arrival(void *context)
{
    struct journal *journal = context;
    struct journal_arrival arrival = {
        .fd = accept4(journal->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (arrival.fd < 0)
        return;
    if (journal->count == JOURNAL_CONNECTIONS_MOST) {
        log_often(LOG_LEVEL_WARNING, "connections", "a connection is refused: there are %d",
                  JOURNAL_CONNECTIONS_MOST);
        close(arrival.fd);
        return;
    }
    add_connection(journal, &arrival);
}

static void on_remote_arrival(void *context)
{
    struct journal *journal = context;
    struct journal_arrival arrival;
    if (journal_remote_accept(journal->remote, journal->connections, journal->count, &arrival))
        add_connection(journal, &arrival);
}

/* Connections have rights by the keys that they were made with. */
static void reload(struct journal *journal)
{
    char problem[PROBLEM_BYTES] = "";
    struct journal_keys *keys;
    if (!journal_keys_load(&keys, journal->options->keys_path, problem, sizeof problem)) {
        log_error("the former keys stay: %s", problem);
        return;
    }
    finish_connections(journal);
    journal_keys_free(journal->keys); /* a connection that is finished does not use them */
    journal->keys = keys;
    resp_scan_forget(journal->cursors);
    journal->former = journal->count;
    if (journal->remote && !journal_remote_load(journal->remote, problem, sizeof problem))
        log_error("the former certificate stays: %s", problem);
    retire_children(journal);
    log_info("read the keys again");
}

static void on_stop(void *context)
{
    struct journal *journal = context;
    log_warning("the disk has not answered for %lld s: not waiting any longer",
                (long long)journal->settings->journal_disk_s);
    events_stop(journal->events);
}

/* The second time without waiting for the disk. */
static void stop(struct journal *journal)
{
    bool is_again = journal->is_stopping;
    journal->is_stopping = true;
    events_watch_set(journal->arrivals, -1, false);
    events_watch_set(journal->remote_arrivals, -1, false);
    if (is_again) {
        events_stop(journal->events);
        return;
    }
    events_timer_start(journal->stop, journal->settings->journal_disk_s * 1000);
    finish_connections(journal);
    if (!journal->count)
        journal_end(journal);
}

static void on_signal(void *context)
{
    struct journal *journal = context;
    for (int number; (number = stop_next());)
        if (number == SIGHUP)
            reload(journal);
        else if (number == SIGCHLD)
            reaper_reap();
        else if (stop_ends(number))
            stop(journal);
}

/* Connections, requests for tasks and a few more: a listener that cannot accept would keep the loop busy. */
static bool take_descriptors(const struct settings *settings, char *problem)
{
    const rlim_t needed = JOURNAL_CONNECTIONS_MOST + JOURNAL_TASKS_MOST + 400 +
                          (*settings->cluster_address ? HOSTS_DOOR_MOST : 0);
    struct rlimit limit;
    bool is_done = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    if (is_done && limit.rlim_cur < needed) {
        limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        is_done = setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == needed;
    }
    if (!is_done)
        snprintf(problem, PROBLEM_BYTES, "it needs %d open files: raise their limit", (int)needed);
    return is_done;
}

/* Of the site key no more is needed then than the key of the records on disk. */
static bool open_records(struct journal *journal, const char *path, char *problem)
{
    const struct settings *settings = journal->settings;
    bool is_open = records_open(&journal->records, path, (size_t)settings->records_mb << 20,
                                settings->record_tombstone_s, problem, PROBLEM_BYTES) &&
                   records_save_into(journal->records, settings->records_directory,
                                     (size_t)settings->records_disk_mb << 20, problem, PROBLEM_BYTES);
    site_key_forget();
    return is_open;
}

static bool open_journal(struct journal *journal, char *problem)
{
    const struct settings *settings = journal->settings;
    struct identity identity;
    char records_path[PATH_MAX], socket_path[PATH_MAX], door_path[PATH_MAX];
    int size = snprintf(records_path, PATH_MAX, "%s/records", settings->run_directory);
    int other = journal->options->socket_path
                    ? snprintf(socket_path, PATH_MAX, "%s", journal->options->socket_path)
                    : snprintf(socket_path, PATH_MAX, "%s/journal.sock", settings->run_directory);
    int door = snprintf(door_path, PATH_MAX, "%s" RECORDS_ROAD_SUFFIX, socket_path);
    if (!settings->records_mb || size >= PATH_MAX || other >= PATH_MAX || door >= PATH_MAX) {
        snprintf(problem, PROBLEM_BYTES, "%s",
                 settings->records_mb ? "a path is too long" : "records_mb is 0");
        return false;
    }
    if (!take_descriptors(settings, problem) ||
        !journal_keys_load(&journal->keys, journal->options->keys_path, problem, PROBLEM_BYTES) ||
        !journal_remote_open(&journal->remote, settings, problem, PROBLEM_BYTES) ||
        !site_key_check_shared(settings, problem, PROBLEM_BYTES) ||
        (*settings->records_directory && !site_key_load(settings, problem, PROBLEM_BYTES)) ||
        !identity_take(settings, &identity, problem, PROBLEM_BYTES) ||
        !open_records(journal, records_path, problem) ||
        !hosts_open(&journal->hosts, journal->events, settings, journal->records, problem, PROBLEM_BYTES) ||
        !hosts_door_open(&journal->door, journal->events, settings, journal->records, journal->hosts,
                         door_path, problem, PROBLEM_BYTES) ||
        !fcgi_listen(socket_path, identity.socket_group, &journal->listener, problem, PROBLEM_BYTES))
        return false;
    if (fcntl(journal->listener, F_SETFL, O_NONBLOCK) == 0)
        return true;
    snprintf(problem, PROBLEM_BYTES, "the listening socket: %s", strerror(errno));
    return false;
}

/* After the loop has ended before all was saved: at the second signal, or as the disk does not answer. */
static void log_unsaved(const struct journal *journal)
{
    if (journal->count)
        log_warning("connections end without the answers that wait for the disk count=%zu", journal->count);
    if (journal->rest)
        log_warning(
            "the last changes of records are not on disk: a process of this host that has the records "
            "saves them, or they are lost with the memory");
}

static void serve(struct journal *journal, int signals)
{
    journal->tick = events_timer_create(journal->events, on_tick, journal);
    journal->save = events_timer_create(journal->events, on_save, journal);
    journal->stop = events_timer_create(journal->events, on_stop, journal);
    journal->saver = journal_saver_create(journal->events, journal->records, on_saved, journal);
    journal->reader =
        journal_reader_create(journal->events, journal->records, journal->settings->journal_disk_s * 1000);
    records_fetch_elsewhere(journal->records);
    journal->turns = journal_turns_create(journal->events);
    journal->tasks = journal_tasks_create(journal->events, journal->settings);
    journal->cursors = resp_scan_open();
    journal->arrivals = events_watch_create(journal->events, on_arrival, journal);
    journal->remote_arrivals = events_watch_create(journal->events, on_remote_arrival, journal);
    journal->signals = events_watch_create(journal->events, on_signal, journal);
    events_watch_set(journal->arrivals, journal->listener, false);
    if (journal->remote)
        events_watch_set(journal->remote_arrivals, journal_remote_listener(journal->remote), false);
    events_watch_set(journal->signals, signals, false);
    log_info("ready");
    events_run(journal->events);
    log_unsaved(journal);
    close_connections(journal);
    journal_saver_destroy(journal->saver);
    journal_reader_destroy(journal->reader);
    journal_tasks_destroy(journal->tasks);
    resp_scan_close(journal->cursors);
    journal_turns_destroy(journal->turns);
    events_timer_destroy(journal->tick);
    events_timer_destroy(journal->save);
    events_timer_destroy(journal->stop);
    events_watch_destroy(journal->arrivals);
    events_watch_destroy(journal->remote_arrivals);
    events_watch_destroy(journal->signals);
    hosts_door_close(journal->door);
    hosts_close(journal->hosts);
    events_destroy(journal->events);
    if (!reaper_await(KILLED_MS))
        log_warning("processes that were killed end when the disk answers count=%zu", reaper_count());
    log_flush(INT64_MAX);
    log_info("stopped");
}

int journal_serve(const struct settings *settings, const struct journal_options *options)
{
    static struct journal journal;
    char problem[PROBLEM_BYTES] = "";
    int signals = stop_open();
    journal.settings = settings;
    journal.options = options;
    journal.listener = -1;
    journal.events = events_create();
    bool is_open = open_journal(&journal, problem);
    if (is_open) {
        serve(&journal, signals);
    } else {
        log_error("cannot start: %s", problem);
        hosts_door_close(journal.door);
        hosts_close(journal.hosts);
        events_destroy(journal.events);
    }
    if (journal.listener >= 0)
        close(journal.listener);
    journal_remote_close(journal.remote);
    records_erase(journal.records);
    records_close(journal.records);
    journal_keys_free(journal.keys);
    return is_open ? 0 : 1;
}
