/* attachment_bytes: the directory first; then the row of the file names its object; then the directory again,
 * into which it may just have moved. */
#include "operation/attachments/attachment_bytes.h"

#include "base/log.h"
#include "blob/blob_sealed.h"
#include "blob/object_stores.h"
#include "seal/sealed_feed.h"
#include "store/blobs/store_blobs.h"

enum { TIMEOUT_S = 30 };

/* Keys last as long as the session, which any statement may find dead. */
static enum fault attachment_bytes_read_file(struct attempt *attempt, const struct attachment *attachment,
                                             bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_file_keys keys;
    enum fault fault =
        store_blobs_renew_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    return fault ? fault
                 : blob_sealed_read(attempt->worker_context->blobs, attempt->call->database, &keys,
                                    &attachment->digest, take, context);
}

static bool feed_piece(void *context, struct bytes piece)
{
    return sealed_feed_add(context, piece);
}

static enum fault attachment_bytes_read_object(struct attempt *attempt, const struct attachment *attachment,
                                               struct object_store *store, const char *name,
                                               bool (*take)(void *context, struct bytes piece), void *context)
{
    struct sealed_file_keys keys;
    struct sealed_feed *feed = NULL;
    enum sealed_file_state state = SEALED_FILE_FINE;
    enum fault fault =
        store_blobs_renew_keys(documents_store(attempt->worker_context->documents), attempt->ns, &keys);
    if (fault)
        return fault;
    const int64_t size = blob_sealed_size(&keys, attachment->size);
    const struct blob_digest stored = blob_sealed_name(&keys, &attachment->digest);
    if (keys.count)
        feed = sealed_feed_create(&keys, stored.bytes, size, take, context);
    bool is_read =
        object_store_read(store, name, size, feed ? feed_piece : take, feed ? (void *)feed : context);
    if (feed) {
        state = sealed_feed_end(feed);
        sealed_feed_destroy(feed);
    }
    if (!is_read) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: %s: %s", name, object_store_problem(store));
        return FAULT_XSTORE;
    }
    return state == SEALED_FILE_FINE ? FAULT_NONE
                                     : blob_sealed_report(state, attempt->call->database, &stored);
}

static enum fault read_from_store(struct attempt *attempt, const struct attachment *attachment,
                                  const struct blob_object *object,
                                  bool (*take)(void *context, struct bytes piece), void *context)
{
    const struct object_stores *stores = attempt->worker_context->object_stores;
    const struct object_store_place *place;
    char problem[400] = "there are no object stores";
    if (!stores || !object_stores_find(stores, object->store, &place, problem, sizeof problem)) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: a file is in an object store: %s", problem);
        return FAULT_XSTORE;
    }
    struct object_store_place own = *place;
    own.timeout_s = TIMEOUT_S;
    struct object_store *store = object_store_open(&own);
    enum fault fault = attachment_bytes_read_object(attempt, attachment, store, object->name, take, context);
    object_store_close(store);
    return fault;
}

enum fault attachment_bytes_read(struct attempt *attempt, const struct attachment *attachment,
                                 bool (*take)(void *context, struct bytes piece), void *context)
{
    struct blob_object object;
    enum fault fault = attachment_bytes_read_file(attempt, attachment, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    fault = store_blobs_find_object(documents_store(attempt->worker_context->documents), attempt->ns,
                                    attempt->call->arena, &attachment->digest, &object);
    if (fault)
        return fault;
    fault = object.store ? read_from_store(attempt, attachment, &object, take, context)
                         : attachment_bytes_read_file(attempt, attachment, take, context);
    if (fault != FAULT_NFILE)
        return fault;
    log_error("attachments: a file is missing database=%.*s", (int)attempt->call->database.size,
              attempt->call->database.data);
    return FAULT_BCONTENT;
}
