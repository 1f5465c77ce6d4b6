/* herald: LISTEN in each namespace's database, poll on all sockets, a stamp moved for each notification. */
#include "serve/herald.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/stop.h"
#include "document/kept.h"
#include "document/notice.h"
#include "document/session.h"
#include "edge/pg.h"
#include "operation/hint.h"
#include "serve/wakeups.h"

enum {
    ABSENT_MS = 60000,          /* between two looks for a database that does not exist */
    LOOK_MS = 250,              /* for new namespaces and for connections that are due */
    TELL_MS = 1000,             /* between two times that it says which databases it listens to */
    BELIEVED_MS = 10000,        /* what a worker has said of one that cannot be reached */
    STATEMENT_TIMEOUT_MS = 5000 /* nothing but LISTEN is run */
};

/* The ear in one namespace. */
struct ear {
    struct pg *pg;  /* NULL: not connected */
    int failures;   /* in a row */
    bool is_absent; /* the database does not exist: it was dropped, or never was */
    int64_t not_before_ms;
};

struct herald {
    const struct settings *settings;
    struct stamps *stamps;
    struct arena *arena; /* of one batch of notifications */
    struct wakeups *wakeups;
    int64_t told_ms;
    struct ear ears[STAMPS_NAMESPACES];
};

/* A namespace was made or changed: what did not exist may exist now. */
static void look_for_absent(struct herald *herald)
{
    for (int space = 0; space < STAMPS_NAMESPACES; space++)
        if (herald->ears[space].is_absent)
            herald->ears[space].not_before_ms = 0;
}

static void hear(struct herald *herald, int space, struct bytes payload)
{
    struct bytes class = NO_BYTES, id;
    crash_at(CRASH_HERALD_HEARD);
    if (!notice_publish(herald->stamps, space, payload, &class, &id))
        kept_note_ends(herald->stamps->kept, space, true); /* the schema, perhaps */
    if (class.data && bytes_equal(class, BYTES("Namespace")))
        look_for_absent(herald);
}

/* Tasks were made or moved by others than workers: managers look for them. */
static void want_scan(struct herald *herald, int space)
{
    struct backlog *backlog = stamps_backlog(herald->stamps, space);
    backlog_lower(backlog, 0);
    atomic_fetch_or(&backlog->wanted, BACKLOG_LOCAL | BACKLOG_REMOTE);
}

static void put_off(struct herald *herald, int space)
{
    struct ear *ear = &herald->ears[space];
    stamps_space_tell(herald->stamps, space, false);
    pg_close(ear->pg);
    ear->pg = NULL;
    ear->failures++;
    ear->not_before_ms = clock_monotonic_ms() + session_pause_ms(ear->failures);
}

/* Takes all that has come; a connection that is lost is closed. */
static void drain(struct herald *herald, int space)
{
    struct ear *ear = &herald->ears[space];
    struct bytes channel, payload;
    while (pg_next_notification(ear->pg, herald->arena, &channel, &payload)) {
        if (bytes_equal(channel, BYTES("stampd_task")))
            want_scan(herald, space);
        else
            hear(herald, space, payload);
        arena_reset(herald->arena);
    }
    if (pg_is_alive(ear->pg))
        return;
    log_warning("herald lost database=%s", stamps_space_database(herald->stamps, space));
    put_off(herald, space);
}

/* LISTEN first, then all stamps: what was changed before is seen by whoever loads from now on, what is
 * changed later is heard. */
static void connect(struct herald *herald, int space)
{
    struct ear *ear = &herald->ears[space];
    struct pg_options options = {
        .conninfo = herald->settings->database,
        .database = stamps_space_database(herald->stamps, space),
        .role_settings = "",
        .connect_timeout_s = (int)herald->settings->connect_timeout_s,
        .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
        .lock_timeout_ms = STATEMENT_TIMEOUT_MS,
    };
    options.is_absence_known = ear->is_absent;
    enum fault fault = pg_open(&options, &ear->pg);
    if (fault ||
        pg_execute(ear->pg, "set application_name = 'stampd herald'; listen stampd; listen stampd_task")) {
        put_off(herald, space);
        if (fault == FAULT_ODATABASE)
            ear->not_before_ms = clock_monotonic_ms() + ABSENT_MS;
        if (fault == FAULT_ODATABASE && !ear->is_absent)
            log_info("herald forgets database=%s, which does not exist", options.database);
        ear->is_absent = fault == FAULT_ODATABASE;
        return;
    }
    ear->is_absent = false;
    stamps_space_tell(herald->stamps, space, true);
    crash_at(CRASH_HERALD_LISTENS);
    stamps_move_all(herald->stamps);
    kept_note_ends(herald->stamps->kept, space, true);
    want_scan(herald, space);
    ear->failures = 0;
    log_info("herald listens database=%s", options.database);
    drain(herald, space);
}

/* Connects one of those that are due, not more: the others' notifications must not wait for slow servers.
 * Returns how long the next may wait. */
static int connect_due(struct herald *herald, int count, int *turn)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < count; i++) {
        int space = (*turn + i) % count;
        struct ear *ear = &herald->ears[space];
        if (ear->pg || now_ms < ear->not_before_ms || !stamps_space_database(herald->stamps, space))
            continue;
        connect(herald, space);
        *turn = space + 1;
        return 0;
    }
    return LOOK_MS;
}

/* A worker that has failed to reach the database knows better, for a while. */
static void tell_health(struct herald *herald, int count)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms < herald->told_ms + TELL_MS)
        return;
    herald->told_ms = now_ms;
    for (int space = 0; space < count; space++) {
        bool is_up;
        int64_t age_ms = stamps_space_health(herald->stamps, space, &is_up);
        if (herald->ears[space].pg && (is_up || age_ms < 0 || age_ms > BELIEVED_MS))
            stamps_space_tell(herald->stamps, space, true);
    }
}

void herald_run(const struct settings *settings, struct stamps *stamps)
{
    struct herald herald = {.settings = settings,
                            .stamps = stamps,
                            .arena = arena_create("herald"),
                            .wakeups = wakeups_create(settings)};
    struct pollfd sockets[STAMPS_NAMESPACES + 1];
    (void)prctl(PR_SET_NAME, "stampd-herald"); /* for administrators */
    sockets[STAMPS_NAMESPACES] = (struct pollfd){.fd = stop_open(), .events = POLLIN};
    for (int turn = 0; stop_asked() == STOP_NOT;) {
        int count = stamps_space_count(stamps);
        int wait_ms = connect_due(&herald, count, &turn);
        tell_health(&herald, count);
        hint_again(settings, stamps);
        struct pollfd *first = &sockets[STAMPS_NAMESPACES - count]; /* those in use, then the signals */
        for (int i = 0; i < count; i++)
            first[i] = (struct pollfd){.fd = herald.ears[i].pg ? pg_socket(herald.ears[i].pg) : -1,
                                       .events = POLLIN};
        if (!wakeups_wait(herald.wakeups, stamps, wait_ms, first, (size_t)count + 1))
            continue;
        for (int i = 0; i < count; i++)
            if (first[i].revents)
                drain(&herald, i);
    }
    for (int i = 0; i < STAMPS_NAMESPACES; i++)
        pg_close(herald.ears[i].pg);
    wakeups_destroy(herald.wakeups);
    arena_destroy(herald.arena);
}
