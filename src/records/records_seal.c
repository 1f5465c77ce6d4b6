/* records_seal: the file `key`, a line of the site key's mark and the sealed key; and texts: the layout and
 * the id of the key, eight bytes each, the nonce, the encrypted text and its tag. */
#include "records/records_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/siphash.h"
#include "edge/disk_log.h"
#include "edge/random_stock.h"
#include "edge/site_key.h"

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
    bool is_former;                   /* the file is under the former site key */
    struct seal_keys keys[KEPT_KEYS]; /* by a hash of the code: places are computed under the lock */
};

static char problem[300];

/* --- the file --- */

static bool path_of(const char *folder, const char *name, char path_r[PATH_BYTES])
{
    int size = snprintf(path_r, PATH_BYTES, "%s/%s", folder, name);
    errno = ENAMETOOLONG;
    return size > 0 && size < PATH_BYTES;
}

static const char *failed(const char *verb)
{
    snprintf(problem, sizeof problem, "its file key cannot be %s: %s", verb, strerror(errno));
    return problem;
}

static struct records_seal *make(const void *secret)
{
    unsigned char digest[CRYPTO_SHA256];
    struct records_seal *seal = calloc(1, sizeof *seal);
    if (!seal)
        log_fatal("out of memory opening the records");
    memcpy(seal->secret, secret, SEALING_KEY);
    crypto_hmac((struct bytes){secret, SEALING_KEY}, BYTES("stampd records id"), digest);
    memcpy(seal->id, digest, NUMBER);
    return seal;
}

void records_seal_free(struct records_seal *seal)
{
    if (seal)
        explicit_bzero(seal, sizeof *seal);
    free(seal);
}

/* False: errno; ENOENT: there is no file. */
static bool read_line(const char *folder, char line_r[LINE_MOST + 1])
{
    char path[PATH_BYTES];
    int fd = path_of(folder, "key", path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t size = fd < 0 ? -1 : read(fd, line_r, LINE_MOST);
    int error = errno;
    if (fd >= 0)
        close(fd);
    line_r[size > 0 ? size : 0] = 0;
    errno = error;
    return size >= 0;
}

static const char *open_line(struct arena *arena, char *line, struct records_seal **seal_r)
{
    struct bytes rest = bytes_of(line), mark = bytes_cut(&rest, ' '), sealed = bytes_cut(&rest, '\n'), secret;
    if (mark.size != SITE_KEY_MARK || !sealing_key_id(sealed))
        return "its file key is damaged";
    if (!*site_key_mark())
        return "its file key is encrypted under a site key, and there is none here: see site_key_file";
    if (!site_key_open(arena, kind, sealed, &secret) || secret.size != SEALING_KEY) {
        snprintf(problem, sizeof problem,
                 "its file key is damaged, or encrypted under another site key (%.*s) than that of "
                 "site_key_file (%s) or site_key_former_file",
                 (int)mark.size, mark.data, site_key_mark());
        return problem;
    }
    *seal_r = make(secret.data);
    (*seal_r)->is_former = !bytes_equal(mark, bytes_of(site_key_mark()));
    explicit_bzero((char *)(uintptr_t)secret.data, secret.size);
    return NULL;
}

const char *records_seal_read(struct records_seal **seal_r, const char *folder)
{
    char line[LINE_MOST + 1];
    *seal_r = NULL;
    if (!read_line(folder, line))
        return errno == ENOENT ? NULL : failed("read");
    struct arena *arena = arena_create("records key");
    const char *error = open_line(arena, line, seal_r);
    arena_destroy(arena);
    return error;
}

static const char *write_line(const char *folder, struct bytes line)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    if (!path_of(folder, "key", path) || !path_of(folder, "key.new", temporary))
        return failed("written");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_done = fd >= 0 && bytes_write(fd, line) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    is_done = is_done && rename(temporary, path) == 0 && disk_log_sync_folder(folder);
    return is_done ? NULL : failed("written");
}

const char *records_seal_write(struct records_seal **seal, const char *folder)
{
    unsigned char secret[SEALING_KEY];
    if (!*site_key_mark() || (*seal && !(*seal)->is_former))
        return NULL;
    if (!*seal) {
        crypto_random(secret, sizeof secret);
        *seal = make(secret);
        explicit_bzero(secret, sizeof secret);
    }
    struct arena *arena = arena_create("records key");
    struct bytes sealed =
        site_key_seal(arena, kind, (struct bytes){(const char *)(*seal)->secret, SEALING_KEY});
    char *line = arena_printf(arena, "%s %.*s\n", site_key_mark(), (int)sealed.size, sealed.data);
    const char *error = write_line(folder, bytes_of(line));
    arena_destroy(arena);
    (*seal)->is_former = error != NULL;
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

enum records_seal_result records_seal_open(struct records_seal *seal, struct bytes place,
                                           struct builder *sealed, struct bytes *text_r)
{
    unsigned char *head = (unsigned char *)sealed->data, *nonce = head + HEAD - SEALING_NONCE;
    *text_r = NO_BYTES;
    if (sealed->size < HEAD + SEALING_TAG || bytes_get_u64(head) != LAYOUT)
        return RECORDS_SEAL_DAMAGED;
    if (memcmp(head + NUMBER, seal->id, NUMBER) != 0)
        return RECORDS_SEAL_FOREIGN;
    struct bytes body = {sealed->data + HEAD, sealed->size - HEAD};
    if (!sealing_decrypt(keys_for(seal, place.data)->texts, nonce, place, body, head + HEAD))
        return RECORDS_SEAL_DAMAGED;
    *text_r = (struct bytes){body.data, body.size - SEALING_TAG};
    return RECORDS_SEAL_OPENED;
}
