/* records_seal: the files of keys, a line of the site key's mark and the sealed key; and texts: the layout
 * and the id of the key, eight bytes each, the nonce, the encrypted text and its tag. */
#include "records/records_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/coding/siphash.h"
#include "base/memory.h"
#include "seal/random_stock.h"
#include "seal/site_key.h"

enum {
    LAYOUT = 2,
    NUMBER = 8,
    HEAD = 2 * NUMBER + SEALING_NONCE,
    LINE_MOST = 511,
    PATH_BYTES = 4096,
    KEPT_KEYS = 32
};
static const struct bytes kind = {"records key", 11};

/* Of one namespace. */
struct seal_keys {
    unsigned char code[RECORDS_CODE_MOST]; /* zeros: of none */
    unsigned char texts[SEALING_KEY], places[SEALING_KEY];
};

struct records_seal {
    unsigned char secret[SEALING_KEY];
    unsigned char id[NUMBER];
    char site[SITE_KEY_MARK + 1];     /* of the site key under which its file is */
    struct seal_keys keys[KEPT_KEYS]; /* by a hash of the code: places are computed under the lock */
};

static char problem[300];
static const char *const names[] = {[RECORDS_SEAL_PRESENT] = "key", [RECORDS_SEAL_NEXT] = "key.next"};

/* --- the files --- */

static bool records_seal_path_of(const char *folder, const char *name, char path_r[PATH_BYTES])
{
    int size = snprintf(path_r, PATH_BYTES, "%s/%s", folder, name);
    errno = ENAMETOOLONG;
    return size > 0 && size < PATH_BYTES;
}

static const char *failed(enum records_seal_file file, const char *verb)
{
    snprintf(problem, sizeof problem, "its file %s cannot be %s: %s", names[file], verb, strerror(errno));
    return problem;
}

static struct records_seal *records_seal_make(const void *secret)
{
    unsigned char digest[CRYPTO_SHA256];
    struct records_seal *seal = memory_zeroed(1, sizeof *seal, "opening the records");
    memcpy(seal->secret, secret, SEALING_KEY);
    crypto_hmac((struct bytes){secret, SEALING_KEY}, BYTES("stampd records id"), digest);
    memcpy(seal->id, digest, NUMBER);
    return seal;
}

static struct records_seal *make_random(void)
{
    unsigned char secret[SEALING_KEY];
    crypto_random(secret, sizeof secret);
    struct records_seal *seal = records_seal_make(secret);
    explicit_bzero(secret, sizeof secret);
    return seal;
}

void records_seal_free(struct records_seal *seal)
{
    if (seal)
        explicit_bzero(seal, sizeof *seal);
    free(seal);
}

const char *records_seal_site(const struct records_seal *seal)
{
    return seal->site;
}

/* False: errno; ENOENT: there is no file. */
static bool records_seal_read_line(const char *folder, enum records_seal_file file,
                                   char line_r[LINE_MOST + 1])
{
    char path[PATH_BYTES];
    int fd =
        records_seal_path_of(folder, names[file], path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t size = fd < 0 ? -1 : read(fd, line_r, LINE_MOST);
    int error = errno;
    if (fd >= 0)
        close(fd);
    line_r[size > 0 ? size : 0] = 0;
    errno = error;
    return size >= 0;
}

static const char *open_line(struct arena *arena, const char *name, char *line, struct records_seal **seal_r)
{
    struct bytes rest = bytes_of(line), mark = bytes_cut(&rest, ' '), sealed = bytes_cut(&rest, '\n'), secret;
    const char *wrong = mark.size != SITE_KEY_MARK || !sealing_key_id(sealed) ? "is damaged"
                        : !*site_key_mark()
                            ? "is encrypted under a site key, and there is none here: see site_key_file"
                            : NULL;
    if (wrong) {
        snprintf(problem, sizeof problem, "its file %s %s", name, wrong);
        return problem;
    }
    if (!site_key_open(arena, kind, sealed, &secret) || secret.size != SEALING_KEY) {
        snprintf(problem, sizeof problem,
                 "its file %s is damaged, or encrypted under another site key (%.*s) than that of "
                 "site_key_file (%s) or site_key_former_file",
                 name, (int)mark.size, mark.data, site_key_mark());
        return problem;
    }
    *seal_r = records_seal_make(secret.data);
    memcpy((*seal_r)->site, mark.data, SITE_KEY_MARK);
    explicit_bzero((char *)(uintptr_t)secret.data, secret.size);
    return NULL;
}

const char *records_seal_read(struct records_seal **seal_r, const char *folder, enum records_seal_file file)
{
    char line[LINE_MOST + 1];
    *seal_r = NULL;
    if (!records_seal_read_line(folder, file, line))
        return errno == ENOENT ? NULL : failed(file, "read");
    struct arena *arena = arena_create("records key");
    const char *error = open_line(arena, names[file], line, seal_r);
    arena_destroy(arena);
    return error;
}

/* What is under the name does not change while the folder is locked; -1: errno.  The owner of the folder has
 * its files, whoever writes them. */
static int lock_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    return fd;
}

static bool write_temporary(int locked, const char *temporary, struct bytes line)
{
    struct stat owner;
    unlink(temporary); /* of a process that died; never written to what somebody has put there */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_done = fd >= 0 && fstat(locked, &owner) == 0 &&
                   (owner.st_uid == geteuid() || fchown(fd, owner.st_uid, owner.st_gid) == 0) &&
                   bytes_write(fd, line) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return is_done;
}

/* In the locked folder. */
static const char *write_line(const char *folder, int locked, enum records_seal_file file, struct bytes line)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    if (!records_seal_path_of(folder, names[file], path) ||
        !records_seal_path_of(folder, "key.new", temporary) || !write_temporary(locked, temporary, line))
        return failed(file, "written");
    crash_at(CRASH_RECORDS_KEY_WRITTEN);
    bool is_done = rename(temporary, path) == 0 && fsync(locked) == 0;
    return is_done ? NULL : failed(file, "written");
}

/* Under the present site key. */
static const char *wrap(struct records_seal *seal, const char *folder, int locked,
                        enum records_seal_file file)
{
    struct arena *arena = arena_create("records key");
    struct bytes sealed = site_key_seal(arena, kind, (struct bytes){(const char *)seal->secret, SEALING_KEY});
    char *line = arena_printf(arena, "%s %.*s\n", site_key_mark(), (int)sealed.size, sealed.data);
    const char *error = write_line(folder, locked, file, bytes_of(line));
    arena_destroy(arena);
    if (!error)
        memcpy(seal->site, site_key_mark(), SITE_KEY_MARK);
    return error;
}

/* Writes the file again if it is there and under the former site key. */
static const char *rewrap(const char *folder, int locked, enum records_seal_file file)
{
    struct records_seal *seal;
    const char *error = records_seal_read(&seal, folder, file);
    if (!error && seal && strcmp(seal->site, site_key_mark()) != 0)
        error = wrap(seal, folder, locked, file);
    records_seal_free(seal);
    return error;
}

/* A process may have died after it had given a file its name, which the disk need not have yet. */
static const char *rewrap_both(const char *folder, int locked)
{
    const char *error = rewrap(folder, locked, RECORDS_SEAL_PRESENT);
    if (!error)
        error = rewrap(folder, locked, RECORDS_SEAL_NEXT);
    return error || fsync(locked) == 0 ? error : failed(RECORDS_SEAL_PRESENT, "written");
}

static const char *make_next(const char *folder, int locked, bool *is_there_r)
{
    struct records_seal *present, *next;
    const char *error = records_seal_read(&present, folder, RECORDS_SEAL_PRESENT);
    bool has_present = present;
    records_seal_free(present);
    if (!error && !has_present)
        error = "there is no file key: nothing is encrypted";
    if (!error)
        error = records_seal_read(&next, folder, RECORDS_SEAL_NEXT);
    if (error)
        return error;
    *is_there_r = next;
    if (!next)
        error = wrap(next = make_random(), folder, locked, RECORDS_SEAL_NEXT);
    records_seal_free(next);
    return error;
}

const char *records_seal_make_next(const char *folder, bool *is_there_r)
{
    int locked = lock_folder(folder);
    const char *error =
        locked < 0 ? failed(RECORDS_SEAL_NEXT, "written") : make_next(folder, locked, is_there_r);
    if (locked >= 0)
        close(locked);
    return error;
}

const char *records_seal_wrap(const char *folder)
{
    int locked = lock_folder(folder);
    const char *error = locked < 0 ? failed(RECORDS_SEAL_PRESENT, "written") : rewrap_both(folder, locked);
    if (locked >= 0)
        close(locked);
    return error;
}

const char *records_seal_write(struct records_seal **seal, const char *folder)
{
    if (!*site_key_mark())
        return NULL;
    if (*seal)
        return records_seal_wrap(folder);
    int locked = lock_folder(folder);
    if (locked < 0)
        return failed(RECORDS_SEAL_PRESENT, "written");
    *seal = make_random();
    const char *error = wrap(*seal, folder, locked, RECORDS_SEAL_PRESENT);
    close(locked);
    return error;
}

const char *records_seal_replace(const char *folder)
{
    char path[PATH_BYTES], next[PATH_BYTES];
    int locked = lock_folder(folder);
    bool is_done = locked >= 0 && records_seal_path_of(folder, names[RECORDS_SEAL_PRESENT], path) &&
                   records_seal_path_of(folder, names[RECORDS_SEAL_NEXT], next) && rename(next, path) == 0 &&
                   fsync(locked) == 0;
    const char *error = is_done ? NULL : failed(RECORDS_SEAL_PRESENT, "written");
    if (locked >= 0)
        close(locked);
    return error;
}

/* --- texts --- */

/* `code`: as in a place, with the mark. */
static const struct seal_keys *keys_for(struct records_seal *seal, const void *code)
{
    static const struct siphash_key spread;
    struct bytes salt = {code, RECORDS_CODE_MOST}, secret = {(const char *)seal->secret, SEALING_KEY};
    struct seal_keys *keys = &seal->keys[siphash_short(&spread, salt) % KEPT_KEYS];
    if (memcmp(keys->code, code, RECORDS_CODE_MOST) == 0)
        return keys;
    memcpy(keys->code, code, RECORDS_CODE_MOST);
    crypto_derive(salt, secret, BYTES("stampd records texts"), keys->texts, sizeof keys->texts);
    crypto_derive(salt, secret, BYTES("stampd records places"), keys->places, sizeof keys->places);
    return keys;
}

void records_seal_place(struct records_seal *seal, struct bytes key,
                        unsigned char place_r[RECORDS_PLACE_BYTES])
{
    place_r[0] |= RECORDS_SEAL_MARK;
    const struct seal_keys *keys = keys_for(seal, place_r);
    crypto_hmac((struct bytes){(const char *)keys->places, sizeof keys->places}, key,
                place_r + RECORDS_CODE_MOST);
}

void records_seal_text(struct records_seal *seal, struct bytes place, struct bytes text,
                       struct builder *sealed_r)
{
    sealed_r->size = 0;
    unsigned char *head = (unsigned char *)builder_reserve(sealed_r, HEAD + text.size + SEALING_TAG);
    unsigned char *nonce = head + HEAD - SEALING_NONCE;
    bytes_put_u64(head, LAYOUT);
    memcpy(head + NUMBER, seal->id, NUMBER);
    random_stock_take(nonce, SEALING_NONCE);
    sealing_encrypt(keys_for(seal, place.data)->texts, nonce, place, text, head + HEAD);
    sealed_r->size = HEAD + text.size + SEALING_TAG;
}

const char *records_seal_explain(enum records_seal_result result)
{
    return result == RECORDS_SEAL_OPENED ? NULL
           : result == RECORDS_SEAL_FOREIGN
               ? "a record is encrypted under another key than that in the file key"
               : "a record is damaged";
}

bool records_seal_has(const struct records_seal *seal, struct bytes sealed)
{
    return sealed.size >= HEAD && memcmp(sealed.data + NUMBER, seal->id, NUMBER) == 0;
}

enum records_seal_result records_seal_open(struct records_seal *seal, struct bytes place,
                                           struct builder *sealed, struct bytes *text_r)
{
    unsigned char *head = (unsigned char *)sealed->data, *nonce = head + HEAD - SEALING_NONCE;
    *text_r = NO_BYTES;
    if (sealed->size < HEAD + SEALING_TAG || bytes_get_u64(head) != LAYOUT)
        return RECORDS_SEAL_DAMAGED;
    if (!records_seal_has(seal, builder_bytes(sealed)))
        return RECORDS_SEAL_FOREIGN;
    struct bytes body = {sealed->data + HEAD, sealed->size - HEAD};
    if (!sealing_decrypt(keys_for(seal, place.data)->texts, nonce, place, body, head + HEAD))
        return RECORDS_SEAL_DAMAGED;
    *text_r = (struct bytes){body.data, body.size - SEALING_TAG};
    return RECORDS_SEAL_OPENED;
}
