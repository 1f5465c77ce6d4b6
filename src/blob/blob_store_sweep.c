/* blob_store_sweep: goes through the files of a database. */
#include "blob/blob_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "blob/blob_store_private.h"

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
    entry.is_leaving = !blob_store_is_staying(&status);
    if (listing->count == listing->room) {
        listing->room = listing->room ? listing->room * 2 : 64;
        listing->entries = memory_grown(listing->entries, listing->room, sizeof entry, "blob list");
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
    enum fault fault = FAULT_FIRST(blob_store_name_folder(store, database, inside, path),
                                   blob_store_walk(path, list_one, &listing));
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
    enum fault fault = FAULT_FIRST(blob_store_name_folder(store, database, inside, path),
                                   blob_store_walk(path, clear, &clearing));
    *removed_r = clearing.removed;
    return fault;
}

enum fault blob_store_clear(struct blob_store *store, struct bytes database, int64_t age_s,
                            int64_t *removed_r)
{
    return blob_store_clear_folder(store, database, "new", age_s, clear_one, removed_r);
}

enum fault blob_store_clear_former(struct blob_store *store, struct bytes database, int64_t age_s,
                                   int64_t *removed_r)
{
    return blob_store_clear_folder(store, database, "former", age_s, clear_one, removed_r);
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
    enum fault fault = FAULT_FIRST(blob_store_name_folder(store, database, "", path),
                                   walk_open(open_plain_folder(AT_FDCWD, path), path, remove_folder, NULL));
    if (!fault && rmdir(path) != 0 && errno != ENOENT)
        fault = blob_store_report("remove", path);
    return fault;
}
