/* journal_peer: a client of stamp-journal for tests, which knows every byte. */
#include "journal_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "journal/journal_message.h"
#include "records/records.h"

int peer_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void add_number(struct builder *text, uint64_t number, int size)
{
    while (size-- > 0) {
        const char byte = (char)(number >> 8 * size & 0xff);
        builder_add(text, &byte, 1);
    }
}

/* `value` NULL: none.  Returns the identifier. */
static unsigned add_message(struct builder *text, enum journal_function function, unsigned flags,
                            const char *key, const char *value)
{
    static unsigned identifier;
    identifier = (identifier + 1) & UINT16_MAX;
    builder_add_bytes(text, BYTES("FJ"));
    add_number(text, JOURNAL_VERSION, 2);
    add_number(text, function, 2);
    add_number(text, identifier, 2);
    add_number(text, flags | JOURNAL_LONG_KEYS | (value ? JOURNAL_VALUE_BITS << JOURNAL_VALUE_SHIFT : 0), 2);
    add_number(text, 0, 8);
    add_number(text, strlen(key), 2);
    builder_add_bytes(text, bytes_of(key));
    if (value) {
        add_number(text, strlen(value) + 1, 4);
        add_number(text, RECORDS_STRING, 1);
        builder_add_bytes(text, bytes_of(value));
    }
    return identifier;
}

unsigned peer_add_set(struct builder *text, const char *key, const char *value, unsigned flags)
{
    return add_message(text, JOURNAL_SET, JOURNAL_OVERWRITE | flags, key, value);
}

unsigned peer_add_get(struct builder *text, const char *key)
{
    return add_message(text, JOURNAL_GET, JOURNAL_DATA, key, NULL);
}

void peer_send(int client, struct builder *text)
{
    assert_int_equal(send(client, text->data, text->size, MSG_NOSIGNAL), text->size);
    builder_free(text);
}

/* False: the connection has ended before. */
static bool read_bytes(int client, char *bytes_r, size_t size)
{
    while (size) {
        struct pollfd one = {.fd = client, .events = POLLIN};
        assert_int_equal(poll(&one, 1, PEER_PATIENCE_S * 1000), 1);
        ssize_t got = recv(client, bytes_r, size, 0);
        if (got <= 0)
            return false;
        bytes_r += got;
        size -= (size_t)got;
    }
    return true;
}

static uint64_t read_number(int client, int size)
{
    char bytes[8];
    uint64_t number = 0;
    assert_true(read_bytes(client, bytes, (size_t)size));
    for (int i = 0; i < size; i++)
        number = number << 8 | (unsigned char)bytes[i];
    return number;
}

static void read_text(int client, size_t size, char text_r[PEER_TEXT_MOST])
{
    assert_true(size < PEER_TEXT_MOST && read_bytes(client, text_r, size));
    text_r[size] = 0;
}

bool peer_receive(int client, struct peer_answer *answer_r)
{
    char head[4], key[PEER_TEXT_MOST];
    *answer_r = (struct peer_answer){0};
    if (!read_bytes(client, head, sizeof head))
        return false;
    assert_memory_equal(head, "JR\0\1", sizeof head);
    answer_r->identifier = (unsigned)read_number(client, 2);
    unsigned flags = (unsigned)read_number(client, 2);
    assert_false(flags & JOURNAL_HAS_TIMEOUT);
    read_number(client, 8);
    read_text(client, read_number(client, 2), answer_r->error);
    if (flags & JOURNAL_DATA) {
        read_text(client, read_number(client, 2), key);
        size_t size = read_number(client, 4);
        read_number(client, 1);
        read_text(client, size - 1, answer_r->value);
    }
    return true;
}

unsigned peer_send_set(int client, const char *key, const char *value, unsigned flags)
{
    struct builder text = {0};
    unsigned identifier = peer_add_set(&text, key, value, flags);
    peer_send(client, &text);
    return identifier;
}

unsigned peer_send_get(int client, const char *key)
{
    struct builder text = {0};
    unsigned identifier = peer_add_get(&text, key);
    peer_send(client, &text);
    return identifier;
}

void peer_expect_answer(int client, unsigned identifier, const char *value)
{
    struct peer_answer answer;
    assert_true(peer_receive(client, &answer));
    assert_string_equal(answer.error, "");
    assert_int_equal(answer.identifier, identifier);
    assert_string_equal(answer.value, value);
}

void peer_expect_error(int client, const char *error)
{
    struct peer_answer answer;
    assert_true(peer_receive(client, &answer));
    assert_string_equal(answer.error, error);
}

void peer_expect_end(int client)
{
    struct peer_answer answer;
    assert_false(peer_receive(client, &answer));
    close(client);
}

void peer_expect_nothing(int client)
{
    struct pollfd one = {.fd = client, .events = POLLIN};
    assert_int_equal(poll(&one, 1, 0), 0);
}

int peer_enter_with(const char *path, const char *key)
{
    struct builder text = {0};
    int client = peer_connect(path);
    assert_true(client >= 0);
    unsigned identifier = add_message(&text, JOURNAL_AUTH, 0, "lab", key);
    peer_send(client, &text);
    peer_expect_answer(client, identifier, "");
    return client;
}

int peer_enter(const char *path)
{
    return peer_enter_with(path, "key");
}

void peer_set(int client, const char *key, const char *value, unsigned flags)
{
    peer_expect_answer(client, peer_send_set(client, key, value, flags), "");
}

void peer_get(int client, const char *key, const char *value)
{
    peer_expect_answer(client, peer_send_get(client, key), value);
}
