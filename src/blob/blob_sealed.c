/* blob_sealed: file by file, chunk by chunk. */
#include "blob/blob_sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "blob/blob_store_private.h"

struct blob_digest blob_sealed_name(const struct sealed_file_keys *keys, const struct blob_digest *digest)
{
    struct blob_digest name = *digest;
    if (keys && keys->count)
        sealed_file_name(keys, digest->bytes, name.bytes);
    return name;
}

struct bytes blob_sealed_digits(struct arena *arena, const struct sealed_file_keys *keys,
                                const struct blob_digest *digest)
{
    const struct blob_digest name = blob_sealed_name(keys, digest);
    return blob_store_digits(arena, &name);
}

int64_t blob_sealed_size(const struct sealed_file_keys *keys, int64_t size)
{
    return keys && keys->count ? sealed_file_size(size) : size;
}

int64_t blob_sealed_clear_size(const struct sealed_file_keys *keys, int64_t stored)
{
    return keys && keys->count ? sealed_file_clear_size(stored) : stored;
}

enum fault blob_sealed_report(enum sealed_file_state state, struct bytes database,
                              const struct blob_digest *name)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(name, text);
    if (state == SEALED_FILE_FAILED)
        return blob_store_report("read", text);
    log_often(LOG_LEVEL_ERROR, text, "attachments: a file %s database=%.*s name=%s",
              state == SEALED_FILE_UNKNOWN ? "is encrypted under a data key that is not there"
                                           : "was altered or cut off, or is another one",
              (int)database.size, database.data, text);
    return FAULT_BCONTENT;
}

enum fault blob_sealed_open(struct blob_store *store, struct bytes database, const struct blob_digest *name,
                            int *fd_r)
{
    char path[BLOB_PATH];
    *fd_r = -1;
    enum fault fault = blob_store_name_file(store, database, name, path);
    if (fault)
        return fault;
    *fd_r = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*fd_r >= 0)
        return FAULT_NONE;
    return errno == ENOENT ? FAULT_NFILE : blob_store_report("open", path);
}

enum fault blob_sealed_begin(struct blob_store *store, struct bytes database,
                             const struct sealed_file_keys *keys, const struct blob_digest *name,
                             struct sealed_file_head *head_r)
{
    int fd;
    enum fault fault = blob_sealed_open(store, database, name, &fd);
    if (fault)
        return fault;
    enum sealed_file_state state = sealed_file_begin(fd, keys, name->bytes, head_r);
    if (state == SEALED_FILE_UNKNOWN)
        fault = FAULT_STALE;
    else if (state != SEALED_FILE_FINE)
        fault = blob_sealed_report(state, database, name);
    close(fd);
    return fault;
}

static enum sealed_file_state blob_sealed_read_all(int fd, const struct sealed_file_head *head,
                                                   bool (*take)(void *context, struct bytes piece),
                                                   void *context)
{
    struct sealed_file_reader *reader = sealed_file_open(fd, head);
    enum sealed_file_state state = SEALED_FILE_FINE;
    struct bytes piece;
    bool is_wanted = true;
    for (int64_t at = 0; is_wanted && (state = sealed_file_read(reader, at, &piece)) == SEALED_FILE_FINE;) {
        if (!piece.size)
            break;
        is_wanted = take(context, piece);
        at += (int64_t)piece.size;
    }
    sealed_file_close(reader);
    return state;
}

enum fault blob_sealed_read_name(struct blob_store *store, struct bytes database,
                                 const struct sealed_file_keys *keys, const struct blob_digest *name,
                                 bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_file_head head;
    int fd;
    if (!keys || !keys->count)
        return blob_store_read(store, database, name, take, context);
    enum fault fault = blob_sealed_open(store, database, name, &fd);
    if (fault)
        return fault;
    enum sealed_file_state state = sealed_file_begin(fd, keys, name->bytes, &head);
    if (state == SEALED_FILE_FINE)
        state = blob_sealed_read_all(fd, &head, take, context);
    if (state != SEALED_FILE_FINE)
        fault = blob_sealed_report(state, database, name);
    explicit_bzero(&head, sizeof head);
    close(fd);
    return fault;
}

enum fault blob_sealed_read(struct blob_store *store, struct bytes database,
                            const struct sealed_file_keys *keys, const struct blob_digest *digest,
                            bool (*take)(void *context, struct bytes piece), void *context)
{
    const struct blob_digest name = blob_sealed_name(keys, digest);
    return blob_sealed_read_name(store, database, keys, &name, take, context);
}
