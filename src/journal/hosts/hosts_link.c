/* hosts_link: peers, to whom this host sends, and callers, from whom it receives. */
#include "journal/hosts/hosts_link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/cluster_wire.h"
#include "journal/journal_address.h"
#include "journal/journal_rate.h"

enum {
    CALLERS_MOST = 2 * HOSTS_MOST + 32,
    STRANGERS_MOST = 32,  /* callers that have not shown a key of the list */
    SHAKE_MS = 5000,      /* to show one, and for a peer to answer */
    QUEUE_MOST = 8 << 20, /* bytes for a peer that does not take them */
    PAUSE_LEAST_MS = 100,
    PAUSE_MOST_MS = 5000, /* between two attempts to connect */
    BACKLOG = 64,
    KEPT_BYTES = 65536
};

struct hosts_peer {
    struct hosts_links *links;
    uint32_t number; /* 0: free */
    uint64_t client; /* that its endpoint stands for */
    char endpoint[HOSTS_ENDPOINT_MOST + 1], fingerprint[CRYPTO_SHA256_HEX + 1];
    int fd; /* -1: none */
    struct tls *tls;
    bool is_open;
    struct watch *watch;
    struct events_timer *timer; /* without a connection: to try again; else: to be open by then */
    int64_t pause_ms, opened_ms;
    struct builder out;
    size_t sent;
};

struct hosts_caller {
    struct hosts_links *links;
    int fd;
    struct tls *tls;
    bool is_open, has_begun; /* the handshake is done, or has begun */
    uint64_t client;
    char fingerprint[CRYPTO_SHA256_HEX + 1];
    uint64_t arrival; /* a number that grows */
    struct watch *watch;
    struct events_timer *timer;
    struct builder in;
};

struct hosts_links {
    struct events *events;
    struct hosts_links_owner owner;
    struct tls_peers *keys;
    struct journal_rate of_strangers, of_members;
    int listener;
    struct watch *arrivals;
    struct hosts_peer peers[HOSTS_MOST];
    struct hosts_caller *callers[CALLERS_MOST];
    size_t caller_count;
    uint64_t arrivals_so_far;
};

static void set_link_options(int fd)
{
    const int on = 1, idle_s = 5, interval_s = 2, count = 2, timeout_ms = 10000;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

/* --- peers --- */

/* What was not sent is dropped: a part of a message may have been. */
static void disconnect_peer(struct hosts_peer *peer, const char *why)
{
    if (peer->fd >= 0) {
        events_watch_set(peer->watch, -1, false);
        tls_destroy(peer->tls);
        close(peer->fd);
        if (why)
            log_often(LOG_LEVEL_WARNING, peer->fingerprint, "the connection to the host at %s has ended: %s",
                      peer->endpoint, why);
    }
    peer->fd = -1;
    peer->tls = NULL;
    peer->is_open = false;
    builder_clear(&peer->out, 0);
    peer->sent = 0;
}

static void end_peer(struct hosts_peer *peer)
{
    disconnect_peer(peer, NULL);
    events_watch_destroy(peer->watch);
    events_timer_destroy(peer->timer);
    builder_free(&peer->out);
    *peer = (struct hosts_peer){.fd = -1};
}

static void retry_later(struct hosts_peer *peer, const char *why)
{
    /* The other host refuses a key after the handshake: only a connection that has lasted was accepted. */
    if (peer->is_open && clock_boot_ms() - peer->opened_ms > PAUSE_MOST_MS)
        peer->pause_ms = PAUSE_LEAST_MS;
    disconnect_peer(peer, why);
    events_timer_start(peer->timer, peer->pause_ms);
    peer->pause_ms = peer->pause_ms * 2 < PAUSE_MOST_MS ? peer->pause_ms * 2 : PAUSE_MOST_MS;
}

static void connect_peer(struct hosts_peer *peer)
{
    struct addrinfo *found;
    if (!journal_address_resolve(peer->endpoint, &found)) {
        log_often(LOG_LEVEL_WARNING, peer->fingerprint,
                  "a host cannot be reached: its endpoint is no address in numbers with a port: %s",
                  peer->endpoint);
        retry_later(peer, NULL);
        return;
    }
    peer->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_begun =
        peer->fd >= 0 && (connect(peer->fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    freeaddrinfo(found);
    if (!is_begun) {
        retry_later(peer, strerror(errno));
        return;
    }
    set_link_options(peer->fd);
    peer->tls = tls_create_peer(peer->links->keys, peer->fd, true);
    events_timer_start(peer->timer, SHAKE_MS);
    events_watch_set(peer->watch, peer->fd, true);
}

static void on_peer_time(void *context)
{
    struct hosts_peer *peer = context;
    if (peer->fd >= 0)
        retry_later(peer, "it does not answer");
    else
        connect_peer(peer);
}

static void send_to_peer(struct hosts_peer *peer)
{
    enum tls_outcome outcome = TLS_DONE;
    while (outcome == TLS_DONE && peer->sent < peer->out.size) {
        size_t sent;
        outcome = tls_send(peer->tls, peer->out.data + peer->sent, peer->out.size - peer->sent, &sent);
        peer->sent += outcome == TLS_DONE ? sent : 0;
    }
    if (outcome == TLS_ENDED) {
        retry_later(peer, tls_why(peer->tls));
        return;
    }
    if (outcome == TLS_DONE) {
        builder_clear(&peer->out, KEPT_BYTES);
        peer->sent = 0;
    }
    events_watch_set(peer->watch, peer->fd, outcome == TLS_WRITES);
}

/* True: the handshake is done, with the host that it is to be. */
static bool shake_peer(struct hosts_peer *peer)
{
    char fingerprint[CRYPTO_SHA256_HEX + 1];
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(peer->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error) {
        retry_later(peer, strerror(error));
        return false;
    }
    enum tls_outcome outcome = tls_shake(peer->tls);
    if (outcome == TLS_ENDED) {
        retry_later(peer, tls_why(peer->tls));
        return false;
    }
    if (outcome != TLS_DONE) {
        events_watch_set(peer->watch, peer->fd, outcome == TLS_WRITES);
        return false;
    }
    if (!tls_peer_fingerprint(peer->tls, fingerprint) || strcmp(fingerprint, peer->fingerprint) != 0) {
        retry_later(peer, "it shows another key than the list has");
        return false;
    }
    peer->is_open = true;
    peer->opened_ms = clock_boot_ms();
    events_timer_stop(peer->timer);
    return true;
}

static void on_peer(void *context)
{
    struct hosts_peer *peer = context;
    char data[TLS_RECORD_BYTES];
    size_t size;
    if (!peer->is_open && !shake_peer(peer))
        return;
    if (peer->sent < peer->out.size) {
        send_to_peer(peer);
        return;
    }
    /* A peer sends nothing here: only its end is to be noticed. */
    enum tls_outcome outcome = tls_receive(peer->tls, data, sizeof data, &size);
    if (outcome == TLS_READS || outcome == TLS_WRITES)
        events_watch_set(peer->watch, peer->fd, outcome == TLS_WRITES);
    else
        retry_later(peer, outcome == TLS_DONE ? "it sends what nobody requested" : tls_why(peer->tls));
}

/* 0: it is no address in numbers. */
static uint64_t client_of(const char *endpoint)
{
    struct addrinfo *found;
    char text[JOURNAL_ADDRESS_MOST];
    uint64_t client = 0;
    if (!journal_address_resolve(endpoint, &found))
        return 0;
    bool is_client = journal_address_client(found->ai_addr, found->ai_addrlen, text, &client);
    freeaddrinfo(found);
    return is_client ? client : 0;
}

static struct hosts_peer *find_peer(struct hosts_links *links, uint32_t number)
{
    for (size_t i = 0; i < HOSTS_MOST; i++)
        if (links->peers[i].number == number)
            return &links->peers[i];
    return NULL;
}

static bool is_peer_of(const struct hosts_peer *peer, const struct hosts_member *member)
{
    return peer->number == member->number && strcmp(peer->endpoint, member->endpoint) == 0 &&
           strcmp(peer->fingerprint, member->fingerprint) == 0;
}

void hosts_links_follow(struct hosts_links *links, const struct hosts_member *members, uint32_t count,
                        uint32_t self)
{
    for (size_t i = 0; i < HOSTS_MOST; i++) {
        bool is_kept = false;
        for (uint32_t at = 0; at < count; at++)
            is_kept |= members[at].number != self && is_peer_of(&links->peers[i], &members[at]);
        if (links->peers[i].number && !is_kept)
            end_peer(&links->peers[i]);
    }
    for (uint32_t at = 0; at < count; at++) {
        struct hosts_peer *peer = find_peer(links, 0);
        if (members[at].number == self || !members[at].number || find_peer(links, members[at].number) ||
            !peer)
            continue;
        *peer = (struct hosts_peer){
            .links = links, .number = members[at].number, .fd = -1, .pause_ms = PAUSE_LEAST_MS};
        snprintf(peer->endpoint, sizeof peer->endpoint, "%s", members[at].endpoint);
        snprintf(peer->fingerprint, sizeof peer->fingerprint, "%s", members[at].fingerprint);
        peer->client = client_of(peer->endpoint);
        peer->watch = events_watch_create(links->events, on_peer, peer);
        peer->timer = events_timer_create(links->events, on_peer_time, peer);
        connect_peer(peer);
    }
}

void hosts_links_send(struct hosts_links *links, const struct cluster_message *message)
{
    struct hosts_peer *peer = message->to ? find_peer(links, message->to) : NULL;
    if (!peer || !peer->is_open)
        return;
    bool is_idle = peer->sent == peer->out.size;
    if (peer->out.size - peer->sent > QUEUE_MOST) {
        log_often(LOG_LEVEL_WARNING, peer->fingerprint, "the host at %s does not take what it is sent",
                  peer->endpoint);
        return;
    }
    if (peer->sent > KEPT_BYTES && peer->sent > peer->out.size / 2) { /* what was sent does not pile up */
        memmove(peer->out.data, peer->out.data + peer->sent, peer->out.size - peer->sent);
        peer->out.size -= peer->sent;
        peer->sent = 0;
    }
    cluster_wire_write(&peer->out, message);
    if (is_idle)
        events_watch_set(peer->watch, peer->fd, true); /* what comes in this turn goes together */
}

uint32_t hosts_links_connected(const struct hosts_links *links)
{
    uint32_t count = 0;
    for (size_t i = 0; i < HOSTS_MOST; i++)
        count += links->peers[i].number && links->peers[i].is_open;
    return count;
}

/* --- callers --- */

static void end_caller(struct hosts_caller *caller)
{
    struct hosts_links *links = caller->links;
    size_t place = 0;
    while (links->callers[place] != caller)
        place++;
    links->callers[place] = links->callers[--links->caller_count];
    events_watch_destroy(caller->watch);
    events_timer_destroy(caller->timer);
    tls_destroy(caller->tls);
    close(caller->fd);
    builder_free(&caller->in);
    free(caller);
}

static void on_caller_time(void *context)
{
    end_caller(context);
}

/* One more handshake, which has begun with bytes of the caller: a connection that is silent costs none.  From
 * the address of a member others cannot use it up, from wherever they come. */
static bool may_shake(struct hosts_caller *caller)
{
    struct hosts_links *links = caller->links;
    bool is_of_member = false;
    for (size_t i = 0; i < HOSTS_MOST; i++)
        is_of_member |= links->peers[i].number && links->peers[i].client == caller->client;
    caller->has_begun = true;
    if (journal_rate_take(is_of_member ? &links->of_members : &links->of_strangers, caller->client,
                          clock_monotonic_ms()))
        return true;
    log_often(LOG_LEVEL_WARNING, "hosts", "a connection is closed: there are too many handshakes");
    return false;
}

/* True: it is a member. */
static bool shake_caller(struct hosts_caller *caller)
{
    const struct hosts_links_owner *owner = &caller->links->owner;
    if (!caller->has_begun && !may_shake(caller)) {
        end_caller(caller);
        return false;
    }
    enum tls_outcome outcome = tls_shake(caller->tls);
    if (outcome == TLS_READS || outcome == TLS_WRITES) {
        events_watch_set(caller->watch, caller->fd, outcome == TLS_WRITES);
        return false;
    }
    bool has_key = outcome == TLS_DONE && tls_peer_fingerprint(caller->tls, caller->fingerprint);
    if (!has_key || !owner->number(owner->context, caller->fingerprint)) {
        log_often(LOG_LEVEL_WARNING, has_key ? caller->fingerprint : "hosts",
                  "a host is refused that is not in the list: fingerprint=%s",
                  has_key ? caller->fingerprint : "none");
        end_caller(caller);
        return false;
    }
    caller->is_open = true;
    events_timer_stop(caller->timer);
    events_watch_set(caller->watch, caller->fd, false);
    return true;
}

/* Passes on what is whole.  False: the caller has ended. */
static bool take_messages(struct hosts_caller *caller)
{
    const struct hosts_links_owner *owner = &caller->links->owner;
    uint32_t number = owner->number(owner->context, caller->fingerprint);
    enum cluster_reading reading = CLUSTER_WHOLE;
    size_t done = 0;
    while (number && reading == CLUSTER_WHOLE && done < caller->in.size) {
        struct cluster_message message;
        size_t used = 0;
        struct bytes rest = {caller->in.data + done, caller->in.size - done};
        reading = cluster_wire_read(rest, HOSTS_CONTENT_MOST, &message, &used);
        if (reading != CLUSTER_WHOLE)
            break;
        if (message.from == number)
            owner->received(owner->context, &message);
        done += used;
    }
    if (!number || reading == CLUSTER_MALFORMED) {
        log_often(LOG_LEVEL_WARNING, "hosts", "a connection between hosts is closed: %s",
                  number ? "a message is malformed" : "the host is not in the list any more");
        end_caller(caller);
        return false;
    }
    memmove(caller->in.data, caller->in.data + done, caller->in.size - done);
    caller->in.size -= done;
    if (!caller->in.size)
        builder_clear(&caller->in, KEPT_BYTES);
    return true;
}

static void on_caller(void *context)
{
    struct hosts_caller *caller = context;
    size_t size;
    if (!caller->is_open && !shake_caller(caller))
        return;
    char *room = builder_reserve(&caller->in, TLS_RECORD_BYTES);
    enum tls_outcome outcome = tls_receive(caller->tls, room, TLS_RECORD_BYTES, &size);
    if (outcome == TLS_DONE) {
        caller->in.size += size;
        (void)take_messages(caller);
    } else if (outcome == TLS_ENDED) {
        end_caller(caller);
    } else {
        events_watch_set(caller->watch, caller->fd, outcome == TLS_WRITES);
    }
}

/* Strangers who do not go on must not keep hosts away: the one who has waited longest makes room. */
static void make_room_for_stranger(struct hosts_links *links)
{
    struct hosts_caller *first = NULL;
    size_t strangers = 0;
    for (size_t i = 0; i < links->caller_count; i++) {
        struct hosts_caller *caller = links->callers[i];
        strangers += !caller->is_open;
        if (!caller->is_open && (!first || caller->arrival < first->arrival))
            first = caller;
    }
    if (strangers < STRANGERS_MOST)
        return;
    log_often(LOG_LEVEL_WARNING, "hosts", "a connection is closed that has shown no key: there are too many");
    end_caller(first);
}

static void on_caller_arrival(void *context)
{
    struct hosts_links *links = context;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char text[JOURNAL_ADDRESS_MOST];
    uint64_t client = 0;
    int fd = accept4(links->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (!journal_address_client((const struct sockaddr *)&address, size, text, &client))
        client = 0; /* as one client */
    make_room_for_stranger(links);
    if (links->caller_count == CALLERS_MOST) {
        log_often(LOG_LEVEL_WARNING, "hosts", "a connection of a host is refused: there are too many");
        close(fd);
        return;
    }
    struct hosts_caller *caller = memory_zeroed(1, sizeof *caller, "accepting a host");
    set_link_options(fd);
    *caller = (struct hosts_caller){.links = links,
                                    .fd = fd,
                                    .client = client,
                                    .tls = tls_create_peer(links->keys, fd, false),
                                    .arrival = ++links->arrivals_so_far};
    caller->watch = events_watch_create(links->events, on_caller, caller);
    caller->timer = events_timer_create(links->events, on_caller_time, caller);
    links->callers[links->caller_count++] = caller;
    events_timer_start(caller->timer, SHAKE_MS);
    events_watch_set(caller->watch, fd, false);
}

/* --- all --- */

bool hosts_links_open(struct hosts_links **links_r, struct events *events, const struct settings *settings,
                      const struct hosts_links_owner *owner, char fingerprint_r[CRYPTO_SHA256_HEX + 1],
                      char *problem, size_t problem_size)
{
    struct hosts_links *links = memory_zeroed(1, sizeof *links, "listening for hosts");
    links->events = events;
    links->owner = *owner;
    links->listener = -1;
    journal_rate_begin(&links->of_strangers);
    journal_rate_begin(&links->of_members);
    for (size_t i = 0; i < HOSTS_MOST; i++)
        links->peers[i].fd = -1;
    *links_r = links;
    if (tls_peers_create(&links->keys, settings->cluster_key_file, fingerprint_r, problem, problem_size))
        links->listener = journal_address_listen("cluster_listen", settings->cluster_listen, BACKLOG, problem,
                                                 problem_size);
    if (links->listener < 0)
        return false;
    links->arrivals = events_watch_create(events, on_caller_arrival, links);
    events_watch_set(links->arrivals, links->listener, false);
    return true;
}

void hosts_links_close(struct hosts_links *links)
{
    if (!links)
        return;
    for (size_t i = 0; i < HOSTS_MOST; i++)
        if (links->peers[i].number)
            end_peer(&links->peers[i]);
    while (links->caller_count)
        end_caller(links->callers[links->caller_count - 1]);
    events_watch_destroy(links->arrivals);
    if (links->listener >= 0)
        close(links->listener);
    tls_peers_destroy(links->keys);
    free(links);
}
