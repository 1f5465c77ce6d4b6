/* forwarder: the loop. */
#include "forward/forwarder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "forward/lane.h"

/* Parallel requests; the pause between looks at the spool when nothing wakes the forwarder. */
enum { PARALLEL = 8, CONNECT_MS = 10000, LOOK_MS = 60000, KEY_MOST = 4096 };

struct forwarder {
    const struct forward_settings *settings;
    struct stampd_spool *spool;
    struct http *http;
    struct lane *lanes;
    char *authorization;
    uint64_t after; /* records up to it have been read */
    bool is_stopping, until_empty;
    bool has_more; /* records to read, perhaps: those read last were as many as there was room for */
};

static bool forwarder_read_key(struct forwarder *forwarder)
{
    char key[KEY_MOST];
    FILE *file = fopen(forwarder->settings->key_file, "re");
    int error = file ? 0 : errno;
    bool is_read = file && fgets(key, sizeof key, file);
    if (file)
        fclose(file);
    if (is_read)
        key[strcspn(key, "\r\n")] = 0;
    if (!is_read || !*key) {
        log_error("cannot read key_file %s: %s", forwarder->settings->key_file,
                  error ? strerror(error) : "its first line is empty");
        return false;
    }
    if (asprintf(&forwarder->authorization, "Authorization: Bearer %s", key) < 0)
        log_fatal("out of memory");
    explicit_bzero(key, sizeof key);
    return true;
}

/* False: it is to end at once. */
static bool take_signals(struct forwarder *forwarder)
{
    for (int number; (number = stop_next());) {
        if (number == SIGQUIT || (forwarder->is_stopping && stop_ends(number)))
            return false;
        forwarder->is_stopping = forwarder->is_stopping || (stop_ends(number) && number != SIGHUP);
    }
    return true;
}

/* The program that opens a spool first after the start of the machine repairs it, under the lock of the
 * writers. */
static int open_when_free(struct forwarder *forwarder)
{
    for (;;) {
        int error = stampd_spool_open(forwarder->settings->spool, STAMPD_SPOOL_DURABLE, &forwarder->spool);
        forwarder->is_stopping = !take_signals(forwarder) || forwarder->is_stopping;
        if (error != ETIMEDOUT || forwarder->is_stopping)
            return error;
        log_often(LOG_LEVEL_ERROR, "open", "waits for spool %s: %s", forwarder->settings->spool,
                  lane_words(error));
    }
}

static bool open_spool(struct forwarder *forwarder)
{
    const char *folder = forwarder->settings->spool;
    int error = open_when_free(forwarder);
    if (!error)
        error = stampd_spool_hold(forwarder->spool);
    if (!error && stampd_spool_descriptor(forwarder->spool) < 0)
        error = errno;
    if (error && !forwarder->is_stopping)
        log_error("cannot forward spool %s: %s", folder, lane_words(error));
    return !error;
}

/* A forwarder that died between keeping a dead letter and acknowledging the record left both: the record is
 * judged again. */
static int drop_unfinished(struct forwarder *forwarder)
{
    struct stampd_spool_record dead, record;
    const char *reason;
    int error = 0;
    for (uint64_t after = 0; !error || error == EBADMSG; after = dead.sequence) {
        error = stampd_spool_next_dead(forwarder->spool, after, &dead, &reason);
        if (error && error != EBADMSG)
            break;
        int state = stampd_spool_next(forwarder->spool, dead.sequence - 1, &record);
        if ((!state || state == EBADMSG) && record.first <= dead.sequence && dead.sequence <= record.sequence)
            error = stampd_spool_drop_dead(forwarder->spool, dead.sequence);
    }
    return error == EAGAIN ? 0 : error;
}

/* --- reading --- */

static struct lane *find_lane(struct forwarder *forwarder, const char *ns)
{
    struct lane *lane = forwarder->lanes;
    while (lane && strcmp(lane->ns, ns) != 0)
        lane = lane->next;
    if (!lane) {
        lane = lane_create(ns, forwarder->settings);
        lane->next = forwarder->lanes;
        forwarder->lanes = lane;
    }
    return lane;
}

static size_t count_waiting(const struct forwarder *forwarder)
{
    size_t count = 0;
    for (const struct lane *lane = forwarder->lanes; lane; lane = lane->next)
        count += lane->count + lane->stored_count;
    return count;
}

static bool is_full(const struct forwarder *forwarder)
{
    return count_waiting(forwarder) >= (size_t)forwarder->settings->window_records;
}

/* Puts new records into their lanes: as many as a batch has, for the server need not wait until the window is
 * full.  What is damaged, or has no name of a namespace, is in a lane without a name, which finds nothing to
 * send: only dead letters, for which a full disk may have room later. */
static int read_spool(struct forwarder *forwarder)
{
    struct stampd_spool_record record;
    size_t count = count_waiting(forwarder), most = count + (size_t)forwarder->settings->batch_records;
    if (most > (size_t)forwarder->settings->window_records)
        most = (size_t)forwarder->settings->window_records;
    forwarder->has_more = false;
    stampd_spool_clear(forwarder->spool);
    for (; count < most; count++) {
        int error = stampd_spool_next(forwarder->spool, forwarder->after, &record);
        if (error && error != EBADMSG)
            return error == EAGAIN ? 0 : error;
        bool is_good = !error && lane_is_namespace(record.request.ns);
        lane_add(find_lane(forwarder, is_good ? record.request.ns : ""), record.first);
        forwarder->after = record.sequence;
    }
    forwarder->has_more = true;
    return 0;
}

/* --- sending --- */

/* `is_ready`: only batches that are composed already. */
static int send_due(struct forwarder *forwarder, bool is_ready)
{
    const char *const headers[] = {forwarder->authorization, NULL};
    int64_t now_ms = clock_monotonic_ms();
    for (struct lane *lane = forwarder->lanes; lane && !http_is_full(forwarder->http); lane = lane->next) {
        if (lane->sent || !lane->count || lane->is_unnoted || lane->due_ms > now_ms ||
            (is_ready && !lane->ready))
            continue;
        int error = lane_compose(lane, forwarder->spool, forwarder->settings);
        if (error)
            return error;
        const struct http_request request = {.method = "POST",
                                             .url = lane->url,
                                             .content_type = "application/json",
                                             .body = {lane->body.data, lane->body.size},
                                             .headers = headers,
                                             .timeout_ms = forwarder->settings->timeout_s * 1000,
                                             .owner = lane};
        if (lane->sent)
            http_send(forwarder->http, &request);
    }
    http_flush(forwarder->http);
    return 0;
}

/* Reading comes second: the server waits for what is composed. */
static int send_and_read(struct forwarder *forwarder)
{
    int error = send_due(forwarder, true);
    if (!error)
        error = read_spool(forwarder);
    return error ? error : send_due(forwarder, false);
}

/* What can be done while the server works. */
static int work_beside(struct forwarder *forwarder)
{
    int error = 0;
    bool is_noted = true; /* else the others wait for the next turn: a failure may have taken seconds */
    for (struct lane *lane = forwarder->lanes; lane && !error; lane = lane->next) {
        is_noted = is_noted && lane_note_stored(lane, forwarder->spool, forwarder->settings);
        if (!forwarder->is_stopping)
            error = lane_prepare(lane, forwarder->spool, forwarder->settings);
    }
    return error;
}

static int64_t next_due_ms(const struct forwarder *forwarder)
{
    int64_t now_ms = clock_monotonic_ms(), wait_ms = LOOK_MS;
    for (const struct lane *lane = forwarder->lanes; lane; lane = lane->next) {
        int64_t due_ms = lane->due_ms > now_ms ? lane->due_ms - now_ms : 0;
        bool may_send = lane->count && !lane->sent && !http_is_full(forwarder->http);
        if ((may_send || lane->is_unnoted) && due_ms < wait_ms)
            wait_ms = due_ms;
    }
    return forwarder->has_more && !forwarder->is_stopping && !is_full(forwarder) ? 0 : wait_ms;
}

static bool is_idle(const struct forwarder *forwarder)
{
    return !http_in_flight(forwarder->http) &&
           (forwarder->is_stopping ||
            (forwarder->until_empty && !forwarder->has_more && !count_waiting(forwarder)));
}

static int run_forwarder(struct forwarder *forwarder, int stop_fd)
{
    for (;;) {
        struct http_result result;
        int error = forwarder->is_stopping ? 0 : send_and_read(forwarder);
        if (!error)
            error = work_beside(forwarder);
        if (error)
            return error;
        if (is_idle(forwarder))
            return 0;
        struct pollfd others[] = {{.fd = stampd_spool_descriptor(forwarder->spool), .events = POLLIN},
                                  {.fd = stop_fd, .events = POLLIN}};
        if (forwarder->is_stopping || is_full(forwarder))
            others[0].fd = -1;
        if (http_receive_or(forwarder->http, next_due_ms(forwarder), others, COUNT_OF(others), &result))
            lane_settle(result.owner, forwarder->spool, forwarder->settings, &result);
        if (!take_signals(forwarder))
            return 0;
        log_flush(clock_monotonic_ms());
    }
}

static void close_all(struct forwarder *forwarder)
{
    for (struct lane *lane = forwarder->lanes, *next; lane; lane = next) {
        next = lane->next;
        lane_destroy(lane);
    }
    stampd_spool_close(forwarder->spool);
    if (forwarder->authorization)
        explicit_bzero(forwarder->authorization, strlen(forwarder->authorization));
    free(forwarder->authorization);
}

int forwarder_check(const struct forward_settings *settings)
{
    struct forwarder forwarder = {.settings = settings};
    bool is_right = forwarder_read_key(&forwarder);
    if (*settings->ca_file && access(settings->ca_file, R_OK) != 0) {
        log_error("cannot read ca_file %s: %s", settings->ca_file, strerror(errno));
        is_right = false;
    }
    int error = stampd_spool_open(settings->spool, STAMPD_SPOOL_DURABLE, &forwarder.spool);
    if (error) {
        log_error("cannot open spool %s: %s", settings->spool, lane_words(error));
        is_right = false;
    }
    close_all(&forwarder);
    return !is_right;
}

int forwarder_run(const struct forward_settings *settings, bool until_empty)
{
    struct forwarder forwarder = {.settings = settings, .until_empty = until_empty};
    int stop_fd = stop_open(), error = EINVAL;
    if (forwarder_read_key(&forwarder) && open_spool(&forwarder)) {
        const struct http_options options = {.parallel = PARALLEL,
                                             .ca_file = *settings->ca_file ? settings->ca_file : NULL,
                                             .connect_timeout_ms = CONNECT_MS,
                                             .reach = HTTP_EVERYWHERE};
        forwarder.http = http_open(&options);
        log_info("forwards spool=%s url=%s", settings->spool, settings->url);
        error = drop_unfinished(&forwarder);
        if (!error)
            error = run_forwarder(&forwarder, stop_fd);
        if (error)
            log_error("the spool cannot be read or written: %s", strerror(error));
        http_close(forwarder.http);
    } else if (forwarder.is_stopping) {
        error = 0;
    }
    close_all(&forwarder);
    return error != 0;
}
