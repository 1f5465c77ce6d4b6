/* journal_link: the outcomes of a plain socket are put as those of TLS. */
#include "journal/journal_link.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

void journal_link_open(struct journal_link *link, int fd, struct tls_server *server)
{
    *link = (struct journal_link){
        .fd = fd, .tls = server ? tls_create(server, fd) : NULL, .is_open = server == NULL};
}

void journal_link_close(struct journal_link *link)
{
    tls_destroy(link->tls);
    close(link->fd);
}

enum tls_outcome journal_link_shake(struct journal_link *link)
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

enum tls_outcome journal_link_receive(struct journal_link *link, char *data, size_t most, size_t *size_r)
{
    if (link->tls)
        return tls_receive(link->tls, data, most, size_r);
    return outcome_of(recv(link->fd, data, most, MSG_DONTWAIT), TLS_READS, size_r);
}

enum tls_outcome journal_link_send(struct journal_link *link, const char *data, size_t size, size_t *size_r)
{
    if (link->tls)
        return tls_send(link->tls, data, size, size_r);
    return outcome_of(send(link->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT), TLS_WRITES, size_r);
}

bool journal_link_takes_answers(const struct journal_link *link)
{
    struct pollfd state = {.fd = link->fd};
    return !link->tls && poll(&state, 1, 0) == 0;
}
