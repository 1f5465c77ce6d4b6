/* journal_link: the bytes of a connection of stamp-journal: a Unix socket, or TCP with TLS.  No call waits.
 */
#ifndef STAMPD_JOURNAL_JOURNAL_LINK_H
#define STAMPD_JOURNAL_JOURNAL_LINK_H

#include "edge/crypto/tls.h"

struct journal_link {
    int fd;
    struct tls *tls; /* NULL: a Unix socket */
    bool is_open;    /* there is no handshake, or it is done */
};

/* Takes the descriptor.  `server`: NULL: without TLS. */
void journal_link_open(struct journal_link *link, int fd, struct tls_server *server);
void journal_link_close(struct journal_link *link);
/* To be called until it returns TLS_DONE. */
MUST_USE enum tls_outcome journal_link_shake(struct journal_link *link);
/* Both return TLS_DONE with at least one byte.  `most`: at least TLS_RECORD_BYTES. */
MUST_USE enum tls_outcome journal_link_receive(struct journal_link *link, char *data, size_t most,
                                               size_t *size_r);
MUST_USE enum tls_outcome journal_link_send(struct journal_link *link, const char *data, size_t size,
                                            size_t *size_r);

/* Of a link that has ended: may answers still arrive, since the client has only said that it sends no more?
 * TLS has no such thing. */
bool journal_link_takes_answers(const struct journal_link *link);

#endif
