/* idempotency: the session's stamp, and answers stored under an Idempotency-Key. */
#include "operation/idempotency.h"

#include <inttypes.h>

#include "base/log.h"
#include "model/document/stamp.h"
#include "edge/crypto/crypto.h"
#include "operation/keyed_digest.h"
#include "operation/reader.h"
#include "operation/sync/versions_after.h"
#include "store/documents/store_idempotency.h"
#include "operation/reply.h"
#include "document/transaction.h"

enum { KEY_BYTES_MAX = 255, ANSWER_DEPTH_MOST = 1000 };

static const char *stamp_text(struct arena *arena, int64_t stamp)
{
    return arena_printf(arena, "%015" PRId64, stamp);
}

/* --- dhop --- */

enum fault idempotency_read_dhop(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply)
{
    const struct settings *settings = worker_context->settings;
    call->dhop_stamp = 0;
    if (!call->dhop.data)
        return FAULT_NONE;
    int64_t given, now = stamp_now();
    if (!stamp_from_text(call->dhop, &given))
        return reply_wrong_argument(call, reply, "dhop", "A stamp is expected: yymmddhhmmssmmm, UTC.");
    int64_t least = stamp_add_ms(now, -1000 * settings->dhop_past_s);
    int64_t most = stamp_add_ms(now, settings->dhop_future_ms);
    if (given < least || given > most) {
        enum fault fault = reply_fault(call, reply, FAULT_ADHOP, NULL, stamp_text(call->arena, given),
                                       stamp_text(call->arena, least), stamp_text(call->arena, most),
                                       stamp_text(call->arena, now), NULL);
        reply->at = "/dhop";
        return fault;
    }
    call->dhop_stamp = given;
    return FAULT_NONE;
}

/* --- the name, and the digest of the request --- */

enum { UUID_BYTES = 36, UUID_VERSION = 14, UUID_VARIANT = 19 };

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The stamp in a UUID of version 7 (RFC 9562), whose first 48 bits are milliseconds since 1970; 0: it is not
 * one. */
static int64_t stamp_of_key(struct bytes key)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    int64_t ms = 0;
    if (key.size != UUID_BYTES)
        return 0;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        int digit = digit_of(key.data[i]);
        if (form[i] == '-' ? key.data[i] != '-' : digit < 0)
            return 0;
        if (form[i] != '-' && i < UUID_VERSION - 1)
            ms = ms * 16 + digit;
    }
    bool is_seven = key.data[UUID_VERSION] == '7' && digit_of(key.data[UUID_VARIANT]) >> 2 == 2;
    return is_seven ? stamp_from_epoch_ms(ms) : 0;
}

static enum fault check_future(const struct settings *settings, struct call *call, struct reply *reply,
                               const struct idempotency *idempotency)
{
    int64_t most = stamp_add_ms(idempotency->now, settings->dhop_future_ms);
    if (idempotency->made <= most)
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_AKEYAHEAD, NULL, stamp_text(call->arena, idempotency->made),
                       stamp_text(call->arena, most), stamp_text(call->arena, idempotency->now), NULL);
}

enum fault idempotency_seal(struct attempt *attempt, struct idempotency *idempotency)
{
    return keyed_digest(attempt, "request", idempotency->digest, &idempotency->digest);
}

/* A client whose clock was ahead when it made the key may have been answered this long before its time. */
enum fault idempotency_check_age(struct attempt *attempt, const struct idempotency *idempotency)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct arena *arena = attempt->call->arena;
    int64_t least = stamp_add_ms(idempotency->now, settings->dhop_future_ms - 1000 * settings->idempotency_s);
    if (!idempotency->made || idempotency->made >= least)
        return FAULT_NONE;
    return reply_fault(attempt->call, attempt->reply, FAULT_AKEYOLD, NULL,
                       stamp_text(arena, idempotency->made), stamp_text(arena, least),
                       stamp_text(arena, idempotency->now), NULL);
}

static bool is_key(struct bytes key)
{
    for (size_t i = 0; i < key.size; i++)
        if (key.data[i] < '!' || key.data[i] > '~')
            return false;
    return key.size >= 1 && key.size <= KEY_BYTES_MAX;
}

static void add_part(struct builder *parts, struct bytes part)
{
    if (part.data)
        builder_printf(parts, "%zu:", part.size);
    builder_add_bytes(parts, part);
    builder_add_text(parts, ",");
}

static void idempotency_add_file(struct builder *parts, const struct call_file *file)
{
    char content[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(file->content, content);
    builder_add_text(parts, "file ");
    add_part(parts, file->name);
    add_part(parts, file->file_name);
    add_part(parts, file->type);
    add_part(parts, bytes_of(content));
}

/* What determines the answer, including the caller's credentials, so that no caller gets an answer that the
 * operation would have refused.  Excludes the synchronisations, which are computed anew, and dhop and lang.
 */
static struct bytes digest_of(struct call *call)
{
    char param[CRYPTO_SHA256_HEX + 1] = "", all[CRYPTO_SHA256_HEX + 1];
    struct builder parts = {0};
    if (call->param)
        crypto_sha256_hex(call->param->text, param);
    add_part(&parts, call->operation);
    add_part(&parts, bytes_of(param));
    add_part(&parts, call->key);
    add_part(&parts, call->admin);
    if (call->caller.account.data) { /* however it was proven: a claimed one has the same name */
        builder_add_text(&parts, "account ");
        add_part(&parts, call->caller.account);
    }
    for (size_t i = 0; i < call->path_count; i++)
        add_part(&parts, call->path[i]);
    for (size_t i = 0; i < call->file_count; i++)
        idempotency_add_file(&parts, &call->files[i]);
    if (call->attachment) {
        builder_add_text(&parts, "attachment ");
        add_part(&parts, call->attachment->mime);
        add_part(&parts, call->attachment->promised);
    }
    crypto_sha256_hex(builder_bytes(&parts), all);
    builder_free(&parts);
    return bytes_of(arena_copy(call->arena, all, CRYPTO_SHA256_HEX));
}

enum fault idempotency_open(struct worker_context *worker_context, struct call *call, struct reply *reply,
                            const struct operation *operation, struct idempotency **idempotency_r)
{
    const struct reader reader = {worker_context->settings, call, reply};
    *idempotency_r = NULL;
    if (!call->idempotency_key.data)
        return FAULT_NONE;
    if (!is_key(call->idempotency_key))
        return reply_fault(call, reply, FAULT_AARG, "1 to 255 visible ASCII characters are expected.",
                           "Idempotency-Key", NULL);
    if (operation->right == RIGHT_READ || operation->only_reads)
        return FAULT_NONE;
    if (operation->is_secret)
        return reply_fault(call, reply, FAULT_AARG,
                           "The request or its answer contains a secret, which is not stored: send it "
                           "without this header.",
                           "Idempotency-Key", NULL);
    if ((int64_t)call->account.size > worker_context->settings->limit_name_bytes)
        return reader_over(&reader, NULL, "limit_name_bytes", worker_context->settings->limit_name_bytes,
                           (int64_t)call->account.size);
    struct idempotency *idempotency = ARENA_NEW(call->arena, struct idempotency);
    idempotency->account = call->caller.account.data ? call->caller.account
                           : call->account.data      ? call->account
                                                     : BYTES("");
    idempotency->key = call->idempotency_key;
    idempotency->digest = digest_of(call);
    idempotency->now = stamp_now();
    idempotency->made = stamp_of_key(idempotency->key);
    if (!idempotency->made)
        idempotency->made = call->dhop_stamp;
    *idempotency_r = idempotency;
    return check_future(worker_context->settings, call, reply, idempotency);
}

/* --- the answer --- */

/* The row has changed since it was written: by hand, or by a fault of the machine. */
static enum fault refuse_kept(struct attempt *attempt, const char *column)
{
    log_often(LOG_LEVEL_ERROR, column, "a row of the table idempotency is not as it was written column=%s",
              column);
    reply_enter(attempt->reply, PHASE_AFTERWORK); /* the request was executed */
    return reply_fault(
        attempt->call, attempt->reply, FAULT_BCONTENT,
        "The request was done; the answer that is kept under its Idempotency-Key cannot be read.", "once",
        column, NULL);
}

static bool idempotency_is_json(struct arena *arena, struct bytes text)
{
    const struct json_limits limits = {.depth = ANSWER_DEPTH_MOST};
    struct json *root;
    struct json_problem problem;
    return !json_read(arena, text, &limits, &root, &problem);
}

static enum fault check_kept(struct attempt *attempt, const struct idempotency *kept)
{
    bool is_plain = attempt->operation->is_bare || !bytes_equal(kept->mime, BYTES(MIME_JSON));
    if (!reply_is_mime(kept->mime))
        return refuse_kept(attempt, "mime");
    if (!kept->answer.data ||
        (!is_plain && kept->answer.size && !idempotency_is_json(attempt->call->arena, kept->answer)))
        return refuse_kept(attempt, "answer");
    if (kept->version < 0 || kept->version > STAMP_MAX)
        return refuse_kept(attempt, "version");
    return versions_after_unpack(attempt, kept->versions_after) ? FAULT_NONE
                                                                : refuse_kept(attempt, "versions_after");
}

enum fault idempotency_recall(struct attempt *attempt, const struct idempotency *idempotency, bool *found_r)
{
    struct call *call = attempt->call;
    struct reply *reply = attempt->reply;
    struct idempotency kept = {
        .account = idempotency->account, .key = idempotency->key, .now = idempotency->now};
    bool is_there;
    *found_r = false;
    enum fault fault = store_idempotency_find(documents_store(attempt->worker_context->documents),
                                              attempt->ns, call->arena, &kept, &is_there);
    if (fault || !is_there)
        return fault;
    if (!bytes_equal(kept.digest, idempotency->digest))
        return reply_fault(call, reply, FAULT_AKEYREUSED, NULL,
                           arena_copy(call->arena, idempotency->key.data, idempotency->key.size), NULL);
    fault = check_kept(attempt, &kept);
    if (fault)
        return fault;
    reply->fault = FAULT_NONE;
    reply->argument_count = 0;
    reply->detail = NULL;
    reply->is_replayed = true;
    reply->mime = arena_copy(call->arena, kept.mime.data, kept.mime.size);
    reply->body->size = attempt->out;
    builder_add_bytes(reply->body, kept.answer);
    attempt->version = kept.version;
    *found_r = true;
    return FAULT_NONE;
}

enum fault idempotency_keep(struct attempt *attempt, struct idempotency *idempotency)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct reader reader = {settings, attempt->call, attempt->reply};
    const struct builder *body = attempt->reply->body;
    idempotency->mime = bytes_of(attempt->reply->mime);
    idempotency->versions_after = attempt->versions_after_count ? versions_after_pack(attempt) : BYTES("");
    idempotency->answer = (struct bytes){body->data + attempt->out, body->size - attempt->out};
    if ((int64_t)idempotency->answer.size > settings->limit_kept_bytes)
        return reader_over(&reader, NULL, "limit_kept_bytes", settings->limit_kept_bytes,
                           (int64_t)idempotency->answer.size);
    transaction_keep(attempt->transaction, idempotency);
    return FAULT_NONE;
}

enum fault idempotency_settle(struct attempt *attempt, const struct idempotency *idempotency,
                              enum fault fault, bool *again_r)
{
    bool is_unknown = fault == FAULT_XUNKNOWN, is_found;
    *again_r = reply_is_retried(attempt->reply, fault);
    if (is_unknown && documents_must_exit(attempt->worker_context->documents))
        return fault; /* the old backend may still commit: the outcome is unknown */
    enum fault looked = idempotency_recall(attempt, idempotency, &is_found);
    if (is_found || looked == FAULT_AKEYREUSED || looked == FAULT_BCONTENT) {
        if (is_unknown && looked == FAULT_AKEYREUSED)
            attempt_undo_change(attempt);
        else if (is_unknown)
            log_info("commit succeeded, its answer was stored");
        *again_r = false;
        return looked;
    }
    if (looked && !is_unknown) { /* it is stored, and perhaps not replicated */
        *again_r = false;
        return looked;
    }
    if (looked || !is_unknown)
        return fault;
    log_info("commit did not happen, no answer was stored");
    attempt_undo_change(attempt);
    *again_r = true;
    return FAULT_XAWAY;
}
