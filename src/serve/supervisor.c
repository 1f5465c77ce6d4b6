/* supervisor: a table of children and a few rules over it. */
#include "serve/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "segment/feed.h"
#include "operation/module/module.h"
#include "segment/counts/losses.h"
#include "segment/counts/metrics.h"
#include "segment/processes.h"
#include "blob/thumbnailer.h"
#include "seal/site_key.h"
#include "serve/decrypter.h"
#include "serve/lease.h"
#include "serve/relay.h"
#include "serve/upkeep/beat_writer.h"
#include "serve/heritage.h"
#include "serve/upkeep/keeper.h"
#include "serve/upkeep/mover.h"
#include "serve/metrics/metrics_exporter.h"
#include "serve/tracing/span_exporter.h"
#include "serve/tracing/tracing.h"
#include "http/request_id.h"
#include "serve/throttle.h"
#include "serve/worker.h"

enum {
    CHILDREN_MAX = PROCESSES_MOST + 8, /* a process for each entry, and some relays */
    NO_POSITION = -1,
    OVERDUE_MS = 10000,      /* a request may be this much older than the limit of an operation */
    KILL_MS = 5000,          /* after the drain time, or after the request to stop at once */
    REPEAT_MS = 1000,        /* between two requests to stop */
    RELAY_OVERLAP_MS = 3000, /* a new relay listens before the old one ends */
    COMPLAIN_MS = 60000,
};

/* clang-format off */
enum role { ROLE_WORKER, ROLE_RECOVERY, ROLE_RELAY, ROLE_LIVE, ROLE_LEASE, ROLE_KEEPER, ROLE_MOVER, ROLE_EXPORTER,
            ROLE_METRICS, ROLE_DECRYPTER, ROLE_BEATS, ROLES };
static const char *const role_words[] = {"worker", "recovery process", "relay", "live process", "lease process", "keeper",
                                         "mover", "exporter", "metrics exporter", "decrypter", "beat writer"};
static void (*const upkeep_runs[ROLES])(const struct settings *, struct segment *) = {
    [ROLE_RELAY] = relay_run, [ROLE_LEASE] = lease_run, [ROLE_KEEPER] = keeper_run, [ROLE_MOVER] = mover_run,
    [ROLE_EXPORTER] = span_exporter_run, [ROLE_BEATS] = beat_writer_run};
static int (*const heir_runs[ROLES])(const struct heritage *) = {
    [ROLE_WORKER] = worker_run, [ROLE_RECOVERY] = worker_recover, [ROLE_METRICS] = metrics_exporter_run,
    [ROLE_DECRYPTER] = decrypter_run};
/* clang-format on */

struct child {
    pid_t pid;
    enum role role;
    int position, index;
    bool is_ready;    /* answers requests, or listens */
    bool is_outdated; /* to be replaced */
    bool is_killed;
    enum loss_cause killed_for; /* while it ran a task */
    enum stop stopping_as;      /* and when */
    int64_t stopping_ms, repeat_ms;
    int64_t started_ms;
    int64_t limit_ms, drain_ms; /* from the settings that it was started with */
};

struct supervisor {
    const struct settings *settings;
    struct segment *segment;
    struct instance *instance;
    struct in_flight *in_flight;
    const int *listeners;
    int positions, live_listener, files_listener;
    int (*live_run)(const struct heritage *heritage);
    int messages[2];
    enum stop stopping;
    struct throttle *throttles;            /* of workers, one for each position */
    struct throttle role_throttles[ROLES]; /* of the other children */
    int64_t complained_ms;
    int count;
    struct child children[CHILDREN_MAX];
};

struct supervisor *supervisor_create(const struct settings *settings, struct segment *segment,
                                     struct instance *instance, struct in_flight *in_flight,
                                     const int *listeners, int positions, int live_listener,
                                     int files_listener, int (*live_run)(const struct heritage *heritage))
{
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    struct throttle *throttles = calloc((size_t)positions, sizeof *throttles);
    if (!supervisor || !throttles)
        log_fatal("out of memory making the supervisor");
    request_id_draw_key();
    tracing_make_pipe();
    *supervisor = (struct supervisor){
        .settings = settings,
        .segment = segment,
        .instance = instance,
        .in_flight = in_flight,
        .listeners = listeners,
        .positions = positions,
        .live_listener = live_listener,
        .files_listener = files_listener,
        .live_run = live_run,
        .throttles = throttles,
    };
    if (pipe2(supervisor->messages, O_CLOEXEC | O_NONBLOCK))
        log_fatal("cannot make a pipe: %m");
    return supervisor;
}

void supervisor_destroy(struct supervisor *supervisor)
{
    close(supervisor->messages[0]);
    close(supervisor->messages[1]);
    free(supervisor->throttles);
    free(supervisor);
}

int supervisor_descriptor(const struct supervisor *supervisor)
{
    return supervisor->messages[0];
}

bool supervisor_is_empty(const struct supervisor *supervisor)
{
    return supervisor->count == 0;
}

/* --- starting --- */

/* In the child: closes what belongs to the master or a sibling, then runs the child's role. */
static void NORETURN live(struct supervisor *supervisor, const struct child *child, pid_t master)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != master)
        _exit(1);
    struct heritage heritage = {
        .settings = supervisor->settings,
        .segment = supervisor->segment,
        .instance = supervisor->instance,
        .in_flight = supervisor->in_flight,
        .index = child->index,
        .position = child->position,
        .listener = -1,
        .messages = supervisor->messages[1],
    };
    for (int i = 0; i < supervisor->positions; i++) {
        if (i == child->position)
            heritage.listener = supervisor->listeners[i];
        else
            close(supervisor->listeners[i]);
    }
    if (child->role == ROLE_LIVE)
        heritage.listener = supervisor->live_listener;
    else
        close(supervisor->live_listener);
    if (child->role == ROLE_DECRYPTER)
        heritage.listener = supervisor->files_listener;
    else
        close(supervisor->files_listener);
    close(supervisor->messages[0]);
    if (child->role != ROLE_RECOVERY)
        instance_drop_takeovers(supervisor->instance);
    int (*heir_run)(const struct heritage *) =
        child->role == ROLE_LIVE ? supervisor->live_run : heir_runs[child->role];
    if (heir_run)
        exit(heir_run(&heritage));
    upkeep_runs[child->role](supervisor->settings, supervisor->segment);
    exit(0);
}

/* Lines about a worker have the id of the request that it has begun, until the arena is given back. */
static struct arena *name_request(const struct supervisor *supervisor, const struct child *child)
{
    struct arena *arena = arena_create("lines about a child");
    if (child->role == ROLE_WORKER)
        log_set_request_id(in_flight_request_id(supervisor->in_flight, child->index, arena));
    return arena;
}

static void unname_request(struct arena *arena)
{
    log_set_request_id(NULL);
    arena_destroy(arena);
}

/* Settles the entry of a dead child; `loss` is the cause. */
static void bury(struct supervisor *supervisor, const struct child *child, const struct loss *loss)
{
    if (child->role == ROLE_WORKER) {
        const struct pulse *pulse = metrics_pulse(supervisor->segment, child->index);
        const struct fate fate = {.cause = loss->cause,
                                  .in_application = atomic_load(&pulse->deadline_ms) != 0,
                                  .is_unchanged = !atomic_load(&pulse->may_have_changed)};
        in_flight_retire(supervisor->in_flight, child->index, &fate, clock_monotonic_ms());
        instance_worker_gone(supervisor->instance, child->index);
    } else if (child->role == ROLE_RECOVERY) {
        instance_recovery_gone(supervisor->instance, child->index);
    } else if (child->role == ROLE_LIVE && child->pid > 0) {
        feed_retire(supervisor->segment, (uint32_t)child->pid);
    }
}

/* The child died early: its successor may have to wait.  Recovery is never delayed. */
static void slow_down(struct supervisor *supervisor, const struct child *child)
{
    if (child->role == ROLE_RECOVERY)
        return;
    struct throttle *throttle = child->role == ROLE_WORKER ? &supervisor->throttles[child->position]
                                                           : &supervisor->role_throttles[child->role];
    throttle_died(throttle, child->started_ms, clock_monotonic_ms(), supervisor->settings->restart_young_ms);
    if (throttle->delay_ms)
        log_info("restart of %s delayed position=%d delay_ms=%lld", role_words[child->role], child->position,
                 (long long)throttle->delay_ms);
}

static void supervisor_start(struct supervisor *supervisor, enum role role, int position, int index)
{
    int64_t now_ms = clock_monotonic_ms();
    pid_t master = getpid();
    struct child child = {
        .role = role,
        .position = position,
        .index = index,
        .started_ms = now_ms,
        .limit_ms = supervisor->settings->limit_operation_s * 1000 + OVERDUE_MS,
        .drain_ms = supervisor->settings->drain_s * 1000 + KILL_MS,
    };
    child.pid = supervisor->count < CHILDREN_MAX ? fork() : -1;
    if (child.pid == 0)
        live(supervisor, &child, master);
    crash_at(CRASH_MASTER_FORKED);
    if (child.pid < 0) {
        log_error("cannot start a %s: %m", role_words[role]);
        slow_down(supervisor, &child);
        bury(supervisor, &child, &(struct loss){0});
        return;
    }
    if (role == ROLE_WORKER)
        instance_worker_forked(supervisor->instance, index, child.pid);
    log_debug("started %s pid=%d position=%d index=%d", role_words[role], (int)child.pid, position, index);
    supervisor->children[supervisor->count++] = child;
}

static void start_worker(struct supervisor *supervisor, int position)
{
    int index = instance_take_index(supervisor->instance);
    if (index != SEGMENT_NO_INDEX) {
        supervisor_start(supervisor, ROLE_WORKER, position, index);
        return;
    }
    int64_t now_ms = clock_monotonic_ms();
    if (!supervisor->complained_ms || now_ms - supervisor->complained_ms >= COMPLAIN_MS)
        log_warning(
            "no free entry for a worker position=%d: others drain, or wait for a database to be repaired",
            position);
    supervisor->complained_ms = now_ms;
}

/* --- stopping --- */

static void request_stop(struct child *child, enum stop how)
{
    int64_t now_ms = clock_monotonic_ms();
    if (how > child->stopping_as) {
        child->stopping_as = how;
        child->stopping_ms = now_ms;
    }
    child->repeat_ms = now_ms + REPEAT_MS;
    kill(child->pid, child->stopping_as == STOP_NOW ? SIGQUIT : SIGTERM);
}

static void kill_overdue(struct supervisor *supervisor, struct child *child, int64_t now_ms)
{
    if (child->is_killed)
        return;
    int64_t grace_ms = child->stopping_as == STOP_NOW ? KILL_MS : child->drain_ms;
    enum loss_cause cause = LOSS_TIME;
    const struct pulse *pulse =
        child->role == ROLE_WORKER ? metrics_pulse(supervisor->segment, child->index) : NULL;
    int64_t since_ms = pulse ? atomic_load(&pulse->request_since_ms) : 0;
    int64_t deadline_ms = pulse ? atomic_load(&pulse->deadline_ms) : 0;
    int64_t own_ms = pulse ? atomic_load(&pulse->limit_ms) : 0; /* that of a task */
    int64_t limit_ms = own_ms ? own_ms + OVERDUE_MS : child->limit_ms;
    /* A worker that is being replaced may finish its task, which has its own time limit. */
    bool is_at_task = supervisor->stopping == STOP_NOT && own_ms && since_ms;
    if (is_at_task && child->stopping_as != STOP_NOT)
        child->stopping_ms = now_ms; /* its time to drain begins after the task */
    if (child->stopping_as != STOP_NOT && now_ms - child->stopping_ms >= grace_ms && !is_at_task)
        cause = LOSS_STOP;
    else if ((!deadline_ms || now_ms - deadline_ms < MODULE_GRACE_MS) &&
             (!since_ms || now_ms - since_ms < limit_ms))
        return;
    struct arena *lines = name_request(supervisor, child);
    if (cause == LOSS_STOP)
        log_warning("killed %s that did not stop pid=%d index=%d", role_words[child->role], (int)child->pid,
                    child->index);
    else if (deadline_ms && now_ms - deadline_ms >= MODULE_GRACE_MS)
        log_error("killed worker whose application did not return pid=%d index=%d", (int)child->pid,
                  child->index);
    else
        log_error("killed worker whose request took too long pid=%d index=%d request_ms=%lld",
                  (int)child->pid, child->index, (long long)(now_ms - since_ms));
    unname_request(lines);
    kill(child->pid, SIGKILL);
    child->is_killed = true;
    child->killed_for = cause;
}

/* The relay and the lease process keep running while workers drain. */
static bool ends_last(const struct child *child)
{
    return child->role == ROLE_RELAY || child->role == ROLE_LEASE;
}

static bool are_last(const struct supervisor *supervisor)
{
    for (int i = 0; i < supervisor->count; i++)
        if (!ends_last(&supervisor->children[i]))
            return false;
    return true;
}

static void continue_stop(struct supervisor *supervisor, int64_t now_ms)
{
    bool is_their_turn = supervisor->stopping == STOP_NOW || are_last(supervisor);
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if ((!ends_last(child) || is_their_turn) &&
            (child->stopping_as < supervisor->stopping || now_ms >= child->repeat_ms))
            request_stop(child, supervisor->stopping);
    }
}

void supervisor_stop(struct supervisor *supervisor, enum stop how)
{
    if (how > supervisor->stopping)
        supervisor->stopping = how;
    continue_stop(supervisor, clock_monotonic_ms());
}

void supervisor_renew(struct supervisor *supervisor, const struct settings *settings)
{
    supervisor->settings = settings;
    for (int i = 0; i < supervisor->count; i++)
        supervisor->children[i].is_outdated = supervisor->children[i].role != ROLE_RECOVERY;
}

/* --- children that should run --- */

/* The children that serve a position, or the relays (NO_POSITION). */
struct post {
    bool has_current; /* up to date, and ready or starting */
    bool is_starting;
    bool has_former; /* ready and outdated, not yet signalled to stop */
};

static struct post read_posts(const struct supervisor *supervisor, enum role role, int position)
{
    struct post post = {0};
    for (int i = 0; i < supervisor->count; i++) {
        const struct child *child = &supervisor->children[i];
        if (child->role != role || child->position != position || child->stopping_as != STOP_NOT)
            continue;
        post.has_current |= !child->is_outdated;
        post.is_starting |= !child->is_outdated && !child->is_ready;
        post.has_former |= child->is_outdated;
    }
    return post;
}

static bool supervisor_is_served(const struct supervisor *supervisor, enum role role, int position)
{
    struct post post = read_posts(supervisor, role, position);
    return post.has_former || (post.has_current && !post.is_starting);
}

/* The last one is the thumbnail process (heritage.h). */
static int positions_wanted(const struct supervisor *supervisor)
{
    return supervisor->positions - !thumbnailer_is_there(supervisor->settings->thumbnail_program);
}

bool supervisor_is_ready(const struct supervisor *supervisor)
{
    for (int i = 0; i < positions_wanted(supervisor); i++)
        if (!supervisor_is_served(supervisor, ROLE_WORKER, i))
            return false;
    return supervisor_is_served(supervisor, ROLE_LIVE, NO_POSITION) &&
           (!*site_key_mark() || supervisor_is_served(supervisor, ROLE_DECRYPTER, NO_POSITION));
}

/* A child is ready: the ones that it replaces may stop. */
static void succeed(struct supervisor *supervisor, struct child *successor)
{
    successor->is_ready = true;
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if (child != successor && child->role == successor->role && child->position == successor->position &&
            child->is_outdated && child->stopping_as == STOP_NOT)
            request_stop(child, STOP_DRAIN);
    }
}

static void tend_workers(struct supervisor *supervisor, int64_t now_ms)
{
    bool is_replacing = false;
    for (int i = 0; i < supervisor->positions && !is_replacing; i++) {
        struct post post = read_posts(supervisor, ROLE_WORKER, i);
        is_replacing = post.is_starting && post.has_former;
    }
    for (int i = 0; i < positions_wanted(supervisor); i++) {
        struct post post = read_posts(supervisor, ROLE_WORKER, i);
        if (post.has_current || !throttle_allows(&supervisor->throttles[i], now_ms))
            continue;
        if (post.has_former && is_replacing)
            continue; /* one at a time; an empty position never waits */
        is_replacing |= post.has_former;
        start_worker(supervisor, i);
    }
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if (child->position >= positions_wanted(supervisor) && child->stopping_as == STOP_NOT)
            request_stop(child, STOP_DRAIN);
    }
}

/* The live process, the decrypter: a former one serves until its successor is ready. */
static void tend_successive(struct supervisor *supervisor, enum role role, int64_t now_ms)
{
    if (!read_posts(supervisor, role, NO_POSITION).has_current &&
        throttle_allows(&supervisor->role_throttles[role], now_ms))
        supervisor_start(supervisor, role, NO_POSITION, SEGMENT_NO_INDEX);
}

static void tend_relay(struct supervisor *supervisor, int64_t now_ms)
{
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if (child->role == ROLE_RELAY && !child->is_outdated && !child->is_ready &&
            now_ms - child->started_ms >= RELAY_OVERLAP_MS)
            succeed(supervisor, child);
    }
    tend_successive(supervisor, ROLE_RELAY, now_ms);
}

/* Keeper, mover, both exporters, lease process, beat writer.  An outdated one stops at once: no process
 * depends on it. */
static void tend_single(struct supervisor *supervisor, enum role role, bool is_wanted, int64_t now_ms)
{
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if (child->role == role && child->is_outdated && child->stopping_as == STOP_NOT)
            request_stop(child, STOP_DRAIN);
    }
    if (is_wanted)
        tend_successive(supervisor, role, now_ms);
}

static void tend_recoveries(struct supervisor *supervisor)
{
    instance_take_over(supervisor->instance);
    for (int index; (index = instance_next_orphan(supervisor->instance)) != SEGMENT_NO_INDEX;)
        supervisor_start(supervisor, ROLE_RECOVERY, NO_POSITION, index);
}

void supervisor_tend(struct supervisor *supervisor)
{
    int64_t now_ms = clock_monotonic_ms();
    if (supervisor->stopping == STOP_NOT) {
        tend_recoveries(supervisor);
        tend_workers(supervisor, now_ms);
        tend_relay(supervisor, now_ms);
        tend_successive(supervisor, ROLE_LIVE, now_ms);
        if (*site_key_mark()) /* without one no namespace is encrypted */
            tend_successive(supervisor, ROLE_DECRYPTER, now_ms);
        tend_single(supervisor, ROLE_LEASE, supervisor->settings->hosts == HOSTS_PAIR, now_ms);
        tend_single(supervisor, ROLE_KEEPER, true, now_ms);
        tend_single(supervisor, ROLE_MOVER, *supervisor->settings->object_stores_file, now_ms);
        tend_single(supervisor, ROLE_BEATS, settings_has_replicas(supervisor->settings), now_ms);
        tend_single(supervisor, ROLE_EXPORTER, *supervisor->settings->trace_url, now_ms);
        tend_single(supervisor, ROLE_METRICS, *supervisor->settings->metrics_url, now_ms);
    } else {
        continue_stop(supervisor, now_ms);
    }
    for (int i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        if (supervisor->stopping == STOP_NOT && child->stopping_as != STOP_NOT && now_ms >= child->repeat_ms)
            request_stop(child, child->stopping_as);
        kill_overdue(supervisor, child, now_ms);
    }
}

/* --- messages --- */

static struct child *find_child(struct supervisor *supervisor, pid_t pid)
{
    for (int i = 0; i < supervisor->count; i++)
        if (supervisor->children[i].pid == pid)
            return &supervisor->children[i];
    return NULL;
}

void supervisor_receive(struct supervisor *supervisor)
{
    struct message message;
    while (read(supervisor->messages[0], &message, sizeof message) == sizeof message) {
        struct child *child = find_child(supervisor, message.pid);
        if (!child)
            continue; /* it has died meanwhile */
        if (message.kind == MESSAGE_READY) {
            succeed(supervisor, child);
        } else {
            log_info("recycling worker pid=%d position=%d", (int)child->pid, child->position);
            child->is_outdated = true;
        }
    }
}

/* Logs how the child ended, at a level that fits the cause. */
static void supervisor_report(const struct child *child, int status)
{
    const char *role = role_words[child->role];
    if (WIFSIGNALED(status))
        log_error("%s killed by signal %d (%s) pid=%d position=%d index=%d", role, WTERMSIG(status),
                  strsignal(WTERMSIG(status)), (int)child->pid, child->position, child->index);
    else if (WEXITSTATUS(status) || (child->stopping_as == STOP_NOT && child->role != ROLE_RECOVERY))
        log_error("%s exited with status %d pid=%d position=%d index=%d", role, WEXITSTATUS(status),
                  (int)child->pid, child->position, child->index);
    else
        log_debug("%s ended pid=%d position=%d index=%d", role, (int)child->pid, child->position,
                  child->index);
}

/* The child died while application code ran: logs which. */
static void report_application(const struct supervisor *supervisor, const struct child *child)
{
    const struct pulse *pulse =
        child->role == ROLE_WORKER ? metrics_pulse(supervisor->segment, child->index) : NULL;
    if (pulse && atomic_load(&pulse->deadline_ms))
        log_error("it was running application code operation=%.*s pid=%d", PULSE_NAME_BYTES,
                  pulse->application, (int)child->pid);
}

static struct loss cause_of_death(const struct child *child, int status)
{
    if (WIFSIGNALED(status)) {
        enum loss_cause cause = child->is_killed              ? child->killed_for
                                : WTERMSIG(status) == SIGKILL ? LOSS_KILLED
                                                              : LOSS_CRASH;
        return (struct loss){.cause = cause, .detail = (uint32_t)WTERMSIG(status), .is_failure = true};
    }
    return (struct loss){.cause = LOSS_EXIT, .detail = (uint32_t)WEXITSTATUS(status), .is_failure = true};
}

/* The child died while it ran a task: records the cause for a scan. */
static void note_loss(const struct supervisor *supervisor, const struct child *child, struct loss loss)
{
    if (child->role != ROLE_WORKER)
        return;
    struct losses *losses = losses_of(supervisor->segment, child->index);
    int64_t claim = atomic_load(&metrics_pulse(supervisor->segment, child->index)->task_claim);
    loss.at_work = losses_shown(losses);
    if (claim)
        losses_note(losses, claim, &loss);
}

static void remove_child(struct supervisor *supervisor, struct child *child, int status)
{
    struct arena *lines = name_request(supervisor, child);
    supervisor_report(child, status);
    report_application(supervisor, child);
    unname_request(lines);
    const struct loss loss = cause_of_death(child, status);
    note_loss(supervisor, child, loss);
    if (child->stopping_as == STOP_NOT)
        slow_down(supervisor, child);
    struct child gone = *child;
    *child = supervisor->children[--supervisor->count];
    bury(supervisor, &gone, &loss);
}

void supervisor_reap(struct supervisor *supervisor)
{
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct child *child = find_child(supervisor, pid);
        if (child)
            remove_child(supervisor, child, status);
    }
}
