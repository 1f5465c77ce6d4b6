/* pg: errors, waits, single statements, their rows, notifications. */
#include "edge/pg.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/pg_private.h"

const int pg_formats[PG_PARAMETERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* --- errors --- */

void pg_keep_message(struct pg *pg, const char *text)
{
    snprintf(pg->message, sizeof pg->message, "%s", text ? text : "");
    pg->message[strcspn(pg->message, "\n")] = '\0';
}

/* Errors raised by our own functions (ST…) are expected and logged at level debug only. */
enum fault pg_note_error(struct pg *pg, const PGresult *result, const char *what)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!sqlstate) { /* created by libpq itself: the connection is lost */
        pg->is_broken = true;
        pg_keep_message(pg, PQresultErrorMessage(result));
        log_warning("postgresql connection lost database=%s statement=%s: %s", PQdb(pg->connection), what,
                    pg->message);
        return FAULT_XAWAY;
    }
    snprintf(pg->sqlstate, sizeof pg->sqlstate, "%s", sqlstate);
    pg_keep_message(pg, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);
    if (!position || !bytes_to_i64(bytes_of(position), &pg->position))
        pg->position = 0;
    (strncmp(sqlstate, "ST", 2) == 0 ? log_debug : log_warning)(
        "postgresql error database=%s statement=%s sqlstate=%s: %s", PQdb(pg->connection), what, sqlstate,
        pg->message);
    const char *detail =
        strncmp(sqlstate, "ST", 2) == 0 ? PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL) : NULL;
    snprintf(pg->detail, sizeof pg->detail, "%s", detail ? detail : "");
    enum fault fault = pg_fault_of_sqlstate(sqlstate);
    if (fault == FAULT_XAWAY)
        pg->is_broken = true;
    return fault;
}

enum fault pg_note_loss(struct pg *pg, const char *what)
{
    if (!pg->is_broken) {
        pg->is_broken = true;
        pg_keep_message(pg, PQerrorMessage(pg->connection));
        log_warning("postgresql connection lost database=%s statement=%s: %s", PQdb(pg->connection), what,
                    pg->message);
    }
    return FAULT_XAWAY;
}

enum fault pg_note_silence(struct pg *pg, const char *what)
{
    pg->is_broken = true;
    pg_keep_message(pg, "no answer in time");
    log_warning("postgresql does not answer database=%s statement=%s", PQdb(pg->connection), what);
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

enum fault pg_await_result(struct pg *pg, int64_t deadline_ms, const char *what)
{
    while (PQisBusy(pg->connection)) {
        int unsent = PQflush(pg->connection);
        if (unsent < 0)
            return pg_note_loss(pg, what);
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        struct pollfd socket = {.fd = PQsocket(pg->connection),
                                .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
        int ready = poll(&socket, 1, left_ms < 0 ? 0 : left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
        if (ready == 0 && left_ms <= 0)
            return pg_note_silence(pg, what);
        if (ready < 0 && errno != EINTR)
            return pg_note_loss(pg, what);
        if (ready > 0 && (socket.revents & ~POLLOUT) && !PQconsumeInput(pg->connection))
            return pg_note_loss(pg, what);
    }
    return FAULT_NONE;
}

/* Reads all results of one command; keeps the last one without error. */
static enum fault collect(struct pg *pg, const char *what, PGresult **kept_r)
{
    int64_t deadline_ms = clock_monotonic_ms() + pg->answer_timeout_ms;
    enum fault fault = FAULT_NONE;
    *kept_r = NULL;
    for (;;) {
        enum fault lost = pg_await_result(pg, deadline_ms, what);
        if (lost)
            return fault ? fault : lost;
        PGresult *result = PQgetResult(pg->connection);
        if (!result)
            return fault;
        switch (PQresultStatus(result)) {
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
        case PGRES_EMPTY_QUERY:
            PQclear(*kept_r);
            *kept_r = result;
            continue;
        case PGRES_COPY_IN:
        case PGRES_COPY_OUT:
        case PGRES_COPY_BOTH: /* no code here would ever end it */
            PQclear(result);
            return pg_note_silence(pg, what);
        default: {
            enum fault error = pg_note_error(pg, result, what);
            fault = fault ? fault : error;
            PQclear(result);
        }
        }
    }
}

/* --- one statement --- */

static void clear_result(void *result)
{
    PQclear(result);
}

void pg_defer_clear(struct arena *arena, PGresult *result)
{
    arena_defer(arena, clear_result, result);
    arena_count(arena, PQresultMemorySize(result));
}

enum fault pg_run(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params,
                  struct pg_result **result_r)
{
    assert(!pg->pipeline_arena && !pg->rows_statement && statement->parameters == params->count);
    if (result_r)
        *result_r = NULL;
    pg->sqlstate[0] = '\0';
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    enum fault fault = pg_prepare_used(pg, statement);
    if (fault)
        return fault;
    if (!PQsendQueryPrepared(pg->connection, statement->name, params->count, params->values, params->lengths,
                             pg_formats, 1))
        return pg_note_loss(pg, statement->name);
    PGresult *result;
    fault = collect(pg, statement->name, &result);
    if (!fault && !result)
        fault = pg_note_loss(pg, statement->name);
    if (fault || !result_r) {
        PQclear(result);
        return fault;
    }
    pg_defer_clear(params->arena, result);
    *result_r = (struct pg_result *)result;
    return FAULT_NONE;
}

enum fault pg_execute(struct pg *pg, const char *sql)
{
    assert(!pg->pipeline_arena && !pg->rows_statement);
    pg->sqlstate[0] = '\0';
    pg->position = 0;
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!PQsendQuery(pg->connection, sql))
        return pg_note_loss(pg, "execute");
    PGresult *result;
    enum fault fault = collect(pg, "execute", &result);
    PQclear(result);
    return fault;
}

/* --- results --- */

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

static bool is_among(const char *word, const char *const *words)
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
        if (!option->val || is_among(option->keyword, keywords))
            continue;
        builder_printf(&builder, "%s='", option->keyword);
        for (const char *p = option->val; *p; p++) {
            if (*p == '\'' || *p == '\\')
                builder_add_text(&builder, "\\");
            builder_add(&builder, p, 1);
        }
        builder_add_text(&builder, "' ");
    }
    const char *result = arena_copy(arena, builder_bytes(&builder).data, builder.size);
    builder_free(&builder);
    PQconninfoFree(options);
    return result;
}
