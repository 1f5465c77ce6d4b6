/* attachment_object: which store, which name, which bytes. */
#include "operation/attachments/attachment_object.h"

#include <string.h>

#include "base/coding/hex.h"
#include "base/log.h"
#include "blob/blob_sealed.h"
#include "blob/file_ticket.h"
#include "blob/object_stores.h"
#include "store/blobs/store_blobs.h"

enum { RANGE_MOST = 48 };

static enum fault give_ticket(struct attempt *attempt, struct file_ticket *ticket,
                              struct attachment_object **object_r)
{
    struct call *call = attempt->call;
    *object_r = ARENA_NEW(call->arena, struct attachment_object);
    **object_r = (struct attachment_object){.ticket = file_ticket_write(call->arena, ticket)};
    explicit_bzero(ticket, sizeof *ticket);
    return FAULT_NONE;
}

/* --- in the directory --- */

/* Keys last as long as the session, which any statement may find dead. */
static enum fault attachment_object_read_keys(struct attempt *attempt, bool are_renewed,
                                              struct sealed_file_keys *keys_r)
{
    struct store *store = documents_store(attempt->worker_context->documents);
    return are_renewed ? store_blobs_renew_keys(store, attempt->ns, keys_r)
                       : store_blobs_keys(store, attempt->ns, keys_r);
}

enum fault attachment_object_seal(struct attempt *attempt, const struct blob_digest *name,
                                  struct attachment_object **object_r)
{
    struct call *call = attempt->call;
    struct file_ticket ticket = {.database = call->database, .name = *name, .store = "", .object = ""};
    struct blob_store *blobs = attempt->worker_context->blobs;
    struct sealed_file_keys keys;
    enum fault fault = FAULT_STALE;
    for (int tries = 0; tries < 2 && fault == FAULT_STALE; tries++) {
        fault = FAULT_FIRST(attachment_object_read_keys(attempt, tries > 0, &keys),
                            blob_sealed_begin(blobs, call->database, &keys, name, &ticket.head));
    }
    if (fault == FAULT_STALE)
        fault = blob_sealed_report(SEALED_FILE_UNKNOWN, call->database, name);
    return fault ? fault : give_ticket(attempt, &ticket, object_r);
}

/* --- in a store --- */

static bool attachment_object_read_head(struct bytes digits, unsigned char head_r[SEALED_FILE_HEADER])
{
    if (digits.size != 2 * SEALED_FILE_HEADER)
        return false;
    for (size_t i = 0; i < SEALED_FILE_HEADER; i++)
        head_r[i] = (unsigned char)hex_byte(digits.data + 2 * i);
    return true;
}

/* The row of the file has its header, so that no worker waits for a store. */
static enum fault seal_object(struct attempt *attempt, const struct attachment *attachment,
                              const struct blob_object *found, struct attachment_object **object_r)
{
    unsigned char head[SEALED_FILE_HEADER];
    struct file_ticket ticket = {
        .database = attempt->call->database, .store = found->store, .object = found->name};
    enum sealed_file_state state = SEALED_FILE_UNKNOWN;
    struct sealed_file_keys keys;
    bool is_right = attachment_object_read_head(found->head, head) &&
                    strlen(found->store) <= FILE_TICKET_STORE && strlen(found->name) <= FILE_TICKET_OBJECT;
    for (int tries = 0; tries < 2 && state == SEALED_FILE_UNKNOWN; tries++) {
        enum fault fault = attachment_object_read_keys(attempt, tries > 0, &keys);
        if (fault)
            return fault;
        ticket.name = blob_sealed_name(&keys, &attachment->digest);
        state = is_right ? sealed_file_check(head, blob_sealed_size(&keys, attachment->size), &keys,
                                             ticket.name.bytes, &ticket.head)
                         : SEALED_FILE_ALTERED;
    }
    return state == SEALED_FILE_FINE ? give_ticket(attempt, &ticket, object_r)
                                     : blob_sealed_report(state, attempt->call->database, &ticket.name);
}

enum fault attachment_object_find(struct attempt *attempt, bool is_sealed,
                                  const struct attachment *attachment, struct attachment_object **object_r)
{
    struct call *call = attempt->call;
    const struct object_stores *stores = attempt->worker_context->object_stores;
    struct blob_object found;
    char problem[400] = "there are no object stores";
    *object_r = NULL;
    enum fault fault = store_blobs_find_object(documents_store(attempt->worker_context->documents),
                                               attempt->ns, call->arena, &attachment->digest, &found);
    if (fault || !found.store)
        return fault;
    struct attachment_object *object = ARENA_NEW(call->arena, struct attachment_object);
    *object = (struct attachment_object){.store = found.store, .name = found.name};
    if (!stores || !object_stores_find(stores, found.store, &object->place, problem, sizeof problem)) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: a file is in an object store: %s", problem);
        return reply_fault(call, attempt->reply, FAULT_XSTORE, NULL, NULL);
    }
    if (is_sealed)
        return seal_object(attempt, attachment, &found, object_r);
    *object_r = object;
    return FAULT_NONE;
}

/* bytes=FROM-, bytes=FROM-TO or bytes=-COUNT: of several ranges the store could send one only. */
static bool is_one_range(struct bytes range)
{
    struct bytes rest = range;
    if (range.size > RANGE_MOST || !bytes_equal(bytes_cut(&rest, '='), BYTES("bytes")))
        return false;
    struct bytes from = bytes_cut(&rest, '-');
    for (size_t i = 0; i < from.size; i++)
        if (from.data[i] < '0' || from.data[i] > '9')
            return false;
    for (size_t i = 0; i < rest.size; i++)
        if (rest.data[i] < '0' || rest.data[i] > '9')
            return false;
    return (from.size || rest.size) && memchr(range.data, '-', range.size);
}

/* Pure. "": the whole file. */
static const char *attachment_object_range(struct arena *arena, struct bytes range, struct bytes if_range,
                                           const char *sha)
{
    const char *tag = arena_printf(arena, "\"%s\"", sha);
    bool is_wanted = range.size && (!if_range.size || bytes_equal(if_range, bytes_of(tag)));
    return is_wanted && is_one_range(range) ? arena_copy(arena, range.data, range.size) : "";
}

void attachment_object_set(struct call *call, const struct attachment_object *object, int64_t size,
                           struct reply_attachment *head)
{
    const struct attachment_request *request = call->attachment;
    struct object_store_signed request_of_nginx;
    struct reply_object *reply = ARENA_NEW(call->arena, struct reply_object);
    head->object = reply;
    *reply = (struct reply_object){
        .authorization = object->ticket,
        .date = "",
        .body = "",
        .range = attachment_object_range(call->arena, request->range, request->if_range, head->sha),
        .size = size,
    };
    if (object->ticket) {
        head->location = "/.stampd/sealed/";
        return;
    }
    object_store_sign(object->place, call->arena, request->is_head ? "HEAD" : "GET", object->name,
                      &request_of_nginx);
    reply->authorization = request_of_nginx.authorization;
    reply->date = request_of_nginx.date;
    reply->body = request_of_nginx.body;
    head->location = arena_printf(call->arena, "/.stampd/objects/%s%s", object->store, request_of_nginx.path);
}
