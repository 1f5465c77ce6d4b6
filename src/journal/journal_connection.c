/* journal_connection: reads, answers what is whole, writes; stops reading while the client does not read. */
#include "journal/journal_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/crypto/tls.h"
#include "journal/journal_reader.h"
#include "journal/journal_tasks.h"
#include "journal/resp/resp_run.h"

/* --- the socket --- */

/* The bytes of a connection of stamp-journal: a Unix socket, or TCP with TLS.  No call waits.  The outcomes
 * of a plain socket are put as those of TLS. */

struct journal_link {
    int fd;
    struct tls *tls; /* NULL: a Unix socket */
    bool is_open;    /* there is no handshake, or it is done */
};

/* Takes the descriptor.  `server`: NULL: without TLS. */
static void journal_link_open(struct journal_link *link, int fd, struct tls_server *server)
{
    *link = (struct journal_link){
        .fd = fd, .tls = server ? tls_create(server, fd) : NULL, .is_open = server == NULL};
}

static void journal_link_close(struct journal_link *link)
{
    tls_destroy(link->tls);
    close(link->fd);
}

/* To be called until it returns TLS_DONE. */
static enum tls_outcome journal_link_shake(struct journal_link *link)
{
    enum tls_outcome outcome = link->is_open ? TLS_DONE : tls_shake(link->tls);
    link->is_open = outcome == TLS_DONE;
    return outcome;
}

static enum tls_outcome outcome_of(ssize_t size, enum tls_outcome again, size_t *size_r)
{
    *size_r = size > 0 ? (size_t)size : 0;
    if (size > 0)
        return TLS_DONE;
    return size < 0 && (errno == EAGAIN || errno == EINTR) ? again : TLS_ENDED;
}

/* Both return TLS_DONE with at least one byte.  `most`: at least TLS_RECORD_BYTES. */
static enum tls_outcome journal_link_receive(struct journal_link *link, char *data, size_t most,
                                             size_t *size_r)
{
    if (link->tls)
        return tls_receive(link->tls, data, most, size_r);
    return outcome_of(recv(link->fd, data, most, MSG_DONTWAIT), TLS_READS, size_r);
}

static enum tls_outcome journal_link_send(struct journal_link *link, const char *data, size_t size,
                                          size_t *size_r)
{
    if (link->tls)
        return tls_send(link->tls, data, size, size_r);
    return outcome_of(send(link->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT), TLS_WRITES, size_r);
}

/* Of a link that has ended: may answers still arrive, since the client has only said that it sends no more?
 * TLS has no such thing. */
static bool journal_link_takes_answers(const struct journal_link *link)
{
    struct pollfd state = {.fd = link->fd};
    return !link->tls && poll(&state, 1, 0) == 0;
}

/* --- connections --- */

enum { READ_BYTES = 65536, PENDING_MOST = 1 << 20, KEPT_BYTES = 65536, AGAIN_MS = 10, IDLE_STEP_MS = 500 };

struct journal_connection {
    struct journal_session session;
    struct journal_link link;
    uint64_t client;
    struct watch *watch;
    struct events_timer *soon, *deadline;
    int64_t moved_ms; /* when bytes went last, of a remote connection */
    struct builder in, out;
    size_t sent;
    bool has_protocol; /* it is known by its first byte */
    bool is_closing;
    bool is_finished; /* it ends with the answers that wait for the disk */
    bool has_answers; /* that may be sent before more messages are run: the disk has the changes that they
                         report */
    struct journal_pending
        *passed; /* of its first message, which the server runs; little is read meanwhile */
    struct journal_request passed_request;
    bool is_asking;     /* its first message waits for other hosts; little is read meanwhile */
    bool is_reading;    /* its first message waits for contents of the disk; little is read meanwhile */
    int64_t waiting_ms; /* since then its first message waits; 0: it does not.  Nothing is read meanwhile */
    struct journal_owner owner;
    struct journal_turn turn;
};

static bool is_known_journal_connection(const struct journal_connection *connection)
{
    return connection->session.caller.ns.data != NULL;
}

/* The message is to be run again: does it wait?  One that has waited long enough is refused the next time. */
static void note_wait(struct journal_connection *connection, bool is_waiting)
{
    if (!is_waiting && !connection->waiting_ms)
        return;
    int64_t now_ms = clock_monotonic_ms();
    if (!is_waiting)
        connection->waiting_ms = 0;
    else if (!connection->waiting_ms)
        connection->waiting_ms = now_ms;
    connection->session.is_overdue =
        connection->waiting_ms && now_ms - connection->waiting_ms >= JOURNAL_STATE_MS;
}

static void on_passed(void *context, const char *error, struct bytes text);

/* To the server; what cannot be is answered. */
static void pass_on(struct journal_connection *connection, const struct journal_request *request)
{
    const struct journal_session *session = &connection->session;
    const char *error;
    connection->passed = journal_tasks_send(session->tasks, &session->caller, session->key,
                                            journal_run_operation(request->function), request->value,
                                            on_passed, connection, &error);
    if (!connection->passed)
        journal_run_answer(&connection->out, request, error, NO_BYTES);
    connection->passed_request = (struct journal_request){
        .function = request->function, .identifier = request->identifier, .flags = request->flags};
}

/* Does its first message wait for others, while its end is to be noticed? */
static bool is_held(const struct journal_connection *connection)
{
    return connection->passed || connection->is_reading || connection->is_asking;
}

/* The first byte of a connection shows its protocol: that of a binary message is an F.  Those of RESP are
 * stars, or the first letters of commands in a line, of which none begins so. */
enum { BINARY_BYTE = 'F' };

struct journal_read {
    struct journal_request request; /* of the binary protocol */
    size_t used;
};

static enum journal_reading read_message(struct journal_connection *connection, struct bytes bytes,
                                         struct journal_read *read)
{
    struct journal_session *session = &connection->session;
    size_t most = is_known_journal_connection(connection) ? (size_t)session->settings->limit_content_bytes
                                                          : (size_t)JOURNAL_STRANGER_BYTES;
    if (!connection->has_protocol && bytes.data[0] != BINARY_BYTE)
        session->resp = resp_run_open();
    connection->has_protocol = true;
    if (!session->resp)
        return journal_message_read(bytes, most, &read->request, &read->used);
    enum resp_reading reading = resp_run_read(session, bytes, &read->used, &connection->out);
    return reading == RESP_WHOLE     ? JOURNAL_WHOLE
           : reading == RESP_PARTIAL ? JOURNAL_PARTIAL
                                     : JOURNAL_MALFORMED;
}

/* The message is done, and is not run again. */
static void leave_message(struct journal_connection *connection, const struct journal_read *read, size_t at)
{
    struct journal_session *session = &connection->session;
    bool has_key = session->resp ? resp_run_is_secret(session) : read->request.function == JOURNAL_AUTH;
    if (has_key)
        explicit_bzero(connection->in.data + at, read->used);
    if (session->resp)
        resp_next(&session->resp->reader);
}

/* Runs the messages that are whole, up to one that needs room which the disk has to make, or what is to be
 * read from it.  `has_more_r`: there may be others. */
static void run_messages(struct journal_connection *connection, bool *has_more_r)
{
    size_t done = 0;
    enum journal_reading reading = JOURNAL_WHOLE;
    *has_more_r = false;
    while (reading == JOURNAL_WHOLE && !connection->is_closing && !is_held(connection) && !*has_more_r &&
           done < connection->in.size) {
        struct journal_read read = {.used = 0};
        struct journal_session *session = &connection->session;
        struct bytes rest = {connection->in.data + done, connection->in.size - done};
        if (connection->out.size - connection->sent > PENDING_MOST || connection->turn.steps <= 0) {
            *has_more_r = true;
            break;
        }
        reading = read_message(connection, rest, &read);
        if (reading != JOURNAL_WHOLE)
            break;
        session->cost = 0;
        hosts_memo_rewind(&session->memo);
        enum journal_next next = session->resp ? resp_run(session, &connection->out)
                                               : journal_run(session, &read.request, &connection->out);
        /* A try that waits costs none: it has a pause behind it, and is not in line meanwhile. */
        connection->turn.steps -= next == JOURNAL_WAIT ? 0 : session->cost;
        note_wait(connection, next == JOURNAL_WAIT);
        if (next == JOURNAL_READ) {
            connection->is_reading = true;
            connection->owner.reads(connection->owner.context, &session->reading);
        }
        connection->is_asking = next == JOURNAL_ASK;
        if (next == JOURNAL_SAVE || next == JOURNAL_READ || next == JOURNAL_ASK)
            break;
        if (next != JOURNAL_WAIT && session->memo.count)
            hosts_memo_forget(session->hosts, &session->memo);
        if (next != JOURNAL_WAIT && session->reading.count)
            journal_contents_forget(&session->reading);
        session->room_tries = 0;
        if (next != JOURNAL_WAIT && next != JOURNAL_PART) {
            leave_message(connection, &read, done);
            done += read.used;
        }
        if (next == JOURNAL_PASS)
            pass_on(connection, &read.request);
        connection->is_closing = next == JOURNAL_CLOSE;
        *has_more_r = next == JOURNAL_WAIT;
    }
    size_t left = connection->in.size - done;
    if (done && left) {
        memmove(connection->in.data, connection->in.data + done, left);
        explicit_bzero(connection->in.data + left, done); /* it may have had a part of a key */
    }
    connection->in.size = left;
    if (!left)
        builder_clear(&connection->in, KEPT_BYTES);
    if (reading == JOURNAL_MALFORMED)
        connection->is_closing = true; /* after the answers to what came before */
}

/* A client that reads slowly always leaves something to send: what was sent before it must not pile up.
 * No more bytes are moved than were sent. */
static void drop_sent(struct journal_connection *connection)
{
    struct builder *out = &connection->out;
    size_t left = out->size - connection->sent;
    if (connection->sent < PENDING_MOST || connection->sent < left)
        return;
    memmove(out->data, out->data + connection->sent, left);
    out->size = left;
    connection->sent = 0;
}

/* TLS_DONE: all is sent. */
static enum tls_outcome send_some(struct journal_connection *connection, bool *has_moved_r)
{
    while (connection->sent < connection->out.size) {
        size_t sent;
        enum tls_outcome outcome =
            journal_link_send(&connection->link, connection->out.data + connection->sent,
                              connection->out.size - connection->sent, &sent);
        if (outcome != TLS_DONE) {
            drop_sent(connection);
            return outcome;
        }
        *has_moved_r = true;
        connection->sent += sent;
    }
    builder_clear(&connection->out, KEPT_BYTES);
    connection->sent = 0;
    return TLS_DONE;
}

/* The first deadline is for the key.  A remote connection has another from then on: bytes must go, in either
 * direction; they start it again, though not each time.  There is none while it waits for the server or the
 * disk. */
static void note_progress(struct journal_connection *connection, bool has_moved)
{
    if (!is_known_journal_connection(connection))
        return;
    if (!connection->link.tls || is_held(connection) || journal_connection_saving(connection)) {
        events_timer_stop(connection->deadline);
        return;
    }
    int64_t now_ms = clock_monotonic_ms();
    if (has_moved && (!connection->moved_ms || now_ms - connection->moved_ms >= IDLE_STEP_MS)) {
        connection->moved_ms = now_ms;
        events_timer_start(connection->deadline, connection->session.settings->journal_idle_s * 1000);
    }
}

static void journal_connection_end(struct journal_connection *connection)
{
    connection->owner.ended(connection->owner.context, connection);
}

static void go_on_later(struct journal_connection *connection)
{
    if (connection->turn.steps <= 0 && !connection->waiting_ms)
        journal_turns_wait(connection->owner.turns, &connection->turn);
    else
        events_timer_start(connection->soon, connection->waiting_ms ? AGAIN_MS : 0);
}

/* `has_moved`: bytes have arrived. */
static void pump(struct journal_connection *connection, bool has_moved)
{
    bool has_more = connection->has_answers && connection->in.size;
    if (journal_connection_saving(connection))
        return;
    if (!connection->has_answers)
        run_messages(connection, &has_more);
    connection->has_answers = false;
    if (journal_connection_saving(connection)) {
        note_progress(connection, has_moved);
        events_watch_set(connection->watch, -1, false);
        connection->owner.saves(connection->owner.context);
        return;
    }
    enum tls_outcome outcome = send_some(connection, &has_moved);
    bool is_pending = outcome != TLS_DONE;
    if (outcome == TLS_ENDED || (connection->is_closing && !is_pending)) {
        journal_connection_end(connection);
        return;
    }
    note_progress(connection, has_moved);
    if (journal_connection_listens(connection))
        connection->owner.listens(connection->owner.context);
    bool has_room = !is_held(connection) || connection->in.size < READ_BYTES; /* its end is to be noticed */
    bool is_watched = is_pending || (!has_more && !connection->waiting_ms && has_room);
    events_watch_set(connection->watch, is_watched ? connection->link.fd : -1, outcome == TLS_WRITES);
    if (has_more && !is_pending)
        go_on_later(connection);
}

static void on_passed(void *context, const char *error, struct bytes text)
{
    struct journal_connection *connection = context;
    connection->passed = NULL;
    connection->moved_ms = 0; /* its deadline begins again */
    journal_run_answer(&connection->out, &connection->passed_request, error, text);
    pump(connection, true);
}

/* What its first message needs was read, or cannot be. */
static void on_read(void *context)
{
    struct journal_connection *connection = context;
    connection->is_reading = false;
    connection->moved_ms = 0; /* its deadline begins again */
    pump(connection, true);
}

/* Another host has answered. */
static void on_asked(void *context)
{
    struct journal_connection *connection = context;
    connection->is_asking = false;
    connection->moved_ms = 0; /* its deadline begins again */
    pump(connection, true);
}

/* How much to read: while there is little, without moving it, which would leave a copy, perhaps of a key. */
static size_t most_to_read(const struct journal_connection *connection)
{
    size_t size = connection->in.size;
    return size <= READ_BYTES - TLS_RECORD_BYTES ? READ_BYTES - size : READ_BYTES;
}

/* Nothing was read or agreed upon: waits for the socket, or ends. */
static void wait_or_end(struct journal_connection *connection, enum tls_outcome outcome)
{
    if (outcome == TLS_ENDED)
        journal_connection_end(connection);
    else
        events_watch_set(connection->watch, connection->link.fd, outcome == TLS_WRITES);
}

static void on_ready(void *context)
{
    struct journal_connection *connection = context;
    if (!connection->link.is_open) {
        enum tls_outcome outcome = journal_link_shake(&connection->link);
        wait_or_end(connection, outcome);
        return;
    }
    if (connection->sent < connection->out.size) {
        pump(connection, false);
        return;
    }
    size_t size, most = most_to_read(connection);
    enum tls_outcome outcome =
        journal_link_receive(&connection->link, builder_reserve(&connection->in, most), most, &size);
    bool is_silent = outcome == TLS_ENDED && (connection->is_reading || connection->is_asking);
    if (is_silent && journal_link_takes_answers(&connection->link)) {
        events_watch_set(connection->watch, -1, false); /* its end is met again behind the answer */
        return;
    }
    if (outcome != TLS_DONE) {
        wait_or_end(connection, outcome);
        return;
    }
    connection->in.size += size;
    pump(connection, true);
}

static void on_soon(void *context)
{
    pump(context, false);
}

static void on_deadline(void *context)
{
    journal_connection_end(context);
}

struct journal_connection *journal_connection_create(struct events *events,
                                                     const struct journal_arrival *arrival,
                                                     const struct journal_session *session,
                                                     const struct journal_owner *owner)
{
    unsigned char name[JOURNAL_OWNER_BYTES / 2];
    struct journal_connection *connection = memory_zeroed(1, sizeof *connection, "accepting a connection");
    *connection =
        (struct journal_connection){.session = *session, .client = arrival->client, .owner = *owner};
    journal_link_open(&connection->link, arrival->fd, arrival->server);
    crypto_random(name, sizeof name);
    hex_write(name, sizeof name, connection->session.owner);
    connection->watch = events_watch_create(events, on_ready, connection);
    connection->soon = events_timer_create(events, on_soon, connection);
    connection->deadline = events_timer_create(events, on_deadline, connection);
    connection->turn =
        (struct journal_turn){.steps = JOURNAL_TURN_STEPS, .go = on_soon, .context = connection};
    connection->session.memo.done = on_asked;
    connection->session.memo.context = connection;
    connection->session.reading.done = on_read;
    connection->session.reading.context = connection;
    events_timer_start(connection->deadline, JOURNAL_AUTH_MS);
    events_watch_set(connection->watch, arrival->fd, false);
    return connection;
}

static void erase_keys(struct journal_connection *connection)
{
    explicit_bzero(connection->session.key, sizeof connection->session.key);
    if (connection->in.size)
        explicit_bzero(connection->in.data, connection->in.size); /* what was not run */
    connection->in.size = 0;
}

void journal_connection_destroy(struct journal_connection *connection)
{
    journal_tasks_forget(connection->passed);
    journal_turns_leave(connection->owner.turns, &connection->turn);
    hosts_memo_forget(connection->session.hosts, &connection->session.memo);
    journal_reader_leave(&connection->session.reading);
    journal_contents_forget(&connection->session.reading);
    journal_listener_free(&connection->session.listener);
    resp_run_close(connection->session.resp);
    erase_keys(connection);
    events_watch_destroy(connection->watch);
    events_timer_destroy(connection->soon);
    events_timer_destroy(connection->deadline);
    journal_link_close(&connection->link);
    builder_free(&connection->in);
    builder_free(&connection->out);
    free(connection);
}

/* One that has no steps left waits in line, as with messages. */
static bool report_resp(struct journal_connection *connection)
{
    struct journal_session *session = &connection->session;
    if (connection->turn.steps <= 0) {
        journal_turns_wait(connection->owner.turns, &connection->turn);
        return false;
    }
    session->cost = 0;
    enum resp_report report = resp_listener_report(session, connection->sent + PENDING_MOST,
                                                   connection->turn.steps, &connection->out);
    connection->turn.steps -= session->cost;
    connection->is_closing |= report == RESP_OVERTAKEN;
    return report == RESP_REPORTED;
}

bool journal_connection_report(struct journal_connection *connection)
{
    size_t before = connection->out.size;
    size_t most = connection->sent + PENDING_MOST;
    bool is_all = connection->is_closing ? false
                  : connection->session.resp
                      ? report_resp(connection)
                      : journal_run_report(&connection->session, most, &connection->out);
    if (connection->out.size > before || connection->is_closing)
        pump(connection, false);
    return is_all;
}

uint64_t journal_connection_saving(const struct journal_connection *connection)
{
    const struct journal_session *session = &connection->session;
    return session->saving > session->room ? session->saving : session->room;
}

void journal_connection_saved(struct journal_connection *connection, bool is_saved)
{
    bool has_moved, may_send = is_saved || !connection->session.saving;
    struct journal_session *session = &connection->session;
    if (session->room)
        session->room_tries = is_saved ? session->room_tries + 1 : JOURNAL_ROOM_TRIES;
    session->saving = session->room = 0;
    connection->has_answers = true;
    connection->moved_ms = 0; /* its deadline begins again */
    if (may_send && !connection->is_finished) {
        pump(connection, true);
        return;
    }
    if (may_send && send_some(connection, &has_moved) != TLS_DONE)
        log_debug("a connection ends before all its answers are sent");
    journal_connection_end(connection);
}

void journal_connection_finish(struct journal_connection *connection)
{
    connection->is_finished = connection->is_closing = true;
    if (!connection->session.saving) {
        journal_connection_end(connection);
        return;
    }
    erase_keys(connection);
}

bool journal_connection_is_finished(const struct journal_connection *connection)
{
    return connection->is_finished;
}

bool journal_connection_listens(const struct journal_connection *connection)
{
    const struct journal_session *session = &connection->session;
    return session->listener.count || (session->resp && session->resp->subscription_count);
}

size_t journal_connection_memory(const struct journal_connection *connection)
{
    return connection->in.capacity + connection->out.capacity + hosts_memo_memory(&connection->session.memo) +
           journal_contents_memory(&connection->session.reading) + resp_run_memory(connection->session.resp);
}

bool journal_connection_is_remote(const struct journal_connection *connection, uint64_t *client_r)
{
    *client_r = connection->client;
    return connection->link.tls != NULL;
}

bool journal_connection_is_known(const struct journal_connection *connection)
{
    return is_known_journal_connection(connection);
}
