/* journal_connection: a connection of stamp-journal: bytes in, messages, bytes out, none of them waited for.
 */
#ifndef STAMPD_JOURNAL_JOURNAL_CONNECTION_H
#define STAMPD_JOURNAL_JOURNAL_CONNECTION_H

#include "edge/events.h"
#include "edge/crypto/tls.h"
#include "journal/journal_run.h"
#include "journal/journal_turns.h"

enum {
    JOURNAL_CONNECTIONS_MOST = 1000,
    JOURNAL_AUTH_MS = 10000,      /* to send a right key */
    JOURNAL_STATE_MS = 2000,      /* while the state of its namespace is read again */
    JOURNAL_STRANGER_BYTES = 1024 /* largest value before that */
};

struct journal_connection;

struct journal_arrival {
    int fd;
    struct tls_server *server; /* NULL: a Unix socket */
    uint64_t client;           /* of a remote one: base/address.h */
};

/* What a connection reports to its owner. */
struct journal_owner {
    void (*ended)(void *context, struct journal_connection *connection); /* it must be destroyed */
    /* Its answers, or a message, wait for the disk: journal_connection_saved is to be called.  Until then it
     * does nothing. */
    void (*saves)(void *context);
    /* A message waits for what is to be read: `done` of the reading is to be called.  Until then it runs no
     * others. */
    void (*reads)(void *context, struct journal_contents *reading);
    void (*listens)(void *context); /* journal_connection_report is to be called now and then */
    void *context;
    struct journal_turns *turns; /* of all its connections */
};

/* Takes the descriptor.  A remote connection ends when no bytes go for journal_idle_s.  `ended` is called
 * once, unless it is destroyed before; it must destroy it. */
struct journal_connection *
journal_connection_create(struct events *events, const struct journal_arrival *arrival,
                          const struct journal_session *session, const struct journal_owner *owner)
    __attribute__((returns_nonnull));
void journal_connection_destroy(struct journal_connection *connection);
/* Sends what its listener is to know.  False: there is more, which could not be sent now.  May end the
 * connection. */
bool journal_connection_report(struct journal_connection *connection);
/* The number that it waits for; 0: it does not. */
uint64_t journal_connection_saving(const struct journal_connection *connection);
/* It is on disk, and the answers are sent; or not, and the connection ends without them, unless only a
 * message has waited, which is refused then.  May end it. */
void journal_connection_saved(struct journal_connection *connection, bool is_saved);
/* Ends it: at once, or when its answers need not wait for the disk any more and as many of them are sent as
 * can be without waiting for the client. */
void journal_connection_finish(struct journal_connection *connection);
bool journal_connection_is_finished(const struct journal_connection *connection);
bool journal_connection_listens(const struct journal_connection *connection);
/* Bytes of its buffers: at most a few times the largest message, whatever the client sends or reads. */
size_t journal_connection_memory(const struct journal_connection *connection);
bool journal_connection_is_remote(const struct journal_connection *connection, uint64_t *client_r);
/* Has it sent a right key? */
bool journal_connection_is_known(const struct journal_connection *connection);

#endif
