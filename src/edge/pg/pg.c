/* pg: a connection: its errors, waits, results and notifications. */
#include "edge/pg/pg.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "edge/pg/pg_private.h"

struct pg {
    PGconn *connection;
    int64_t answer_timeout_ms;
    bool is_broken, is_busy;
    struct pg_patience patience;
    char database[PG_DATABASE_SIZE];
    char sqlstate[6];
    char message[400];
    char detail[8192]; /* of the last error raised by one of our functions (ST…) */
    int64_t position;  /* of the last error in its SQL text; 0: unknown */
    struct pg_state {
        void *data; /* NULL: not used yet */
        void (*end)(void *data);
    } states[PG_USES];
};

/* PostgreSQL acknowledges a commit whose wait for the standby was cancelled, and only warns that the standby
 * may not have it.  The words depend on lc_messages, and there is no SQLSTATE: the function is named. */
static bool is_unreplicated(const PGresult *notice)
{
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    return function && strcmp(function, "SyncRepWaitForLSN") == 0;
}

/* Handles unsolicited messages of the server, such as the last one when it ends an idle session. */
static void on_notice(void *context, const PGresult *notice)
{
    struct pg *pg = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    if (is_unreplicated(notice)) { /* whoever reads its answer finds the connection broken */
        log_warning("postgresql did not wait for the standby database=%s: %s", PQdb(pg->connection),
                    text ? text : "");
        pg->is_broken = true;
        return;
    }
    log_debug("postgresql notice severity=%s: %s", severity ? severity : "", text ? text : "");
    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        pg->is_broken = true;
}

struct pg *pg_create(PGconn *connection, int64_t statement_timeout_ms)
{
    struct pg *pg = calloc(1, sizeof *pg);
    if (!connection || !pg)
        log_fatal("out of memory postgresql connection");
    pg->connection = connection;
    pg->answer_timeout_ms = statement_timeout_ms + PG_ANSWER_GRACE_MS;
    PQsetNoticeReceiver(connection, on_notice, pg);
    return pg;
}

void pg_close(struct pg *pg)
{
    if (!pg)
        return;
    for (struct pg_state *state = pg->states; state < pg->states + PG_USES; state++)
        if (state->data)
            state->end(state->data);
    PQfinish(pg->connection);
    free(pg);
}

void *pg_state(struct pg *pg, enum pg_use use, size_t size, void (*end)(void *))
{
    struct pg_state *state = &pg->states[use];
    if (!state->data) {
        if (!(state->data = calloc(1, size)))
            log_fatal("out of memory postgresql connection");
        state->end = end;
    }
    return state->data;
}

void pg_note_database(struct pg *pg, const char *database)
{
    snprintf(pg->database, sizeof pg->database, "%s", database);
}

const char *pg_database(const struct pg *pg)
{
    return pg->database;
}

PGconn *pg_connection(const struct pg *pg)
{
    return pg->connection;
}

void pg_replace_connection(struct pg *pg, PGconn *connection)
{
    if (!connection)
        log_fatal("out of memory postgresql connection");
    PQfinish(pg->connection);
    pg->connection = connection;
    PQsetNoticeReceiver(connection, on_notice, pg);
}

int64_t pg_answer_deadline_ms(const struct pg *pg)
{
    return clock_monotonic_ms() + pg->answer_timeout_ms;
}

bool pg_is_busy(const struct pg *pg)
{
    return pg->is_busy;
}

void pg_set_busy(struct pg *pg, bool is_busy)
{
    pg->is_busy = is_busy;
}

bool pg_is_connected(const struct pg *pg)
{
    return !pg->is_broken && PQstatus(pg->connection) == CONNECTION_OK;
}

bool pg_is_usable(const struct pg *pg)
{
    return pg_is_connected(pg) && PQtransactionStatus(pg->connection) == PQTRANS_IDLE;
}

bool pg_is_alive(struct pg *pg)
{
    struct pollfd socket = {.fd = PQsocket(pg->connection), .events = POLLIN};
    while (pg_is_connected(pg) && poll(&socket, 1, 0) > 0) {
        if (!PQconsumeInput(pg->connection))
            (void)pg_note_loss(pg, "idle");
        else
            (void)PQisBusy(pg->connection); /* reads received data: notices, parameters, notifications */
    }
    return pg_is_connected(pg);
}

int pg_backend_pid(const struct pg *pg)
{
    return PQbackendPID(pg->connection);
}

/* --- errors --- */

void pg_clear_error(struct pg *pg)
{
    pg->sqlstate[0] = '\0';
    pg->position = 0;
}

void pg_break(struct pg *pg)
{
    pg->is_broken = true;
}

bool pg_is_broken(const struct pg *pg)
{
    return pg->is_broken;
}

static void keep_message(struct pg *pg, const char *text)
{
    snprintf(pg->message, sizeof pg->message, "%s", text ? text : "");
    pg->message[strcspn(pg->message, "\n")] = '\0';
}

/* Statements of searches are numbered: all are one kind. */
static void log_refusal(const struct pg *pg, const char *what, const char *sqlstate)
{
    char kind[128];
    snprintf(kind, sizeof kind, "%s %.*s %s", sqlstate, (int)strcspn(what, "0123456789"), what,
             PQdb(pg->connection));
    log_often(strncmp(sqlstate, "ST", 2) == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, kind,
              "postgresql error database=%s statement=%s sqlstate=%s: %s", PQdb(pg->connection), what,
              sqlstate, pg->message);
}

/* Errors raised by our own functions (ST…) are expected and logged at level debug only. */
enum fault pg_note_error(struct pg *pg, const PGresult *result, const char *what)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!sqlstate) { /* created by libpq itself: the connection is lost */
        pg->is_broken = true;
        keep_message(pg, PQresultErrorMessage(result));
        log_warning("postgresql connection lost database=%s statement=%s: %s", PQdb(pg->connection), what,
                    pg->message);
        return FAULT_XAWAY;
    }
    snprintf(pg->sqlstate, sizeof pg->sqlstate, "%s", sqlstate);
    keep_message(pg, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);
    if (!position || !bytes_to_i64(bytes_of(position), &pg->position))
        pg->position = 0;
    log_refusal(pg, what, sqlstate);
    const char *detail =
        strncmp(sqlstate, "ST", 2) == 0 ? PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL) : NULL;
    snprintf(pg->detail, sizeof pg->detail, "%s", detail ? detail : "");
    enum fault fault = pg_fault_of_sqlstate(sqlstate);
    if (fault == FAULT_XAWAY)
        pg->is_broken = true;
    return fault;
}

void pg_note_refusal(struct pg *pg, const char *sqlstate, const char *message)
{
    snprintf(pg->sqlstate, sizeof pg->sqlstate, "%s", sqlstate);
    keep_message(pg, message);
}

enum fault pg_note_loss(struct pg *pg, const char *what)
{
    if (!pg->is_broken) {
        pg->is_broken = true;
        keep_message(pg, PQerrorMessage(pg->connection));
        log_warning("postgresql connection lost database=%s statement=%s: %s", PQdb(pg->connection), what,
                    pg->message);
    }
    return FAULT_XAWAY;
}

enum fault pg_note_silence(struct pg *pg, const char *what)
{
    pg->is_broken = true;
    keep_message(pg, "no answer in time");
    log_often(LOG_LEVEL_WARNING, what, "postgresql does not answer database=%s statement=%s",
              PQdb(pg->connection), what);
    return FAULT_XTIME;
}

const char *pg_sqlstate(const struct pg *pg)
{
    return pg->sqlstate;
}

const char *pg_message(const struct pg *pg)
{
    return pg->message;
}

const char *pg_detail(const struct pg *pg)
{
    return pg->detail;
}

int64_t pg_position(const struct pg *pg)
{
    return pg->position;
}

/* --- waiting --- */

enum { GIVE_UP_SLICE_MS = 250 };

struct pg_patience pg_set_patience(struct pg *pg, struct pg_patience patience)
{
    struct pg_patience former = pg->patience;
    pg->patience = patience;
    return former;
}

static struct pg_waits waits;

struct pg_waits *pg_get_waits(void)
{
    return &waits;
}

static enum fault await(struct pg *pg, int64_t deadline_ms, const char *what)
{
    while (PQisBusy(pg->connection)) {
        int unsent = PQflush(pg->connection);
        if (unsent < 0)
            return pg_note_loss(pg, what);
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        struct pollfd socket = {.fd = PQsocket(pg->connection),
                                .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
        int most_ms = pg->patience.gives_up ? GIVE_UP_SLICE_MS : INT32_MAX;
        int ready = poll(&socket, 1, left_ms < 0 ? 0 : left_ms < most_ms ? (int)left_ms : most_ms);
        if (ready == 0 &&
            (left_ms <= 0 || (pg->patience.gives_up && pg->patience.gives_up(pg->patience.context))))
            return pg_note_silence(pg, what);
        if (ready < 0 && errno != EINTR)
            return pg_note_loss(pg, what);
        if (ready > 0 && (socket.revents & ~POLLOUT) && !PQconsumeInput(pg->connection))
            return pg_note_loss(pg, what);
    }
    return FAULT_NONE;
}

enum fault pg_await_result(struct pg *pg, int64_t deadline_ms, const char *what)
{
    int64_t begin_us = clock_monotonic_us();
    enum fault fault = await(pg, deadline_ms, what);
    int64_t us = clock_monotonic_us() - begin_us;
    waits.us += us;
    if (waits.is_on && us > waits.longest_us) {
        waits.longest_us = us;
        snprintf(waits.longest, sizeof waits.longest, "%s", what);
    }
    return fault;
}

/* --- results --- */

static void clear_result(void *result)
{
    PQclear(result);
}

void pg_defer_clear(struct arena *arena, PGresult *result)
{
    arena_defer(arena, clear_result, result);
    arena_count(arena, PQresultMemorySize(result));
}

static const PGresult *rows_of(const struct pg_result *result)
{
    return (const PGresult *)result;
}

int pg_rows(const struct pg_result *result)
{
    return PQntuples(rows_of(result));
}

bool pg_is_null(const struct pg_result *result, int row, int column)
{
    return PQgetisnull(rows_of(result), row, column);
}

int64_t pg_get_i64(const struct pg_result *result, int row, int column)
{
    const char *wire = PQgetvalue(rows_of(result), row, column);
    uint64_t swar;
    uint32_t four;
    uint16_t two;
    switch (PQgetlength(rows_of(result), row, column)) {
    case 8:
        memcpy(&swar, wire, sizeof swar);
        return (int64_t)be64toh(swar);
    case 4:
        memcpy(&four, wire, sizeof four);
        return (int32_t)be32toh(four);
    case 2:
        memcpy(&two, wire, sizeof two);
        return (int16_t)be16toh(two);
    default:
        assert(PQgetisnull(rows_of(result), row, column));
        return 0;
    }
}

bool pg_get_bool(const struct pg_result *result, int row, int column)
{
    return PQgetlength(rows_of(result), row, column) == 1 && *PQgetvalue(rows_of(result), row, column) != 0;
}

struct bytes pg_get_text(const struct pg_result *result, int row, int column)
{
    if (PQgetisnull(rows_of(result), row, column))
        return NO_BYTES;
    return (struct bytes){PQgetvalue(rows_of(result), row, column),
                          (size_t)PQgetlength(rows_of(result), row, column)};
}

/* --- notifications --- */

int pg_socket(const struct pg *pg)
{
    return PQsocket(pg->connection);
}

bool pg_next_notification(struct pg *pg, struct arena *arena, struct bytes *channel_r,
                          struct bytes *payload_r)
{
    PGnotify *notify = pg_is_connected(pg) ? PQnotifies(pg->connection) : NULL;
    if (!notify && pg_is_alive(pg))
        notify = PQnotifies(pg->connection);
    if (!notify)
        return false;
    channel_r->size = strlen(notify->relname);
    channel_r->data = arena_copy(arena, notify->relname, channel_r->size);
    payload_r->size = strlen(notify->extra);
    payload_r->data = arena_copy(arena, notify->extra, payload_r->size);
    PQfreemem(notify);
    return true;
}

/* --- administration --- */

void pg_add_identifier(struct builder *sql, struct bytes name)
{
    builder_add_text(sql, "\"");
    for (size_t i = 0; i < name.size; i++)
        builder_add(sql, name.data[i] == '"' ? "\"\"" : name.data + i, name.data[i] == '"' ? 2 : 1);
    builder_add_text(sql, "\"");
}

/* Reads and writes connection strings with the parser of libpq. */

const char *pg_conninfo_value(struct arena *arena, const char *conninfo, const char *keyword)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *value = NULL;
    for (PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && strcmp(option->keyword, keyword) == 0)
            value = arena_copy(arena, option->val, strlen(option->val));
    PQconninfoFree(options);
    return value;
}

static bool pg_conninfo_is_among(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

const char *pg_conninfo_without(struct arena *arena, const char *conninfo, const char *const *keywords)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    struct builder builder = {0};
    if (!options)
        return NULL;
    for (PQconninfoOption *option = options; option->keyword; option++) {
        if (!option->val || pg_conninfo_is_among(option->keyword, keywords))
            continue;
        builder_printf(&builder, "%s='", option->keyword);
        for (const char *p = option->val; *p; p++) {
            if (*p == '\'' || *p == '\\')
                builder_add_text(&builder, "\\");
            builder_add(&builder, p, 1);
        }
        builder_add_text(&builder, "' ");
    }
    const char *result = builder_take(&builder, arena).data;
    PQconninfoFree(options);
    return result;
}
