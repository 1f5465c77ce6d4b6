/* feed: named pipes rather than datagrams: a datagram queue holds ten by default, a pipe a megabyte.
 *
 * A write of up to PIPE_BUF bytes arrives whole and unmixed, even if the writer is killed: a head and the
 * names of some documents. */
#include "segment/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "segment/namespaces.h"
#include "segment/slots.h"

enum { NAME_MOST = 255, PIPE_BYTES = 1 << 20, READ_BYTES = 64 * 1024 };

struct message_header {
    uint32_t size; /* of the whole message */
    uint32_t ns;
    int64_t version;
};

_Static_assert(sizeof(struct message_header) + 2 + 2 * NAME_MOST <= PIPE_BUF,
               "one document fits into a message");

/* --- publishers --- */

struct channel {
    int fd; /* -1: the pipe could not be opened */
    uint32_t turn;
};

struct publisher {
    struct segment *segment;
    struct channel channels[FEED_MOST];
};

struct publisher *feed_publisher_create(struct segment *segment)
{
    struct publisher *publisher = memory_zeroed(1, sizeof *publisher, "feed");
    publisher->segment = segment;
    for (int i = 0; i < FEED_MOST; i++)
        publisher->channels[i].fd = -1;
    return publisher;
}

static void close_channel(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    *channel = (struct channel){.fd = -1};
}

void feed_publisher_destroy(struct publisher *publisher)
{
    if (!publisher)
        return;
    for (int i = 0; i < FEED_MOST; i++)
        close_channel(&publisher->channels[i]);
    free(publisher);
}

/* The pipe of the subscriber as it is open now; -1: no reader. */
static int find_pipe(struct publisher *publisher, int number)
{
    struct feed_subscriber_slot *slot = &publisher->segment->feed->slots[number];
    struct channel *channel = &publisher->channels[number];
    uint32_t turn = atomic_load(&slot->turn);
    if (channel->turn == turn)
        return channel->fd;
    close_channel(channel);
    char path[FEED_PATH_BYTES];
    memcpy(path, slot->path, sizeof path);
    if (turn % 2 == 0 || atomic_load(&slot->turn) != turn || !memchr(path, '\0', sizeof path))
        return -1;
    channel->fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    channel->turn = turn;
    return channel->fd;
}

static void feed_send(struct publisher *publisher, int ns, const char *message, size_t size)
{
    struct feed_board *feed = publisher->segment->feed;
    uint32_t wanted = atomic_load(&feed->wanted[ns]);
    for (int i = 0; wanted; i++, wanted >>= 1) {
        if (!(wanted & 1))
            continue;
        int fd = find_pipe(publisher, i);
        if (fd < 0 || write(fd, message, size) != (ssize_t)size)
            atomic_fetch_add(&feed->slots[i].missed[ns], 1);
    }
}

static void feed_finish(struct publisher *publisher, int ns, int64_t version, char *message, size_t size)
{
    const struct message_header header = {.size = (uint32_t)size, .ns = (uint32_t)ns, .version = version};
    memcpy(message, &header, sizeof header);
    feed_send(publisher, ns, message, size);
}

void feed_publisher_send(struct publisher *publisher, int ns, int64_t version,
                         const struct subscriber_change *changes, size_t count)
{
    char message[PIPE_BUF];
    size_t size = sizeof(struct message_header);
    for (size_t i = 0; i < count; i++) {
        const struct subscriber_change *change = &changes[i];
        size_t more = 2 + change->class.size + change->id.size;
        assert(change->class.size <= NAME_MOST && change->id.size <= NAME_MOST);
        if (size + more > sizeof message) {
            feed_finish(publisher, ns, version, message, size);
            size = sizeof(struct message_header);
        }
        message[size++] = (char)change->class.size;
        message[size++] = (char)change->id.size;
        memcpy(message + size, change->class.data, change->class.size);
        memcpy(message + size + change->class.size, change->id.data, change->id.size);
        size += change->class.size + change->id.size;
    }
    if (size > sizeof(struct message_header))
        feed_finish(publisher, ns, version, message, size);
}

void feed_publisher_miss(struct publisher *publisher, int ns)
{
    char message[sizeof(struct message_header)];
    struct feed_board *feed = publisher->segment->feed;
    uint32_t wanted = atomic_load(&feed->wanted[ns]);
    for (int i = 0; i < FEED_MOST; i++)
        if (wanted >> i & 1)
            atomic_fetch_add(&feed->slots[i].missed[ns], 1);
    feed_finish(publisher, ns, 0, message, sizeof message); /* only a wake-up */
}

/* --- subscribers --- */

struct subscriber {
    struct segment *segment;
    struct feed_subscriber_slot *slot;
    int number, fd;
    struct subscriber_counts counts;
    size_t size, taken; /* of the bytes read */
    size_t message_end; /* of the message being decoded */
    struct message_header header;
    char text[READ_BYTES];
};

/* Its pipe has no reader, or was never opened and its process is gone. */
static bool is_abandoned(struct feed_subscriber_slot *slot, uint32_t owner)
{
    char path[FEED_PATH_BYTES];
    uint32_t turn = atomic_load(&slot->turn);
    if (turn % 2 == 0)
        return kill((pid_t)owner, 0) && errno == ESRCH;
    memcpy(path, slot->path, sizeof path);
    path[sizeof path - 1] = '\0';
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        close(fd);
    return fd < 0 && (errno == ENXIO || errno == ENOENT) && atomic_load(&slot->turn) == turn;
}

static void forget_wants(struct segment *segment, int number)
{
    for (int i = 0; i < NAMESPACES_MOST; i++)
        atomic_fetch_and(&segment->feed->wanted[i], ~(UINT32_C(1) << number));
}

static void clear_slot(struct segment *segment, int number)
{
    struct feed_subscriber_slot *slot = &segment->feed->slots[number];
    if (atomic_load(&slot->turn) % 2)
        atomic_fetch_add(&slot->turn, 1);
    forget_wants(segment, number);
    feed_sessions_clear(&slot->sessions);
    atomic_store(&slot->listeners, 0);
    atomic_store(&slot->held, 0);
}

void feed_retire(struct segment *segment, uint32_t process)
{
    for (int i = 0; i < FEED_MOST; i++) {
        struct feed_subscriber_slot *slot = &segment->feed->slots[i];
        uint32_t owner = process; /* another process may have taken it already */
        if (!atomic_compare_exchange_strong(&slot->owner, &owner, (uint32_t)getpid()))
            continue;
        clear_slot(segment, i);
        atomic_store(&slot->owner, 0);
    }
}

/* Removes what a killed process left, so that no publisher writes to it. */
static bool take_slot(struct subscriber *subscriber, int number)
{
    struct feed_subscriber_slot *slot = &subscriber->segment->feed->slots[number];
    uint32_t owner = atomic_load(&slot->owner);
    if (owner && !is_abandoned(slot, owner))
        return false;
    if (!atomic_compare_exchange_strong(&slot->owner, &owner, (uint32_t)getpid()))
        return false;
    clear_slot(subscriber->segment, number);
    if (subscriber->slot) { /* it already has a slot: this one was only cleared */
        atomic_store(&slot->owner, 0);
        return false;
    }
    subscriber->slot = slot;
    subscriber->number = number;
    return true;
}

static bool open_pipe(struct subscriber *subscriber, const char *folder, char *problem, size_t problem_size)
{
    char *path = subscriber->slot->path;
    int size = snprintf(path, FEED_PATH_BYTES, "%s/live-%d.fifo", folder, subscriber->number);
    if (size < 0 || size >= FEED_PATH_BYTES) {
        snprintf(problem, problem_size, "run_directory: the path is too long");
        return false;
    }
    unlink(path);
    /* Opened for reading and writing: without a writer, the pipe would be at end of file. */
    if (mkfifo(path, 0600) ||
        (subscriber->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)) < 0) {
        snprintf(problem, problem_size, "%s: %m", path);
        return false;
    }
    (void)fcntl(subscriber->fd, F_SETPIPE_SZ, PIPE_BYTES); /* the more the better */
    atomic_fetch_add(&subscriber->slot->turn, 1);
    return true;
}

struct subscriber *feed_subscriber_open(struct segment *segment, const char *folder, char *problem,
                                        size_t problem_size)
{
    struct subscriber *subscriber = memory_zeroed(1, sizeof *subscriber, "feed");
    subscriber->segment = segment;
    subscriber->fd = -1;
    for (int i = 0; i < FEED_MOST; i++)
        (void)take_slot(subscriber, i);
    if (!subscriber->slot)
        snprintf(problem, problem_size, "all %d slots for listening processes are taken", FEED_MOST);
    if (subscriber->slot && open_pipe(subscriber, folder, problem, problem_size))
        return subscriber;
    feed_subscriber_close(subscriber);
    return NULL;
}

void feed_subscriber_close(struct subscriber *subscriber)
{
    if (!subscriber)
        return;
    if (subscriber->fd >= 0) {
        unlink(subscriber->slot->path);
        clear_slot(subscriber->segment, subscriber->number);
        close(subscriber->fd);
    }
    if (subscriber->slot)
        atomic_store(&subscriber->slot->owner, 0);
    free(subscriber);
}

/* --- sessions --- */

static uint64_t feed_key_of(const struct segment *segment, int ns, struct bytes session)
{
    enum { KEY_LEAST = 2 }; /* lower values have a meaning in the table */
    uint64_t key = slots_hash(segment, ns, BYTES(""), session);
    return key < KEY_LEAST ? KEY_LEAST : key;
}

uint64_t feed_session_add(struct subscriber *subscriber, int ns, struct bytes session)
{
    uint64_t key = feed_key_of(subscriber->segment, ns, session);
    return feed_sessions_add(&subscriber->slot->sessions, &subscriber->counts, key) ? key : 0;
}

void feed_session_remove(struct subscriber *subscriber, uint64_t key)
{
    feed_sessions_remove(&subscriber->slot->sessions, &subscriber->counts, key);
}

bool feed_session_listens(const struct segment *segment, int ns, struct bytes session)
{
    uint64_t key = feed_key_of(segment, ns, session);
    for (int i = 0; i < FEED_MOST; i++) {
        const struct feed_subscriber_slot *slot = &segment->feed->slots[i];
        if (atomic_load(&slot->turn) % 2 && feed_sessions_has(&slot->sessions, key))
            return true;
    }
    return false;
}

int feed_subscriber_descriptor(const struct subscriber *subscriber)
{
    return subscriber->fd;
}

struct feed_subscriber_slot *feed_subscriber_slot(const struct subscriber *subscriber)
{
    return subscriber->slot;
}

void feed_subscriber_want(struct subscriber *subscriber, int ns, bool is_wanted)
{
    uint32_t bit = UINT32_C(1) << subscriber->number;
    if (is_wanted)
        atomic_fetch_or(&subscriber->segment->feed->wanted[ns], bit);
    else
        atomic_fetch_and(&subscriber->segment->feed->wanted[ns], ~bit);
}

uint32_t feed_subscriber_missed(const struct subscriber *subscriber, int ns)
{
    return atomic_load(&subscriber->slot->missed[ns]);
}

/* Assembles a whole message from the bytes received; false: there is none. */
static bool read_message(struct subscriber *subscriber)
{
    for (;;) {
        size_t left = subscriber->size - subscriber->taken;
        if (left >= sizeof subscriber->header) {
            memcpy(&subscriber->header, subscriber->text + subscriber->taken, sizeof subscriber->header);
            assert(subscriber->header.size >= sizeof subscriber->header &&
                   subscriber->header.size <= PIPE_BUF);
            if (left >= subscriber->header.size)
                break;
        }
        memmove(subscriber->text, subscriber->text + subscriber->taken, left);
        subscriber->size = left;
        subscriber->taken = 0;
        ssize_t size = read(subscriber->fd, subscriber->text + left, sizeof subscriber->text - left);
        if (size <= 0)
            return false;
        subscriber->size += (size_t)size;
    }
    subscriber->message_end = subscriber->taken + subscriber->header.size;
    subscriber->taken += sizeof subscriber->header;
    return true;
}

bool feed_subscriber_next(struct subscriber *subscriber, struct subscriber_news *news_r)
{
    bool is_fresh = subscriber->taken >= subscriber->message_end;
    if (is_fresh) {
        subscriber->message_end = 0;
        if (!read_message(subscriber))
            return false;
    }
    *news_r =
        (struct subscriber_news){.ns = (int)subscriber->header.ns, .version = subscriber->header.version};
    assert(news_r->ns >= 0 && news_r->ns < NAMESPACES_MOST);
    if (subscriber->taken == subscriber->message_end)
        return true;
    const char *text = subscriber->text + subscriber->taken;
    size_t class_size = (unsigned char)text[0], id_size = (unsigned char)text[1];
    news_r->class = (struct bytes){text + 2, class_size};
    news_r->id = (struct bytes){text + 2 + class_size, id_size};
    subscriber->taken += 2 + class_size + id_size;
    assert(subscriber->taken <= subscriber->message_end);
    return true;
}

size_t feed_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct feed_board);
}

void feed_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->feed = memory;
}

/* Open addressing with linear probing.  A slot is taken by one store and freed by one, so a
 * concurrent reader always finds a key that stays. */

enum { FREE, LEFT };

static size_t slot_of(uint64_t key)
{
    return (size_t)(key >> 32) % FEED_SESSIONS;
}

static size_t next_to(size_t slot)
{
    return (slot + 1) % FEED_SESSIONS;
}

/* The position of the key, else FEED_SESSIONS; `room_r` gets the position where it may be stored. */
static size_t feed_sessions_find(const struct feed_sessions *sessions, uint64_t key, size_t *room_r)
{
    size_t slot = slot_of(key);
    *room_r = FEED_SESSIONS;
    for (size_t step = 0; step < FEED_SESSIONS; step++, slot = next_to(slot)) {
        uint64_t present = atomic_load(&sessions->keys[slot]);
        if (present == key)
            return slot;
        if (present <= LEFT && *room_r == FEED_SESSIONS)
            *room_r = slot;
        if (present == FREE)
            break;
    }
    return FEED_SESSIONS;
}

bool feed_sessions_has(const struct feed_sessions *sessions, uint64_t key)
{
    size_t room;
    assert(key > LEFT);
    return feed_sessions_find(sessions, key, &room) != FEED_SESSIONS;
}

bool feed_sessions_add(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, slot = feed_sessions_find(sessions, key, &room);
    assert(key > LEFT);
    if (slot == FEED_SESSIONS) {
        if (counts->used == FEED_SESSIONS_MOST)
            return false;
        assert(room != FEED_SESSIONS);
        slot = room;
        counts->used++;
        atomic_store(&sessions->keys[slot], key);
    }
    counts->counts[slot]++;
    return true;
}

/* Frees the end of a chain, so that chains do not grow for ever. */
static void feed_sessions_shorten(struct feed_sessions *sessions, size_t slot)
{
    while (atomic_load(&sessions->keys[slot]) == LEFT &&
           atomic_load(&sessions->keys[next_to(slot)]) == FREE) {
        atomic_store(&sessions->keys[slot], FREE);
        slot = (slot + FEED_SESSIONS - 1) % FEED_SESSIONS;
    }
}

void feed_sessions_remove(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key)
{
    size_t room, slot = feed_sessions_find(sessions, key, &room);
    assert(slot != FEED_SESSIONS && counts->counts[slot]);
    if (--counts->counts[slot])
        return;
    counts->used--;
    atomic_store(&sessions->keys[slot], LEFT);
    feed_sessions_shorten(sessions, slot);
}

void feed_sessions_clear(struct feed_sessions *sessions)
{
    for (size_t i = 0; i < FEED_SESSIONS; i++)
        if (atomic_load(&sessions->keys[i]))
            atomic_store(&sessions->keys[i], FREE);
}
