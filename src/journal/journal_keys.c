/* journal_keys: lines of words. */
#include "journal/journal_keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/coding/siphash.h"
#include "model/namespace.h"

/* How long what is written by a line may stay, 0: not limited, and its share: of a payer without a rule,
 * none. */
struct journal_terms {
    int64_t ttl_ms, ttl_most_ms;
    uint64_t is_persisted;
    struct records_payer payer;
};

struct journal_key {
    struct bytes ns, digest, prefix;
    bool may_write;
    struct journal_terms terms;
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

static bool journal_keys_is_digest(struct bytes word)
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

enum { TERM_DIGITS = 15 };

/* A word as ttl_ms=60000; false: it is no term. */
static bool read_term(struct bytes word, struct journal_terms *terms)
{
    const struct {
        struct bytes name;
        uint64_t *number_r;
    } numbers[] = {{BYTES("ttl_ms="), (uint64_t *)&terms->ttl_ms},
                   {BYTES("ttl_most_ms="), (uint64_t *)&terms->ttl_most_ms},
                   {BYTES("persist="), &terms->is_persisted},
                   {BYTES("bytes="), &terms->payer.caller_bytes},
                   {BYTES("records="), &terms->payer.caller_records}};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct bytes digits = word;
        if (!bytes_has_prefix(word, numbers[i].name))
            continue;
        digits.data += numbers[i].name.size;
        digits.size -= numbers[i].name.size;
        uint64_t number = 0;
        for (size_t k = 0; k < digits.size; k++) {
            if (digits.data[k] < '0' || digits.data[k] > '9' || digits.size > TERM_DIGITS)
                return false;
            number = number * 10 + (uint64_t)(digits.data[k] - '0');
        }
        *numbers[i].number_r = number;
        return number > 0 && (number == 1 || numbers[i].number_r != &terms->is_persisted);
    }
    return false;
}

/* The share of a line is that of its key and its prefix, in all processes and on disk. */
static void find_payer(struct journal_key *key)
{
    static const struct siphash_key secret = {{UINT64_C(0x7265636f72647320), UINT64_C(0x7061796572732e32)}};
    struct records_payer *payer = &key->terms.payer;
    char text[CRYPTO_SHA256_HEX + JOURNAL_KEYS_PREFIX_MOST + 1];
    if (!payer->caller_bytes && !payer->caller_records)
        return;
    memcpy(text, key->digest.data, CRYPTO_SHA256_HEX);
    memcpy(text + CRYPTO_SHA256_HEX, key->prefix.data, key->prefix.size);
    size_t size = CRYPTO_SHA256_HEX + key->prefix.size;
    payer->rule = siphash_short(&secret, (struct bytes){text, size}) | 1;
    text[size] = 0;
    payer->caller = siphash_short(&secret, (struct bytes){text, size + 1}) | 1;
}

/* NULL: it is a key. */
static const char *journal_keys_read_line(struct bytes line, struct journal_key *key_r)
{
    key_r->ns = next_word(&line);
    struct bytes right = next_word(&line);
    key_r->digest = next_word(&line);
    key_r->terms = (struct journal_terms){0};
    key_r->prefix = BYTES("");
    bool is_over = false; /* a word is neither */
    for (int i = 0; (line = bytes_trim(line)).size && !is_over; i++) {
        struct bytes word = next_word(&line);
        if (read_term(word, &key_r->terms))
            continue;
        is_over = i > 0;
        key_r->prefix = word;
    }
    key_r->may_write = bytes_equal(right, BYTES("write"));
    if (!is_code(key_r->ns))
        return "the code of a namespace is expected first";
    if (!key_r->may_write && !bytes_equal(right, BYTES("read")))
        return "read or write is expected second";
    if (!journal_keys_is_digest(key_r->digest))
        return "64 hexadecimal digits in lower case are expected third";
    if (key_r->prefix.size > JOURNAL_KEYS_PREFIX_MOST || is_over)
        return "at most one prefix of 128 bytes is expected, and terms as ttl_ms=60000 behind it";
    if (key_r->terms.ttl_most_ms && key_r->terms.ttl_ms > key_r->terms.ttl_most_ms)
        return "a ttl_ms that is not above ttl_most_ms is expected";
    find_payer(key_r);
    return NULL;
}

static ssize_t journal_keys_read_file(const char *path, char *text)
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
    ssize_t size = journal_keys_read_file(path, keys->text);
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
                                                 : journal_keys_read_line(line, &keys->list[keys->count++]);
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

/* NULL: there is none. */
static const struct journal_key *find_key(const struct journal_keys *keys, struct bytes ns,
                                          const char *digest)
{
    for (size_t i = 0; i < keys->count; i++)
        if ((!ns.data || bytes_equal(keys->list[i].ns, ns)) &&
            crypto_equal(keys->list[i].digest, bytes_of(digest)))
            return &keys->list[i];
    return NULL;
}

bool journal_keys_enter_other(struct journal_caller *caller, struct bytes ns)
{
    const struct journal_key *line = ns.data ? find_key(caller->keys, ns, caller->digest) : NULL;
    if (line)
        caller->ns = line->ns;
    return line != NULL;
}

struct bytes journal_keys_first(const struct journal_keys *keys, struct bytes key)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(key, digest);
    const struct journal_key *line = find_key(keys, NO_BYTES, digest);
    return line ? line->ns : NO_BYTES;
}

size_t journal_keys_number(const struct journal_caller *caller)
{
    const struct journal_key *line = find_key(caller->keys, caller->ns, caller->digest);
    return line ? (size_t)(line - caller->keys->list) : 0;
}

bool journal_keys_enter(const struct journal_keys *keys, struct bytes ns, struct bytes key,
                        struct journal_caller *caller_r)
{
    *caller_r = (struct journal_caller){.keys = keys};
    crypto_sha256_hex(key, caller_r->digest);
    return journal_keys_enter_other(caller_r, ns);
}

/* NULL: there is none. */
static const struct journal_key *find_line(const struct journal_caller *caller, struct bytes key,
                                           bool is_write)
{
    for (size_t i = 0; caller->keys && i < caller->keys->count; i++) {
        const struct journal_key *one = &caller->keys->list[i];
        if (bytes_equal(one->ns, caller->ns) && bytes_equal(one->digest, bytes_of(caller->digest)) &&
            (one->may_write || !is_write) && key.size >= one->prefix.size &&
            memcmp(key.data, one->prefix.data, one->prefix.size) == 0)
            return one;
    }
    return NULL;
}

bool journal_keys_allow(const struct journal_caller *caller, struct bytes key, bool is_write)
{
    return find_line(caller, key, is_write) != NULL;
}

bool journal_keys_hold(const struct journal_caller *caller, struct records_command *command)
{
    bool is_moved = command->to.data != NULL;
    const struct journal_key *line = find_line(caller, is_moved ? command->to : command->key, true);
    int64_t now_ms = clock_present_ms();
    command->payer = NULL;
    command->ends_by_ms = 0;
    if (!line)
        return true;
    const struct journal_terms *terms = &line->terms;
    bool is_made = command->deed == RECORDS_SET || command->deed == RECORDS_ADD;
    if (is_made && !command->expires_ms && terms->ttl_ms)
        command->expires_ms = now_ms + terms->ttl_ms;
    command->ends_by_ms = terms->ttl_most_ms ? now_ms + terms->ttl_most_ms : 0;
    command->payer = terms->payer.rule ? &terms->payer : NULL;
    command->is_persisted |= is_made && terms->is_persisted;
    return !terms->ttl_most_ms ||
           (command->expires_ms <= command->ends_by_ms && command->lease_ms <= terms->ttl_most_ms &&
            command->touch_s <= (terms->ttl_most_ms + 999) / 1000);
}

bool journal_keys_is_sendable(struct bytes key)
{
    for (size_t i = 0; i < key.size; i++)
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return false;
    return key.size && key.size <= JOURNAL_KEYS_SENT_MOST;
}
