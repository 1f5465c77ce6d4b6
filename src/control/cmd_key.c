/* cmd_key: `stampctl key`: the administrator's key and the digest by which the server checks it. */
#include "control/cmd_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/message.h"
#include "control/record.h"
#include "edge/crypto.h"

enum { KEY_BYTES = 32, KEY_LEAST = 20 /* characters: shorter ones can be found by trying */ };

/* A key that others can read is no secret. */
static bool is_private(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !(status.st_mode & (S_IROTH | S_IWOTH)))
        return true; /* the code that reads the file reports what cannot be read */
    message_print("%s: any user may read or write it (mode %03o): chmod 600, or make a new key", path,
                  (unsigned)status.st_mode & 0777);
    return false;
}

bool cmd_key_read(struct control *control, const char *path, struct bytes *key_r)
{
    if (!is_private(path) || !control_read_file(control->arena, path, key_r))
        return false;
    while (key_r->size && strchr(" \t\r\n", key_r->data[key_r->size - 1]))
        key_r->size--;
    for (size_t i = 0; i < key_r->size; i++)
        if (key_r->data[i] <= ' ' || key_r->data[i] > '~') {
            message_print("%s: a key is one word of printable characters", path);
            return false;
        }
    if (!key_r->size)
        message_print("%s: the file is empty", path);
    return key_r->size > 0;
}

/* `setting` NULL: the digest alone. */
static void print_digest(const char *setting, struct bytes key, bool is_json)
{
    char digest[CRYPTO_SHA256_HEX + 1];
    struct record record = {0};
    crypto_sha256_hex(key, digest);
    if (is_json) {
        record_add_word(&record, setting ? setting : "sha256", digest);
        record_print(&record);
    } else {
        printf("%s%s%s\n", setting ? setting : "", setting ? " = " : "", digest);
    }
}

/* The file must be new, so that a key in use is not lost by mistake. */
bool cmd_key_write(const char *path, struct bytes text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        message_print("%s: %s", path, strerror(errno));
        return false;
    }
    bool is_written = write(fd, text.data, text.size) == (ssize_t)text.size && fsync(fd) == 0;
    if (close(fd) != 0 || !is_written) {
        message_print("%s: %s", path, strerror(errno));
        unlink(path);
        return false;
    }
    return true;
}

static const char *setting_of(bool is_queue)
{
    return is_queue ? "queue_key_sha256" : "admin_key_sha256";
}

static void print_site(const char *path, bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_word(&record, "site_key_file", path);
        record_print(&record);
    } else {
        printf("site_key_file = %s\n", path);
    }
}

static int key_new(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command = {"key new",
                                           "FILE",
                                           1,
                                           1,
                                           "Write a random key to a new file that only its owner can read.",
                                           "Prints the line for stampd's settings, which contain only the "
                                           "digest, or for --site the path.  A site "
                                           "key\nthat is lost cannot be replaced: keep a copy of it.\n"};
    bool is_queue = false, is_site = false, is_json = false;
    const struct option_line lines[] = {
        {.name = "queue", .help = "Create the key of queue managers (queue_key_file).", .flag = &is_queue},
        {.name = "site",
         .help = "Create the key of the site, for encrypted namespaces (site_key_file).",
         .flag = &is_site},
        RECORD_JSON_LINE(&is_json)};
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    unsigned char random[KEY_BYTES];
    char key[2 * KEY_BYTES + 2];
    crypto_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(key + 2 * i, 3, "%02x", random[i]);
    key[2 * KEY_BYTES] = '\n';
    if (!cmd_key_write(words[0], (struct bytes){key, 2 * KEY_BYTES + 1}))
        return CONTROL_FAILED;
    if (is_site) /* the settings contain its path, and nothing of the key */
        print_site(words[0], is_json);
    else
        print_digest(setting_of(is_queue), (struct bytes){key, 2 * KEY_BYTES}, is_json);
    return CONTROL_DONE;
}

static int key_hash(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "key hash",
        "FILE",
        1,
        1,
        "Print the digest of a key, for admin_key_sha256 or queue_key_sha256.",
        "Refuses a key of fewer than 20 characters, and a file that any user may read or write.\n"};
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    struct bytes key;
    if (!cmd_key_read(control, words[0], &key))
        return CONTROL_FAILED;
    if (key.size < KEY_LEAST) {
        message_print("%s: a key of %zu characters can be found by trying; %d are the least", words[0],
                      key.size, KEY_LEAST);
        return CONTROL_FAILED;
    }
    print_digest(NULL, key, is_json);
    return CONTROL_DONE;
}

int control_key(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"new", "Create a key.", key_new},
        {"hash", "Print the digest of a key.", key_hash},
    };
    return options_choose("key", "Create keys of administrators and queue managers.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
