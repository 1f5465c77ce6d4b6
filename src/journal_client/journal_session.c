/* journal_session: a connection: what is to be sent, what has arrived, and the requests without an answer. */
#include "journal_client/stampd_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "journal_client/journal_wire.h"

/* Answers are limited as a whole: 1,000 records of a server that follows the protocol are smaller. */
enum { GATHERED_BYTES = 16384, RECEIVE_BYTES = 65536, KEPT_BYTES = 1 << 20, NOTICES_MOST = 1 << 20 };
static const size_t ANSWER_MOST = (size_t)STAMPD_JOURNAL_VALUE_MOST + (64 << 20);

struct session_buffer {
    unsigned char *data;
    size_t start, end, room;
};

struct stampd_journal {
    struct stampd_journal_transport transport;
    int timeout_ms;
    int broken; /* the error of all calls from now on */
    unsigned next, unanswered;
    uint16_t first; /* identifier of the oldest request without an answer */
    struct session_buffer out, in;
    struct session_buffer notices; /* keys, each after its size */
    size_t consumed;               /* bytes of `in`, of the answer that was returned last */
};

/* --- the Unix socket --- */

static int fd_of(void *context)
{
    return (int)(intptr_t)context;
}

static ssize_t send_plain(void *context, const void *data, size_t size)
{
    return send(fd_of(context), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t receive_plain(void *context, void *data, size_t most)
{
    return recv(fd_of(context), data, most, MSG_DONTWAIT);
}

static void close_plain(void *context)
{
    close(fd_of(context));
}

int stampd_journal_open_transport(const struct stampd_journal_transport *transport, int timeout_ms,
                                  struct stampd_journal **journal_r)
{
    struct stampd_journal *journal = calloc(1, sizeof *journal);
    *journal_r = journal;
    if (!journal)
        return ENOMEM;
    journal->transport = *transport;
    journal->timeout_ms = timeout_ms;
    return 0;
}

int stampd_journal_open(const char *path, int timeout_ms, struct stampd_journal **journal_r)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *journal_r = NULL;
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) ? errno : 0;
    const struct stampd_journal_transport transport = {(void *)(intptr_t)fd, fd, send_plain, receive_plain,
                                                       close_plain};
    if (!error)
        error = stampd_journal_open_transport(&transport, timeout_ms, journal_r);
    if (error && fd >= 0)
        close(fd);
    return error;
}

void stampd_journal_close(struct stampd_journal *journal)
{
    if (!journal)
        return;
    journal->transport.close(journal->transport.context);
    free(journal->out.data);
    free(journal->in.data);
    free(journal->notices.data);
    free(journal);
}

/* --- buffers --- */

/* Room for `size` bytes at the end; NULL: there is no memory. */
static unsigned char *reserve(struct session_buffer *buffer, size_t size)
{
    if (buffer->start == buffer->end) {
        buffer->start = buffer->end = 0;
        if (buffer->room > KEPT_BYTES && size <= KEPT_BYTES) {
            free(buffer->data);
            *buffer = (struct session_buffer){0};
        }
    }
    if (buffer->start && buffer->room - buffer->end < size) {
        memmove(buffer->data, buffer->data + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->start = 0;
    }
    if (buffer->room - buffer->end < size) {
        size_t room = (buffer->end + size) * 2;
        unsigned char *data = realloc(buffer->data, room);
        if (!data)
            return NULL;
        buffer->data = data;
        buffer->room = room;
    }
    return buffer->data + buffer->end;
}

static int journal_session_fail(struct stampd_journal *journal, int error)
{
    journal->broken = error;
    return error;
}

/* Reads what has arrived.  EAGAIN: nothing has. */
static int take_in(struct stampd_journal *journal)
{
    struct session_buffer *in = &journal->in;
    unsigned char *to = in->end - in->start < ANSWER_MOST ? reserve(in, RECEIVE_BYTES) : NULL;
    if (!to)
        return journal_session_fail(journal, in->end - in->start < ANSWER_MOST ? ENOMEM : EMSGSIZE);
    ssize_t size = journal->transport.receive(journal->transport.context, to, RECEIVE_BYTES);
    if (size > 0) {
        in->end += (size_t)size;
        return 0;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return EAGAIN;
    return journal_session_fail(journal, size ? errno : ECONNRESET);
}

/* Sends what it can.  EAGAIN: something is left. */
static int give_out(struct stampd_journal *journal)
{
    struct session_buffer *out = &journal->out;
    while (out->start < out->end) {
        ssize_t size = journal->transport.send(journal->transport.context, out->data + out->start,
                                               out->end - out->start);
        if (size < 0)
            return errno == EAGAIN || errno == EINTR ? EAGAIN : journal_session_fail(journal, errno);
        out->start += (size_t)size;
    }
    return 0;
}

static int wait_for(struct stampd_journal *journal, short events)
{
    struct pollfd one = {.fd = journal->transport.descriptor, .events = events};
    int count = poll(&one, 1, journal->timeout_ms);
    if (count == 0)
        return journal_session_fail(journal, ETIMEDOUT);
    return count < 0 && errno != EINTR ? journal_session_fail(journal, errno) : 0;
}

/* Sends all.  Answers are read meanwhile: a server that is not read does not read either. */
static int flush(struct stampd_journal *journal)
{
    for (int error; (error = give_out(journal)) != 0;) {
        if (error != EAGAIN)
            return error;
        error = take_in(journal);
        if (error == EAGAIN)
            error = wait_for(journal, POLLIN | POLLOUT);
        if (error)
            return error;
    }
    return 0;
}

/* --- requests --- */

/* The answer that was returned last is of no more use. */
static void drop_answer(struct stampd_journal *journal)
{
    journal->in.start += journal->consumed;
    journal->consumed = 0;
}

int stampd_journal_send(struct stampd_journal *journal, const struct stampd_journal_request *request,
                        unsigned *identifier_r)
{
    size_t size = journal_wire_size(request);
    if (journal->broken)
        return journal->broken;
    if (!size || journal->unanswered == UINT16_MAX)
        return size ? EBUSY : EINVAL;
    drop_answer(journal);
    unsigned char *to = reserve(&journal->out, size);
    if (!to)
        return ENOMEM;
    uint16_t identifier = (uint16_t)journal->next;
    journal_wire_write(request, identifier, to);
    journal->out.end += size;
    journal->next++;
    journal->unanswered++;
    if (identifier_r)
        *identifier_r = identifier;
    return journal->out.end - journal->out.start < GATHERED_BYTES ? 0 : flush(journal);
}

/* A message that is no answer: its key is kept. */
static int keep_notice(struct stampd_journal *journal, struct stampd_journal_answer *notice, size_t size)
{
    struct stampd_journal_record record;
    struct session_buffer *notices = &journal->notices;
    if (stampd_journal_next_record(notice, &record))
        return journal_session_fail(journal, EPROTO);
    uint16_t key_size = (uint16_t)record.key.size;
    if (notices->end - notices->start > NOTICES_MOST)
        return journal_session_fail(journal, EMSGSIZE);
    unsigned char *to = reserve(notices, sizeof key_size + key_size);
    if (!to)
        return journal_session_fail(journal, ENOMEM);
    memcpy(to, &key_size, sizeof key_size);
    memcpy(to + sizeof key_size, record.key.data, key_size);
    notices->end += sizeof key_size + key_size;
    journal->in.start += size;
    return 0;
}

/* The first answer that has arrived; what comes before it is kept.  0: `size_r` 0: there is none yet. */
static int read_answer(struct stampd_journal *journal, struct stampd_journal_answer *answer_r, size_t *size_r)
{
    struct session_buffer *in = &journal->in;
    *size_r = 0;
    for (;;) {
        ssize_t size = journal_wire_read(in->data + in->start, in->end - in->start, answer_r);
        if (size < 0)
            return journal_session_fail(journal, EPROTO);
        int is_notice = size > 0 && answer_r->flags & STAMPD_JOURNAL_LISTEN;
        if (!is_notice) {
            *size_r = (size_t)size;
            return 0;
        }
        int error = keep_notice(journal, answer_r, (size_t)size);
        if (error)
            return error;
    }
}

int stampd_journal_next_notice(struct stampd_journal *journal, int timeout_ms,
                               struct stampd_journal_text *key_r)
{
    struct session_buffer *notices = &journal->notices;
    struct stampd_journal_answer answer;
    uint16_t key_size;
    size_t size;
    drop_answer(journal);
    if (journal->unanswered)
        return journal->broken ? journal->broken : EBUSY;
    while (notices->start == notices->end) {
        int error = read_answer(journal, &answer, &size);
        if (error || size)
            return error ? error : journal_session_fail(journal, EPROTO);
        if (notices->start < notices->end)
            break;
        if (journal->broken)
            return journal->broken;
        struct pollfd one = {.fd = journal->transport.descriptor, .events = POLLIN};
        int arrived = take_in(journal);
        if (arrived == EAGAIN && poll(&one, 1, timeout_ms) == 0)
            return ETIMEDOUT;
        if (arrived && arrived != EAGAIN)
            return arrived;
    }
    memcpy(&key_size, notices->data + notices->start, sizeof key_size);
    *key_r = (struct stampd_journal_text){notices->data + notices->start + sizeof key_size, key_size};
    notices->start += sizeof key_size + key_size;
    return 0;
}

/* What has arrived before an error is returned first. */
int stampd_journal_receive(struct stampd_journal *journal, struct stampd_journal_answer *answer_r)
{
    drop_answer(journal);
    if (!journal->unanswered)
        return journal->broken ? journal->broken : ENOENT;
    int error = journal->broken ? journal->broken : flush(journal);
    for (;;) {
        size_t size;
        int wrong = read_answer(journal, answer_r, &size);
        if (wrong || (size && answer_r->identifier != journal->first))
            return wrong ? wrong : journal_session_fail(journal, EPROTO);
        if (size) {
            journal->consumed = size;
            journal->first++;
            journal->unanswered--;
            return 0;
        }
        int arrived = take_in(journal);
        if (error && arrived)
            return journal_session_fail(journal, error);
        if (arrived == EAGAIN)
            arrived = wait_for(journal, POLLIN);
        if (arrived)
            return arrived;
    }
}

int stampd_journal_run(struct stampd_journal *journal, const struct stampd_journal_request *request,
                       struct stampd_journal_answer *answer_r)
{
    if (!journal->broken && journal->unanswered)
        return EBUSY;
    int error = stampd_journal_send(journal, request, NULL);
    return error ? error : stampd_journal_receive(journal, answer_r);
}

int stampd_journal_enter(struct stampd_journal *journal, const char *ns, const char *key)
{
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    struct stampd_journal_answer answer;
    request.function = STAMPD_JOURNAL_AUTH;
    request.key = (struct stampd_journal_text){ns, strlen(ns)};
    request.type = STAMPD_JOURNAL_STRING;
    request.value = (struct stampd_journal_text){key, strlen(key)};
    int error = stampd_journal_run(journal, &request, &answer);
    if (error || !answer.error.size)
        return error;
    return journal_session_fail(journal, EACCES);
}
