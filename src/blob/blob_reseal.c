/* blob_reseal: the former file gets a second name, then the new one its first. */
#include "blob/blob_reseal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/coding/hex.h"
#include "base/memory.h"
#include "blob/blob_sealed.h"
#include "blob/blob_store_private.h"

struct blob_resealing {
    struct blob_store *store;
    struct bytes database; /* of the caller */
    struct blob_digest name;
    struct blob_upload *upload;
    char former[BLOB_PATH]; /* its name as a former file; "": the directory does not have it */
    bool is_brought;        /* the directory may lose it, or not have it */
};

/* The salt is random, and no two files have the same. */
static enum fault name_former(const struct blob_store *store, struct bytes database,
                              const struct sealed_file_head *head, char path_r[BLOB_PATH])
{
    char inside[BLOB_NAME + sizeof "former/"] = "former/";
    hex_write(head->bound + SEALED_FILE_BOUND - SEALED_FILE_SALT, BLOB_NAME / 2, inside + strlen(inside));
    inside[sizeof inside - 1] = '\0';
    return blob_store_name_folder(store, database, inside, path_r);
}

/* --- writing --- */

struct resealed_copy {
    struct blob_upload *upload;
    enum fault fault;
};

static bool copy_piece(void *context, struct bytes piece)
{
    struct resealed_copy *copying = context;
    copying->fault = blob_store_write(copying->upload, piece);
    return !copying->fault;
}

static enum fault blob_reseal_copy(struct blob_resealing *resealing, const struct sealed_file_keys *keys,
                                   const struct blob_source *from)
{
    struct resealed_copy copying = {resealing->upload, FAULT_NONE};
    struct blob_digest digest;
    int64_t size;
    enum fault fault = from ? from->read(from->source, &resealing->name, copy_piece, &copying)
                            : blob_sealed_read_name(resealing->store, resealing->database, keys,
                                                    &resealing->name, copy_piece, &copying);
    if (!fault)
        fault = copying.fault;
    if (!fault)
        fault = blob_store_seal(resealing->upload, &digest, &size);
    if (fault)
        return fault;
    const struct blob_digest name = blob_sealed_name(keys, &digest);
    return memcmp(&name, &resealing->name, sizeof name) == 0
               ? FAULT_NONE
               : blob_sealed_report(SEALED_FILE_ALTERED, resealing->database, &resealing->name);
}

/* Without a head the directory does not have the file. */
static enum fault write_again(struct blob_resealing *resealing, const struct sealed_file_keys *keys,
                              const struct sealed_file_head *head, const struct blob_source *from)
{
    enum fault fault =
        head ? name_former(resealing->store, resealing->database, head, resealing->former) : FAULT_NONE;
    if (!fault)
        fault = blob_store_begin(resealing->store, resealing->database, keys, &resealing->upload);
    return fault ? fault : blob_reseal_copy(resealing, keys, from);
}

static enum fault begin_blob_reseal(struct blob_resealing present, const struct sealed_file_keys *keys,
                                    const struct sealed_file_head *head, const struct blob_source *from,
                                    struct blob_resealing **resealing_r)
{
    struct blob_resealing *resealing = memory_grown(NULL, 1, sizeof *resealing, "blob reseal");
    *resealing = present;
    enum fault fault = write_again(resealing, keys, head, from);
    if (fault)
        blob_reseal_abandon(resealing);
    else
        *resealing_r = resealing;
    return fault;
}

enum fault blob_reseal_begin(struct blob_store *store, struct bytes database,
                             const struct sealed_file_keys *keys, const struct blob_digest *name,
                             struct blob_resealing **resealing_r)
{
    struct sealed_file_head head;
    *resealing_r = NULL;
    enum fault fault = blob_sealed_begin(store, database, keys, name, &head);
    if (fault == FAULT_STALE)
        return blob_sealed_report(SEALED_FILE_UNKNOWN, database, name);
    if (fault || sealed_file_key_id(&head) == keys->keys[keys->count - 1].id)
        return fault;
    const struct blob_resealing present = {.store = store, .database = database, .name = *name};
    fault = begin_blob_reseal(present, keys, &head, NULL, resealing_r);
    explicit_bzero(&head, sizeof head);
    return fault;
}

enum fault blob_reseal_bring(struct blob_store *store, struct bytes database,
                             const struct sealed_file_keys *keys, const struct blob_digest *name,
                             const struct blob_source *from, struct blob_resealing **resealing_r)
{
    const struct blob_resealing present = {
        .store = store, .database = database, .name = *name, .is_brought = true};
    struct sealed_file_head head;
    *resealing_r = NULL;
    enum fault fault = blob_sealed_begin(store, database, keys, name, &head);
    if (fault == FAULT_STALE)
        return blob_sealed_report(SEALED_FILE_UNKNOWN, database, name);
    if (fault && fault != FAULT_NFILE)
        return fault;
    fault = begin_blob_reseal(present, keys, fault ? NULL : &head, from, resealing_r);
    explicit_bzero(&head, sizeof head);
    return fault;
}

/* The time of the file becomes that at which it was replaced. */
static enum fault keep_former(struct blob_resealing *resealing)
{
    char path[BLOB_PATH];
    if (!*resealing->former)
        return FAULT_NONE;
    enum fault fault =
        FAULT_FIRST(blob_store_name_file(resealing->store, resealing->database, &resealing->name, path),
                    blob_store_make_way(resealing->store, resealing->former));
    if (fault)
        return fault;
    /* The time first: the cleaner goes by it as soon as the file has its second name. */
    if (utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0 &&
        (link(path, resealing->former) == 0 || errno == EEXIST))
        return FAULT_NONE;
    if (errno != ENOENT)
        return blob_store_report("keep", path);
    return resealing->is_brought ? FAULT_NONE : FAULT_NFILE;
}

enum fault blob_reseal_finish(struct blob_resealing *resealing)
{
    enum fault fault = keep_former(resealing);
    if (!fault) {
        crash_at(CRASH_BLOB_FORMER);
        fault = blob_store_replace(resealing->upload);
        resealing->upload = NULL;
    }
    blob_reseal_abandon(resealing);
    return fault;
}

void blob_reseal_abandon(struct blob_resealing *resealing)
{
    blob_store_abandon(resealing->upload);
    free(resealing);
}

/* --- reading --- */

static bool blob_reseal_is_of(int fd, const struct sealed_file_head *head)
{
    unsigned char bound[SEALED_FILE_BOUND];
    return bytes_read_at(fd, bound, sizeof bound, 0) == (ssize_t)sizeof bound &&
           memcmp(bound, head->bound, sizeof bound) == 0;
}

enum fault blob_reseal_open(struct blob_store *store, struct bytes database, const struct blob_digest *name,
                            const struct sealed_file_head *head, int *fd_r)
{
    char path[BLOB_PATH];
    enum fault fault = blob_sealed_open(store, database, name, fd_r);
    if (fault || blob_reseal_is_of(*fd_r, head))
        return fault;
    fault = name_former(store, database, head, path);
    int former = fault ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (former < 0) /* the file that is there was altered: its reader finds that out */
        return fault || errno == ENOENT ? fault : blob_store_report("open", path);
    close(*fd_r);
    *fd_r = former;
    return FAULT_NONE;
}
