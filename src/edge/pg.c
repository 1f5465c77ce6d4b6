/* pg: the only file that knows libpq.
 *
 * Connections are non-blocking: every wait is a poll with a limit, and a libpq function that could block
 * (PQgetResult) is called only when its answer is there.  A wait that ends without an answer breaks the
 * connection: to cancel would not tell what the server has done.  Nothing logged holds a parameter's value,
 * hence the primary message and never the detail. */
#include "edge/pg.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

/* The server's own limits end a statement first, with a clear SQLSTATE; this is for a server that is silent.
 */
enum { ANSWER_GRACE_MS = 2000, PIPELINE_NAMES = 8 };

struct pg {
    PGconn *connection;
    int64_t answer_timeout_ms;
    bool is_broken;
    struct arena *pipeline_arena; /* of the pipeline begun; NULL: none */
    int pipeline_count;
    bool is_pipeline_lost;
    const char *pipeline_names[PIPELINE_NAMES]; /* of its first statements, for the log */
    char sqlstate[6];
    char message[400];
    int64_t position; /* of the last error in its SQL text; 0: unknown */
};

static const int all_binary[PG_PARAMETERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* --- errors --- */

static void keep_message(struct pg *pg, const char *text)
{
    snprintf(pg->message, sizeof pg->message, "%s", text ? text : "");
    pg->message[strcspn(pg->message, "\n")] = '\0';
}

/* Keeps and logs the error that a result reports; refusals raised by our own functions (ST…) are no news. */
static enum fault note_error(struct pg *pg, const PGresult *result, const char *what)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!sqlstate) { /* made by libpq itself: the connection is gone */
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
    (strncmp(sqlstate, "ST", 2) == 0 ? log_debug : log_warning)(
        "postgresql error database=%s statement=%s sqlstate=%s: %s", PQdb(pg->connection), what, sqlstate,
        pg->message);
    enum fault fault = pg_fault_of_sqlstate(sqlstate);
    if (fault == FAULT_XAWAY)
        pg->is_broken = true;
    return fault;
}

static enum fault note_loss(struct pg *pg, const char *what)
{
    if (!pg->is_broken) {
        pg->is_broken = true;
        keep_message(pg, PQerrorMessage(pg->connection));
        log_warning("postgresql connection lost database=%s statement=%s: %s", PQdb(pg->connection), what,
                    pg->message);
    }
    return FAULT_XAWAY;
}

static enum fault note_silence(struct pg *pg, const char *what)
{
    pg->is_broken = true;
    keep_message(pg, "no answer in time");
    log_warning("postgresql gives no answer database=%s statement=%s", PQdb(pg->connection), what);
    return FAULT_XTIME;
}

/* What the server says unasked.  Its last words, when it ends an idle session, come here too. */
static void on_notice(void *context, const PGresult *notice)
{
    struct pg *pg = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    log_debug("postgresql notice severity=%s: %s", severity ? severity : "", text ? text : "");
    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        pg->is_broken = true;
}

/* --- connecting --- */

static PGconn *connect_once(const struct pg_options *options, bool again, PGconn *former)
{
    if (again) { /* libpq tells the SQLSTATE of a refused connection inside a verbose message only */
        PQsetErrorVerbosity(former, PQERRORS_VERBOSE);
        PQreset(former);
        PQsetErrorVerbosity(former, PQERRORS_DEFAULT);
        return former;
    }
    char timeout[16], settings[1024];
    snprintf(timeout, sizeof timeout, "%d", options->connect_timeout_s);
    int size = snprintf(settings, sizeof settings, "-c statement_timeout=%lld -c lock_timeout=%lld %s",
                        (long long)options->statement_timeout_ms, (long long)options->lock_timeout_ms,
                        options->role_settings);
    assert(size > 0 && (size_t)size < sizeof settings);
    /* The first dbname alone is expanded as a connection string; what follows it goes before it. */
    const char *const words[][2] = {
        {"dbname", options->conninfo},
        {"dbname", options->database},
        {"options", settings},
        {"connect_timeout", timeout},
        {"client_encoding", "UTF8"},
        {"fallback_application_name", "stampd"},
        {"target_session_attrs", "primary"},
        {"keepalives_idle", "15"}, /* a host that vanished is noticed after about half a minute */
        {"keepalives_interval", "5"},
        {"keepalives_count", "3"},
        {"tcp_user_timeout", "30000"},
        {NULL, NULL},
    };
    const char *keywords[COUNT_OF(words)], *values[COUNT_OF(words)];
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        keywords[i] = words[i][0];
        values[i] = words[i][1];
    }
    return PQconnectdbParams(keywords, values, 1);
}

/* "FATAL:  3D000: database …": finds the SQLSTATE in a verbose message, "" when there is none. */
static void find_sqlstate(const char *message, char sqlstate_r[6])
{
    sqlstate_r[0] = '\0';
    for (const char *at = strstr(message, ":  "); at; at = strstr(at + 1, ":  ")) {
        const char *code = at + 3;
        size_t size = 0;
        while (size < 5 && (isdigit((unsigned char)code[size]) || isupper((unsigned char)code[size])))
            size++;
        if (size == 5 && code[5] == ':') {
            memcpy(sqlstate_r, code, 5);
            sqlstate_r[5] = '\0';
        }
    }
}

static enum fault judge_connection(struct pg *pg, const struct pg_options *options)
{
    PGconn *connection = pg->connection;
    if (PQstatus(connection) != CONNECTION_OK) {
        const char *message = PQerrorMessage(connection);
        find_sqlstate(message, pg->sqlstate);
        keep_message(pg, message);
        log_warning("postgresql cannot connect database=%s: %s", options->database, pg->message);
        return strcmp(pg->sqlstate, "3D000") == 0 ? FAULT_ODATABASE : FAULT_XAWAY;
    }
    const char *encoding = PQparameterStatus(connection, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0) {
        log_warning("postgresql encoding is not UTF8 database=%s encoding=%s", options->database,
                    encoding ? encoding : "");
        return FAULT_ODATABASE;
    }
    if (PQsetnonblocking(connection, 1) != 0)
        return note_loss(pg, "connect");
    return FAULT_NONE;
}

enum fault pg_open(const struct pg_options *options, struct pg **pg_r)
{
    *pg_r = NULL;
    int64_t start_ms = clock_monotonic_ms();
    PGconn *connection = connect_once(options, false, NULL);
    if (!connection)
        log_fatal("out of memory postgresql connection");
    /* A server that does not answer is not asked a second time; one that refuses is asked why. */
    if (PQstatus(connection) != CONNECTION_OK &&
        clock_monotonic_ms() - start_ms < (int64_t)options->connect_timeout_s * 500)
        connection = connect_once(options, true, connection);

    struct pg *pg = calloc(1, sizeof *pg);
    if (!pg)
        log_fatal("out of memory postgresql connection");
    pg->connection = connection;
    pg->answer_timeout_ms = options->statement_timeout_ms + ANSWER_GRACE_MS;
    PQsetNoticeReceiver(connection, on_notice, pg);
    enum fault fault = judge_connection(pg, options);
    if (fault) {
        pg_close(pg);
        return fault;
    }
    *pg_r = pg;
    return FAULT_NONE;
}

void pg_close(struct pg *pg)
{
    if (!pg)
        return;
    PQfinish(pg->connection);
    free(pg);
}

static bool is_connected(const struct pg *pg)
{
    return !pg->is_broken && PQstatus(pg->connection) == CONNECTION_OK;
}

bool pg_is_usable(const struct pg *pg)
{
    return is_connected(pg) && PQtransactionStatus(pg->connection) == PQTRANS_IDLE;
}

bool pg_is_alive(struct pg *pg)
{
    struct pollfd socket = {.fd = PQsocket(pg->connection), .events = POLLIN};
    while (is_connected(pg) && poll(&socket, 1, 0) > 0) {
        if (!PQconsumeInput(pg->connection))
            (void)note_loss(pg, "idle");
        else
            (void)PQisBusy(pg->connection); /* reads what came: on_notice, new parameters, notifications */
    }
    return is_connected(pg);
}

int pg_backend_pid(const struct pg *pg)
{
    return PQbackendPID(pg->connection);
}

const char *pg_sqlstate(const struct pg *pg)
{
    return pg->sqlstate;
}

const char *pg_message(const struct pg *pg)
{
    return pg->message;
}

/* --- waiting --- */

/* Sends what is unsent and reads until the next PQgetResult will not block. */
static enum fault await_result(struct pg *pg, int64_t deadline_ms, const char *what)
{
    while (PQisBusy(pg->connection)) {
        int unsent = PQflush(pg->connection);
        if (unsent < 0)
            return note_loss(pg, what);
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        struct pollfd socket = {.fd = PQsocket(pg->connection),
                                .events = (short)(unsent ? POLLIN | POLLOUT : POLLIN)};
        int ready = poll(&socket, 1, left_ms < 0 ? 0 : left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
        if (ready == 0 && left_ms <= 0)
            return note_silence(pg, what);
        if (ready < 0 && errno != EINTR)
            return note_loss(pg, what);
        if (ready > 0 && (socket.revents & ~POLLOUT) && !PQconsumeInput(pg->connection))
            return note_loss(pg, what);
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
        enum fault lost = await_result(pg, deadline_ms, what);
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
        case PGRES_COPY_BOTH: /* nobody here would ever end it */
            PQclear(result);
            return note_silence(pg, what);
        default: {
            enum fault error = note_error(pg, result, what);
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

enum fault pg_run(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params,
                  struct pg_result **result_r)
{
    assert(!pg->pipeline_arena && statement->parameters == params->count);
    if (result_r)
        *result_r = NULL;
    pg->sqlstate[0] = '\0';
    if (!is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    if (!PQsendQueryPrepared(pg->connection, statement->name, params->count, params->values, params->lengths,
                             all_binary, 1))
        return note_loss(pg, statement->name);
    PGresult *result;
    enum fault fault = collect(pg, statement->name, &result);
    if (!fault && !result)
        fault = note_loss(pg, statement->name);
    if (fault || !result_r) {
        PQclear(result);
        return fault;
    }
    arena_defer(params->arena, clear_result, result);
    *result_r = (struct pg_result *)result;
    return FAULT_NONE;
}

enum fault pg_execute(struct pg *pg, const char *sql)
{
    assert(!pg->pipeline_arena);
    pg->sqlstate[0] = '\0';
    pg->position = 0;
    if (!is_connected(pg))
        return FAULT_XAWAY;
    if (!PQsendQuery(pg->connection, sql))
        return note_loss(pg, "execute");
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
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (PQgetlength(rows_of(result), row, column)) {
    case 8:
        memcpy(&eight, wire, sizeof eight);
        return (int64_t)be64toh(eight);
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

/* --- pipelines --- */

/* Reads the answers to `count` statements and the sync.  Results that are no errors go to results[] (NULL:
 * are dropped), the first error to refusal_r with the place of its statement.  FAULT_NONE: the sync came. */
static enum fault read_answers(struct pg *pg, int count, int64_t deadline_ms, PGresult **results,
                               PGresult **refusal_r, int *failed_r)
{
    *refusal_r = NULL;
    for (int place = 0; place <= count;) {
        enum fault lost = await_result(pg, deadline_ms, "pipeline");
        if (lost)
            return lost;
        PGresult *result = PQgetResult(pg->connection);
        if (!result) { /* the end of one statement's answer */
            place++;
            continue;
        }
        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            PQclear(result);
            return FAULT_NONE;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            if (results && place < count && !results[place])
                results[place] = result;
            else
                PQclear(result);
            continue;
        case PGRES_PIPELINE_ABORTED:
            PQclear(result);
            continue;
        default:
            if (*refusal_r || !PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
                enum fault error = note_error(pg, result, "pipeline");
                PQclear(result);
                return error;
            }
            *refusal_r = result;
            *failed_r = place;
        }
    }
    return note_loss(pg, "pipeline"); /* more answers than statements */
}

enum fault pg_prepare(struct pg *pg, const struct pg_statement *statements, size_t count)
{
    assert(!pg->pipeline_arena);
    pg->sqlstate[0] = '\0';
    if (!is_connected(pg) || !PQenterPipelineMode(pg->connection))
        return FAULT_XAWAY;
    for (size_t i = 0; i < count; i++)
        if (!PQsendPrepare(pg->connection, statements[i].name, statements[i].sql, 0, NULL))
            return note_loss(pg, statements[i].name);
    if (!PQpipelineSync(pg->connection))
        return note_loss(pg, "prepare");
    PGresult *refusal;
    int failed = 0;
    enum fault fault =
        read_answers(pg, (int)count, clock_monotonic_ms() + pg->answer_timeout_ms, NULL, &refusal, &failed);
    if (!fault && !PQexitPipelineMode(pg->connection))
        fault = note_loss(pg, "prepare");
    if (refusal) {
        enum fault error =
            note_error(pg, refusal, (size_t)failed < count ? statements[failed].name : "prepare");
        fault = fault ? fault : error;
        PQclear(refusal);
    }
    return fault;
}

enum fault pg_pipeline_begin(struct pg *pg, struct arena *arena)
{
    assert(!pg->pipeline_arena);
    pg->sqlstate[0] = '\0';
    if (!is_connected(pg) || !PQenterPipelineMode(pg->connection))
        return FAULT_XAWAY;
    pg->pipeline_arena = arena;
    pg->pipeline_count = 0;
    pg->is_pipeline_lost = false;
    return FAULT_NONE;
}

void pg_pipeline_add(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(pg->pipeline_arena && statement->parameters == params->count && pg_params_fit(params));
    if (pg->pipeline_count < PIPELINE_NAMES)
        pg->pipeline_names[pg->pipeline_count] = statement->name;
    pg->pipeline_count++;
    if (!pg->is_pipeline_lost && !PQsendQueryPrepared(pg->connection, statement->name, params->count,
                                                      params->values, params->lengths, all_binary, 1))
        pg->is_pipeline_lost = true;
}

static const char *copy_field(struct arena *arena, const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

void pg_pipeline_run(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r)
{
    struct arena *arena = pg->pipeline_arena;
    int count = pg->pipeline_count;
    assert(arena);
    pg->pipeline_arena = NULL;
    *verdict_r = (struct pg_verdict){.outcome = PG_UNKNOWN, .fault = FAULT_XAWAY};
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    if (pg->is_pipeline_lost || !PQpipelineSync(pg->connection)) {
        (void)note_loss(pg, "pipeline");
        return;
    }
    PGresult **results = ARENA_ARRAY(arena, PGresult *, (size_t)count + 1);
    PGresult *refusal;
    enum fault lost = read_answers(pg, count, deadline_ms, results, &refusal, &verdict_r->failed);
    for (int i = 0; i < count; i++)
        if (results[i])
            arena_defer(arena, clear_result, results[i]);
    if (refusal) {
        int failed = verdict_r->failed;
        bool is_named = failed < count && failed < PIPELINE_NAMES;
        verdict_r->fault = note_error(pg, refusal, is_named ? pg->pipeline_names[failed] : "pipeline");
        memcpy(verdict_r->sqlstate, pg->sqlstate, sizeof verdict_r->sqlstate);
        verdict_r->detail = copy_field(arena, refusal, PG_DIAG_MESSAGE_DETAIL);
        verdict_r->constraint = copy_field(arena, refusal, PG_DIAG_CONSTRAINT_NAME);
        PQclear(refusal);
    }
    if (lost) { /* whatever the server said before: without the sync nothing is known */
        verdict_r->fault = lost;
        return;
    }
    if (!PQexitPipelineMode(pg->connection))
        (void)note_loss(pg, "pipeline");
    if (!refusal)
        verdict_r->fault = FAULT_NONE;
    verdict_r->outcome = refusal ? PG_REFUSED : PG_COMMITTED;
    verdict_r->results = refusal ? NULL : (struct pg_result **)results;
}

/* --- notifications --- */

int pg_socket(const struct pg *pg)
{
    return PQsocket(pg->connection);
}

bool pg_next_notification(struct pg *pg, struct arena *arena, struct bytes *channel_r,
                          struct bytes *payload_r)
{
    PGnotify *notify = is_connected(pg) ? PQnotifies(pg->connection) : NULL;
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

int64_t pg_position(const struct pg *pg)
{
    return pg->position;
}

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
