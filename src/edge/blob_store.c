/* blob_store: a directory: <database>/<first byte>/<digest>, and <database>/new for what is being written.
 *
 * Every name is made here, of hexadecimal digits and a checked database.  New folders are synchronised into
 * their parent before anything in them counts.  Umask and set-group-ID bits play no part: owner, group and
 * mode are set on each descriptor. */
#include "edge/blob_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/hex.h"
#include "edge/blob_store_private.h"
#include "edge/crypto.h"
#include "edge/crypto_private.h"

enum {
    DATABASE_BYTES = 63,
    PIECE_BYTES = 256 * 1024,
    FILE_MODE = 0440, /* it never changes */
    FOLDER_MODE = 0750,
};

struct blob_upload {
    struct blob_store *store;
    char database[DATABASE_BYTES + 1];
    char path[BLOB_PATH]; /* of the unfinished file */
    int fd;
    EVP_MD_CTX *hash;
    int64_t size;
    struct blob_digest digest; /* valid once it is sealed */
    bool is_sealed;
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
                  (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-';
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

static enum fault name_file(const struct blob_store *store, struct bytes database,
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

enum fault blob_store_synchronise_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_done = fd >= 0 && fsync(fd) == 0;
    enum fault fault = is_done ? FAULT_NONE : blob_store_report("synchronise", path);
    if (fd >= 0)
        close(fd);
    return fault;
}

/* Owner, group and mode of what was just created.  What root writes belongs to the owner of the directory. */
static bool give(const struct blob_store *store, int fd, mode_t mode)
{
    struct stat status;
    if (geteuid() == 0 && stat(store->directory, &status) == 0 && fchown(fd, status.st_uid, (gid_t)-1) != 0)
        return false;
    return (store->group == BLOB_NO_GROUP || fchown(fd, (uid_t)-1, (gid_t)store->group) == 0) &&
           fchmod(fd, mode) == 0;
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
    bool is_done = fd >= 0 && give(store, fd, FOLDER_MODE) && rename(draft, path) == 0;
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
    EVP_MD_CTX_free(upload->hash);
    free(upload);
}

static int create(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static struct blob_upload *make_upload(struct blob_store *store)
{
    struct blob_upload *upload = calloc(1, sizeof *upload);
    if (!upload)
        log_fatal("out of memory blob upload");
    upload->store = store;
    upload->fd = -1;
    upload->hash = EVP_MD_CTX_new();
    crypto_must(upload->hash && EVP_DigestInit_ex(upload->hash, EVP_sha256(), NULL) == 1);
    return upload;
}

enum fault blob_store_begin(struct blob_store *store, struct bytes database, struct blob_upload **upload_r)
{
    char name[BLOB_NAME + 1], inside[sizeof name + 4];
    struct blob_upload *upload = make_upload(store);
    blob_store_make_name(name);
    snprintf(inside, sizeof inside, "new/%s", name);
    enum fault fault = blob_store_name_folder(store, database, inside, upload->path);
    if (!fault) {
        memcpy(upload->database, database.data, database.size);
        upload->fd = create(upload->path);
        if (upload->fd < 0 && errno == ENOENT && !(fault = blob_store_make_way(store, upload->path)))
            upload->fd = create(upload->path);
        if (!fault && upload->fd < 0)
            fault = blob_store_report("create", upload->path);
    }
    if (fault) {
        end_upload(upload);
        return fault;
    }
    *upload_r = upload;
    return FAULT_NONE;
}

struct blob_upload *blob_store_continue(struct blob_store *store, struct bytes database, const char *path,
                                        int fd, int64_t size)
{
    struct blob_upload *upload = make_upload(store);
    assert(database.size <= DATABASE_BYTES);
    memcpy(upload->database, database.data, database.size);
    snprintf(upload->path, sizeof upload->path, "%s", path);
    upload->fd = fd;
    upload->size = size;
    upload->is_kept = true;
    return upload;
}

enum fault blob_store_write(struct blob_upload *upload, struct bytes piece)
{
    assert(!upload->is_sealed);
    if (!bytes_write(upload->fd, piece))
        return blob_store_report("write", upload->path);
    if (!upload->is_kept)
        crypto_must(EVP_DigestUpdate(upload->hash, piece.data, piece.size) == 1);
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
        crypto_must(EVP_DigestUpdate(upload->hash, piece, (size_t)size) == 1);
        at += size;
    }
    return true;
}

enum fault blob_store_seal(struct blob_upload *upload, struct blob_digest *digest_r, int64_t *size_r)
{
    assert(!upload->is_sealed);
    if (!give(upload->store, upload->fd, FILE_MODE))
        return blob_store_report("give", upload->path);
    crash_at(CRASH_BLOB_WRITTEN);
    if (fsync(upload->fd) != 0)
        return blob_store_report("synchronise", upload->path);
    if (upload->is_kept && !digest_file(upload))
        return blob_store_report("read", upload->path);
    crypto_must(EVP_DigestFinal_ex(upload->hash, upload->digest.bytes, NULL) == 1);
    upload->is_sealed = true;
    *digest_r = upload->digest;
    *size_r = upload->size;
    crash_at(CRASH_BLOB_SEALED);
    return FAULT_NONE;
}

static enum fault publish(struct blob_upload *upload)
{
    char path[BLOB_PATH];
    struct stat status;
    enum fault fault = name_file(upload->store, bytes_of(upload->database), &upload->digest, path);
    if (fault)
        return fault;
    bool is_there = stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == upload->size;
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
    enum fault fault = name_file(store, database, digest, path);
    if (fault)
        return fault;
    if (stat(path, &status) == 0)
        *size_r = S_ISREG(status.st_mode) ? status.st_size : -1;
    else if (errno != ENOENT)
        return blob_store_report("examine", path);
    return FAULT_NONE;
}

enum fault blob_store_read(struct blob_store *store, struct bytes database, const struct blob_digest *digest,
                           bool (*take)(void *context, struct bytes piece), void *context)
{
    static char piece[PIECE_BYTES];
    char path[BLOB_PATH];
    enum fault fault = name_file(store, database, digest, path);
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
    enum fault fault = name_file(store, database, digest, path);
    return fault ? fault : remove_path(path);
}

const char *blob_store_locate(struct arena *arena, struct bytes database, const struct blob_digest *digest)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    return arena_printf(arena, "/.stampd/files/%.*s/%.2s/%s", (int)database.size, database.data, text, text);
}

/* --- sweeps --- */

int64_t blob_store_age(const struct stat *status)
{
    return (int64_t)time(NULL) - (int64_t)status->st_mtime;
}

/* Calls `found` for each entry of the folder that was just opened, and closes it; one that does not exist
 * has none. */
static enum fault walk_open(int fd, const char *path, blob_store_visitor *found, void *context)
{
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder && fd < 0)
        return errno == ENOENT ? FAULT_NONE : blob_store_report("open", path);
    if (!folder)
        log_fatal("out of memory folder");
    enum fault fault = FAULT_NONE;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            if (errno)
                fault = blob_store_report("read", path);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fault = found(dirfd(folder), entry->d_name, context);
        if (fault)
            break;
    }
    closedir(folder);
    return fault;
}

enum fault blob_store_walk(const char *path, blob_store_visitor *found, void *context)
{
    return walk_open(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path, found, context);
}

struct blob_listing {
    struct blob_entry *entries;
    size_t count, room;
    int shelf;
};

static enum fault list_one(int folder, const char *name, void *context)
{
    struct blob_listing *listing = context;
    struct blob_entry entry;
    struct stat status;
    if (!blob_store_read_digest(bytes_of(name), &entry.digest) || entry.digest.bytes[0] != listing->shelf ||
        fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        return FAULT_NONE;
    entry.size = status.st_size;
    entry.age_s = blob_store_age(&status);
    if (listing->count == listing->room) {
        listing->room = listing->room ? listing->room * 2 : 64;
        listing->entries = realloc(listing->entries, listing->room * sizeof entry);
        if (!listing->entries)
            log_fatal("out of memory blob list");
    }
    listing->entries[listing->count++] = entry;
    return FAULT_NONE;
}

enum fault blob_store_list(struct blob_store *store, struct bytes database, int shelf,
                           struct blob_entry **entries_r, size_t *count_r)
{
    struct blob_listing listing = {.shelf = shelf};
    char path[BLOB_PATH], inside[16];
    assert(shelf >= 0 && shelf < BLOB_SHELVES);
    snprintf(inside, sizeof inside, "%02x", shelf);
    enum fault fault = blob_store_name_folder(store, database, inside, path);
    if (!fault)
        fault = blob_store_walk(path, list_one, &listing);
    if (fault)
        free(listing.entries);
    *entries_r = fault ? NULL : listing.entries;
    *count_r = fault ? 0 : listing.count;
    return fault;
}

static enum fault clear_one(int folder, const char *name, void *context)
{
    struct blob_clearing *clearing = context;
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
        blob_store_age(&status) < clearing->age_s)
        return FAULT_NONE;
    if (unlinkat(folder, name, 0) == 0)
        clearing->removed++;
    else if (errno != ENOENT)
        return blob_store_report("remove", name);
    return FAULT_NONE;
}

enum fault blob_store_clear_folder(const struct blob_store *store, struct bytes database, const char *inside,
                                   int64_t age_s, blob_store_visitor *clear, int64_t *removed_r)
{
    struct blob_clearing clearing = {.age_s = age_s};
    char path[BLOB_PATH];
    enum fault fault = blob_store_name_folder(store, database, inside, path);
    if (!fault)
        fault = blob_store_walk(path, clear, &clearing);
    *removed_r = clearing.removed;
    return fault;
}

enum fault blob_store_clear(struct blob_store *store, struct bytes database, int64_t age_s,
                            int64_t *removed_r)
{
    return blob_store_clear_folder(store, database, "new", age_s, clear_one, removed_r);
}

/* Symbolic links are not followed: the caller may be root, the owner of the folder is not. */
static int open_plain_folder(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static enum fault remove_folder(int parent, const char *name, void *context UNUSED)
{
    struct blob_clearing all = {.age_s = INT64_MIN};
    enum fault fault = walk_open(open_plain_folder(parent, name), name, clear_one, &all);
    if (!fault && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        fault = blob_store_report("remove", name);
    return fault;
}

enum fault blob_store_remove_database(struct blob_store *store, struct bytes database)
{
    char path[BLOB_PATH];
    enum fault fault = blob_store_name_folder(store, database, "", path);
    if (!fault)
        fault = walk_open(open_plain_folder(AT_FDCWD, path), path, remove_folder, NULL);
    if (!fault && rmdir(path) != 0 && errno != ENOENT)
        fault = blob_store_report("remove", path);
    return fault;
}
