/* site_key: 64 hexadecimal digits on the first line of a file that nobody but its owner and group may use, or
 * that a program prints. */
#include "seal/site_key.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/process/subprocess.h"
#include "edge/crypto/crypto.h"
#include "edge/mapping.h"

/* --- the command --- */

/* A program that prints the key of the site, such as the client of a key server.  For
 * site_key.c only.  Fork, a pipe, and a deadline. */

enum { SITE_KEY_COMMAND_WORDS = 32, SITE_KEY_COMMAND_MS = 30000 };

enum { OUTPUT_MOST = 1000 };
static const char command_setting[] = "site_key_command";

/* At most OUTPUT_MOST bytes; false: not in time. */
static bool site_key_command_read_all(int fd, char output[OUTPUT_MOST + 1])
{
    const int64_t end_ms = clock_monotonic_ms() + SITE_KEY_COMMAND_MS;
    size_t size = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left_ms = end_ms - clock_monotonic_ms();
        int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
        if (ready == 0)
            return false;
        ssize_t got = ready < 0 ? -1 : read(fd, output + size, OUTPUT_MOST - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || (size += (size_t)got) == OUTPUT_MOST)
            break;
    }
    output[size] = '\0';
    return true;
}

static bool site_key_command_judge(const char *program, bool is_late, int status, char *output, char *problem,
                                   size_t problem_size)
{
    output[strcspn(output, " \t\r\n")] = '\0';
    if (is_late)
        snprintf(problem, problem_size, "%s: %s has not ended within %d s", command_setting, program,
                 SITE_KEY_COMMAND_MS / 1000);
    else if (status == SUBPROCESS_NOT_RUN)
        snprintf(problem, problem_size, "%s: %s cannot be run", command_setting, program);
    else if (status != 0)
        snprintf(problem, problem_size, "%s: %s has failed (status %d)", command_setting, program, status);
    else if (!*output)
        snprintf(problem, problem_size, "%s: %s has printed nothing", command_setting, program);
    else
        return true;
    return false;
}

static bool run_site_key_command(char **words, struct secret *line, char *problem, size_t problem_size)
{
    char output[OUTPUT_MOST + 1] = "";
    const struct subprocess_work work = {
        .words = (const char *const *)words, .has_no_in = true, .has_out = true};
    struct subprocess child;
    if (!subprocess_start(&work, &child)) {
        snprintf(problem, problem_size, "%s: %m", command_setting);
        return false;
    }
    const bool is_late = !site_key_command_read_all(child.out, output);
    if (is_late)
        kill(child.pid, SIGKILL);
    const int status = subprocess_end(&child);
    bool is_right = site_key_command_judge(words[0], is_late, status, output, problem, problem_size);
    if (is_right && !(line->text = strdup(output)))
        log_fatal("out of memory");
    explicit_bzero(output, sizeof output);
    return is_right;
}

/* Runs it, without a shell: its words are separated by blanks.  The first line that it prints is the secret;
 * what it writes to its standard error goes where this process's does.  A program that takes longer than
 * SITE_KEY_COMMAND_MS is killed.  On failure returns false with one line in `problem`, which has nothing of
 * what was printed. */
static bool site_key_command_run(const char *command, struct secret *line, char *problem, size_t problem_size)
{
    char *copy = strdup(command), *rest = copy, *words[SITE_KEY_COMMAND_WORDS + 1], *word;
    size_t count = 0;
    bool is_right = true;
    if (!copy)
        log_fatal("out of memory");
    line->text = NULL;
    while ((word = strsep(&rest, " \t")) && is_right) {
        if (!*word)
            continue;
        is_right = count < SITE_KEY_COMMAND_WORDS;
        if (is_right)
            words[count++] = word;
    }
    words[count] = NULL;
    is_right = is_right && count;
    if (!is_right)
        snprintf(problem, problem_size, "%s: expected at most %d words", command_setting,
                 SITE_KEY_COMMAND_WORDS);
    is_right = is_right && run_site_key_command(words, line, problem, problem_size);
    free(copy);
    return is_right;
}

/* --- the key --- */

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

bool site_key_check_shared(const struct settings *settings, char *problem, size_t problem_size)
{
    char segment[PATH_MAX];
    bool is_used = *settings->site_key_file || *settings->site_key_command;
    bool has_segment = settings_segment_path(settings, segment, sizeof segment);
    const char *disk = has_segment && !mapping_is_in_memory(segment) ? segment
                       : settings->records_mb && !mapping_is_in_memory(settings->run_directory)
                           ? settings->run_directory
                           : NULL;
    if (!is_used || !disk)
        return true;
    snprintf(
        problem, problem_size,
        "%s = %s: it is on a disk, where contents of encrypted namespaces would be in clear: name a folder "
        "in memory (tmpfs), as /run is",
        disk == segment && *settings->segment ? "segment" : "run_directory",
        disk == segment && *settings->segment ? segment : settings->run_directory);
    return false;
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
