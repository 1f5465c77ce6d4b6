/* journal_keys: lines of words. */
#include "journal/journal_keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "model/namespace.h"

struct journal_key {
    struct bytes ns, digest, prefix;
    bool may_write;
};

struct journal_keys {
    size_t count;
    struct journal_key list[JOURNAL_KEYS_MOST];
    char text[JOURNAL_KEYS_FILE_MOST + 1];
};

static struct bytes next_word(struct bytes *line)
{
    *line = bytes_trim(*line);
    size_t size = 0;
    while (size < line->size && line->data[size] != ' ' && line->data[size] != '\t')
        size++;
    struct bytes word = {line->data, size};
    line->data += size;
    line->size -= size;
    return word;
}

static bool is_digest(struct bytes word)
{
    for (size_t i = 0; i < word.size; i++)
        if (!strchr("0123456789abcdef", word.data[i]))
            return false;
    return word.size == CRYPTO_SHA256_HEX;
}

static bool is_code(struct bytes word)
{
    char code[NAMESPACE_CODE_MOST + 1] = "";
    if (word.size > NAMESPACE_CODE_MOST)
        return false;
    memcpy(code, word.data, word.size);
    return namespace_is_code(code) && !namespace_is_reserved(code) && strcmp(code, "z") != 0;
}

/* NULL: it is a key. */
static const char *read_line(struct bytes line, struct journal_key *key_r)
{
    key_r->ns = next_word(&line);
    struct bytes right = next_word(&line);
    key_r->digest = next_word(&line);
    key_r->prefix = next_word(&line);
    key_r->may_write = bytes_equal(right, BYTES("write"));
    if (!is_code(key_r->ns))
        return "the code of a namespace is expected first";
    if (!key_r->may_write && !bytes_equal(right, BYTES("read")))
        return "read or write is expected second";
    if (!is_digest(key_r->digest))
        return "64 hexadecimal digits in lower case are expected third";
    if (key_r->prefix.size > JOURNAL_KEYS_PREFIX_MOST || bytes_trim(line).size)
        return "at most one prefix of 128 bytes is expected last";
    return NULL;
}

static ssize_t read_file(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t more = fd < 0 ? -1 : 0;
    while (fd >= 0 && (more = read(fd, text + size, JOURNAL_KEYS_FILE_MOST + 1 - size)) > 0)
        size += (size_t)more;
    if (fd >= 0)
        close(fd);
    return more < 0 ? -1 : (ssize_t)size;
}

bool journal_keys_load(struct journal_keys **keys_r, const char *path, char *problem, size_t problem_size)
{
    struct journal_keys *keys = calloc(1, sizeof *keys);
    const char *wrong = NULL;
    int number = 0;
    if (!keys)
        log_fatal("out of memory reading keys");
    ssize_t size = read_file(path, keys->text);
    if (size < 0)
        snprintf(problem, problem_size, "%s: %m", path);
    else if (size > JOURNAL_KEYS_FILE_MOST)
        snprintf(problem, problem_size, "%s: at most %d bytes are expected", path, JOURNAL_KEYS_FILE_MOST);
    bool is_read = size >= 0 && size <= JOURNAL_KEYS_FILE_MOST;
    struct bytes rest = {keys->text, is_read ? (size_t)size : 0};
    while (rest.size && !wrong) {
        struct bytes line = bytes_trim(bytes_cut(&rest, '\n'));
        number++;
        if (!line.size || line.data[0] == '#')
            continue;
        wrong = keys->count == JOURNAL_KEYS_MOST ? "at most 256 keys are expected"
                                                 : read_line(line, &keys->list[keys->count++]);
    }
    if (wrong)
        snprintf(problem, problem_size, "%s:%d: %s", path, number, wrong);
    if (wrong || !is_read) {
        journal_keys_free(keys);
        return false;
    }
    *keys_r = keys;
    return true;
}

void journal_keys_free(struct journal_keys *keys)
{
    if (keys)
        explicit_bzero(keys, sizeof *keys);
    free(keys);
}

bool journal_keys_enter(const struct journal_keys *keys, struct bytes ns, struct bytes key,
                        struct journal_caller *caller_r)
{
    *caller_r = (struct journal_caller){.keys = keys};
    crypto_sha256_hex(key, caller_r->digest);
    for (size_t i = 0; i < keys->count; i++)
        if (bytes_equal(keys->list[i].ns, ns) &&
            crypto_equal(keys->list[i].digest, bytes_of(caller_r->digest))) {
            caller_r->ns = keys->list[i].ns;
            return true;
        }
    return false;
}

bool journal_keys_allow(const struct journal_caller *caller, struct bytes key, bool is_write)
{
    for (size_t i = 0; caller->keys && i < caller->keys->count; i++) {
        const struct journal_key *one = &caller->keys->list[i];
        if (bytes_equal(one->ns, caller->ns) && bytes_equal(one->digest, bytes_of(caller->digest)) &&
            (one->may_write || !is_write) && key.size >= one->prefix.size &&
            memcmp(key.data, one->prefix.data, one->prefix.size) == 0)
            return true;
    }
    return false;
}

bool journal_keys_is_sendable(struct bytes key)
{
    for (size_t i = 0; i < key.size; i++)
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return false;
    return key.size && key.size <= JOURNAL_KEYS_SENT_MOST;
}
