/* journal_remote: an address in numbers; counts of the connections that are there. */
#include "journal/journal_remote.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "journal/journal_address.h"
#include "journal/journal_rate.h"

enum { BACKLOG = 256, KEEPALIVE_IDLE_S = 60 };

struct journal_remote {
    const struct settings *settings;
    struct tls_server *server;
    int listener;
    struct journal_rate rate;
};

bool journal_remote_load(struct journal_remote *remote, char *problem, size_t problem_size)
{
    const struct settings *settings = remote->settings;
    struct tls_server *server;
    if (!*settings->journal_certificate_file || !*settings->journal_certificate_key_file) {
        snprintf(problem, problem_size,
                 "journal_listen needs journal_certificate_file and journal_certificate_key_file");
        return false;
    }
    if (!tls_server_create(&server, settings->journal_certificate_file,
                           settings->journal_certificate_key_file, problem, problem_size))
        return false;
    tls_server_destroy(remote->server);
    remote->server = server;
    return true;
}

bool journal_remote_open(struct journal_remote **remote_r, const struct settings *settings, char *problem,
                         size_t problem_size)
{
    *remote_r = NULL;
    if (!*settings->journal_listen)
        return true;
    struct journal_remote *remote = memory_zeroed(1, sizeof *remote, "opening the TCP listener");
    remote->settings = settings;
    remote->listener = -1;
    journal_rate_begin(&remote->rate);
    if (journal_remote_load(remote, problem, problem_size))
        remote->listener = journal_address_listen("journal_listen", settings->journal_listen, BACKLOG,
                                                  problem, problem_size);
    if (remote->listener < 0) {
        journal_remote_close(remote);
        return false;
    }
    *remote_r = remote;
    return true;
}

void journal_remote_close(struct journal_remote *remote)
{
    if (!remote)
        return;
    if (remote->listener >= 0)
        close(remote->listener);
    tls_server_destroy(remote->server);
    free(remote);
}

int journal_remote_listener(const struct journal_remote *remote)
{
    return remote->listener;
}

void journal_remote_count(struct journal_remote_crowd *crowd, uint64_t other, bool is_stranger)
{
    bool is_of_client = other == crowd->client;
    crowd->all++;
    crowd->of_client += is_of_client;
    crowd->strangers += is_stranger;
    crowd->strangers_of_client += is_stranger && is_of_client;
    crowd->strangers_of_site += is_stranger && address_site(other) == address_site(crowd->client);
}

const char *journal_remote_refusal(const struct journal_remote_crowd *crowd, int64_t client_connections)
{
    if (crowd->all >= JOURNAL_REMOTE_MOST)
        return "there are too many connections";
    if (crowd->of_client >= client_connections)
        return "this client has too many connections";
    if (crowd->strangers >= JOURNAL_STRANGERS_MOST ||
        crowd->strangers_of_client >= JOURNAL_STRANGERS_OF_CLIENT ||
        crowd->strangers_of_site >= JOURNAL_STRANGERS_OF_SITE)
        return "too many connections have sent no key yet";
    return NULL;
}

/* NULL: it is let in. */
static const char *why_refused(struct journal_remote *remote, struct journal_connection *const *connections,
                               size_t count, uint64_t client)
{
    struct journal_remote_crowd crowd = {.client = client};
    uint64_t other;
    if (count >= JOURNAL_CONNECTIONS_MOST)
        return "there are too many connections";
    for (size_t i = 0; i < count; i++)
        if (journal_connection_is_remote(connections[i], &other))
            journal_remote_count(&crowd, other, !journal_connection_is_known(connections[i]));
    const char *why = journal_remote_refusal(&crowd, remote->settings->journal_client_connections);
    return why || journal_rate_take(&remote->rate, client, clock_monotonic_ms())
               ? why
               : "there are too many handshakes";
}

/* A client that has gone without a word is noticed by the kernel; answers are small and leave at once. */
static void set_options(int fd)
{
    const int on = 1, idle_s = KEEPALIVE_IDLE_S;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
}

bool journal_remote_accept(struct journal_remote *remote, struct journal_connection *const *connections,
                           size_t count, struct journal_arrival *arrival_r)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char text[JOURNAL_ADDRESS_MOST] = "";
    uint64_t client;
    int fd = accept4(remote->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    const char *why = journal_address_client((const struct sockaddr *)&address, size, text, &client)
                          ? why_refused(remote, connections, count, client)
                          : "its address is not known";
    if (why) {
        log_often(LOG_LEVEL_WARNING, why, "a connection of %s is refused: %s", text, why);
        close(fd);
        return false;
    }
    set_options(fd);
    *arrival_r = (struct journal_arrival){.fd = fd, .server = remote->server, .client = client};
    return true;
}
