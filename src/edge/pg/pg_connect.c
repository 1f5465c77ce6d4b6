/* pg_connect: opens connections. */
#include "edge/pg/pg_private.h"

#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"

/* A number that only this connection has: that it arrives shows that the settings do. */
enum { NONCE_BYTES = 8, NONCE_DIGITS = 2 * NONCE_BYTES };

static PGconn *begin_pg_connect(const struct pg_options *options, bool waits, const char *nonce)
{
    char timeout[16], settings[1024];
    snprintf(timeout, sizeof timeout, "%d", options->connect_timeout_s);
    int size = snprintf(settings, sizeof settings,
                        "-c statement_timeout=%lld -c lock_timeout=%lld -c stampd.session=%s %s",
                        (long long)options->statement_timeout_ms, (long long)options->lock_timeout_ms, nonce,
                        options->role_settings);
    assert(size > 0 && (size_t)size < sizeof settings);
    /* Only the first dbname is expanded as a connection string; keywords after it override it. */
    const char *const words[][2] = {
        {"dbname", options->conninfo},
        {"dbname", options->database},
        {"options", settings},
        {"connect_timeout", timeout},
        {"client_encoding", "UTF8"},
        {"fallback_application_name", options->name ? options->name : "stampd"},
        {"target_session_attrs", "primary"},
        {"keepalives_idle", "15"}, /* an unreachable host is detected after about half a minute */
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
    return waits ? PQconnectdbParams(keywords, values, 1) : PQconnectStartParams(keywords, values, 1);
}

PGconn *pg_connect_begin(const struct pg_options *options, bool waits)
{
    return begin_pg_connect(options, waits, "");
}

/* libpq includes the SQLSTATE of a refused connection only in a verbose message. */
static void connect_verbosely(PGconn *connection)
{
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    PQreset(connection);
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
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

enum fault pg_connect_judge(struct pg *pg, const struct pg_options *options)
{
    PGconn *connection = pg_connection(pg);
    if (PQstatus(connection) != CONNECTION_OK) {
        const char *message = PQerrorMessage(connection);
        char sqlstate[6];
        find_sqlstate(message, sqlstate);
        pg_note_refusal(pg, sqlstate, message);
        bool is_absent = strcmp(sqlstate, "3D000") == 0;
        if (!is_absent || !options->is_absence_known)
            log_warning("postgresql cannot connect database=%s: %s", options->database, pg_message(pg));
        return is_absent ? FAULT_ODATABASE : FAULT_XAWAY;
    }
    const char *encoding = PQparameterStatus(connection, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0) {
        log_warning("postgresql encoding is not UTF8 database=%s encoding=%s", options->database,
                    encoding ? encoding : "");
        return FAULT_ODATABASE;
    }
    if (PQsetnonblocking(connection, 1) != 0)
        return pg_note_loss(pg, "connect");
    return FAULT_NONE;
}

/* A pooler that ignores our settings, or shares a session among connections, loses locks, limits and what
 * tells our commits from those of others. */
static enum fault check_settings(struct pg *pg, const struct pg_options *options, const char *nonce)
{
    PGresult *found;
    if (!PQsendQuery(pg_connection(pg), "select current_setting('stampd.session', true)"))
        return pg_note_loss(pg, "settings");
    enum fault fault = pg_collect(pg, PGRES_COMMAND_OK, "settings", &found);
    if (!fault && (!found || PQntuples(found) != 1 || strcmp(PQgetvalue(found, 0, 0), nonce) != 0)) {
        pg_note_refusal(pg, "", "a pooler has dropped the settings of the session");
        log_error(
            "database=%s: a pooler between this program and PostgreSQL drops the settings of sessions, or "
            "shares sessions: connect without it",
            options->database);
        fault = FAULT_XDATABASE;
    }
    PQclear(found);
    return fault;
}

enum fault pg_open(const struct pg_options *options, struct pg **pg_r)
{
    *pg_r = NULL;
    int64_t start_ms = clock_monotonic_ms();
    unsigned char random[NONCE_BYTES];
    char nonce[NONCE_DIGITS + 1] = "";
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, nonce);
    PGconn *connection = begin_pg_connect(options, true, nonce);
    if (!connection)
        log_fatal("out of memory postgresql connection");
    /* A server that does not respond is not tried again; one that refuses is, for its reason. */
    if (PQstatus(connection) != CONNECTION_OK &&
        clock_monotonic_ms() - start_ms < (int64_t)options->connect_timeout_s * 500)
        connect_verbosely(connection);

    struct pg *pg = pg_create(connection, options->statement_timeout_ms);
    enum fault fault = pg_connect_judge(pg, options);
    if (!fault)
        fault = check_settings(pg, options, nonce);
    if (fault) {
        pg_close(pg);
        return fault;
    }
    *pg_r = pg;
    return FAULT_NONE;
}
