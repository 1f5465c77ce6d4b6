/* stored_files: the directory first; then the row of the file names its object. */
#include "control/files/stored_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "control/files/files_place.h"
#include "control/message.h"
#include "blob/blob_sealed.h"
#include "seal/sealed_feed.h"

enum { TIMEOUT_S = 60 };

struct open_store {
    struct object_store *store;
    char *name;
    struct open_store *next;
};

struct stored_files {
    struct control *control;
    const char *database;
    struct blob_store *blobs;
    struct sealed_file_keys keys; /* none: files are in clear */
    struct pg *pg;                /* of `control`; NULL: not connected yet */
    struct arena *arena;          /* of a file */
    struct open_store *stores;    /* all that were used: files of several may come in turn */
    struct object_store *store;   /* the one of these that was used last */
};

struct stored_object {
    const char *store, *name; /* NULL: no store has it */
    int64_t size;
};

struct stored_files *stored_files_open(struct control *control, const char *database)
{
    struct stored_files *files = memory_zeroed(1, sizeof *files, "stored files");
    *files = (struct stored_files){
        .control = control,
        .database = database,
        .blobs = blob_store_open(control->settings.blob_directory, BLOB_NO_GROUP),
        .arena = arena_create("stored file"),
    };
    return files;
}

bool stored_files_connect(struct stored_files *files)
{
    if (files->pg)
        return true;
    if (!control_connect(files->control, files->database, &files->pg))
        return true;
    files->pg = NULL;
    return message_refuse("%s: the database cannot be read", files->database);
}

void stored_files_close(struct stored_files *files)
{
    blob_store_close(files->blobs);
    for (struct open_store *next, *open = files->stores; open; open = next) {
        next = open->next;
        object_store_close(open->store);
        free(open->name);
        free(open);
    }
    arena_destroy(files->arena);
    free(files);
}

void stored_files_set_keys(struct stored_files *files, const struct data_keys *keys)
{
    files->keys = data_keys_of_files(keys);
}

struct blob_store *stored_files_directory(const struct stored_files *files)
{
    return files->blobs;
}

/* --- objects --- */

static bool stored_files_open_store(struct stored_files *files, const char *name)
{
    for (const struct open_store *open = files->stores; open; open = open->next)
        if (strcmp(open->name, name) == 0) {
            files->store = open->store;
            return true;
        }
    struct object_store_place *place = ARENA_NEW(files->control->arena, struct object_store_place);
    if (!files_place_find(files->control, name, place))
        return false;
    struct open_store *open = calloc(1, sizeof *open);
    char *copy = strdup(name);
    if (!open || !copy)
        log_fatal("out of memory stored files");
    place->timeout_s = TIMEOUT_S;
    *open = (struct open_store){object_store_open(place), copy, files->stores};
    files->stores = open;
    files->store = open->store;
    return true;
}

struct object_store *stored_files_store(struct stored_files *files, const char *name)
{
    return stored_files_open_store(files, name) ? files->store : NULL;
}

static enum fault find_object(struct stored_files *files, const struct blob_digest *digest,
                              struct stored_object *object_r)
{
    struct control own = *files->control;
    struct pg_result *row;
    own.arena = files->arena;
    arena_reset(files->arena);
    *object_r = (struct stored_object){.size = -1};
    if (!stored_files_connect(files))
        return FAULT_XSTORE;
    const struct pg_params *params =
        PG_PARAMS(files->arena, PG_TEXT(blob_store_digits(files->arena, digest)));
    if (!control_query(&own, files->pg, "looking up a file",
                       "select store, object, size from stampd.blob where digest = decode($1, 'hex')"
                       " and store is not null",
                       params, &row))
        return FAULT_XSTORE;
    if (!pg_rows(row))
        return FAULT_NONE;
    struct bytes store = pg_get_text(row, 0, 0), name = pg_get_text(row, 0, 1);
    *object_r = (struct stored_object){arena_copy(files->arena, store.data, store.size),
                                       arena_copy(files->arena, name.data, name.size), pg_get_i64(row, 0, 2)};
    return stored_files_open_store(files, object_r->store) ? FAULT_NONE : FAULT_XSTORE;
}

static enum fault stored_files_report(const struct stored_files *files, const struct stored_object *object)
{
    message_print("%s: %s: %s", object->store, object->name, object_store_problem(files->store));
    return FAULT_XSTORE;
}

/* --- files --- */

enum fault stored_files_measure_name(struct stored_files *files, const struct blob_digest *name,
                                     int64_t *size_r)
{
    struct stored_object object = {.size = -1};
    enum fault fault = FAULT_NONE;
    for (int tries = 0; tries < 2; tries++) { /* one that has just moved is in the directory again */
        fault = blob_store_measure(files->blobs, bytes_of(files->database), name, size_r);
        if (fault || *size_r >= 0)
            return fault;
        fault = find_object(files, name, &object);
        if (fault || object.store)
            break;
    }
    if (!fault && object.store && !object_store_measure(files->store, object.name, size_r))
        return stored_files_report(files, &object);
    return fault;
}

enum fault stored_files_measure(struct stored_files *files, const struct blob_digest *digest, int64_t *size_r)
{
    const struct blob_digest name = blob_sealed_name(&files->keys, digest);
    enum fault fault = stored_files_measure_name(files, &name, size_r);
    if (!fault && *size_r >= 0)
        *size_r = blob_sealed_clear_size(&files->keys, *size_r);
    return fault;
}

static bool feed_piece(void *context, struct bytes piece)
{
    return sealed_feed_add(context, piece);
}

static enum fault stored_files_read_object(struct stored_files *files, const struct blob_digest *name,
                                           const struct stored_object *object,
                                           bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_feed *feed = NULL;
    enum sealed_file_state state = SEALED_FILE_FINE;
    if (files->keys.count)
        feed = sealed_feed_create(&files->keys, name->bytes, object->size, take, context);
    bool is_read = object_store_read(files->store, object->name, object->size, feed ? feed_piece : take,
                                     feed ? feed : context);
    if (feed) {
        state = sealed_feed_end(feed);
        sealed_feed_destroy(feed);
    }
    if (!is_read)
        return stored_files_report(files, object);
    return state == SEALED_FILE_FINE ? FAULT_NONE
                                     : blob_sealed_report(state, bytes_of(files->database), name);
}

enum fault stored_files_read_name(struct stored_files *files, const struct blob_digest *name,
                                  bool (*take)(void *context, struct bytes piece), void *context)
{
    struct stored_object object;
    const struct bytes database = bytes_of(files->database);
    enum fault fault = blob_sealed_read_name(files->blobs, database, &files->keys, name, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    fault = find_object(files, name, &object);
    if (!fault && !object.store)
        return blob_sealed_read_name(files->blobs, database, &files->keys, name, take, context);
    return fault ? fault : stored_files_read_object(files, name, &object, take, context);
}

enum fault stored_files_read(struct stored_files *files, const struct blob_digest *digest,
                             bool (*take)(void *context, struct bytes piece), void *context)
{
    const struct blob_digest name = blob_sealed_name(&files->keys, digest);
    return stored_files_read_name(files, &name, take, context);
}

/* --- bytes --- */

/* Of a file: all of it, or its header only. */
static enum fault read_stored(struct stored_files *files, const struct blob_digest *name, bool is_header,
                              bool (*take)(void *context, struct bytes piece), void *context)
{
    struct stored_object object;
    const struct bytes database = bytes_of(files->database);
    enum fault fault = blob_store_read(files->blobs, database, name, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    fault = find_object(files, name, &object);
    if (!fault && !object.store) /* it has just moved to the directory, or is nowhere */
        return blob_store_read(files->blobs, database, name, take, context);
    if (fault)
        return fault;
    bool is_read = is_header ? object_store_read_part(files->store, object.name, 0, SEALED_FILE_HEADER,
                                                      SEALED_FILE_HEADER, take, context)
                             : object_store_read(files->store, object.name, object.size, take, context);
    return is_read ? FAULT_NONE : stored_files_report(files, &object);
}

enum fault stored_files_read_bytes(struct stored_files *files, const struct blob_digest *name,
                                   bool (*take)(void *context, struct bytes piece), void *context)
{
    return read_stored(files, name, false, take, context);
}

struct stored_header {
    unsigned char *bytes;
    size_t size;
};

static bool take_header(void *context, struct bytes piece)
{
    struct stored_header *header = context;
    size_t taken =
        piece.size < SEALED_FILE_HEADER - header->size ? piece.size : SEALED_FILE_HEADER - header->size;
    memcpy(header->bytes + header->size, piece.data, taken);
    header->size += taken;
    return header->size < SEALED_FILE_HEADER;
}

enum fault stored_files_read_header(struct stored_files *files, const struct blob_digest *name,
                                    unsigned char header_r[SEALED_FILE_HEADER])
{
    struct stored_header header = {header_r, 0};
    memset(header_r, 0, SEALED_FILE_HEADER);
    return read_stored(files, name, true, take_header, &header);
}

/* --- all objects --- */

void stored_files_remove_objects(struct control *control, const char *database)
{
    struct pg_result *rows;
    struct stored_files *files = stored_files_open(control, database);
    int left = 0;
    if (control_connect(control, database, &files->pg) == FAULT_NONE &&
        control_query(control, files->pg, database,
                      "select store, object from stampd.blob where store is not null union all"
                      " select store, object from stampd.blob_left order by 1",
                      NULL, &rows))
        for (int row = 0; row < pg_rows(rows); row++) {
            struct bytes store = pg_get_text(rows, row, 0), name = pg_get_text(rows, row, 1);
            arena_reset(files->arena);
            const struct stored_object object = {arena_copy(files->arena, store.data, store.size),
                                                 arena_copy(files->arena, name.data, name.size), 0};
            if (!stored_files_open_store(files, object.store) ||
                !object_store_remove(files->store, object.name)) {
                if (files->store && !left)
                    (void)stored_files_report(files, &object);
                left++;
                break; /* a store that is away would be waited for again */
            }
        }
    if (left)
        message_print("%s: objects whose names begin with %s/ are left in the object store", database,
                      database);
    stored_files_close(files);
}
