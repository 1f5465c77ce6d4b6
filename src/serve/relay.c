/* relay: LISTEN in each namespace's database, poll on all sockets, a slot stamp advanced for each
 * notification. */
#include "serve/relay.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "edge/pg/pg.h"
#include "operation/access/access.h"
#include "operation/tasks/task_wakeup.h"
#include "records/records.h"
#include "records/records_save.h"
#include "records/records_state.h"
#include "seal/site_key.h"
#include "segment/counts/backlog.h"
#include "segment/counts/purge_counts.h"
#include "segment/counts/waits.h"
#include "segment/lineage.h"
#include "segment/namespaces.h"
#include "segment/notification.h"
#include "segment/slots.h"
#include "serve/lineage_file.h"
#include "serve/metrics/nginx_counts.h"
#include "serve/remote_wakeups.h"
#include "store/proof.h"
#include "store/session.h"
#include "store/stored_id.h"

/* Tells stampctl that this server obeys what was committed in a database (table `server` of
 * sql/0001_documents.sql), so that nobody has to guess how long that takes.
 *
 * stampctl commits, asks by a notification with a number, and waits for that number in the rows of all
 * servers.  Notifications arrive in the order of their commits: when the question arrives, the relay has
 * moved the slots of all that was committed before.  A server that was disconnected obeys when it has
 * connected and moved all slots. */

/* The channel of questions. */
#define ACKNOWLEDGEMENT_CHANNEL "stampd_obey"

enum { SERVER_NAME_BYTES = 128 };

struct acknowledgement {
    char name[SERVER_NAME_BYTES];
    struct arena *arena; /* of one statement */
};

enum { NEWEST, JOIN, ANSWER, LEAVE };
static const struct pg_statement acknowledgement_statements[] = {
    [NEWEST] = {"newest", "select case when is_called then last_value else 0 end from stampd.question_number",
                0},
    [JOIN] = {"join",
              "insert into stampd.server as s (name, pid, started, obeys)"
              " select $1::text, a.pid, a.backend_start, $2::bigint"
              " from pg_stat_get_activity(pg_backend_pid()) a" /* the view takes 350 kB of each session */
              " on conflict (name) do update set pid = excluded.pid, started = excluded.started,"
              " obeys = greatest(s.obeys, excluded.obeys)",
              2},
    [ANSWER] = {"answer",
                "update stampd.server set obeys = greatest(obeys, $2::bigint) where name = $1::text", 2},
    /* Not if its successor has made the row its own. */
    [LEAVE] = {"leave", "delete from stampd.server where name = $1::text and pid = pg_backend_pid()", 1},
};

/* For a child of the master. */
static struct acknowledgement *acknowledgement_create(void)
{
    char host[SERVER_NAME_BYTES / 2] = "";
    struct acknowledgement *acknowledgement = memory_zeroed(1, sizeof *acknowledgement, "acknowledgement");
    if (gethostname(host, sizeof host - 1) != 0 || !bytes_is_utf8(bytes_of(host)))
        snprintf(host, sizeof host, "unknown");
    snprintf(acknowledgement->name, sizeof acknowledgement->name, "%s, process %ld", host, (long)getppid());
    acknowledgement->arena = arena_create("acknowledgement");
    return acknowledgement;
}

static void acknowledgement_destroy(struct acknowledgement *acknowledgement)
{
    arena_destroy(acknowledgement->arena);
    free(acknowledgement);
}

/* After LISTEN, before all slots are moved: the last question so far; -1: it cannot be read. */
static int64_t acknowledgement_prepare(const struct acknowledgement *acknowledgement, struct pg *pg)
{
    struct pg_params none;
    struct pg_result *row;
    pg_params_start(&none, acknowledgement->arena);
    pg_prepare_on_use(pg, acknowledgement_statements, COUNT_OF(acknowledgement_statements));
    bool is_read = !pg_run(pg, &acknowledgement_statements[NEWEST], &none, &row);
    int64_t question = is_read ? pg_get_i64(row, 0, 0) : -1;
    arena_reset(acknowledgement->arena);
    return question;
}

static bool write_row(const struct acknowledgement *acknowledgement, struct pg *pg,
                      const struct pg_statement *statement, int64_t question)
{
    struct pg_params *params = PG_PARAMS(acknowledgement->arena, PG_TEXT(bytes_of(acknowledgement->name)));
    if (statement->parameters > 1)
        pg_params_add_i64(params, question);
    if (pg_execute(pg, "begin read write") != FAULT_NONE)
        return false; /* the connection is lost: logged */
    bool is_written = !pg_run(pg, statement, params, NULL);
    is_written = pg_execute(pg, is_written ? "commit" : "rollback") == FAULT_NONE && is_written;
    arena_reset(acknowledgement->arena);
    return is_written;
}

/* After all slots have been moved: from now on stampctl waits for this server. */
static void acknowledgement_join(const struct acknowledgement *acknowledgement, struct pg *pg,
                                 int64_t question)
{
    if (question < 0 || !write_row(acknowledgement, pg, &acknowledgement_statements[JOIN], question))
        log_warning("cannot write the row of this server: no command of stampctl waits until it obeys");
}

/* A question has arrived, and everything before it was obeyed. */
static void acknowledgement_answer(const struct acknowledgement *acknowledgement, struct pg *pg,
                                   struct bytes question)
{
    int64_t number;
    if (bytes_to_i64(question, &number) &&
        !write_row(acknowledgement, pg, &acknowledgement_statements[ANSWER], number))
        log_warning("cannot write the row of this server: commands of stampctl wait for it");
}

/* The server ends: stampctl does not wait for it any more.  False: the connection is of no more use. */
MUST_USE static bool acknowledgement_leave(const struct acknowledgement *acknowledgement, struct pg *pg)
{
    return write_row(acknowledgement, pg, &acknowledgement_statements[LEAVE], 0);
}

/* --- states of records --- */

/* Reads the configurations of all namespaces for stamp-journal, which has no PostgreSQL
 * (records/records_state.h).  A part of the relay, which learns of changes by others, and has a connection to
 * the database of z.  One query, and the rules of access about states and quotas. */

static const struct pg_statement configurations = {
    "record_states",
    "select i.id, i.content, coalesce((select d.ctime from stampd.doc d where d.class = i.class and d.id = "
    "i.id), 0) from stampd.item i where i.class = 'Namespace' and i.iclass = 'Conf' and i.key = ''"
    " and not i.raw and i.content is not null order by i.id <> 'z', i.id",
    0};

static void take_rates(const struct quotas *quotas, struct records_state *state)
{
    if (!quotas)
        return;
    state->rates[RECORDS_REQUESTS] = quotas->rates[QUOTA_NAMESPACE][QUOTA_REQUESTS];
    state->rates[RECORDS_WRITES] = quotas->rates[QUOTA_NAMESPACE][QUOTA_WRITES];
}

/* False: it is no namespace that can be served. */
static bool read_state(struct arena *arena, struct bytes code, struct bytes content, uint64_t made,
                       const struct ns_conf *z, struct records_state *state_r)
{
    struct ns_conf conf = namespace_read(arena, content);
    if (!conf.database.size || code.size > NAMESPACE_CODE_MOST ||
        !namespace_is_code(arena_copy(arena, code.data, code.size)))
        return false;
    access_add_state_of_z(&conf, z);
    *state_r = (struct records_state){
        .ns = code,
        .state = conf.state,
        .message = conf.message,
        .is_encrypted = conf.is_encrypted,
        .is_spread = conf.is_spread,
        .made = made,
    };
    take_rates(conf.quotas ? conf.quotas : z->quotas, state_r);
    return true;
}

/* Reads and applies them.  False: they could not be read, and what was read before gets older.
 * `is_prepared` belongs to the connection and begins false. */
static bool record_states_read(struct records *records, struct arena *arena, struct pg *pg, bool *is_prepared)
{
    struct pg_result *rows;
    struct records_reading reading;
    struct records_state *states = ARENA_ARRAY(arena, struct records_state, RECORDS_STATES_MOST);
    struct ns_conf z = {.state = NS_ON};
    size_t count = 0;
    if (!*is_prepared && pg_prepare(pg, &configurations, 1))
        return false;
    *is_prepared = true;
    records_state_begin(records, &reading);
    if (pg_run(pg, &configurations, PG_NO_PARAMS(arena), &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes code = pg_get_text(rows, row, 0), content = pg_get_text(rows, row, 1);
        if (bytes_equal(code, BYTES("z")))
            z = namespace_read(arena, content);
        else if (count < RECORDS_STATES_MOST &&
                 read_state(arena, code, content, (uint64_t)pg_get_i64(rows, row, 2), &z, &states[count]))
            count++;
    }
    records_state_apply(records, &reading, states, count);
    return true;
}

/* --- the relay --- */

enum {
    ABSENT_MS = 60000,          /* between two checks for a database that does not exist */
    CHECK_MS = 250,             /* for new namespaces and for connections that are due */
    STATES_PAUSE_MS = 5000,     /* after configurations that cannot be read */
    REPORT_MS = 1000,           /* between two reports of the databases that it listens to */
    SILENCE_MS = 5000,          /* more than between two attempts to reach PostgreSQL, without their time */
    TRUSTED_MS = 10000,         /* validity of a worker's report of an unreachable database */
    STATEMENT_TIMEOUT_MS = 5000 /* only LISTEN is run */
};

/* The connection to one namespace's database. */
struct relay_session {
    struct pg *pg;     /* NULL: not connected */
    int failures;      /* consecutive */
    uint32_t timeline; /* of its server */
    struct data_keys keys;
    bool is_absent;   /* the database does not exist: it was dropped, or never was */
    bool is_prepared; /* for record_states_read */
    int64_t not_before_ms;
};

struct relay {
    const struct settings *settings;
    struct segment *segment;
    struct arena *arena; /* of one batch of notifications */
    struct remote_wakeups *remote_wakeups;
    struct acknowledgement *acknowledgement;
    struct nginx_counts *nginx_counts;
    int64_t reported_ms;
    int asked;         /* the session that was asked last whether PostgreSQL answers */
    int z;             /* index of its database; -1: the table of databases is full */
    int64_t states_ms; /* when the configurations may be read again, after a failure */
    struct relay_session sessions[NAMESPACES_MOST];
};

/* A namespace was created or changed: databases that did not exist may exist now. */
static void retry_absent(struct relay *relay)
{
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        if (relay->sessions[ns].is_absent)
            relay->sessions[ns].not_before_ms = 0;
}

/* Before the acknowledgement to stampctl. */
static void note_configurations(struct relay *relay, int ns, struct bytes class, struct bytes id)
{
    if (relay->segment->records && ns == relay->z && (!class.data || bytes_equal(class, BYTES("Namespace"))))
        records_state_move(relay->segment->records, class.data ? id : NO_BYTES);
}

static void receive(struct relay *relay, int ns, struct bytes payload)
{
    struct bytes class = NO_BYTES, id = NO_BYTES;
    crash_at(CRASH_RELAY_RECEIVED);
    payload = stored_id_open_payload(&relay->sessions[ns].keys, relay->arena, payload);
    if (!notification_publish(relay->segment, ns, payload, &class, &id))
        purge_counts_note_ends(relay->segment->kept, ns, true); /* the schema may have changed */
    note_configurations(relay, ns, class, id);
    if (class.data && bytes_equal(class, BYTES("Namespace")))
        retry_absent(relay);
}

/* Tasks were created or moved outside the workers: managers must scan. */
static void want_scan(struct relay *relay, int ns)
{
    struct backlog *backlog = backlog_of(relay->segment, ns);
    atomic_fetch_or(&backlog->wanted, BACKLOG_LOCAL | BACKLOG_REMOTE);
    backlog_offer(backlog);
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
        else if (bytes_equal(channel, BYTES(ACKNOWLEDGEMENT_CHANNEL)))
            acknowledgement_answer(relay->acknowledgement, session->pg, payload);
        else
            receive(relay, ns, payload);
        arena_reset(relay->arena);
    }
    if (pg_is_alive(session->pg))
        return;
    log_warning("relay lost database=%s", namespaces_database(relay->segment, ns));
    put_off(relay, ns);
}

/* For the ids of notifications.  Without a site key this host serves no encrypted namespace. */
static bool relay_read_keys(struct relay *relay, struct relay_session *session)
{
    if (!*site_key_mark())
        return true;
    struct pg_result *rows;
    const char *problem = "";
    bool is_read = !pg_prepare(session->pg, data_keys_statement(), 1) &&
                   !pg_run(session->pg, data_keys_statement(), PG_NO_PARAMS(relay->arena), &rows);
    if (is_read && !data_keys_take_of_ids(&session->keys, rows, &problem)) {
        log_often(LOG_LEVEL_ERROR, problem, "relay: %s", problem);
        is_read = false;
    }
    arena_reset(relay->arena);
    return is_read;
}

/* The first connection after a failover is often that of the relay. */
static bool is_of_primary(struct relay *relay, int ns)
{
    struct lineage_met met = {.mark = lineage_mark(relay->segment, ns)};
    bool is_it =
        !proof_look(relay->sessions[ns].pg, relay->arena, &met) && !session_meet(relay->segment, ns, &met);
    relay->sessions[ns].timeline = met.timeline;
    arena_reset(relay->arena);
    return is_it;
}

/* --- is PostgreSQL silent? --- */

static int64_t reach_ms(const struct relay *relay)
{
    return relay->settings->connect_timeout_s * 1000;
}

static bool relay_is_over(void *deadline_ms)
{
    return clock_monotonic_ms() >= *(const int64_t *)deadline_ms;
}

/* Behind a link that drops packets a session looks as one on which nothing happens.  False: no answer. */
static bool answers(struct relay *relay, int ns, int64_t patience_ms)
{
    struct pg *pg = relay->sessions[ns].pg;
    int64_t deadline_ms = clock_monotonic_ms() + patience_ms;
    (void)pg_set_patience(pg, (struct pg_patience){relay_is_over, &deadline_ms});
    enum fault fault = pg_execute(pg, "select 1");
    (void)pg_set_patience(pg, (struct pg_patience){NULL, NULL});
    drain(relay, ns); /* what arrived meanwhile */
    return !fault;
}

static int cell_of(const struct relay *relay, int ns)
{
    return namespaces_cell(relay->segment, ns);
}

/* One database, or one session, may hang while the server answers all others. */
static bool another_answers(struct relay *relay, int hanging)
{
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        if (ns != hanging && relay->sessions[ns].pg && cell_of(relay, ns) == cell_of(relay, hanging))
            return answers(relay, ns, reach_ms(relay) / 4);
    return false;
}

/* `lasted_ms`: until the database has answered or refused, or until the wait was over. */
static void note_answer(struct relay *relay, int ns, bool is_answer, int64_t lasted_ms)
{
    if (is_answer || lasted_ms < reach_ms(relay) / 2 || another_answers(relay, ns)) {
        waits_note_answer(relay->segment, cell_of(relay, ns));
        return;
    }
    int64_t now_ms = clock_monotonic_ms();
    if (!waits_is_silent(relay->segment, cell_of(relay, ns), now_ms))
        log_warning("postgresql is silent: what memory cannot answer is refused until it answers%s%s",
                    cell_of(relay, ns) ? " cell=" : "",
                    settings_cell_of(namespaces_database(relay->segment, ns)));
    waits_note_silence(relay->segment, cell_of(relay, ns), now_ms + 2 * reach_ms(relay) + SILENCE_MS);
}

/* In turns, so that each session that hangs is noticed. */
static void ask_next(struct relay *relay, int count)
{
    int ns = 0;
    for (int i = 0; i < count; i++) {
        ns = (relay->asked + 1 + i) % count;
        if (relay->sessions[ns].pg)
            break;
    }
    if (ns >= count || !relay->sessions[ns].pg)
        return;
    int64_t begun_ms = clock_monotonic_ms();
    relay->asked = ns;
    bool is_answer = answers(relay, ns, reach_ms(relay));
    note_answer(relay, ns, is_answer, clock_monotonic_ms() - begun_ms);
}

/* A former primary that goes on says nothing of the changes that others make in the new one. */
static void leave_former(struct relay *relay, int count)
{
    for (int ns = 0; ns < count; ns++) {
        const struct relay_session *session = &relay->sessions[ns];
        if (!session->pg || session->timeline == lineage_timeline(relay->segment, ns))
            continue;
        log_warning("relay leaves a former primary database=%s", namespaces_database(relay->segment, ns));
        put_off(relay, ns);
    }
}

/* LISTEN first, then advance all stamps: a process that loads from now on gets earlier changes, and later
 * ones are received. */
static void connect(struct relay *relay, int ns)
{
    struct relay_session *session = &relay->sessions[ns];
    struct pg_options options = {
        .conninfo = settings_conninfo(relay->settings, namespaces_database(relay->segment, ns)),
        .database = namespaces_database(relay->segment, ns),
        .role_settings = "",
        .connect_timeout_s = (int)relay->settings->connect_timeout_s,
        .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
        .lock_timeout_ms = STATEMENT_TIMEOUT_MS,
    };
    options.is_absence_known = session->is_absent;
    int64_t begun_ms = clock_monotonic_ms();
    enum fault fault = pg_open(&options, &session->pg);
    note_answer(relay, ns, !fault, clock_monotonic_ms() - begun_ms);
    if (fault ||
        pg_execute(session->pg, "set application_name = 'stampd relay'; listen stampd; listen stampd_task;"
                                " listen " ACKNOWLEDGEMENT_CHANNEL) ||
        !relay_read_keys(relay, session) || !is_of_primary(relay, ns)) {
        put_off(relay, ns);
        if (fault == FAULT_ODATABASE)
            session->not_before_ms = clock_monotonic_ms() + ABSENT_MS;
        if (fault == FAULT_ODATABASE && !session->is_absent)
            log_info("relay dropped database=%s, which does not exist", options.database);
        session->is_absent = fault == FAULT_ODATABASE;
        return;
    }
    session->is_absent = session->is_prepared = false;
    namespaces_set_health(relay->segment, ns, true);
    crash_at(CRASH_RELAY_LISTENS);
    int64_t question = acknowledgement_prepare(relay->acknowledgement, session->pg);
    slots_move_all(relay->segment);
    note_configurations(relay, ns, NO_BYTES, NO_BYTES);
    acknowledgement_join(relay->acknowledgement, session->pg, question);
    purge_counts_note_ends(relay->segment->kept, ns, true);
    want_scan(relay, ns);
    session->failures = 0;
    log_info("relay listens database=%s", options.database);
    drain(relay, ns);
}

/* While a cell is silent, its first namespace alone is tried: the others would be waited for in vain. */
static bool is_in_vain(const struct relay *relay, int ns, int64_t now_ms)
{
    int first = 0;
    while (cell_of(relay, first) != cell_of(relay, ns))
        first++;
    return ns != first && waits_is_silent(relay->segment, cell_of(relay, ns), now_ms);
}

/* Connects only one that is due: notifications of the others must not wait for slow servers.  Returns how
 * long the next may wait. */
static int connect_due(struct relay *relay, int count, int *turn)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < count; i++) {
        int ns = (*turn + i) % count;
        struct relay_session *session = &relay->sessions[ns];
        if (session->pg || now_ms < session->not_before_ms || !namespaces_database(relay->segment, ns) ||
            is_in_vain(relay, ns, now_ms))
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
    ask_next(relay, count);
    for (int ns = 0; ns < count; ns++) {
        bool is_up;
        int64_t age_ms = namespaces_health(relay->segment, ns, &is_up);
        if (relay->sessions[ns].pg && (is_up || age_ms < 0 || age_ms > TRUSTED_MS))
            namespaces_set_health(relay->segment, ns, true);
    }
}

/* For stamp-journal. */
static void read_states(struct relay *relay)
{
    struct records *records = relay->segment->records;
    struct pg *pg = records && relay->z >= 0 ? relay->sessions[relay->z].pg : NULL;
    int64_t now_ms = clock_monotonic_ms();
    if (!pg || now_ms < relay->states_ms || !records_state_is_due(records))
        return;
    if (!record_states_read(records, relay->arena, pg, &relay->sessions[relay->z].is_prepared))
        relay->states_ms = now_ms + STATES_PAUSE_MS;
    arena_reset(relay->arena);
    drain(relay, relay->z); /* what arrived meanwhile */
}

/* After one failure PostgreSQL of the cell is away, and the others would only be waited for. */
static void leave_all(struct relay *relay)
{
    bool is_away[CELLS_MOST] = {false};
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        struct pg *pg = relay->sessions[ns].pg;
        if (pg && !is_away[cell_of(relay, ns)] && pg_is_usable(pg) && pg_is_alive(pg))
            is_away[cell_of(relay, ns)] = !acknowledgement_leave(relay->acknowledgement, pg);
        pg_close(pg);
        data_keys_free(&relay->sessions[ns].keys);
    }
}

void relay_run(const struct settings *settings, struct segment *segment)
{
    struct relay relay = {.settings = settings,
                          .segment = segment,
                          .arena = arena_create("relay"),
                          .remote_wakeups = remote_wakeups_create(settings),
                          .acknowledgement = acknowledgement_create(),
                          .nginx_counts = nginx_counts_open(settings)};
    enum { COUNTS = NAMESPACES_MOST, SIGNALS, ALL };
    struct pollfd sockets[ALL];
    (void)prctl(PR_SET_NAME, "stampd-relay"); /* for administrators */
    relay.z = segment->records ? namespaces_find(segment, bytes_of(settings->z_database)) : -1;
    sockets[SIGNALS] = (struct pollfd){.fd = stop_open(), .events = POLLIN};
    sockets[COUNTS] = (struct pollfd){.fd = nginx_counts_descriptor(relay.nginx_counts), .events = POLLIN};
    for (int turn = 0; stop_requested() == STOP_NOT;) {
        int count = namespaces_count(segment);
        leave_former(&relay, count);
        int wait_ms = connect_due(&relay, count, &turn);
        report_health(&relay, count);
        lineage_file_keep(settings, segment, false);
        read_states(&relay);
        if (segment->records)
            records_save_rest(segment->records);
        task_wakeup_again(settings, segment);
        log_flush(clock_monotonic_ms());
        struct pollfd *first = &sockets[NAMESPACES_MOST - count]; /* those in use, then the others */
        for (int i = 0; i < count; i++)
            first[i] = (struct pollfd){.fd = relay.sessions[i].pg ? pg_socket(relay.sessions[i].pg) : -1,
                                       .events = POLLIN};
        if (!remote_wakeups_wait(relay.remote_wakeups, segment, wait_ms, first,
                                 (size_t)(count + ALL - COUNTS)))
            continue;
        if (sockets[COUNTS].revents)
            nginx_counts_receive(relay.nginx_counts, segment);
        for (int i = 0; i < count; i++)
            if (first[i].revents)
                drain(&relay, i);
    }
    lineage_file_keep(settings, segment, true);
    leave_all(&relay);
    if (segment->records)
        records_save_rest(segment->records);
    acknowledgement_destroy(relay.acknowledgement);
    nginx_counts_close(relay.nginx_counts);
    remote_wakeups_destroy(relay.remote_wakeups);
    arena_destroy(relay.arena);
}
