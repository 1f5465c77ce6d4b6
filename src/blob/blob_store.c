/* blob_store: a directory: <database>/<first byte>/<digest>, and <database>/new for what is being written.
 *
 * Every name is made here, of hexadecimal digits and a checked database.  New folders are synchronised into
 * their parent before anything in them counts.  Umask and set-group-ID bits play no part: owner, group and
 * mode are set on each descriptor. */
#include "blob/blob_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "base/memory.h"
#include "blob/blob_store_private.h"
#include "edge/crypto/crypto.h"
#include "edge/crypto/digest.h"
#include "seal/sealed_frames.h"

enum {
    DATABASE_BYTES = 63,
    PIECE_BYTES = 256 * 1024,
    FILE_MODE = 0440,       /* it never changes */
    LEAVING_MODE = S_ISVTX, /* beside it: the file is leaving */
    FOLDER_MODE = 0750,
};

struct blob_upload {
    struct blob_store *store;
    char database[DATABASE_BYTES + 1];
    char path[BLOB_PATH]; /* of the unfinished file */
    int fd;
    struct digest *digest;
    int64_t size;
    struct blob_digest name; /* of the file, valid once it is sealed; in clear it is the digest */
    int64_t stored;          /* bytes on the disk */
    bool is_sealed;
    struct sealing_keys *keys; /* copies; NULL: it is written in clear */
    size_t key_count;
    struct sealed_file_writer *writer; /* NULL: in clear, or in frames */
    char part[BLOB_NAME + 1];          /* of one that continues: which it is */
    bool is_kept; /* it continues the file of an unfinished upload, which stays until it is finished */
};

struct blob_store *blob_store_open(const char *directory, int64_t group)
{
    struct blob_store *store = calloc(1, sizeof *store);
    char *copy = strdup(directory);
    if (!store || !copy)
        log_fatal("out of memory blob store");
    *store = (struct blob_store){.directory = copy, .group = group};
    return store;
}

void blob_store_close(struct blob_store *store)
{
    free(store->directory);
    free(store);
}

/* --- names --- */

void blob_store_write_digest(const struct blob_digest *digest, char text_r[BLOB_HEX + 1])
{
    hex_write(digest->bytes, BLOB_DIGEST, text_r);
    text_r[BLOB_HEX] = '\0';
}

struct bytes blob_store_digits(struct arena *arena, const struct blob_digest *digest)
{
    char *text = ARENA_ROOM(arena, char, BLOB_HEX + 1);
    blob_store_write_digest(digest, text);
    return (struct bytes){text, BLOB_HEX};
}

bool blob_store_read_digest(struct bytes text, struct blob_digest *digest_r)
{
    if (text.size != BLOB_HEX)
        return false;
    for (size_t i = 0; i < BLOB_HEX; i++)
        if (!memchr(HEX_DIGITS, text.data[i], 16))
            return false;
    for (size_t i = 0; i < BLOB_DIGEST; i++)
        digest_r->bytes[i] = (unsigned char)hex_byte(text.data + 2 * i);
    return true;
}

/* Logs the cause, which errno has, and returns the fault. */
enum fault blob_store_report(const char *what, const char *path)
{
    bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    log_often(LOG_LEVEL_ERROR, what, "attachments: cannot %s %s: %m", what, path);
    return is_full ? FAULT_XFULL : FAULT_XSTORE;
}

/* A name that is no database's cannot lead out of the directory. */
static bool is_database(struct bytes database)
{
    for (size_t i = 0; i < database.size; i++) {
        char byte = database.data[i];
        bool is = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                  (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-' || byte == '@';
        if (!is)
            return false;
    }
    return database.size && database.size <= DATABASE_BYTES;
}

/* The folder of a database, or `inside` it. */
enum fault blob_store_name_folder(const struct blob_store *store, struct bytes database, const char *inside,
                                  char path_r[BLOB_PATH])
{
    if (!is_database(database)) {
        log_error("attachments: the name of a database cannot be one of a folder");
        return FAULT_XSTORE;
    }
    int size = snprintf(path_r, BLOB_PATH, "%s/%.*s%s%s", store->directory, (int)database.size, database.data,
                        *inside ? "/" : "", inside);
    if (size < BLOB_PATH - BLOB_HEX - 4) /* room for a name in it */
        return FAULT_NONE;
    log_error("attachments: blob_directory is too long");
    return FAULT_XSTORE;
}

enum fault blob_store_name_file(const struct blob_store *store, struct bytes database,
                                const struct blob_digest *digest, char path_r[BLOB_PATH])
{
    char text[BLOB_HEX + 1], inside[BLOB_HEX + 4];
    blob_store_write_digest(digest, text);
    snprintf(inside, sizeof inside, "%.2s/%s", text, text);
    return blob_store_name_folder(store, database, inside, path_r);
}

void blob_store_make_name(char name_r[BLOB_NAME + 1])
{
    unsigned char random[BLOB_NAME / 2];
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, name_r);
    name_r[BLOB_NAME] = '\0';
}

/* --- folders --- */

static enum fault blob_store_synchronise_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_done = fd >= 0 && fsync(fd) == 0;
    enum fault fault = is_done ? FAULT_NONE : blob_store_report("synchronise", path);
    if (fd >= 0)
        close(fd);
    return fault;
}

/* Owner, group and mode of what was just created.  What root writes belongs to the owner of the directory. */
static bool blob_store_give(const struct blob_store *store, int fd, mode_t mode)
{
    struct stat status;
    if (geteuid() == 0 && stat(store->directory, &status) == 0 && fchown(fd, status.st_uid, (gid_t)-1) != 0)
        return false;
    return (store->group == BLOB_NO_GROUP || fchown(fd, (uid_t)-1, (gid_t)store->group) == 0) &&
           fchmod(fd, mode) == 0;
}

/* Not in the place of an empty folder: who has just found that one, to rename a file into it, would be told
 * that there is none.  Where the file system cannot promise that, it happens. */
static bool appear(const char *draft, const char *path)
{
    return renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ||
           (errno == EINVAL && rename(draft, path) == 0);
}

/* It appears with its group and mode, since a process that died in between would leave one that nginx cannot
 * enter. */
static enum fault make_folder(const struct blob_store *store, const char *path)
{
    char draft[BLOB_PATH + 32];
    snprintf(draft, sizeof draft, "%s~%lld", path, (long long)getpid());
    if (mkdir(draft, 0700) != 0 && errno != EEXIST)
        return blob_store_report("create", path);
    int fd = open(draft, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_done = fd >= 0 && blob_store_give(store, fd, FOLDER_MODE) && appear(draft, path);
    bool is_there = !is_done && (errno == EEXIST || errno == ENOTEMPTY); /* another process was faster */
    enum fault fault = is_done || is_there ? FAULT_NONE : blob_store_report("create", path);
    if (fd >= 0)
        close(fd);
    if (!is_done)
        rmdir(draft);
    return fault;
}

/* Creates what is missing of the way to a file, durably.  Another process may do the same. */
enum fault blob_store_make_way(const struct blob_store *store, const char *path)
{
    char folder[BLOB_PATH], parent[BLOB_PATH];
    size_t root = strlen(store->directory);
    struct stat status;
    enum fault fault = FAULT_NONE;
    for (size_t end = root; path[end] && !fault; end++) {
        if (path[end] != '/' && end != root)
            continue;
        snprintf(folder, sizeof folder, "%.*s", (int)end, path);
        if (stat(folder, &status) == 0)
            continue;
        fault = make_folder(store, folder);
        snprintf(parent, sizeof parent, "%s", folder);
        char *slash = strrchr(parent, '/');
        if (!fault && slash && slash != parent) {
            *slash = '\0';
            fault = blob_store_synchronise_folder(parent);
        }
    }
    return fault;
}

/* --- one file is written --- */

static void end_upload(struct blob_upload *upload)
{
    if (upload->fd >= 0)
        close(upload->fd);
    digest_destroy(upload->digest);
    sealed_file_destroy(upload->writer);
    if (upload->keys)
        explicit_bzero(upload->keys, upload->key_count * sizeof *upload->keys);
    free(upload->keys);
    free(upload);
}

static int blob_store_create(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Keys of the session may be read again before the upload ends: it has its own. */
static void copy_keys(struct blob_upload *upload, const struct sealed_file_keys *keys)
{
    if (!keys || !keys->count)
        return;
    upload->keys = memory_grown(NULL, keys->count, sizeof *upload->keys, "blob upload");
    memcpy(upload->keys, keys->keys, keys->count * sizeof *upload->keys);
    upload->key_count = keys->count;
}

static struct sealed_file_keys keys_of(const struct blob_upload *upload)
{
    return (struct sealed_file_keys){upload->keys, upload->key_count};
}

static struct blob_upload *make_upload(struct blob_store *store, const struct sealed_file_keys *keys)
{
    struct blob_upload *upload = memory_zeroed(1, sizeof *upload, "blob upload");
    upload->store = store;
    upload->fd = -1;
    upload->digest = digest_create();
    copy_keys(upload, keys);
    return upload;
}

enum fault blob_store_begin(struct blob_store *store, struct bytes database,
                            const struct sealed_file_keys *keys, struct blob_upload **upload_r)
{
    char name[BLOB_NAME + 1], inside[sizeof name + 4];
    struct blob_upload *upload = make_upload(store, keys);
    blob_store_make_name(name);
    snprintf(inside, sizeof inside, "new/%s", name);
    enum fault fault = blob_store_name_folder(store, database, inside, upload->path);
    if (!fault) {
        memcpy(upload->database, database.data, database.size);
        upload->fd = blob_store_create(upload->path);
        if (upload->fd < 0 && errno == ENOENT && !(fault = blob_store_make_way(store, upload->path)))
            upload->fd = blob_store_create(upload->path);
        if (!fault && upload->fd < 0)
            fault = blob_store_report("create", upload->path);
    }
    if (fault) {
        end_upload(upload);
        return fault;
    }
    const struct sealed_file_keys own = keys_of(upload);
    if (own.count)
        upload->writer = sealed_file_create(upload->fd, &own);
    *upload_r = upload;
    return FAULT_NONE;
}

struct blob_upload *blob_store_continue(struct blob_store *store, struct bytes database, const char *path,
                                        int fd, int64_t size, struct bytes part,
                                        const struct sealed_file_keys *keys)
{
    struct blob_upload *upload = make_upload(store, keys);
    assert(part.size < sizeof upload->part);
    memcpy(upload->part, part.data, part.size);
    assert(database.size <= DATABASE_BYTES);
    memcpy(upload->database, database.data, database.size);
    snprintf(upload->path, sizeof upload->path, "%s", path);
    upload->fd = fd;
    upload->size = size;
    upload->is_kept = true;
    return upload;
}

static bool write_piece(struct blob_upload *upload, struct bytes piece)
{
    const struct sealed_file_keys keys = keys_of(upload);
    if (upload->writer)
        return sealed_file_write(upload->writer, piece);
    return keys.count ? sealed_frames_write(upload->fd, &keys, bytes_of(upload->part), upload->size, piece)
                      : bytes_write(upload->fd, piece);
}

enum fault blob_store_write(struct blob_upload *upload, struct bytes piece)
{
    assert(!upload->is_sealed);
    if (!write_piece(upload, piece))
        return blob_store_report("write", upload->path);
    if (!upload->is_kept)
        digest_add(upload->digest, piece);
    upload->size += (int64_t)piece.size;
    return FAULT_NONE;
}

enum fault blob_store_suspend(struct blob_upload *upload)
{
    assert(upload->is_kept && !upload->is_sealed);
    enum fault fault = fsync(upload->fd) == 0 ? FAULT_NONE : blob_store_report("synchronise", upload->path);
    end_upload(upload);
    return fault;
}

/* The bytes have come with several requests, so they are read again. */
static bool digest_file(struct blob_upload *upload)
{
    static char piece[PIECE_BYTES];
    for (off_t at = 0; at < upload->size;) {
        ssize_t size = pread(upload->fd, piece, sizeof piece, at);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        digest_add(upload->digest, (struct bytes){piece, (size_t)size});
        at += size;
    }
    return true;
}

/* The frames of the parts become a file under a key of its own; they stay until the upload is complete. */
struct joining {
    struct blob_upload *whole;
    enum fault fault;
};

static bool take_frame(void *context, struct bytes piece)
{
    struct joining *joining = context;
    joining->fault = blob_store_write(joining->whole, piece);
    return !joining->fault;
}

static enum fault join_frames(struct blob_upload *upload)
{
    struct joining joining = {0};
    const struct sealed_file_keys keys = keys_of(upload);
    enum fault fault = blob_store_begin(upload->store, bytes_of(upload->database), &keys, &joining.whole);
    if (fault)
        return fault;
    enum sealed_file_state state =
        sealed_frames_read(upload->fd, &keys, bytes_of(upload->part), upload->size, take_frame, &joining);
    fault = joining.fault;
    if (!fault && state != SEALED_FILE_FINE) {
        fault = state == SEALED_FILE_FAILED ? blob_store_report("read", upload->path) : FAULT_BCONTENT;
        if (fault == FAULT_BCONTENT)
            log_error("attachments: an upload in parts was altered: %s", upload->path);
    }
    if (fault) {
        blob_store_abandon(joining.whole);
        return fault;
    }
    struct blob_upload parts = *upload;
    *upload = *joining.whole;
    *joining.whole = parts;
    end_upload(joining.whole);
    return FAULT_NONE;
}

static enum fault seal_in_clear(struct blob_upload *upload)
{
    if (fsync(upload->fd) != 0)
        return blob_store_report("synchronise", upload->path);
    if (upload->is_kept && !digest_file(upload))
        return blob_store_report("read", upload->path);
    digest_end(upload->digest, upload->name.bytes);
    upload->stored = upload->size;
    return FAULT_NONE;
}

/* Its digest is known, so is its name, and the header is written. */
static enum fault seal_encrypted(struct blob_upload *upload, struct blob_digest *digest_r)
{
    const struct sealed_file_keys keys = keys_of(upload);
    digest_end(upload->digest, digest_r->bytes);
    sealed_file_name(&keys, digest_r->bytes, upload->name.bytes);
    upload->stored = sealed_file_size(upload->size);
    if (!sealed_file_finish(upload->writer, upload->name.bytes))
        return blob_store_report("write", upload->path);
    return fsync(upload->fd) == 0 ? FAULT_NONE : blob_store_report("synchronise", upload->path);
}

enum fault blob_store_seal(struct blob_upload *upload, struct blob_digest *digest_r, int64_t *size_r)
{
    assert(!upload->is_sealed);
    enum fault fault = upload->is_kept && upload->keys ? join_frames(upload) : FAULT_NONE;
    if (fault)
        return fault;
    if (!blob_store_give(upload->store, upload->fd, FILE_MODE))
        return blob_store_report("give", upload->path);
    crash_at(CRASH_BLOB_WRITTEN);
    fault = upload->writer ? seal_encrypted(upload, digest_r) : seal_in_clear(upload);
    if (fault)
        return fault;
    upload->is_sealed = true;
    if (!upload->writer)
        *digest_r = upload->name;
    *size_r = upload->size;
    crash_at(CRASH_BLOB_SEALED);
    return FAULT_NONE;
}

enum fault blob_store_seal_as(struct blob_upload *upload, const struct blob_digest *name)
{
    assert(!upload->is_sealed && !upload->keys && !upload->is_kept);
    if (!blob_store_give(upload->store, upload->fd, FILE_MODE))
        return blob_store_report("give", upload->path);
    enum fault fault = seal_in_clear(upload);
    upload->name = *name;
    upload->is_sealed = !fault;
    return fault;
}

bool blob_store_is_staying(const struct stat *status)
{
    return S_ISREG(status->st_mode) && !(status->st_mode & LEAVING_MODE);
}

static enum fault publish(struct blob_upload *upload)
{
    char path[BLOB_PATH];
    struct stat status;
    enum fault fault = blob_store_name_file(upload->store, bytes_of(upload->database), &upload->name, path);
    if (fault)
        return fault;
    bool is_there =
        stat(path, &status) == 0 && blob_store_is_staying(&status) && status.st_size == upload->stored;
    if (is_there && unlink(upload->path) != 0)
        return blob_store_report("remove", upload->path);
    if (!is_there && rename(upload->path, path) != 0) {
        fault = errno == ENOENT ? blob_store_make_way(upload->store, path)
                                : blob_store_report("rename", upload->path);
        if (!fault && rename(upload->path, path) != 0)
            fault = blob_store_report("rename", upload->path);
    }
    crash_at(CRASH_BLOB_RENAMED);
    if (fault)
        return fault;
    *strrchr(path, '/') = '\0'; /* also when it is there: another process may have renamed it just now */
    return blob_store_synchronise_folder(path);
}

enum fault blob_store_replace(struct blob_upload *upload)
{
    char path[BLOB_PATH];
    assert(upload->is_sealed);
    enum fault fault = blob_store_name_file(upload->store, bytes_of(upload->database), &upload->name, path);
    if (!fault && rename(upload->path, path) != 0)
        fault = blob_store_report("rename", upload->path);
    if (fault) {
        blob_store_abandon(upload);
        return fault;
    }
    crash_at(CRASH_BLOB_REPLACED);
    *strrchr(path, '/') = '\0';
    end_upload(upload);
    return blob_store_synchronise_folder(path);
}

enum fault blob_store_finish(struct blob_upload *upload)
{
    assert(upload->is_sealed);
    enum fault fault = publish(upload);
    if (fault) {
        blob_store_abandon(upload);
        return fault;
    }
    crash_at(CRASH_BLOB_PUBLISHED);
    end_upload(upload);
    return FAULT_NONE;
}

void blob_store_abandon(struct blob_upload *upload)
{
    if (!upload)
        return;
    if (!upload->is_kept && unlink(upload->path) != 0 && errno != ENOENT)
        (void)blob_store_report("remove", upload->path);
    end_upload(upload);
}

/* --- files --- */

enum fault blob_store_measure(struct blob_store *store, struct bytes database,
                              const struct blob_digest *digest, int64_t *size_r)
{
    char path[BLOB_PATH];
    struct stat status;
    *size_r = -1;
    enum fault fault = blob_store_name_file(store, database, digest, path);
    if (fault)
        return fault;
    if (stat(path, &status) == 0)
        *size_r = blob_store_is_staying(&status) ? status.st_size : -1;
    else if (errno != ENOENT)
        return blob_store_report("examine", path);
    return FAULT_NONE;
}

enum fault blob_store_read(struct blob_store *store, struct bytes database, const struct blob_digest *digest,
                           bool (*take)(void *context, struct bytes piece), void *context)
{
    static char piece[PIECE_BYTES];
    char path[BLOB_PATH];
    enum fault fault = blob_store_name_file(store, database, digest, path);
    int fd = fault ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fault)
        return fault;
    if (fd < 0)
        return errno == ENOENT ? FAULT_NFILE : blob_store_report("open", path);
    for (bool is_wanted = true; is_wanted && !fault;) {
        ssize_t size = read(fd, piece, sizeof piece);
        if (size > 0)
            is_wanted = take(context, (struct bytes){piece, (size_t)size});
        else if (size == 0)
            is_wanted = false;
        else if (errno != EINTR)
            fault = blob_store_report("read", path);
    }
    close(fd);
    return fault;
}

static enum fault remove_path(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT ? FAULT_NONE : blob_store_report("remove", path);
}

enum fault blob_store_remove(struct blob_store *store, struct bytes database,
                             const struct blob_digest *digest)
{
    char path[BLOB_PATH];
    return FAULT_FIRST(blob_store_name_file(store, database, digest, path), remove_path(path));
}

/* The time of the file becomes that of the mark. */
enum fault blob_store_leave(struct blob_store *store, struct bytes database, const struct blob_digest *digest)
{
    char path[BLOB_PATH];
    enum fault fault = blob_store_name_file(store, database, digest, path);
    if (fault)
        return fault;
    bool is_done = utimensat(AT_FDCWD, path, NULL, 0) == 0 && chmod(path, FILE_MODE | LEAVING_MODE) == 0;
    return is_done || errno == ENOENT ? FAULT_NONE : blob_store_report("mark", path);
}

const char *blob_store_locate(struct arena *arena, struct bytes database, const struct blob_digest *digest)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    return arena_printf(arena, "/.stampd/files/%.*s/%.2s/%s", (int)database.size, database.data, text, text);
}
