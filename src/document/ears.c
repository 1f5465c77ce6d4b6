/* ears: named pipes.  Not datagrams: a queue of those holds ten by default, a pipe a megabyte.
 *
 * What is written at once, up to PIPE_BUF bytes, arrives whole and unmixed, also from a process that is
 * killed: a head and the names of some documents. */
#include "document/ears.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { NAME_MOST = 255, PIPE_BYTES = 1 << 20, READ_BYTES = 64 * 1024 };

struct head {
    uint32_t size; /* of the whole message */
    uint32_t space;
    int64_t version;
};

_Static_assert(sizeof(struct head) + 2 + 2 * NAME_MOST <= PIPE_BUF, "one document fits into a message");

/* --- who tells --- */

struct voice {
    int fd; /* -1: the pipe could not be opened */
    uint32_t turn;
};

struct mouth {
    struct stamps *stamps;
    struct voice voices[EARS_MOST];
};

struct mouth *mouth_create(struct stamps *stamps)
{
    struct mouth *mouth = calloc(1, sizeof *mouth);
    if (!mouth)
        log_fatal("out of memory");
    mouth->stamps = stamps;
    for (int i = 0; i < EARS_MOST; i++)
        mouth->voices[i].fd = -1;
    return mouth;
}

static void hush(struct voice *voice)
{
    if (voice->fd >= 0)
        close(voice->fd);
    *voice = (struct voice){.fd = -1};
}

void mouth_destroy(struct mouth *mouth)
{
    if (!mouth)
        return;
    for (int i = 0; i < EARS_MOST; i++)
        hush(&mouth->voices[i]);
    free(mouth);
}

/* The pipe of the ear as it is open now; -1: nobody reads. */
static int find_pipe(struct mouth *mouth, int number)
{
    struct ear_place *place = &mouth->stamps->ears->places[number];
    struct voice *voice = &mouth->voices[number];
    uint32_t turn = atomic_load(&place->turn);
    if (voice->turn == turn)
        return voice->fd;
    hush(voice);
    char path[EARS_PATH_BYTES];
    memcpy(path, place->path, sizeof path);
    if (turn % 2 == 0 || atomic_load(&place->turn) != turn || !memchr(path, '\0', sizeof path))
        return -1;
    voice->fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    voice->turn = turn;
    return voice->fd;
}

static void send(struct mouth *mouth, int space, const char *message, size_t size)
{
    struct ears_board *ears = mouth->stamps->ears;
    uint32_t wanted = atomic_load(&ears->wanted[space]);
    for (int i = 0; wanted; i++, wanted >>= 1) {
        if (!(wanted & 1))
            continue;
        int fd = find_pipe(mouth, i);
        if (fd < 0 || write(fd, message, size) != (ssize_t)size)
            atomic_fetch_add(&ears->places[i].missed[space], 1);
    }
}

static void finish(struct mouth *mouth, int space, int64_t version, char *message, size_t size)
{
    const struct head head = {.size = (uint32_t)size, .space = (uint32_t)space, .version = version};
    memcpy(message, &head, sizeof head);
    send(mouth, space, message, size);
}

void mouth_tell(struct mouth *mouth, int space, int64_t version, const struct ear_change *changes,
                size_t count)
{
    char message[PIPE_BUF];
    size_t size = sizeof(struct head);
    for (size_t i = 0; i < count; i++) {
        const struct ear_change *change = &changes[i];
        size_t more = 2 + change->class.size + change->id.size;
        assert(change->class.size <= NAME_MOST && change->id.size <= NAME_MOST);
        if (size + more > sizeof message) {
            finish(mouth, space, version, message, size);
            size = sizeof(struct head);
        }
        message[size++] = (char)change->class.size;
        message[size++] = (char)change->id.size;
        memcpy(message + size, change->class.data, change->class.size);
        memcpy(message + size + change->class.size, change->id.data, change->id.size);
        size += change->class.size + change->id.size;
    }
    if (size > sizeof(struct head))
        finish(mouth, space, version, message, size);
}

void mouth_miss(struct mouth *mouth, int space)
{
    char message[sizeof(struct head)];
    struct ears_board *ears = mouth->stamps->ears;
    uint32_t wanted = atomic_load(&ears->wanted[space]);
    for (int i = 0; i < EARS_MOST; i++)
        if (wanted >> i & 1)
            atomic_fetch_add(&ears->places[i].missed[space], 1);
    finish(mouth, space, 0, message, sizeof message); /* only to wake them */
}

/* --- who listens --- */

struct ear {
    struct stamps *stamps;
    struct ear_place *place;
    int number, fd;
    struct ear_counts counts;
    size_t size, taken; /* of what was read */
    size_t message_end; /* of the message that is being taken */
    struct head head;
    char text[READ_BYTES];
};

/* Nobody reads its pipe, or it was never opened and its process is gone. */
static bool is_abandoned(struct ear_place *place, uint32_t owner)
{
    char path[EARS_PATH_BYTES];
    uint32_t turn = atomic_load(&place->turn);
    if (turn % 2 == 0)
        return kill((pid_t)owner, 0) && errno == ESRCH;
    memcpy(path, place->path, sizeof path);
    path[sizeof path - 1] = '\0';
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        close(fd);
    return fd < 0 && (errno == ENXIO || errno == ENOENT) && atomic_load(&place->turn) == turn;
}

static void forget_wants(struct stamps *stamps, int number)
{
    for (int i = 0; i < STAMPS_NAMESPACES; i++)
        atomic_fetch_and(&stamps->ears->wanted[i], ~(UINT32_C(1) << number));
}

static void clear_place(struct stamps *stamps, int number)
{
    struct ear_place *place = &stamps->ears->places[number];
    if (atomic_load(&place->turn) % 2)
        atomic_fetch_add(&place->turn, 1);
    forget_wants(stamps, number);
    ear_sessions_clear(&place->sessions);
    atomic_store(&place->listeners, 0);
}

void ears_bury(struct stamps *stamps, uint32_t process)
{
    for (int i = 0; i < EARS_MOST; i++) {
        struct ear_place *place = &stamps->ears->places[i];
        uint32_t owner = process; /* somebody else may have taken it already */
        if (!atomic_compare_exchange_strong(&place->owner, &owner, (uint32_t)getpid()))
            continue;
        clear_place(stamps, i);
        atomic_store(&place->owner, 0);
    }
}

/* What a process left that was killed is cleared away, so that nobody tells the dead. */
static bool take_place(struct ear *ear, int number)
{
    struct ear_place *place = &ear->stamps->ears->places[number];
    uint32_t owner = atomic_load(&place->owner);
    if (owner && !is_abandoned(place, owner))
        return false;
    if (!atomic_compare_exchange_strong(&place->owner, &owner, (uint32_t)getpid()))
        return false;
    clear_place(ear->stamps, number);
    if (ear->place) { /* it has one: this one was only cleared */
        atomic_store(&place->owner, 0);
        return false;
    }
    ear->place = place;
    ear->number = number;
    return true;
}

static bool open_pipe(struct ear *ear, const char *folder, char *problem, size_t problem_size)
{
    char *path = ear->place->path;
    int size = snprintf(path, EARS_PATH_BYTES, "%s/live-%d.fifo", folder, ear->number);
    if (size < 0 || size >= EARS_PATH_BYTES) {
        snprintf(problem, problem_size, "run_directory: the path is too long");
        return false;
    }
    unlink(path);
    /* For reading and writing: a pipe without a writer would be at its end. */
    if (mkfifo(path, 0600) || (ear->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)) < 0) {
        snprintf(problem, problem_size, "%s: %m", path);
        return false;
    }
    (void)fcntl(ear->fd, F_SETPIPE_SZ, PIPE_BYTES); /* the more the better */
    atomic_fetch_add(&ear->place->turn, 1);
    return true;
}

struct ear *ear_open(struct stamps *stamps, const char *folder, char *problem, size_t problem_size)
{
    struct ear *ear = calloc(1, sizeof *ear);
    if (!ear)
        log_fatal("out of memory");
    ear->stamps = stamps;
    ear->fd = -1;
    for (int i = 0; i < EARS_MOST; i++)
        (void)take_place(ear, i);
    if (!ear->place)
        snprintf(problem, problem_size, "all %d places for listening processes are taken", EARS_MOST);
    if (ear->place && open_pipe(ear, folder, problem, problem_size))
        return ear;
    ear_close(ear);
    return NULL;
}

void ear_close(struct ear *ear)
{
    if (!ear)
        return;
    if (ear->fd >= 0) {
        unlink(ear->place->path);
        clear_place(ear->stamps, ear->number);
        close(ear->fd);
    }
    if (ear->place)
        atomic_store(&ear->place->owner, 0);
    free(ear);
}

/* --- sessions --- */

static uint64_t key_of(const struct stamps *stamps, int space, struct bytes session)
{
    enum { KEY_LEAST = 2 }; /* less has a meaning in the table */
    uint64_t key = stamps_hash(stamps, space, BYTES(""), session);
    return key < KEY_LEAST ? KEY_LEAST : key;
}

uint64_t ear_session_add(struct ear *ear, int space, struct bytes session)
{
    uint64_t key = key_of(ear->stamps, space, session);
    return ear_sessions_add(&ear->place->sessions, &ear->counts, key) ? key : 0;
}

void ear_session_remove(struct ear *ear, uint64_t key)
{
    ear_sessions_remove(&ear->place->sessions, &ear->counts, key);
}

bool ears_session_listens(const struct stamps *stamps, int space, struct bytes session)
{
    uint64_t key = key_of(stamps, space, session);
    for (int i = 0; i < EARS_MOST; i++) {
        const struct ear_place *place = &stamps->ears->places[i];
        if (atomic_load(&place->turn) % 2 && ear_sessions_has(&place->sessions, key))
            return true;
    }
    return false;
}

int ear_descriptor(const struct ear *ear)
{
    return ear->fd;
}

struct ear_place *ear_place(const struct ear *ear)
{
    return ear->place;
}

void ear_want(struct ear *ear, int space, bool is_wanted)
{
    uint32_t bit = UINT32_C(1) << ear->number;
    if (is_wanted)
        atomic_fetch_or(&ear->stamps->ears->wanted[space], bit);
    else
        atomic_fetch_and(&ear->stamps->ears->wanted[space], ~bit);
}

uint32_t ear_missed(const struct ear *ear, int space)
{
    return atomic_load(&ear->place->missed[space]);
}

/* Makes a whole message of what has come; false: there is none. */
static bool read_message(struct ear *ear)
{
    for (;;) {
        size_t left = ear->size - ear->taken;
        if (left >= sizeof ear->head) {
            memcpy(&ear->head, ear->text + ear->taken, sizeof ear->head);
            assert(ear->head.size >= sizeof ear->head && ear->head.size <= PIPE_BUF);
            if (left >= ear->head.size)
                break;
        }
        memmove(ear->text, ear->text + ear->taken, left);
        ear->size = left;
        ear->taken = 0;
        ssize_t size = read(ear->fd, ear->text + left, sizeof ear->text - left);
        if (size <= 0)
            return false;
        ear->size += (size_t)size;
    }
    ear->message_end = ear->taken + ear->head.size;
    ear->taken += sizeof ear->head;
    return true;
}

bool ear_next(struct ear *ear, struct ear_news *news_r)
{
    bool is_fresh = ear->taken >= ear->message_end;
    if (is_fresh) {
        ear->message_end = 0;
        if (!read_message(ear))
            return false;
    }
    *news_r = (struct ear_news){.space = (int)ear->head.space, .version = ear->head.version};
    assert(news_r->space >= 0 && news_r->space < STAMPS_NAMESPACES);
    if (ear->taken == ear->message_end)
        return true;
    const char *text = ear->text + ear->taken;
    size_t class_size = (unsigned char)text[0], id_size = (unsigned char)text[1];
    news_r->class = (struct bytes){text + 2, class_size};
    news_r->id = (struct bytes){text + 2 + class_size, id_size};
    ear->taken += 2 + class_size + id_size;
    assert(ear->taken <= ear->message_end);
    return true;
}
