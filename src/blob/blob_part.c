/* blob_part: <database>/part/<id> is the record, <id>.data the file.
 *
 * A record is a head of fixed size, smaller than what a disk writes at once, and the caller's note.  It
 * exists before its file and is removed after it, so no file is without a record.  The lock of a record is
 * that of its file descriptor, which ends with the process. */
#include "blob/blob_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/log.h"
#include "blob/blob_sealed.h"
#include "blob/blob_store_private.h"

enum { RECORD_MODE = 0600 };

static const char MAGIC[8] = {'s', 't', 'a', 'm', 'p', 'p', '0', '5'};

struct part_record {
    char magic[sizeof MAGIC];
    int64_t size, offset, created_s;
    int64_t reserved; /* of the bytes of its database */
    int64_t stored;   /* bytes of the file up to the offset: more than that when they are encrypted */
    uint32_t note_size;
    uint8_t has_owner, has_digest, is_complete, has_address;
    char owner[BLOB_PART_OWNER], address[BLOB_PART_OWNER];
    struct blob_digest digest; /* the name of the file */
};

struct blob_part {
    struct blob_store *store;
    struct bytes database;
    char path[BLOB_PATH], data[BLOB_PATH];
    int fd;
    struct part_record record;
    struct blob_part_state state;
};

/* --- names --- */

static bool is_id(struct bytes id)
{
    for (size_t i = 0; i < id.size; i++)
        if (!memchr("0123456789abcdef", id.data[i], 16))
            return false;
    return id.size == BLOB_PART_ID;
}

static enum fault name_record(struct blob_store *store, struct bytes database, struct bytes id,
                              char path_r[BLOB_PATH])
{
    char inside[BLOB_PART_ID + 8];
    if (!is_id(id))
        return FAULT_NUPLOAD;
    snprintf(inside, sizeof inside, "part/%.*s", (int)id.size, id.data);
    return blob_store_name_folder(store, database, inside, path_r);
}

static void name_data(const char *path, char data_r[BLOB_PATH])
{
    size_t size = strlen(path);
    assert(size + sizeof ".data" <= BLOB_PATH); /* blob_store_name_folder leaves room */
    memcpy(data_r, path, size);
    memcpy(data_r + size, ".data", sizeof ".data");
}

/* --- records --- */

/* False: it is no record, or not yet. */
static bool read_record(int fd, struct part_record *record_r)
{
    return pread(fd, record_r, sizeof *record_r, 0) == (ssize_t)sizeof *record_r &&
           memcmp(record_r->magic, MAGIC, sizeof MAGIC) == 0 && record_r->note_size <= BLOB_PART_NOTE &&
           record_r->offset >= 0 && record_r->offset <= record_r->size;
}

static bool read_state(int fd, const struct part_record *record, struct arena *arena,
                       struct blob_part_state *state_r)
{
    struct stat status;
    char *note = arena_alloc(arena, record->note_size + 1);
    if (fstat(fd, &status) != 0 ||
        pread(fd, note, record->note_size, sizeof *record) != (ssize_t)record->note_size)
        return false;
    *state_r = (struct blob_part_state){
        .size = record->size,
        .offset = record->offset,
        .created_s = record->created_s,
        .changed_s = (int64_t)status.st_mtime,
        .owner = record->has_owner ? bytes_of(arena_copy(arena, record->owner, BLOB_PART_OWNER)) : NO_BYTES,
        .address =
            record->has_address ? bytes_of(arena_copy(arena, record->address, BLOB_PART_OWNER)) : NO_BYTES,
        .note = {note, record->note_size},
    };
    return true;
}

static enum fault write_record(struct blob_part *part)
{
    bool is_done = pwrite(part->fd, &part->record, sizeof part->record, 0) == (ssize_t)sizeof part->record &&
                   fsync(part->fd) == 0;
    return is_done ? FAULT_NONE : blob_store_report("write", part->path);
}

/* --- creating --- */

struct census {
    const struct blob_part_state *state;
    const char *except; /* an id that is not counted; NULL: none */
    int64_t count, bytes, complete;
    struct share {
        int64_t count, bytes, reserved;
    } owner, address;
    bool has_older;                /* than the one that is not counted */
    int64_t created_s;             /* of that one */
    char oldest[BLOB_PART_ID + 1]; /* of those that are complete */
    time_t oldest_s;
};

static void count_share(struct share *share, struct bytes wanted, const char *name,
                        const struct part_record *record)
{
    if (!wanted.data || memcmp(name, wanted.data, BLOB_PART_OWNER) != 0)
        return;
    share->count++;
    share->bytes += record->size;
    share->reserved += record->reserved;
}

static enum fault count_one(int folder, const char *name, void *context)
{
    struct census *census = context;
    struct part_record record;
    struct stat status;
    if (!is_id(bytes_of(name)) || (census->except && strcmp(census->except, name) == 0))
        return FAULT_NONE;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_record = fd >= 0 && read_record(fd, &record) && fstat(fd, &status) == 0;
    if (fd >= 0)
        close(fd);
    if (!is_record)
        return FAULT_NONE;
    if (record.is_complete) {
        if (!census->complete++ || status.st_mtime < census->oldest_s) {
            memcpy(census->oldest, name, sizeof census->oldest);
            census->oldest_s = status.st_mtime;
        }
        return FAULT_NONE;
    }
    census->count++;
    census->bytes += record.reserved;
    census->has_older = census->has_older || !census->except || record.created_s < census->created_s ||
                        (record.created_s == census->created_s && strcmp(name, census->except) < 0);
    count_share(&census->owner, record.has_owner ? census->state->owner : NO_BYTES, record.owner, &record);
    count_share(&census->address, record.has_address ? census->state->address : NO_BYTES, record.address,
                &record);
    return FAULT_NONE;
}

/* For what ends at this offset. */
static int64_t reserved_until(int64_t size, int64_t offset)
{
    return size - offset > BLOB_PART_CHUNK ? offset + BLOB_PART_CHUNK : size;
}

/* Is there room for `reserved` bytes of one upload?  What an owner has is bounded by what it leaves, so that
 * any number of owners together leaves something.  The oldest upload goes on: not all wait for each other. */
static bool leaves_room(const struct census *census, int64_t reserved, const struct blob_part_limits *limits)
{
    const struct share *shares[] = {census->state->owner.data ? &census->owner : NULL,
                                    census->state->address.data ? &census->address : NULL};
    int64_t left = limits->most_bytes - census->bytes - reserved;
    if (left < 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(shares) && census->has_older; i++)
        if (shares[i] && shares[i]->reserved + reserved > left)
            return false;
    return true;
}

static bool fits(const struct census *census, const struct blob_part_limits *limits,
                 enum blob_part_limit *limit_r)
{
    int64_t size = census->state->size;
    const struct share *shares[] = {census->state->owner.data ? &census->owner : NULL,
                                    census->state->address.data ? &census->address : NULL};
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        if (!shares[i])
            continue;
        *limit_r = BLOB_PART_OWNER_MOST;
        if (shares[i]->count >= limits->owner_most)
            return false;
        *limit_r = BLOB_PART_OWNER_BYTES;
        if (size > limits->owner_most_bytes - shares[i]->bytes)
            return false;
    }
    if (census->count >= limits->most)
        *limit_r = BLOB_PART_MOST;
    else if (!leaves_room(census, reserved_until(size, 0), limits))
        *limit_r = BLOB_PART_BYTES;
    else
        return true;
    return false;
}

/* Opens the folder and locks it against others that create. */
static enum fault lock_folder(struct blob_store *store, const char *path, int *folder_r)
{
    char folder[BLOB_PATH];
    enum fault fault = blob_store_make_way(store, path);
    *folder_r = -1;
    if (fault)
        return fault;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    *folder_r = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*folder_r >= 0 && flock(*folder_r, LOCK_EX) == 0)
        return FAULT_NONE;
    fault = blob_store_report("lock", folder);
    if (*folder_r >= 0)
        close(*folder_r);
    return fault;
}

static enum fault count_all(int folder, const struct blob_part_limits *limits, const char *path,
                            struct census *census)
{
    char folder_path[BLOB_PATH];
    snprintf(folder_path, sizeof folder_path, "%s", path);
    *strrchr(folder_path, '/') = '\0';
    enum fault fault = blob_store_walk(folder_path, count_one, census);
    /* What is complete is kept for clients that have lost the answer, as long as there is room. */
    if (!fault && census->complete >= limits->most && unlinkat(folder, census->oldest, 0) != 0 &&
        errno != ENOENT)
        fault = blob_store_report("remove", path);
    return fault;
}

static enum fault write_new(const char *path, const struct blob_part_state *state)
{
    struct part_record record = {.size = state->size,
                                 .created_s = (int64_t)time(NULL),
                                 .reserved = reserved_until(state->size, 0),
                                 .note_size = (uint32_t)state->note.size};
    memcpy(record.magic, MAGIC, sizeof MAGIC);
    record.has_owner = state->owner.data != NULL;
    if (record.has_owner)
        memcpy(record.owner, state->owner.data, BLOB_PART_OWNER);
    record.has_address = state->address.data != NULL;
    if (record.has_address)
        memcpy(record.address, state->address.data, BLOB_PART_OWNER);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, RECORD_MODE);
    bool is_done = fd >= 0 && bytes_write(fd, (struct bytes){(const char *)&record, sizeof record}) &&
                   bytes_write(fd, state->note) && fsync(fd) == 0;
    enum fault fault = is_done ? FAULT_NONE : blob_store_report("create", path);
    if (fd >= 0)
        close(fd);
    if (fault)
        unlink(path);
    return fault;
}

void blob_part_draw_id(char id_r[BLOB_PART_ID + 1])
{
    blob_store_make_name(id_r);
}

enum fault blob_part_create(struct blob_store *store, struct bytes database, const char *id,
                            const struct blob_part_state *state, const struct blob_part_limits *limits,
                            enum blob_part_limit *limit_r)
{
    char path[BLOB_PATH];
    int folder;
    struct census census = {.state = state};
    assert(state->note.size <= BLOB_PART_NOTE &&
           (!state->owner.data || state->owner.size == BLOB_PART_OWNER) &&
           (!state->address.data || state->address.size == BLOB_PART_OWNER));
    enum fault fault =
        FAULT_FIRST(name_record(store, database, bytes_of(id), path), lock_folder(store, path, &folder));
    if (fault)
        return fault;
    fault = count_all(folder, limits, path, &census);
    if (!fault && !fits(&census, limits, limit_r))
        fault = FAULT_XBUSY;
    if (!fault)
        fault = write_new(path, state);
    if (!fault && fsync(folder) != 0)
        fault = blob_store_report("synchronise", path);
    close(folder);
    crash_at(CRASH_PART_CREATED);
    return fault;
}

/* --- held by one request --- */

static enum fault open_record(const char *path, int mode, int *fd_r)
{
    *fd_r = open(path, mode | O_CLOEXEC | O_NOFOLLOW);
    if (*fd_r >= 0)
        return FAULT_NONE;
    return errno == ENOENT ? FAULT_NUPLOAD : blob_store_report("open", path);
}

enum fault blob_part_look(struct blob_store *store, struct bytes database, struct bytes id,
                          struct arena *arena, struct blob_part_state *state_r)
{
    char path[BLOB_PATH];
    int fd;
    struct part_record record;
    enum fault fault = FAULT_FIRST(name_record(store, database, id, path), open_record(path, O_RDONLY, &fd));
    if (fault)
        return fault;
    if (!read_record(fd, &record) || !read_state(fd, &record, arena, state_r))
        fault = FAULT_NUPLOAD;
    close(fd);
    return fault;
}

/* A record that was removed before the lock was had is none. */
static enum fault blob_part_hold(int fd, const char *path)
{
    struct stat status;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? FAULT_XLOCKED : blob_store_report("lock", path);
    return fstat(fd, &status) == 0 && status.st_nlink ? FAULT_NONE : FAULT_NUPLOAD;
}

enum fault blob_part_open(struct blob_store *store, struct bytes database, struct bytes id,
                          struct arena *arena, struct blob_part **part_r)
{
    struct blob_part *part = ARENA_NEW(arena, struct blob_part);
    *part = (struct blob_part){.store = store, .database = database, .fd = -1};
    enum fault fault =
        FAULT_FIRST(name_record(store, database, id, part->path), open_record(part->path, O_RDWR, &part->fd),
                    blob_part_hold(part->fd, part->path));
    if (!fault &&
        (!read_record(part->fd, &part->record) || !read_state(part->fd, &part->record, arena, &part->state)))
        fault = FAULT_NUPLOAD;
    if (fault) {
        blob_part_close(part);
        return fault;
    }
    name_data(part->path, part->data);
    *part_r = part;
    return FAULT_NONE;
}

const struct blob_part_state *blob_part_state(const struct blob_part *part)
{
    return &part->state;
}

/* Is there room for `size` more bytes?  With `is_to_be_kept` it is reserved. */
static enum fault find_room(struct blob_part *part, int64_t size, const struct blob_part_limits *limits,
                            bool is_to_be_kept)
{
    int folder;
    struct census census = {
        .state = &part->state, .except = strrchr(part->path, '/') + 1, .created_s = part->record.created_s};
    int64_t end =
        size < part->record.size - part->record.offset ? part->record.offset + size : part->record.size;
    if (end <= part->record.reserved)
        return FAULT_NONE;
    enum fault fault = lock_folder(part->store, part->path, &folder);
    if (fault)
        return fault;
    fault = count_all(folder, limits, part->path, &census);
    int64_t reserved = reserved_until(part->record.size, end);
    if (!fault && !leaves_room(&census, reserved, limits))
        fault = FAULT_XBUSY;
    if (!fault && is_to_be_kept) {
        part->record.reserved = reserved;
        fault = write_record(part);
    }
    close(folder);
    return fault;
}

enum fault blob_part_reserve(struct blob_part *part, int64_t size, const struct blob_part_limits *limits)
{
    return find_room(part, size, limits, true);
}

enum fault blob_part_may(struct blob_store *store, struct bytes database, struct bytes id,
                         struct arena *arena, int64_t size, const struct blob_part_limits *limits)
{
    struct blob_part part = {.store = store, .database = database};
    int fd;
    enum fault fault =
        FAULT_FIRST(name_record(store, database, id, part.path), open_record(part.path, O_RDONLY, &fd));
    if (fault)
        return fault;
    bool is_whole = read_record(fd, &part.record) && read_state(fd, &part.record, arena, &part.state);
    close(fd);
    return is_whole ? find_room(&part, size, limits, false) : FAULT_NUPLOAD;
}

enum fault blob_part_may_begin(struct blob_store *store, struct bytes database,
                               const struct blob_part_state *state, const struct blob_part_limits *limits,
                               enum blob_part_limit *limit_r)
{
    struct census census = {.state = state};
    char path[BLOB_PATH];
    enum fault fault = FAULT_FIRST(blob_store_name_folder(store, database, "part", path),
                                   blob_store_walk(path, count_one, &census));
    return !fault && !fits(&census, limits, limit_r) ? FAULT_XBUSY : fault;
}

struct restoring {
    struct blob_upload *upload;
    int64_t left;
    enum fault fault;
};

static bool restore_piece(void *context, struct bytes piece)
{
    struct restoring *restoring = context;
    if ((int64_t)piece.size > restoring->left)
        piece.size = (size_t)restoring->left;
    restoring->fault = blob_store_write(restoring->upload, piece);
    restoring->left -= (int64_t)piece.size;
    return !restoring->fault && restoring->left;
}

/* Up to where the file is durable: more bytes than the offset when it is encrypted. */
static enum fault note_stored(struct blob_part *part)
{
    struct stat status;
    if (stat(part->data, &status) != 0)
        return blob_store_report("examine", part->data);
    part->record.stored = status.st_size;
    return write_record(part);
}

static struct blob_upload *open_upload(struct blob_part *part, int fd, int64_t size,
                                       const struct sealed_file_keys *keys)
{
    return blob_store_continue(part->store, part->database, part->data, fd, size,
                               bytes_of(strrchr(part->path, '/') + 1), keys);
}

/* The file has its digest already, but no document has it: the bytes before the last part are copied into the
 * empty file. */
static enum fault restore(struct blob_part *part, int fd, const struct sealed_file_keys *keys)
{
    struct restoring restoring = {.left = part->record.offset};
    int own = part->record.has_digest ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (!part->record.has_digest)
        return FAULT_NUPLOAD;
    if (own < 0)
        return blob_store_report("open", part->data);
    restoring.upload = open_upload(part, own, 0, keys);
    enum fault fault = blob_sealed_read_name(part->store, part->database, keys, &part->record.digest,
                                             restore_piece, &restoring);
    if (fault == FAULT_NFILE)
        fault = FAULT_NUPLOAD; /* the cleaner was faster */
    fault = fault ? fault : restoring.fault;
    if (fault) {
        blob_store_abandon(restoring.upload);
        return fault;
    }
    return FAULT_FIRST(blob_store_suspend(restoring.upload), note_stored(part));
}

enum fault blob_part_continue(struct blob_part *part, const struct sealed_file_keys *keys,
                              struct blob_upload **upload_r)
{
    struct stat status;
    enum fault fault = FAULT_NONE;
    if (chmod(part->data, RECORD_MODE) != 0 && errno != ENOENT) /* it may have been made ready */
        return blob_store_report("open", part->data);
    int fd = open(part->data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, RECORD_MODE);
    if (fd < 0)
        return blob_store_report("open", part->data);
    if (fstat(fd, &status) != 0)
        fault = blob_store_report("examine", part->data);
    else if (status.st_size < part->record.stored)
        fault = ftruncate(fd, 0) == 0 ? restore(part, fd, keys) : blob_store_report("cut", part->data);
    if (!fault && (ftruncate(fd, part->record.stored) != 0 || lseek(fd, 0, SEEK_END) < 0))
        fault = blob_store_report("cut", part->data);
    if (fault) {
        close(fd);
        return fault;
    }
    *upload_r = open_upload(part, fd, part->record.offset, keys);
    return FAULT_NONE;
}

enum fault blob_part_advance(struct blob_part *part, int64_t offset)
{
    crash_at(CRASH_PART_DURABLE);
    part->record.offset = part->state.offset = offset;
    enum fault fault = note_stored(part);
    crash_at(CRASH_PART_ADVANCED);
    return fault;
}

enum fault blob_part_note_digest(struct blob_part *part, const struct sealed_file_keys *keys,
                                 const struct blob_digest *digest)
{
    part->record.digest = blob_sealed_name(keys, digest);
    part->record.has_digest = 1;
    return write_record(part);
}

enum fault blob_part_complete(struct blob_part *part)
{
    part->record.offset = part->state.offset = part->record.size;
    part->record.is_complete = 1;
    enum fault fault = write_record(part);
    if (!fault && unlink(part->data) != 0 && errno != ENOENT)
        fault = blob_store_report("remove", part->data);
    return fault;
}

enum fault blob_part_remove(struct blob_part *part)
{
    if (unlink(part->data) != 0 && errno != ENOENT)
        return blob_store_report("remove", part->data);
    return unlink(part->path) == 0 || errno == ENOENT ? FAULT_NONE : blob_store_report("remove", part->path);
}

void blob_part_close(struct blob_part *part)
{
    if (part && part->fd >= 0)
        close(part->fd);
    if (part)
        part->fd = -1;
}

/* --- sweeps --- */

/* Parts now and then do not keep an upload without an end. */
static bool blob_part_is_over(int fd, int64_t age_s)
{
    struct part_record record;
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    if (blob_store_age(&status) >= age_s)
        return true;
    if (!read_record(fd, &record))
        return false;
    bool is_empty = !record.offset && !record.is_complete;
    return (is_empty && blob_store_age(&status) >= BLOB_PART_EMPTY_S) ||
           (int64_t)time(NULL) - record.created_s >= BLOB_PART_AGES * age_s;
}

static enum fault clear_one(int folder, const char *name, void *context)
{
    struct blob_clearing *clearing = context;
    char data[BLOB_PART_ID + sizeof ".data"];
    enum fault fault = FAULT_NONE;
    if (!is_id(bytes_of(name)))
        return FAULT_NONE;
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool is_old = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && blob_part_is_over(fd, clearing->age_s);
    snprintf(data, sizeof data, "%s.data", name);
    if (is_old && ((unlinkat(folder, data, 0) != 0 && errno != ENOENT) || unlinkat(folder, name, 0) != 0))
        fault = errno == ENOENT ? FAULT_NONE : blob_store_report("remove", name);
    else if (is_old)
        clearing->removed++;
    if (fd >= 0)
        close(fd);
    return fault;
}

enum fault blob_part_clear(struct blob_store *store, struct bytes database, int64_t age_s, int64_t *removed_r)
{
    return blob_store_clear_folder(store, database, "part", age_s, clear_one, removed_r);
}
