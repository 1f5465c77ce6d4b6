/* relay: LISTEN in each namespace's database, poll on all sockets, a slot stamp advanced for each
 * notification. */
#include "serve/relay.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/stop.h"
#include "segment/backlog.h"
#include "segment/namespaces.h"
#include "segment/purge_counts.h"
#include "segment/notification.h"
#include "segment/slots.h"
#include "store/session.h"
#include "edge/pg.h"
#include "operation/tasks/task_wakeup.h"
#include "serve/remote_wakeups.h"

enum {
    ABSENT_MS = 60000,          /* between two checks for a database that does not exist */
    CHECK_MS = 250,             /* for new namespaces and for connections that are due */
    REPORT_MS = 1000,           /* between two reports of the databases that it listens to */
    TRUSTED_MS = 10000,         /* validity of a worker's report of an unreachable database */
    STATEMENT_TIMEOUT_MS = 5000 /* only LISTEN is run */
};

/* The connection to one namespace's database. */
struct relay_session {
    struct pg *pg;  /* NULL: not connected */
    int failures;   /* consecutive */
    bool is_absent; /* the database does not exist: it was dropped, or never was */
    int64_t not_before_ms;
};

struct relay {
    const struct settings *settings;
    struct segment *segment;
    struct arena *arena; /* of one batch of notifications */
    struct remote_wakeups *remote_wakeups;
    int64_t reported_ms;
    struct relay_session sessions[NAMESPACES_MOST];
};

/* A namespace was created or changed: databases that did not exist may exist now. */
static void retry_absent(struct relay *relay)
{
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        if (relay->sessions[ns].is_absent)
            relay->sessions[ns].not_before_ms = 0;
}

static void receive(struct relay *relay, int ns, struct bytes payload)
{
    struct bytes class = NO_BYTES, id;
    crash_at(CRASH_RELAY_RECEIVED);
    if (!notification_publish(relay->segment, ns, payload, &class, &id))
        purge_counts_note_ends(relay->segment->kept, ns, true); /* the schema may have changed */
    if (class.data && bytes_equal(class, BYTES("Namespace")))
        retry_absent(relay);
}

/* Tasks were created or moved outside the workers: managers must scan. */
static void want_scan(struct relay *relay, int ns)
{
    struct backlog *backlog = backlog_of(relay->segment, ns);
    atomic_fetch_or(&backlog->wanted, BACKLOG_LOCAL | BACKLOG_REMOTE);
}

static void put_off(struct relay *relay, int ns)
{
    struct relay_session *session = &relay->sessions[ns];
    namespaces_set_health(relay->segment, ns, false);
    pg_close(session->pg);
    session->pg = NULL;
    session->failures++;
    session->not_before_ms = clock_monotonic_ms() + session_pause_ms(session->failures);
}

/* Handles all notifications received; closes a lost connection. */
static void drain(struct relay *relay, int ns)
{
    struct relay_session *session = &relay->sessions[ns];
    struct bytes channel, payload;
    while (pg_next_notification(session->pg, relay->arena, &channel, &payload)) {
        if (bytes_equal(channel, BYTES("stampd_task")))
            want_scan(relay, ns);
        else
            receive(relay, ns, payload);
        arena_reset(relay->arena);
    }
    if (pg_is_alive(session->pg))
        return;
    log_warning("relay lost database=%s", namespaces_database(relay->segment, ns));
    put_off(relay, ns);
}

/* LISTEN first, then advance all stamps: a process that loads from now on gets earlier changes, and later
 * ones are received. */
static void connect(struct relay *relay, int ns)
{
    struct relay_session *session = &relay->sessions[ns];
    struct pg_options options = {
        .conninfo = relay->settings->database,
        .database = namespaces_database(relay->segment, ns),
        .role_settings = "",
        .connect_timeout_s = (int)relay->settings->connect_timeout_s,
        .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
        .lock_timeout_ms = STATEMENT_TIMEOUT_MS,
    };
    options.is_absence_known = session->is_absent;
    enum fault fault = pg_open(&options, &session->pg);
    if (fault ||
        pg_execute(session->pg, "set application_name = 'stampd relay'; listen stampd; listen stampd_task")) {
        put_off(relay, ns);
        if (fault == FAULT_ODATABASE)
            session->not_before_ms = clock_monotonic_ms() + ABSENT_MS;
        if (fault == FAULT_ODATABASE && !session->is_absent)
            log_info("relay dropped database=%s, which does not exist", options.database);
        session->is_absent = fault == FAULT_ODATABASE;
        return;
    }
    session->is_absent = false;
    namespaces_set_health(relay->segment, ns, true);
    crash_at(CRASH_RELAY_LISTENS);
    slots_move_all(relay->segment);
    purge_counts_note_ends(relay->segment->kept, ns, true);
    want_scan(relay, ns);
    session->failures = 0;
    log_info("relay listens database=%s", options.database);
    drain(relay, ns);
}

/* Connects only one that is due: notifications of the others must not wait for slow servers.  Returns how
 * long the next may wait. */
static int connect_due(struct relay *relay, int count, int *turn)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < count; i++) {
        int ns = (*turn + i) % count;
        struct relay_session *session = &relay->sessions[ns];
        if (session->pg || now_ms < session->not_before_ms || !namespaces_database(relay->segment, ns))
            continue;
        connect(relay, ns);
        *turn = ns + 1;
        return 0;
    }
    return CHECK_MS;
}

/* The report of a worker that failed to reach the database has precedence for a while. */
static void report_health(struct relay *relay, int count)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms < relay->reported_ms + REPORT_MS)
        return;
    relay->reported_ms = now_ms;
    for (int ns = 0; ns < count; ns++) {
        bool is_up;
        int64_t age_ms = namespaces_health(relay->segment, ns, &is_up);
        if (relay->sessions[ns].pg && (is_up || age_ms < 0 || age_ms > TRUSTED_MS))
            namespaces_set_health(relay->segment, ns, true);
    }
}

void relay_run(const struct settings *settings, struct segment *segment)
{
    struct relay relay = {.settings = settings,
                          .segment = segment,
                          .arena = arena_create("relay"),
                          .remote_wakeups = remote_wakeups_create(settings)};
    struct pollfd sockets[NAMESPACES_MOST + 1];
    (void)prctl(PR_SET_NAME, "stampd-relay"); /* for administrators */
    sockets[NAMESPACES_MOST] = (struct pollfd){.fd = stop_open(), .events = POLLIN};
    for (int turn = 0; stop_requested() == STOP_NOT;) {
        int count = namespaces_count(segment);
        int wait_ms = connect_due(&relay, count, &turn);
        report_health(&relay, count);
        task_wakeup_again(settings, segment);
        log_flush(clock_monotonic_ms());
        struct pollfd *first = &sockets[NAMESPACES_MOST - count]; /* those in use, then the signals */
        for (int i = 0; i < count; i++)
            first[i] = (struct pollfd){.fd = relay.sessions[i].pg ? pg_socket(relay.sessions[i].pg) : -1,
                                       .events = POLLIN};
        if (!remote_wakeups_wait(relay.remote_wakeups, segment, wait_ms, first, (size_t)count + 1))
            continue;
        for (int i = 0; i < count; i++)
            if (first[i].revents)
                drain(&relay, i);
    }
    for (int i = 0; i < NAMESPACES_MOST; i++)
        pg_close(relay.sessions[i].pg);
    remote_wakeups_destroy(relay.remote_wakeups);
    arena_destroy(relay.arena);
}
