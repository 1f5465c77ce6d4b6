/* site_key: 64 hexadecimal digits on the first line of a file that nobody but its owner and group may use, or
 * that a program prints. */
#include "seal/site_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "base/secret.h"
#include "edge/crypto/crypto.h"
#include "seal/site_key_command.h"

struct site_key {
    bool is_set;
    char mark[SITE_KEY_MARK + 1];
    struct sealing_keys keys;
};

enum { PRESENT, FORMER, KEYS, PATH_BYTES = 4096 };
static struct site_key site_keys[KEYS];

static const char credentials[] = "$CREDENTIALS_DIRECTORY/";

/* systemd passes the folder of a unit's credentials in the environment. */
static const char *expand(const char *path, char *buffer)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t size = sizeof credentials - 1;
    if (strncmp(path, credentials, size) != 0 || !folder)
        return path;
    snprintf(buffer, PATH_BYTES, "%s/%s", folder, path + size);
    return buffer;
}

static bool is_owned(const char *setting, const char *path, char *problem, size_t problem_size)
{
    struct stat status;
    if (stat(path, &status) != 0 || status.st_uid == 0 || status.st_uid == geteuid() || geteuid() == 0)
        return true; /* what cannot be read is reported by the reader */
    snprintf(problem, problem_size, "%s = %s: belongs to another user", setting, path);
    return false;
}

static bool read_digits(const char *text, unsigned char secret_r[SEALING_KEY])
{
    bool is_key = strlen(text) == (size_t)2 * SEALING_KEY;
    for (size_t i = 0; is_key && i < SEALING_KEY; i++) {
        int byte = hex_byte(text + 2 * i);
        is_key = byte >= 0;
        secret_r[i] = (unsigned char)byte;
    }
    return is_key;
}

/* Takes the secret, and erases it. */
static bool site_key_take(struct site_key *key, const char *setting, const char *source, struct secret *line,
                          char *problem, size_t problem_size)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    unsigned char secret[SEALING_KEY], marked[CRYPTO_SHA256];
    key->is_set = read_digits(line->text, secret);
    secret_erase(line);
    if (!key->is_set) {
        snprintf(problem, problem_size,
                 "%s = %s: its first line is no site key of 64 hexadecimal digits (stampctl key new --site)",
                 setting, source);
        return false;
    }
    sealing_derive(1, secret, &key->keys);
    crypto_hmac((struct bytes){(const char *)secret, sizeof secret}, BYTES("stampd site key"), marked);
    hex_write(marked, sizeof marked, digest);
    memcpy(key->mark, digest, SITE_KEY_MARK);
    explicit_bzero(secret, sizeof secret);
    return true;
}

static bool load_file(struct site_key *key, const char *setting, const char *path, char *problem,
                      size_t problem_size)
{
    char buffer[PATH_BYTES];
    struct secret line;
    *key = (struct site_key){0};
    if (!*path)
        return true;
    path = expand(path, buffer);
    return is_owned(setting, path, problem, problem_size) &&
           secret_read(&line, setting, path, problem, problem_size) &&
           site_key_take(key, setting, path, &line, problem, problem_size);
}

static bool load_command(struct site_key *key, const char *command, char *problem, size_t problem_size)
{
    struct secret line;
    *key = (struct site_key){0};
    return site_key_command_run(command, &line, problem, problem_size) &&
           site_key_take(key, "site_key_command", command, &line, problem, problem_size);
}

bool site_key_load(const struct settings *settings, char *problem, size_t problem_size)
{
    struct site_key *present = &site_keys[PRESENT];
    bool is_loaded =
        *settings->site_key_command
            ? load_command(present, settings->site_key_command, problem, problem_size)
            : load_file(present, "site_key_file", settings->site_key_file, problem, problem_size);
    return is_loaded && load_file(&site_keys[FORMER], "site_key_former_file", settings->site_key_former_file,
                                  problem, problem_size);
}

const char *site_key_mark(void)
{
    return site_keys[PRESENT].mark;
}

void site_key_forget(void)
{
    explicit_bzero(site_keys, sizeof site_keys);
    sealing_forget();
}

enum { PLACE_PARTS = 3 };
static struct sealing_place site_key_place_of(struct arena *arena, struct bytes database, int64_t id)
{
    struct bytes *parts = ARENA_ROOM(arena, struct bytes, PLACE_PARTS);
    parts[0] = BYTES("data key");
    parts[1] = database;
    parts[2] = bytes_of(arena_printf(arena, "%" PRId64, id));
    return (struct sealing_place){parts, PLACE_PARTS};
}

struct bytes site_key_wrap(struct arena *arena, struct bytes database, int64_t id,
                           const unsigned char secret[SEALING_KEY])
{
    assert(site_keys[PRESENT].is_set);
    return sealing_seal(arena, &site_keys[PRESENT].keys, site_key_place_of(arena, database, id),
                        (struct bytes){(const char *)secret, SEALING_KEY}, BYTES(""));
}

bool site_key_unwrap(struct arena *arena, struct bytes mark, struct bytes database, int64_t id,
                     struct bytes wrapped, unsigned char secret_r[SEALING_KEY])
{
    for (size_t i = 0; i < KEYS; i++) {
        struct bytes secret;
        if (!site_keys[i].is_set || !bytes_equal(mark, bytes_of(site_keys[i].mark)) ||
            !sealing_open(arena, &site_keys[i].keys, site_key_place_of(arena, database, id), wrapped,
                          &secret) ||
            secret.size != SEALING_KEY)
            continue;
        memcpy(secret_r, secret.data, SEALING_KEY);
        return true;
    }
    return false;
}

struct bytes site_key_seal(struct arena *arena, struct bytes kind, struct bytes text)
{
    assert(site_keys[PRESENT].is_set);
    return sealing_seal(arena, &site_keys[PRESENT].keys, sealing_place_copy(arena, &kind, 1), text,
                        BYTES(""));
}

bool site_key_open(struct arena *arena, struct bytes kind, struct bytes sealed, struct bytes *text_r)
{
    for (size_t i = 0; i < KEYS; i++)
        if (site_keys[i].is_set &&
            sealing_open(arena, &site_keys[i].keys, sealing_place_copy(arena, &kind, 1), sealed, text_r))
            return true;
    return false;
}
