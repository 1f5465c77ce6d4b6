/* manager: start, the loop, stop. */
#include "queue/manager.h"

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/schedule.h"
#include "base/secret.h"
#include "edge/json/json.h"
#include "edge/local_socket.h"
#include "queue/alert.h"
#include "queue/endpoint.h"
#include "queue/manager_private.h"
#include "queue/runner.h"
#include "queue/registry.h"

/* --- wakeups: the datagram socket that receives workers' notices of tasks that start soon --- */

enum { WAKEUP_MAX = 4096, QUEUE_BYTES = 1 << 20, PATH_BYTES = sizeof((struct sockaddr_un){0}).sun_path };

struct wakeups {
    int fd;
    char path[PATH_BYTES];
    char text[WAKEUP_MAX];
};

/* Creates the socket.  One left by a dead process at the path is replaced.  If a living process owns it, or
 * it cannot be created: NULL with one line in `problem`. */
static struct wakeups *wakeups_open(const char *path, char *problem, size_t problem_size)
{
    struct wakeups *wakeups = calloc(1, sizeof *wakeups);
    int bytes = QUEUE_BYTES;
    /* Workers of the same user or group may write.  A sender can at most cause a scan. */
    const struct local_socket_options options = {
        .type = SOCK_DGRAM, .mode = 0660, .group = LOCAL_SOCKET_NO_GROUP};
    if (!wakeups)
        log_fatal("out of memory");
    if (!local_socket_open(path, &options, &wakeups->fd, problem, problem_size)) {
        free(wakeups);
        return NULL;
    }
    snprintf(wakeups->path, sizeof wakeups->path, "%s", path);
    (void)setsockopt(wakeups->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); /* the larger the better */
    return wakeups;
}

/* NULL is allowed */
static void wakeups_close(struct wakeups *wakeups)
{
    if (!wakeups)
        return;
    unlink(wakeups->path);
    close(wakeups->fd);
    free(wakeups);
}

static int wakeups_descriptor(const struct wakeups *wakeups)
{
    return wakeups->fd;
}

/* The next wake-up received, valid until the next call; false: none. */
static bool wakeups_next(struct wakeups *wakeups, struct bytes *wakeup_r)
{
    ssize_t size;
    do
        size = recv(wakeups->fd, wakeups->text, sizeof wakeups->text, 0);
    while (size < 0 && errno == EINTR);
    *wakeup_r = (struct bytes){wakeups->text, size > 0 ? (size_t)size : 0};
    return size >= 0;
}

/* --- manager --- */

enum {
    TURN_MS = 1000, /* longest time between two reads of the clock, which may be changed */
    SCAN_SLOTS = 2,
    MAIL_SLOTS = 24, /* a mail, and the notes to the server about failures mailed */
    CONNECT_TIMEOUT_MS = 5000,
    NAMES_MOST = 100000, /* waiting tasks in memory */
    WAKEUPS_AT_ONCE = 256,
    CODES_MAX = 128,
    LAST_MAIL_MS = 10000, /* for mails in progress when all tasks have ended */
    PROBLEM_BYTES = 600,
};

/* --- start --- */

/* Takes the codes in the setting, which lives as long as the process. */
static void take_named_namespaces(struct manager *manager)
{
    const char *codes[CODES_MAX];
    size_t count = 0;
    for (const char *at = manager->settings->queue_namespaces; *at && count < CODES_MAX;) {
        size_t size = strcspn(at, " \t");
        codes[count++] = arena_copy(manager->arena, at, size);
        at += size + strspn(at + size, " \t");
    }
    manager_namespaces_set(manager, codes, count);
}

static void open_wakeups(struct manager *manager)
{
    char problem[PROBLEM_BYTES];
    char path[SETTINGS_PATH_BYTES];
    if (!settings_wakeup_path(manager->settings, path))
        return;
    manager->wakeups = wakeups_open(path, problem, sizeof problem);
    if (!manager->wakeups)
        log_warning("cannot open the wake-up socket, falling back to polling: %s", problem);
}

static void make_key_body(struct manager *manager)
{
    json_add_text(&manager->key_body, "{\"key\":", manager->key);
    builder_add_text(&manager->key_body, "}");
}

static bool open_manager(struct manager *manager, struct secret *key, char *problem)
{
    const struct settings *settings = manager->settings;
    struct identity identity;
    int concurrency[AGENDA_QUEUES];
    if (!*settings->queue_key_file) {
        snprintf(problem, PROBLEM_BYTES, "queue_key_file: the key is needed");
        return false;
    }
    if (!secret_read(key, "queue_key_file", settings->queue_key_file, problem, PROBLEM_BYTES) ||
        !(manager->alert = alert_create(settings, problem, PROBLEM_BYTES)) ||
        !identity_take(settings, &identity, problem, PROBLEM_BYTES) ||
        !(manager->endpoint = endpoint_open(manager, &identity, problem, PROBLEM_BYTES)))
        return false;
    manager->key = bytes_of(key->text);
    make_key_body(manager);
    int slots = schedule_concurrency(settings->queue_concurrency, concurrency);
    manager->slots = slots;
    manager->agenda = agenda_create(concurrency, NAMES_MOST);
    agenda_judge(manager->agenda, runner_is_quick, manager);
    manager->http = http_open(&(struct http_options){
        .parallel = slots + SCAN_SLOTS + MAIL_SLOTS,
        .ca_file = *settings->queue_ca_file ? settings->queue_ca_file : NULL,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
    });
    open_wakeups(manager);
    if (*settings->queue_namespaces)
        take_named_namespaces(manager);
    else
        manager->registry = registry_create(settings);
    return true;
}

static void close_manager(struct manager *manager, struct secret *key)
{
    endpoint_close(manager->endpoint);
    wakeups_close(manager->wakeups);
    registry_destroy(manager->registry);
    http_close(manager->http);
    runner_drop_all(manager);
    if (manager->agenda)
        agenda_destroy(manager->agenda);
    alert_destroy(manager->alert);
    if (manager->key_body.data)
        explicit_bzero(manager->key_body.data, manager->key_body.capacity);
    builder_free(&manager->key_body);
    secret_erase(key);
    arena_destroy(manager->arena);
}

/* --- the loop --- */

static void manager_heed_signals(struct manager *manager)
{
    for (int number; (number = stop_next());) {
        bool is_first = manager->stopping == STOP_NOT;
        if (number == SIGQUIT || ((number == SIGTERM || number == SIGINT) && !is_first)) {
            manager->stopping = STOP_NOW;
        } else if (number == SIGTERM || number == SIGINT) {
            log_info("draining running=%d", agenda_running(manager->agenda));
            manager->stopping = STOP_DRAIN;
        } else if (number == SIGHUP) {
            for (int i = 0; i < manager->ns_count; i++)
                manager_namespaces_want_scan(manager, i);
            if (manager->registry)
                registry_hurry(manager->registry);
        }
    }
}

static void read_wakeups(struct manager *manager)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 100};
    struct bytes text;
    for (int i = 0; manager->wakeups && i < WAKEUPS_AT_ONCE && wakeups_next(manager->wakeups, &text); i++) {
        struct json_problem problem;
        struct json *wakeup;
        if (json_read(manager->arena, text, &limits, &wakeup, &problem) == FAULT_NONE)
            (void)endpoint_take_wakeup(manager, wakeup); /* an invalid one is ignored */
    }
}

static void renew_namespaces(struct manager *manager)
{
    const char *const *codes;
    size_t count;
    if (manager->registry && registry_turn(manager->registry, &codes, &count))
        manager_namespaces_set(manager, codes, count);
}

/* Starts what is due; returns the time until the next is due, if nothing arrives. */
static int64_t begin_due(struct manager *manager)
{
    int64_t wait_ms = TURN_MS, now_ms = clock_monotonic_ms();
    alert_send_due(manager->alert, manager->http);
    if (manager->stopping != STOP_NOT)
        return wait_ms;
    struct due_scan scan;
    while (manager_namespaces_begin_scan(manager, &scan))
        runner_scan(manager, scan.ns, scan.before_ms);
    wait_ms = scan.next_ms - now_ms < wait_ms ? scan.next_ms - now_ms : wait_ms;
    if (manager->is_suspended)
        agenda_pass(manager->agenda, clock_wall_ms());
    else
        runner_start_due(manager);
    int64_t task_ms = agenda_next_ms(manager->agenda) - clock_wall_ms();
    wait_ms = task_ms < wait_ms ? task_ms : wait_ms;
    return wait_ms < 0 ? 0 : wait_ms;
}

enum { SIGNALS, ENDPOINT, WAKEUPS, REGISTRY, SOURCES };

static int64_t list_sources(const struct manager *manager, int signals, struct pollfd sources_r[SOURCES])
{
    int64_t until_ms = INT64_MAX;
    sources_r[SIGNALS] = (struct pollfd){.fd = signals, .events = POLLIN};
    sources_r[ENDPOINT] = (struct pollfd){.fd = endpoint_descriptor(manager->endpoint), .events = POLLIN};
    sources_r[WAKEUPS] =
        (struct pollfd){.fd = manager->wakeups ? wakeups_descriptor(manager->wakeups) : -1, .events = POLLIN};
    sources_r[REGISTRY] = (struct pollfd){.fd = -1};
    if (manager->registry)
        until_ms = registry_poll(manager->registry, &sources_r[REGISTRY]);
    return until_ms;
}

static void take_turn(struct manager *manager, int signals)
{
    struct pollfd sources[SOURCES];
    struct http_result result;
    int64_t wait_ms = begin_due(manager);
    int64_t left_ms = list_sources(manager, signals, sources) - clock_monotonic_ms();
    wait_ms = left_ms < 0 ? 0 : left_ms < wait_ms ? left_ms : wait_ms;
    if (http_receive_or(manager->http, wait_ms, sources, SOURCES, &result)) {
        runner_end(manager, &result);
        sources[SIGNALS].revents = sources[ENDPOINT].revents = sources[WAKEUPS].revents =
            POLLIN; /* poll again */
    }
    if (sources[SIGNALS].revents)
        manager_heed_signals(manager);
    if (sources[WAKEUPS].revents)
        read_wakeups(manager);
    if (sources[ENDPOINT].revents)
        endpoint_serve(manager->endpoint);
    renew_namespaces(manager);
    arena_reset(manager->arena);
}

static bool manager_is_over(const struct manager *manager, int64_t *since_ms)
{
    if (manager->stopping == STOP_NOT)
        return false;
    if (manager->stopping == STOP_NOW)
        return true;
    if (agenda_running(manager->agenda))
        return false;
    if (!*since_ms)
        *since_ms = clock_monotonic_ms();
    return !alert_is_sending(manager->alert) || clock_monotonic_ms() - *since_ms > LAST_MAIL_MS;
}

int manager_run(const struct settings *settings)
{
    struct manager manager = {.settings = settings, .arena = arena_create("turn")};
    struct secret key = {0};
    char problem[PROBLEM_BYTES] = "";
    int signals = stop_open();
    bool is_open = open_manager(&manager, &key, problem);
    if (is_open) {
        log_info("ready version=%s code=%s url=%s", PACKAGE_VERSION, settings->queue_code,
                 settings->queue_url);
        for (int64_t since_ms = 0; !manager_is_over(&manager, &since_ms);)
            take_turn(&manager, signals);
        log_info("stopped running=%d", agenda_running(manager.agenda));
    } else {
        log_error("cannot start: %s", problem);
    }
    close_manager(&manager, &key);
    return is_open ? 0 : 1;
}
