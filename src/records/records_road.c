/* records_road: messages, and a client that waits. */
#include "records/records_road.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define ROAD_LAYOUT UINT64_C(0x31534f4844414f52) /* raised with each change of what follows */
enum {
    HEAD = 2 * 8,
    TEXT_MOST = RECORDS_CONTENT_MOST + 2 * RECORDS_KEY_MOST + 4096,
    COMMAND_NUMBERS = 22,
    ANSWER_NUMBERS = 10,
    AT_ONCE_MS = 50,
    READ_BYTES = 65536,
    KEPT_BYTES = 65536
};

/* --- messages --- */

static void records_road_put(struct builder *out, uint64_t number)
{
    unsigned char eight[8];
    bytes_put_u64(eight, number);
    builder_add(out, eight, sizeof eight);
}

static uint64_t records_road_take(struct bytes *rest)
{
    uint64_t number = bytes_get_u64((const unsigned char *)rest->data);
    rest->data += 8;
    rest->size -= 8;
    return number;
}

static struct bytes records_road_cut(struct bytes *rest, size_t size)
{
    struct bytes text = {rest->data, size};
    rest->data += size;
    rest->size -= size;
    return text;
}

static void records_road_begin(struct builder *out, size_t numbers, size_t texts)
{
    records_road_put(out, ROAD_LAYOUT);
    records_road_put(out, 8 * numbers + texts);
}

/* WHOLE: `rest_r` is what follows the head, with at least so many numbers. */
static enum records_road_reading records_road_open(struct bytes bytes, size_t numbers, struct bytes *rest_r,
                                                   size_t *used_r)
{
    struct bytes rest = bytes;
    if (rest.size < HEAD)
        return RECORDS_ROAD_PARTIAL;
    uint64_t layout = records_road_take(&rest), size = records_road_take(&rest);
    if (layout != ROAD_LAYOUT || size < 8 * numbers || size > 8 * numbers + TEXT_MOST)
        return RECORDS_ROAD_MALFORMED;
    if (rest.size < size)
        return RECORDS_ROAD_PARTIAL;
    *rest_r = (struct bytes){rest.data, (size_t)size};
    *used_r = HEAD + (size_t)size;
    return RECORDS_ROAD_WHOLE;
}

enum road_flag {
    OVERWRITES = 1 << 0,
    ONLY_PRESENT = 1 << 1,
    SHOWS_PRESENT = 1 << 2,
    KEEPS_END = 1 << 3,
    KEEPS_DISK = 1 << 4,
    IMMEDIATE = 1 << 5,
    LEAVES_WORKED = 1 << 6,
    PROBE = 1 << 7,
    PERSISTED = 1 << 8,
    ENCRYPTED = 1 << 9,
    LISTENED = 1 << 10,
    HAS_PAYER = 1 << 11
};

static uint64_t records_road_flags(const struct records_command *command)
{
    return (command->may_overwrite ? OVERWRITES : 0) | (command->is_only_present ? ONLY_PRESENT : 0) |
           (command->shows_present ? SHOWS_PRESENT : 0) | (command->keeps_end ? KEEPS_END : 0) |
           (command->keeps_disk ? KEEPS_DISK : 0) | (command->is_immediate ? IMMEDIATE : 0) |
           (command->leaves_worked ? LEAVES_WORKED : 0) | (command->is_probe ? PROBE : 0) |
           (command->is_persisted ? PERSISTED : 0) | (command->is_encrypted ? ENCRYPTED : 0) |
           (command->is_listened ? LISTENED : 0) | (command->payer ? HAS_PAYER : 0);
}

static void records_road_put_payer(struct builder *out, const struct records_payer *payer)
{
    static const struct records_payer none;
    const struct records_payer *it = payer ? payer : &none;
    records_road_put(out, it->rule);
    records_road_put(out, it->caller);
    records_road_put(out, it->rule_bytes);
    records_road_put(out, it->rule_records);
    records_road_put(out, it->caller_bytes);
    records_road_put(out, it->caller_records);
    records_road_put(out, it->payers_bytes);
}

/* What hosts do not do (hosts_run.c) travels too: they refuse it. */
void records_road_write(struct builder *out, struct bytes ns, const struct records_command *command)
{
    records_road_begin(out, COMMAND_NUMBERS, ns.size + command->key.size + command->content.size);
    records_road_put(out, command->deed);
    records_road_put(out, command->type);
    records_road_put(out, records_road_flags(command));
    records_road_put(out, (uint64_t)command->timestamp_us);
    records_road_put(out, (uint64_t)command->expires_ms);
    records_road_put(out, (uint64_t)command->ends_by_ms);
    records_road_put(out, (uint64_t)command->touch_s);
    records_road_put(out, (uint64_t)command->lease_ms);
    records_road_put(out, command->stamp);
    records_road_put(out, command->end_if);
    records_road_put(out, command->more_count);
    records_road_put(out, command->size);
    records_road_put_payer(out, command->payer);
    records_road_put(out, ns.size);
    records_road_put(out, command->key.size);
    records_road_put(out, command->content.size);
    builder_add_bytes(out, ns);
    builder_add_bytes(out, command->key);
    builder_add_bytes(out, command->content);
}

static void records_road_take_flags(struct records_command *command, uint64_t flags)
{
    command->may_overwrite = flags & OVERWRITES;
    command->is_only_present = flags & ONLY_PRESENT;
    command->shows_present = flags & SHOWS_PRESENT;
    command->keeps_end = flags & KEEPS_END;
    command->keeps_disk = flags & KEEPS_DISK;
    command->is_immediate = flags & IMMEDIATE;
    command->leaves_worked = flags & LEAVES_WORKED;
    command->is_probe = flags & PROBE;
    command->is_persisted = flags & PERSISTED;
    command->is_encrypted = flags & ENCRYPTED;
    command->is_listened = flags & LISTENED;
}

static void records_road_take_payer(struct bytes *rest, struct records_payer *payer)
{
    payer->rule = records_road_take(rest);
    payer->caller = records_road_take(rest);
    payer->rule_bytes = records_road_take(rest);
    payer->rule_records = records_road_take(rest);
    payer->caller_bytes = records_road_take(rest);
    payer->caller_records = records_road_take(rest);
    payer->payers_bytes = records_road_take(rest);
}

enum records_road_reading records_road_read(struct bytes bytes, struct records_road_command *road_r,
                                            size_t *used_r)
{
    struct bytes rest;
    enum records_road_reading reading = records_road_open(bytes, COMMAND_NUMBERS, &rest, used_r);
    if (reading)
        return reading;
    *road_r = (struct records_road_command){0};
    struct records_command *command = &road_r->command;
    uint64_t deed = records_road_take(&rest), type = records_road_take(&rest),
             flags = records_road_take(&rest);
    command->deed = (enum records_deed)deed;
    command->type = (enum records_type)type;
    records_road_take_flags(command, flags);
    command->timestamp_us = (int64_t)records_road_take(&rest);
    command->expires_ms = (int64_t)records_road_take(&rest);
    command->ends_by_ms = (int64_t)records_road_take(&rest);
    command->touch_s = (int64_t)records_road_take(&rest);
    command->lease_ms = (int64_t)records_road_take(&rest);
    command->stamp = records_road_take(&rest);
    command->end_if = (unsigned)records_road_take(&rest);
    command->more_count = (size_t)records_road_take(&rest);
    command->size = (size_t)records_road_take(&rest);
    records_road_take_payer(&rest, &road_r->payer);
    command->payer = flags & HAS_PAYER ? &road_r->payer : NULL;
    uint64_t ns = records_road_take(&rest), key = records_road_take(&rest),
             content = records_road_take(&rest);
    bool is_sized = ns <= RECORDS_CODE_MOST && key <= RECORDS_KEY_MOST && content <= RECORDS_CONTENT_MOST &&
                    ns + key + content == rest.size;
    if (!is_sized || deed >= RECORDS_DEEDS || type >= RECORDS_TYPES)
        return RECORDS_ROAD_MALFORMED;
    road_r->ns = records_road_cut(&rest, ns);
    command->key = records_road_cut(&rest, key);
    command->content = rest;
    return records_is_key(command->key) ? RECORDS_ROAD_WHOLE : RECORDS_ROAD_MALFORMED;
}

void records_road_write_answer(struct builder *out, enum records_outcome outcome,
                               const struct records_found *found)
{
    records_road_begin(out, ANSWER_NUMBERS, found->key.size + found->content.size);
    records_road_put(out, outcome);
    records_road_put(out, found->type);
    records_road_put(out, (uint64_t)found->expires_ms);
    records_road_put(out, found->stamp);
    records_road_put(out, found->size);
    records_road_put(out, (uint64_t)found->timestamp_us);
    records_road_put(out, found->key.data != NULL);
    records_road_put(out, found->content.data != NULL);
    records_road_put(out, found->key.size);
    records_road_put(out, found->content.size);
    builder_add_bytes(out, found->key);
    builder_add_bytes(out, found->content);
}

enum records_road_reading records_road_read_answer(struct bytes bytes, enum records_outcome *outcome_r,
                                                   struct records_found *found_r, size_t *used_r)
{
    struct bytes rest;
    enum records_road_reading reading = records_road_open(bytes, ANSWER_NUMBERS, &rest, used_r);
    if (reading)
        return reading;
    uint64_t outcome = records_road_take(&rest), type = records_road_take(&rest);
    *found_r = (struct records_found){.type = (enum records_type)type};
    found_r->expires_ms = (int64_t)records_road_take(&rest);
    found_r->stamp = records_road_take(&rest);
    found_r->size = (size_t)records_road_take(&rest);
    found_r->timestamp_us = (int64_t)records_road_take(&rest);
    bool has_key = records_road_take(&rest), has_content = records_road_take(&rest);
    uint64_t key = records_road_take(&rest), content = records_road_take(&rest);
    if (outcome >= RECORDS_OUTCOMES || type >= RECORDS_TYPES || key > RECORDS_KEY_MOST ||
        content > RECORDS_CONTENT_MOST || key + content != rest.size)
        return RECORDS_ROAD_MALFORMED;
    *outcome_r = (enum records_outcome)outcome;
    struct bytes text = records_road_cut(&rest, key);
    found_r->key = has_key ? text : NO_BYTES;
    found_r->content = has_content ? rest : NO_BYTES;
    return RECORDS_ROAD_WHOLE;
}

/* --- the client --- */

/* Of this process: a child that is forked later makes its own. */
static struct records_road_line {
    int fd; /* 0: none */
    pid_t pid;
    struct builder in, out;
} road_line;

static void records_road_end(void)
{
    if (road_line.fd > 0 && road_line.pid == getpid())
        close(road_line.fd);
    road_line.fd = 0;
}

/* One that has ended, or has sent what nobody waits for, is replaced. */
static bool records_road_is_kept(void)
{
    struct pollfd state = {.fd = road_line.fd, .events = POLLIN};
    return road_line.fd > 0 && road_line.pid == getpid() && poll(&state, 1, 0) == 0;
}

static bool records_road_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (records_road_is_kept())
        return true;
    records_road_end();
    if (strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return false;
    }
    road_line.fd = fd;
    road_line.pid = getpid();
    return true;
}

/* Waits for the socket.  False: the time is over. */
static bool records_road_await(short events, const struct records_road_wait *wait, bool *has_asked)
{
    struct pollfd state = {.fd = road_line.fd, .events = events};
    for (;;) {
        int64_t left_ms = wait->until_ms - clock_monotonic_ms();
        bool is_first = !*has_asked && wait->may_go_on;
        if (left_ms <= 0)
            return false;
        int ready = poll(&state, 1, (int)(is_first && left_ms > AT_ONCE_MS ? AT_ONCE_MS : left_ms));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready == 0 && is_first) {
            *has_asked = true;
            if (!wait->may_go_on(wait->context))
                return false;
        }
    }
}

/* False: not all was sent, so that nothing has happened. */
static bool records_road_send(const struct records_road_wait *wait, bool *has_asked)
{
    for (size_t sent = 0; sent < road_line.out.size;) {
        ssize_t size = send(road_line.fd, road_line.out.data + sent, road_line.out.size - sent, MSG_NOSIGNAL);
        if (size > 0)
            sent += (size_t)size;
        else if (errno != EINTR && (errno != EAGAIN || !records_road_await(POLLOUT, wait, has_asked)))
            return false;
    }
    return true;
}

/* False: no answer has come. */
static bool records_road_receive(const struct records_road_wait *wait, bool *has_asked,
                                 enum records_outcome *outcome_r, struct records_found *found_r)
{
    for (;;) {
        size_t used;
        enum records_road_reading reading =
            records_road_read_answer(builder_bytes(&road_line.in), outcome_r, found_r, &used);
        if (reading)
            *found_r = (struct records_found){0};
        if (reading != RECORDS_ROAD_PARTIAL)
            return reading == RECORDS_ROAD_WHOLE && used == road_line.in.size;
        char *room = builder_reserve(&road_line.in, READ_BYTES);
        ssize_t size = recv(road_line.fd, room, READ_BYTES, 0);
        if (size > 0)
            road_line.in.size += (size_t)size;
        else if (size == 0 ||
                 (errno != EINTR && (errno != EAGAIN || !records_road_await(POLLIN, wait, has_asked))))
            return false;
    }
}

enum records_outcome records_road_run(const char *path, struct bytes ns,
                                      const struct records_command *command,
                                      const struct records_road_wait *wait, struct records_found *found_r)
{
    enum records_outcome outcome = RECORDS_UNKNOWN;
    bool has_asked = false;
    *found_r = (struct records_found){0};
    if (clock_monotonic_ms() >= wait->until_ms)
        return RECORDS_BUSY;
    if (!records_road_connect(path))
        return RECORDS_NO_PARTICIPANTS;
    builder_clear(&road_line.in, KEPT_BYTES);
    builder_clear(&road_line.out, KEPT_BYTES);
    records_road_write(&road_line.out, ns, command);
    if (!records_road_send(wait, &has_asked))
        outcome = RECORDS_BUSY;
    else if (records_road_receive(wait, &has_asked, &outcome, found_r))
        return outcome;
    records_road_end();
    return command->deed == RECORDS_GET ? RECORDS_BUSY : outcome;
}
