/* cmd_key: `stampctl key`: the administrator's key and the digest by which the server checks it. */
#include "control/cmd_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/record.h"
#include "edge/crypto/crypto.h"
#include "records/records_seal.h"

enum { KEY_LEAST = 20 /* characters: shorter ones can be found by trying */ };

/* A key that others can read is no secret. */
static bool is_private(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !(status.st_mode & (S_IROTH | S_IWOTH)))
        return true; /* the code that reads the file reports what cannot be read */
    return message_refuse("%s: any user may read or write it (mode %03o): chmod 600, or make a new key", path,
                          (unsigned)status.st_mode & 0777);
}

bool cmd_key_read(struct control *control, const char *path, struct bytes *key_r)
{
    if (!is_private(path) || !control_read_file(control->arena, path, key_r))
        return false;
    while (key_r->size && strchr(" \t\r\n", key_r->data[key_r->size - 1]))
        key_r->size--;
    for (size_t i = 0; i < key_r->size; i++)
        if (key_r->data[i] <= ' ' || key_r->data[i] > '~')
            return message_refuse("%s: a key is one word of printable characters", path);
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
    if (fd < 0)
        return message_refuse("%s: %s", path, strerror(errno));
    bool is_written = write(fd, text.data, text.size) == (ssize_t)text.size && fsync(fd) == 0;
    if (close(fd) != 0 || !is_written) {
        message_print("%s: %s", path, strerror(errno));
        unlink(path);
        return false;
    }
    return true;
}

/* For a key of which the server or a command needs the file itself; `text` precedes its path. */
static void print_path(const char *word, const char *text, const char *path, bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_word(&record, word, path);
        record_print(&record);
    } else {
        printf("%s%s\n", text, path);
    }
}

bool cmd_key_make(const char *path, char key_r[CMD_KEY_DIGITS + 1])
{
    unsigned char random[CMD_KEY_DIGITS / 2];
    crypto_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(key_r + 2 * i, 3, "%02x", random[i]);
    key_r[CMD_KEY_DIGITS] = '\n';
    bool is_written = cmd_key_write(path, (struct bytes){key_r, CMD_KEY_DIGITS + 1});
    key_r[CMD_KEY_DIGITS] = 0;
    return is_written;
}

static int key_new(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command =
        COMMAND("key new", "FILE", "Write a random key to a new file that only its owner can read.",
                "Prints the line for stampd's settings, which contain only the "
                "digest, or for --site the path; for\n--archive the option of "
                "export, verify and import.  A key of the site or of an archive "
                "that is\nlost cannot be replaced: keep a copy of it.\n");
    bool is_queue = false, is_site = false, is_archive = false, is_json = false;
    const struct option_line lines[] = {
        OPTION_FLAG("archive", &is_archive,
                    "Create a key that archives are encrypted with (export --key-file)."),
        OPTION_FLAG("queue", &is_queue, "Create the key of queue managers (queue_key_file)."),
        OPTION_FLAG("site", &is_site,
                    "Create the key of the site, for encrypted namespaces (site_key_file)."),
        RECORD_JSON_LINE(&is_json)};
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_queue + is_site + is_archive > 1)
        return message_end(CONTROL_WRONG, "key new: expected one of --archive, --queue and --site");
    char key[CMD_KEY_DIGITS + 1];
    if (!cmd_key_make(words[0], key))
        return CONTROL_FAILED;
    if (is_site) /* the settings contain its path, and nothing of the key */
        print_path("site_key_file", "site_key_file = ", words[0], is_json);
    else if (is_archive) /* the server has nothing of it */
        print_path("key_file", "--key-file ", words[0], is_json);
    else
        print_digest(is_queue ? "queue_key_sha256" : "admin_key_sha256", (struct bytes){key, CMD_KEY_DIGITS},
                     is_json);
    return CONTROL_DONE;
}

static int key_hash(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("key hash", "FILE", "Print the digest of a key, for admin_key_sha256 or queue_key_sha256.",
                "Refuses a key of fewer than 20 characters, and a file that any user may read or write.\n");
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    struct bytes key;
    if (!cmd_key_read(control, words[0], &key))
        return CONTROL_FAILED;
    if (key.size < KEY_LEAST)
        return message_end(CONTROL_FAILED,
                           "%s: a key of %zu characters can be found by trying; %d are the least", words[0],
                           key.size, KEY_LEAST);
    print_digest(NULL, key, is_json);
    return CONTROL_DONE;
}

int control_key(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"new", "Create a key.", key_new},
        {"hash", "Print the digest of a key.", key_hash},
        {"records", "Show or replace the key of records on disk.", cmd_key_records},
    };
    return options_choose("key", "Create keys of administrators, queue managers, the site and archives.\n",
                          choices, COUNT_OF(choices), control, argc, argv);
}

/* --- cmd key records --- */

static bool cmd_key_records_report(const char *folder, const char *problem)
{
    if (problem)
        message_print("records in %s: %s", folder, problem);
    return !problem;
}

static void print(const char *folder, const struct records_seal *present, const struct records_seal *next,
                  bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_word(&record, "folder", folder);
        record_add_word(&record, "site", present ? records_seal_site(present) : NULL);
        record_add_bool(&record, "next", next);
        record_print(&record);
        return;
    }
    if (present)
        printf("%s: under site key %s\n", folder, records_seal_site(present));
    else
        printf("%s: there is no key, nothing is encrypted\n", folder);
    if (next)
        printf("a new key is waiting: stop stampd and stamp-journal of this host, then start them\n");
}

static bool print_keys(const char *folder, bool is_json)
{
    struct records_seal *present = NULL, *next = NULL;
    bool is_read =
        cmd_key_records_report(folder, records_seal_read(&present, folder, RECORDS_SEAL_PRESENT)) &&
        cmd_key_records_report(folder, records_seal_read(&next, folder, RECORDS_SEAL_NEXT));
    if (is_read)
        print(folder, present, next, is_json);
    records_seal_free(present);
    records_seal_free(next);
    return is_read;
}

int cmd_key_records(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "key records", "",
        "Show the key of the records of encrypted namespaces on the disk of this host, or give them another.",
        "With --new all of them are encrypted again when no process of stampd and stamp-journal is left on\n"
        "this host and one starts; interrupted, the next start continues.  Then the former key is removed.\n"
        "After a change of the site key, with the former one in site_key_former_file, the first start of\n"
        "stampd wraps the key; --wrap does so without one.\n");
    bool is_new = false, is_wrap = false, is_json = false, is_there = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("new", &is_new, "Make a new key, which the next start uses."),
        OPTION_FLAG("wrap", &is_wrap, "Wrap the key under the site key."),
        RECORD_JSON_LINE(&is_json),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    const char *folder = control->settings.records_directory;
    if (!*folder)
        return message_end(CONTROL_FAILED, "records_directory is empty: no records are kept on disk");
    if (!ns_keys_need_site(control) ||
        (is_wrap && !cmd_key_records_report(folder, records_seal_wrap(folder))) ||
        (is_new && !cmd_key_records_report(folder, records_seal_make_next(folder, &is_there))))
        return CONTROL_FAILED;
    if (is_there)
        message_print("a new key was waiting already");
    return print_keys(folder, is_json) ? CONTROL_DONE : CONTROL_FAILED;
}
