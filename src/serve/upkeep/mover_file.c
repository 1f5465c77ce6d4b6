/* mover_file: bytes pass in pieces; whatever a store returns is compared with the digest. */
#include "serve/upkeep/mover_file.h"

#include <string.h>

#include "base/crash.h"
#include "base/log.h"
#include "blob/blob_check.h"

static enum moving mover_file_report(const struct moved_file *file, enum moving moving, const char *what,
                                     const char *problem)
{
    char sha[BLOB_HEX + 1];
    blob_store_write_digest(&file->digest, sha);
    log_often(LOG_LEVEL_ERROR, what, "attachments: %s store=%s database=%.*s sha256=%s: %s", what,
              file->store_name, (int)file->database.size, file->database.data, sha, problem);
    return moving;
}

static enum moving report_store(const struct moved_file *file, const char *what)
{
    return mover_file_report(file, MOVING_AWAY, what, object_store_problem(file->store));
}

/* --- to the store --- */

struct sending {
    struct object_upload *upload;
    struct blob_check *check;
    bool is_taken;
};

static bool mover_file_send_piece(void *context, struct bytes piece)
{
    struct sending *sending = context;
    blob_check_add(sending->check, piece);
    sending->is_taken = object_store_write(sending->upload, piece);
    return sending->is_taken;
}

static enum moving write_object(const struct moved_file *file, struct moved_head *head_r)
{
    struct sending sending = {object_store_begin(file->store, file->object, file->size),
                              blob_check_begin(&file->keys, &file->digest, file->size), true};
    enum fault fault =
        blob_store_read(file->blobs, file->database, &file->digest, mover_file_send_piece, &sending);
    enum sealed_file_state state = blob_check_end(sending.check, head_r->bytes);
    if (!fault && sending.is_taken && state == SEALED_FILE_FINE)
        return object_store_finish(sending.upload) ? MOVING_DONE
                                                   : report_store(file, "cannot write an object");
    object_store_abandon(sending.upload);
    if (!sending.is_taken)
        return report_store(file, "cannot write an object");
    if (!fault && state == SEALED_FILE_UNKNOWN)
        return mover_file_report(file, MOVING_LOCAL, "a file waits for the next round",
                                 "its data key is new");
    return fault && fault != FAULT_NFILE ? MOVING_LOCAL
                                         : mover_file_report(file, MOVING_WRONG, "a file is damaged",
                                                             fault ? "it is missing" : "its bytes differ");
}

static bool check_piece(void *context, struct bytes piece)
{
    blob_check_add(context, piece);
    return true;
}

/* A store that loses or alters what it has confirmed is found here, while the directory has the file.  The
 * same header and what it authenticates are the same bytes. */
static enum moving read_back(const struct moved_file *file, const struct moved_head *head)
{
    int64_t size;
    struct moved_head present = {{0}};
    if (!object_store_measure(file->store, file->object, &size))
        return report_store(file, "cannot read an object back");
    if (size != file->size)
        return mover_file_report(file, MOVING_AWAY, "cannot read an object back", "it has another size");
    struct blob_check *check = blob_check_begin(&file->keys, &file->digest, file->size);
    bool is_read = object_store_read(file->store, file->object, size, check_piece, check);
    bool is_right = blob_check_end(check, present.bytes) == SEALED_FILE_FINE &&
                    memcmp(&present, head, sizeof present) == 0;
    if (!is_read)
        return report_store(file, "cannot read an object back");
    return is_right
               ? MOVING_DONE
               : mover_file_report(file, MOVING_AWAY, "cannot read an object back", "it has other bytes");
}

enum moving mover_file_send(const struct moved_file *file, struct moved_head *head_r)
{
    *head_r = (struct moved_head){{0}};
    enum moving moving = write_object(file, head_r);
    crash_at(CRASH_MOVER_WRITTEN);
    return moving ? moving : read_back(file, head_r);
}

/* --- from the store --- */

struct bringing {
    struct blob_upload *upload;
    struct blob_check *check;
    enum fault fault;
};

static bool bring_piece(void *context, struct bytes piece)
{
    struct bringing *bringing = context;
    blob_check_add(bringing->check, piece);
    bringing->fault = blob_store_write(bringing->upload, piece);
    return !bringing->fault;
}

static enum moving mover_file_receive(const struct moved_file *file, struct bringing *bringing)
{
    bool is_read = object_store_read(file->store, file->object, file->size, bring_piece, bringing);
    bool is_right = blob_check_end(bringing->check, NULL) == SEALED_FILE_FINE;
    if (!is_read)
        return report_store(file, "cannot read an object");
    if (bringing->fault)
        return MOVING_LOCAL;
    if (!is_right)
        return mover_file_report(file, MOVING_WRONG, "an object is damaged", "its bytes differ");
    return blob_store_seal_as(bringing->upload, &file->digest) ? MOVING_LOCAL : MOVING_DONE;
}

static enum moving bring(const struct moved_file *file)
{
    struct bringing bringing = {.fault = FAULT_NONE};
    if (blob_store_begin(file->blobs, file->database, NULL, &bringing.upload))
        return MOVING_LOCAL;
    bringing.check = blob_check_begin(&file->keys, &file->digest, file->size);
    enum moving moving = mover_file_receive(file, &bringing);
    if (!moving)
        return blob_store_finish(bringing.upload) ? MOVING_LOCAL : MOVING_DONE;
    blob_store_abandon(bringing.upload);
    return moving;
}

enum moving mover_file_bring(const struct moved_file *file)
{
    int64_t size;
    if (blob_store_measure(file->blobs, file->database, &file->digest, &size))
        return MOVING_LOCAL;
    return size == file->size ? MOVING_DONE : bring(file);
}
