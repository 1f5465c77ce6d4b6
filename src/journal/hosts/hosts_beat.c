/* hosts_beat: one statement for each report, and LISTEN. */
#include "journal/hosts/hosts_beat.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/pg/pg.h"
#include "journal/journal_child.h"

enum { STATEMENT_MS = 4000, PATIENCE_MS = 15000, RETRY_MS = 1000 };

struct hosts_beat {
    struct records *records;
    struct watch *watch;
    struct journal_child child;
    int64_t sent_ms, ended_ms; /* sent_ms 0: no report waits for its answer */
    void (*seen)(void *context, const struct hosts_sight *sight);
    void *context;
};

/* --- the child --- */

/* What the child needs of the parent, whose copy it begins as. */
static const struct settings *hosts_beat_settings;
static char hosts_beat_fingerprint[CRYPTO_SHA256_HEX + 1];

static const struct pg_statement hosts_beat_statement = {
    "host_beat", "select * from host_beat($1, $2, $3, $4, $5, $6::int = 1, $7::int = 1, $8, $9, $10, $11)",
    11};

static struct pg *connect_to_z(void)
{
    struct pg *pg = NULL;
    const struct pg_options options = {
        .conninfo = hosts_beat_settings->database,
        .database = hosts_beat_settings->z_database,
        .name = "stamp-journal hosts",
        .role_settings = "-c search_path=stampd -c synchronous_commit=on -c tcp_keepalives_idle=5"
                         " -c tcp_keepalives_interval=2 -c tcp_keepalives_count=2 -c tcp_user_timeout=10000",
        .connect_timeout_s = (int)hosts_beat_settings->connect_timeout_s,
        .statement_timeout_ms = STATEMENT_MS,
        .lock_timeout_ms = STATEMENT_MS,
    };
    if (pg_open(&options, &pg))
        return NULL;
    if (pg_execute(pg, "listen stampd_hosts") == FAULT_NONE &&
        pg_prepare(pg, &hosts_beat_statement, 1) == FAULT_NONE)
        return pg;
    pg_close(pg);
    return NULL;
}

static void take_text(char *text_r, size_t size, const struct pg_result *rows, int row, int column)
{
    struct bytes text = pg_get_text(rows, row, column);
    snprintf(text_r, size, "%.*s", (int)text.size, text.size ? text.data : "");
}

/* Columns of host_beat. */
enum {
    VERSION,
    SELF,
    SEEN,
    SWEPT,
    DOUBT,
    DOUBT_OVER,
    IS_DOUBTED,
    COPIES,
    TTL_S,
    PLACES,
    ADDRESS,
    ENDPOINT,
    FINGERPRINT,
    NUMBER,
    BEAT,
    IS_GUEST,
    JOINED,
    CONTENT_BYTES,
    STATE,
    IS_EXHAUSTIVE,
    RECORDS,
    BYTES_OF,
    DOUBTFUL,
    ABSENT,
    MISSING,
    SENT,
    RECEIVED,
    UNSURE_MS,
    MEMORY,
    ALONE
};

static void read_host(const struct pg_result *rows, int row, struct records_host *host)
{
    take_text(host->address, sizeof host->address, rows, row, ADDRESS);
    host->state = (uint64_t)pg_get_i64(rows, row, STATE);
    host->is_exhaustive = pg_get_bool(rows, row, IS_EXHAUSTIVE);
    host->records = (uint64_t)pg_get_i64(rows, row, RECORDS);
    host->bytes = (uint64_t)pg_get_i64(rows, row, BYTES_OF);
    host->doubtful = (uint64_t)pg_get_i64(rows, row, DOUBTFUL);
    host->absent = (uint64_t)pg_get_i64(rows, row, ABSENT);
    host->missing = (uint64_t)pg_get_i64(rows, row, MISSING);
    host->sent = (uint64_t)pg_get_i64(rows, row, SENT);
    host->received = (uint64_t)pg_get_i64(rows, row, RECEIVED);
    host->unsure_ms = pg_get_i64(rows, row, UNSURE_MS);
    host->memory = (uint64_t)pg_get_i64(rows, row, MEMORY);
}

static void read_sight(const struct pg_result *rows, struct hosts_sight *sight)
{
    int count = pg_rows(rows) < HOSTS_MOST ? pg_rows(rows) : HOSTS_MOST;
    sight->all.count = (uint64_t)count;
    if (count) {
        sight->version = (uint64_t)pg_get_i64(rows, 0, VERSION);
        sight->self = (uint32_t)pg_get_i64(rows, 0, SELF);
        sight->seen = (uint64_t)pg_get_i64(rows, 0, SEEN);
        sight->swept = (uint64_t)pg_get_i64(rows, 0, SWEPT);
        sight->doubt = (uint64_t)pg_get_i64(rows, 0, DOUBT);
        sight->doubt_over = (uint64_t)pg_get_i64(rows, 0, DOUBT_OVER);
        sight->is_doubted = pg_get_bool(rows, 0, IS_DOUBTED);
        sight->copies = pg_get_i64(rows, 0, COPIES);
        sight->ttl_s = pg_get_i64(rows, 0, TTL_S);
        take_text(sight->places, sizeof sight->places, rows, 0, PLACES);
    }
    for (int row = 0; row < count; row++) {
        struct hosts_member *member = &sight->members[sight->count];
        struct records_host *host = &sight->all.list[row];
        read_host(rows, row, host);
        host->is_self = sight->self && pg_get_i64(rows, row, NUMBER) == sight->self;
        if (host->state == RECORDS_HOST_AWAY)
            continue;
        sight->count++;
        take_text(member->address, sizeof member->address, rows, row, ADDRESS);
        take_text(member->endpoint, sizeof member->endpoint, rows, row, ENDPOINT);
        take_text(member->fingerprint, sizeof member->fingerprint, rows, row, FINGERPRINT);
        member->number = (uint32_t)pg_get_i64(rows, row, NUMBER);
        member->beat = pg_get_i64(rows, row, BEAT);
        member->is_guest = pg_get_bool(rows, row, IS_GUEST);
        member->joined = (uint64_t)pg_get_i64(rows, row, JOINED);
        member->alone = (uint8_t)pg_get_i64(rows, row, ALONE);
        member->content_most = (uint64_t)pg_get_i64(rows, row, CONTENT_BYTES);
    }
}

/* False: PostgreSQL has not answered. */
static bool ask_z(struct pg *pg, struct arena *arena, const struct hosts_report *report,
                  struct hosts_sight *sight)
{
    struct pg_result *rows;
    const struct cluster_report *of = &report->of;
    const int64_t counts[] = {(int64_t)(of->records + of->removed),
                              (int64_t)of->record_bytes,
                              (int64_t)of->doubtful,
                              (int64_t)of->absent,
                              (int64_t)of->missing,
                              (int64_t)of->sent,
                              (int64_t)of->received,
                              of->unsure_ms,
                              (int64_t)report->memory,
                              (int64_t)report->content_most,
                              of->alone_over};
    const struct pg_params *params = PG_PARAMS(
        arena, PG_TEXT(bytes_of(hosts_beat_settings->cluster_address)),
        PG_TEXT(bytes_of(hosts_beat_fingerprint)), PG_I64(report->number), PG_I64((int64_t)report->of.seen),
        PG_I64((int64_t)report->of.swept), PG_I32(report->of.is_short), PG_I32(report->of.is_exhaustive),
        PG_I64S(counts, COUNT_OF(counts)), PG_I64((int64_t)report->doubt_over),
        PG_I64S(report->silent, report->silent_count), PG_I64S(report->silent_beats, report->silent_count));
    if (pg_run(pg, &hosts_beat_statement, params, &rows))
        return false;
    memset(sight, 0, sizeof *sight);
    read_sight(rows, sight);
    sight->sent_ms = report->sent_ms;
    return true;
}

static bool pass_notices(struct pg *pg, struct arena *arena, int fd)
{
    struct bytes channel, payload;
    static const struct hosts_sight notice = {.is_notice = true};
    bool is_noticed = false;
    if (!pg_is_alive(pg))
        return false;
    while (pg_next_notification(pg, arena, &channel, &payload))
        is_noticed = true;
    if (is_noticed)
        (void)send(fd, &notice, sizeof notice,
                   MSG_NOSIGNAL | MSG_DONTWAIT); /* else the next beat learns it */
    return true;
}

static void hosts_beat_run_child(struct records *records UNUSED, int fd)
{
    static struct hosts_report report;
    static struct hosts_sight sight;
    struct pg *pg = NULL;
    struct arena *arena = arena_create("hosts");
    for (;;) {
        struct pollfd polled[] = {{.fd = fd, .events = POLLIN},
                                  {.fd = pg ? pg_socket(pg) : -1, .events = POLLIN}};
        if (poll(polled, 2, -1) <= 0)
            continue;
        if (pg && polled[1].revents && !pass_notices(pg, arena, fd)) {
            pg_close(pg);
            pg = NULL;
        }
        if (polled[0].revents) {
            if (recv(fd, &report, sizeof report, 0) != sizeof report)
                break;
            if (!pg)
                pg = connect_to_z();
            bool is_seen = pg && ask_z(pg, arena, &report, &sight);
            if (!is_seen) {
                pg_close(pg);
                pg = NULL;
                memset(&sight, 0, sizeof sight);
                sight.is_failed = true;
            }
            if (send(fd, &sight, sizeof sight, MSG_NOSIGNAL) != sizeof sight)
                break;
        }
        arena_reset(arena);
        log_flush(clock_monotonic_ms());
    }
}

/* --- the parent --- */

static void end_beat_child(struct hosts_beat *beat)
{
    if (!beat->child.pid)
        return;
    events_watch_set(beat->watch, -1, false);
    journal_child_end(&beat->child);
    beat->sent_ms = 0;
    beat->ended_ms = clock_monotonic_ms();
}

static void on_sight(void *context)
{
    static struct hosts_sight sight;
    struct hosts_beat *beat = context;
    ssize_t size = recv(beat->child.fd, &sight, sizeof sight, MSG_DONTWAIT);
    if (size != sizeof sight) {
        if (size == 0) {
            log_warning("the process that reports to z has ended");
            end_beat_child(beat);
        }
        return;
    }
    if (!sight.is_notice)
        beat->sent_ms = 0;
    beat->seen(beat->context, &sight);
}

struct hosts_beat *hosts_beat_create(struct events *events, const struct settings *settings,
                                     struct records *records, const char *fingerprint,
                                     void (*seen)(void *context, const struct hosts_sight *sight),
                                     void *context)
{
    struct hosts_beat *beat = memory_zeroed(1, sizeof *beat, "starting the process that reports to z");
    *beat = (struct hosts_beat){.records = records, .seen = seen, .context = context};
    hosts_beat_settings = settings;
    snprintf(hosts_beat_fingerprint, sizeof hosts_beat_fingerprint, "%s", fingerprint);
    beat->watch = events_watch_create(events, on_sight, beat);
    return beat;
}

void hosts_beat_destroy(struct hosts_beat *beat)
{
    if (!beat)
        return;
    end_beat_child(beat);
    events_watch_destroy(beat->watch);
    free(beat);
}

void hosts_beat_send(struct hosts_beat *beat, const struct hosts_report *report)
{
    static const struct journal_child_work work = {"journal-hosts", SOCK_SEQPACKET, hosts_beat_run_child};
    int64_t now_ms = clock_monotonic_ms();
    if (beat->sent_ms && now_ms - beat->sent_ms > PATIENCE_MS) {
        log_warning("the process that reports to z does not answer: another one is started");
        end_beat_child(beat);
    }
    if (beat->sent_ms)
        return;
    if (!beat->child.pid) {
        if (beat->ended_ms && now_ms - beat->ended_ms < RETRY_MS)
            return;
        if (!journal_child_start(&beat->child, &work, beat->records))
            return;
        events_watch_set(beat->watch, beat->child.fd, false);
    }
    if (send(beat->child.fd, report, sizeof *report, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *report)
        beat->sent_ms = now_ms;
    else
        end_beat_child(beat);
}
