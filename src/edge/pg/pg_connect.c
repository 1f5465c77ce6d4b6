/* pg_connect: opens connections. */
#include "edge/pg/pg_private.h"

#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "edge/pg/pg_hosts.h"

/* A number that only this connection has: that it arrives shows that the settings do. */
enum { NONCE_BYTES = 8, NONCE_DIGITS = 2 * NONCE_BYTES };
enum { NAME_BYTES = 256 }; /* of a database: PostgreSQL takes 63 */

/* `host`: one of several, NULL: all of them. */
static PGconn *begin_pg_connect(const struct pg_options *options, bool waits, const char *nonce,
                                const struct pg_host *host)
{
    char timeout[16], settings[1024], database[NAME_BYTES];
    snprintf(database, sizeof database, "%.*s", (int)strcspn(options->database, "@"), options->database);
    snprintf(timeout, sizeof timeout, "%d", options->connect_timeout_s);
    int size = snprintf(settings, sizeof settings,
                        "-c statement_timeout=%lld -c lock_timeout=%lld -c stampd.session=%s %s",
                        (long long)options->statement_timeout_ms, (long long)options->lock_timeout_ms, nonce,
                        options->role_settings);
    assert(size > 0 && (size_t)size < sizeof settings);
    /* Only the first dbname is expanded as a connection string; keywords after it override it. */
    const char *const words[][2] = {
        {"dbname", options->conninfo},
        {"host", host ? host->host : NULL},
        {"hostaddr", host ? host->hostaddr : NULL},
        {"port", host ? host->port : NULL},
        {"dbname", database},
        {"options", settings},
        {"connect_timeout", timeout},
        {"client_encoding", "UTF8"},
        {"fallback_application_name", options->name ? options->name : "stampd"},
        {"target_session_attrs", options->takes_standby ? "any" : "primary"},
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

static bool pg_knows_cell(const struct pg_options *options)
{
    if (options->conninfo)
        return true;
    log_often(LOG_LEVEL_ERROR, "cell", "database=%s: the settings have no line database.%s",
              options->database, options->database + strcspn(options->database, "@") + 1);
    return false;
}

PGconn *pg_connect_begin(const struct pg_options *options, int number)
{
    struct pg_host host;
    if (!pg_knows_cell(options)) {
        const struct pg_options none = {.conninfo = "port=0", /* which libpq refuses at once */
                                        .database = options->database,
                                        .role_settings = options->role_settings};
        return begin_pg_connect(&none, false, "", NULL);
    }
    if (pg_hosts_count(options->conninfo) == 1)
        return begin_pg_connect(options, false, "", NULL);
    pg_hosts_get(options->conninfo, number, &host);
    return begin_pg_connect(options, false, "", &host);
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

/* Connects to one host, or to the first of all that is a primary.  `pg_r` is never NULL. */
static enum fault open_at(const struct pg_options *options, const struct pg_host *host, struct pg **pg_r)
{
    int64_t start_ms = clock_monotonic_ms();
    unsigned char random[NONCE_BYTES];
    char nonce[NONCE_DIGITS + 1] = "";
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, nonce);
    PGconn *connection = begin_pg_connect(options, true, nonce, host);
    if (!connection)
        log_fatal("out of memory postgresql connection");
    /* A server that does not respond is not tried again; one that refuses is, for its reason. */
    if (PQstatus(connection) != CONNECTION_OK &&
        clock_monotonic_ms() - start_ms < (int64_t)options->connect_timeout_s * 500)
        connect_verbosely(connection);

    *pg_r = pg_create(connection, options->statement_timeout_ms);
    pg_note_database(*pg_r, options->database);
    return FAULT_FIRST(pg_connect_judge(*pg_r, options), check_settings(*pg_r, options, nonce));
}

static bool lacks_database(const struct pg *pg)
{
    return strcmp(pg_sqlstate(pg), "3D000") == 0;
}

/* Does this host call itself the primary?  False, too, when it lets us into no other database. */
static bool is_primary(const struct pg_options *options, const struct pg_host *host)
{
    struct pg_options other = *options;
    other.database = "postgres";
    PGconn *connection = begin_pg_connect(&other, true, "", host);
    bool is = PQstatus(connection) == CONNECTION_OK;
    PQfinish(connection);
    return is;
}

/* One of several servers does not have the database: a standby may not have it yet, and libpq has asked no
 * other.  Missing is what the primary does not have, or none of them. */
static enum fault open_one_by_one(const struct pg_options *options, int count, struct pg **pg_r)
{
    int without = 0;
    for (int i = 0; i < count; i++) {
        struct pg_host host;
        pg_hosts_get(options->conninfo, i, &host);
        enum fault fault = open_at(options, &host, pg_r);
        if (!fault)
            return FAULT_NONE;
        bool lacks = lacks_database(*pg_r);
        pg_close(*pg_r);
        *pg_r = NULL;
        if (lacks && is_primary(options, &host))
            return FAULT_ODATABASE;
        without += lacks;
    }
    return without == count ? FAULT_ODATABASE : FAULT_XAWAY;
}

enum fault pg_open(const struct pg_options *options, struct pg **pg_r)
{
    *pg_r = NULL;
    if (!pg_knows_cell(options)) /* not ODATABASE: commits may be under way there */
        return FAULT_XAWAY;
    enum fault fault = open_at(options, NULL, pg_r);
    if (!fault)
        return FAULT_NONE;
    int count = lacks_database(*pg_r) ? pg_hosts_count(options->conninfo) : 1;
    pg_close(*pg_r);
    *pg_r = NULL;
    return count == 1 ? fault : open_one_by_one(options, count, pg_r);
}
