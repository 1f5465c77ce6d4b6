/* journal_remote: the TCP listener of stamp-journal, its certificate, and whom it accepts.
 *
 * A stranger costs a handshake, which is the most expensive thing that can be had without a key: strangers
 * are limited in number and rate, for each client and site (base/address.h) and for all. */
#ifndef STAMPD_JOURNAL_JOURNAL_REMOTE_H
#define STAMPD_JOURNAL_JOURNAL_REMOTE_H

#include "base/settings.h"
#include "journal/journal_connection.h"

enum {
    JOURNAL_REMOTE_MOST = 800,        /* of JOURNAL_CONNECTIONS_MOST: the host's own programs keep places */
    JOURNAL_STRANGERS_MOST = 100,     /* remote connections that have sent no right key yet */
    JOURNAL_STRANGERS_OF_CLIENT = 16, /* of these, of one client */
    JOURNAL_STRANGERS_OF_SITE = 32,   /* of one site: a customer may have thousands of IPv6 networks */
};

struct journal_remote;

/* As journal_listen and the files of the settings say.  `remote_r` becomes NULL when journal_listen is empty.
 * False: one line in `problem`. */
MUST_USE bool journal_remote_open(struct journal_remote **remote_r, const struct settings *settings,
                                  char *problem, size_t problem_size);
void journal_remote_close(struct journal_remote *remote); /* NULL is allowed */
/* Reads the certificate and its key again; false: the former ones stay. */
MUST_USE bool journal_remote_load(struct journal_remote *remote, char *problem, size_t problem_size);
int journal_remote_listener(const struct journal_remote *remote);

/* The remote connections that are there, as `client` meets them.  Zeroed: none. */
struct journal_remote_crowd {
    uint64_t client;
    int64_t all, of_client, strangers, strangers_of_client, strangers_of_site;
};
/* There is one more, of this client. */
void journal_remote_count(struct journal_remote_crowd *crowd, uint64_t other, bool is_stranger);
/* Why it is not let in, where a client may have so many connections; NULL: it is. */
const char *journal_remote_refusal(const struct journal_remote_crowd *crowd, int64_t client_connections);

/* Accepts what has arrived.  False: nothing has, or it was refused. */
MUST_USE bool journal_remote_accept(struct journal_remote *remote,
                                    struct journal_connection *const *connections, size_t count,
                                    struct journal_arrival *arrival_r);

#endif
