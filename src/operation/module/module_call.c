/* module_call: what a module can read of its call, exceptions, memory, the log, digests (stampd.h). */
#include "operation/module/module_try.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/coding/base64.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"
#include "model/document/stamp.h"
#include "operation/access/access.h"
#include "operation/reply.h"
#include "operation/sync/versions_after.h"

bool stampd_failed(const struct stampd_call *call)
{
    return module_try_fault(call) != FAULT_NONE;
}

/* --- exceptions --- */

enum { CODE_MOST = 16 };

static bool is_code(const char *code)
{
    size_t size = code ? strlen(code) : 0;
    return size >= 2 && size <= CODE_MOST && strchr("ANBXDCOS", code[0]) &&
           strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == size;
}

/* The server's own fault of that code; FAULT_NONE: there is none. */
static enum fault find_fault(const char *code)
{
    for (int fault = FAULT_NONE + 1; fault < FAULT_STALE; fault++)
        if (strcmp(fault_code((enum fault)fault), code) == 0)
            return (enum fault)fault;
    return FAULT_NONE;
}

enum stampd_outcome stampd_raise(struct stampd_call *call, const char *code, const char *detail, ...)
{
    struct call *request = module_try_attempt(call)->call;
    struct reply *reply = module_try_attempt(call)->reply;
    if (module_try_fault(call))
        return STAMPD_FAULT;
    enum fault fault = is_code(code) ? find_fault(code) : FAULT_XUNKNOWN;
    if (fault == FAULT_XUNKNOWN) { /* no code, or one that only the server can establish */
        module_try_fail(call, FAULT_BMODULE, "An exception under a code that is none was raised.", code);
        return STAMPD_FAULT;
    }
    if (fault)
        reply_fault(request, reply, fault, detail, NULL);
    else
        fault = reply_raise(request, reply, code, detail);
    module_try_set_fault(call, fault);
    va_list arguments;
    va_start(arguments, detail);
    for (const char *argument; (argument = va_arg(arguments, const char *));)
        reply_add_argument(request, reply, argument);
    va_end(arguments);
    return STAMPD_FAULT;
}

/* --- the request --- */

static const char *module_call_text_of(const struct stampd_call *call, struct bytes bytes)
{
    return bytes.data ? arena_copy(module_try_arena(call), bytes.data, bytes.size) : NULL;
}

const char *stampd_namespace(const struct stampd_call *call)
{
    return module_call_text_of(call, module_try_attempt(call)->call->ns);
}

const char *stampd_request_id(const struct stampd_call *call)
{
    const char *id = module_try_attempt(call)->call->request_id;
    return id ? id : "";
}

const char *stampd_account(const struct stampd_call *call)
{
    return module_call_text_of(call, module_try_attempt(call)->call->account);
}

const char *stampd_key(const struct stampd_call *call)
{
    return module_call_text_of(call, module_try_attempt(call)->call->key);
}

const char *stampd_lang(const struct stampd_call *call)
{
    return module_call_text_of(call, module_try_attempt(call)->call->lang);
}

bool stampd_is_administrator(const struct stampd_call *call)
{
    return access_is_administrator(module_try_attempt(call)->call);
}

int64_t stampd_dhop(const struct stampd_call *call)
{
    return module_try_attempt(call)->call->dhop_stamp;
}

size_t stampd_path_count(const struct stampd_call *call)
{
    return module_try_attempt(call)->call->path_count;
}

const char *stampd_path(const struct stampd_call *call, size_t place)
{
    const struct call *request = module_try_attempt(call)->call;
    return place < request->path_count ? module_call_text_of(call, request->path[place]) : NULL;
}

size_t stampd_file_count(const struct stampd_call *call)
{
    return module_try_attempt(call)->call->file_count;
}

const struct stampd_file *stampd_file(const struct stampd_call *call, size_t place)
{
    const struct call *request = module_try_attempt(call)->call;
    if (place >= request->file_count)
        return NULL;
    const struct call_file *from = &request->files[place];
    struct stampd_file *file = ARENA_NEW(module_try_arena(call), struct stampd_file);
    *file = (struct stampd_file){
        .name = module_call_text_of(call, from->name),
        .file_name = module_call_text_of(call, from->file_name),
        .type = module_call_text_of(call, from->type),
        .content = {from->content.data, from->content.size},
    };
    return file;
}

int64_t stampd_time_left_ms(const struct stampd_call *call)
{
    return module_try_attempt(call)->call->deadline_ms - clock_monotonic_ms();
}

int64_t stampd_commit_version(const struct stampd_call *call)
{
    return module_try_is_afterwork(call) ? module_try_attempt(call)->version : 0;
}

int64_t stampd_version_after(struct stampd_call *call, const char *document_class, const char *id)
{
    const struct attempt *attempt = module_try_attempt(call);
    int64_t version = 0;
    if (!module_try_is_afterwork(call))
        module_try_fail(call, FAULT_BMODULE, "The version after the commit is known in afterwork.",
                        document_class);
    else if (!versions_after_find(attempt, (struct document_name){bytes_of(document_class), bytes_of(id)},
                                  &version))
        module_try_fail(call, FAULT_BMODULE, "Work has not fetched this document.", document_class);
    return version;
}

/* --- stamps --- */

int64_t stampd_now(void)
{
    return stamp_now();
}

int64_t stampd_stamp_to_epoch_ms(int64_t stamp)
{
    return stamp_to_epoch_ms(stamp);
}

int64_t stampd_stamp_from_epoch_ms(int64_t epoch_ms)
{
    return stamp_from_epoch_ms(epoch_ms);
}

/* --- memory --- */

void *stampd_alloc(struct stampd_call *call, size_t size)
{
    return arena_zalloc(module_try_arena(call), 1, size);
}

char *stampd_copy(struct stampd_call *call, const void *data, size_t size)
{
    return arena_copy(module_try_arena(call), data, size);
}

static char *format_text(struct arena *arena, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t room = size < 0 ? 1 : (size_t)size + 1;
    char *text = arena_alloc(arena, room);
    text[0] = '\0';
    if (size >= 0)
        vsnprintf(text, room, format, arguments);
    return text;
}

char *stampd_format(struct stampd_call *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(module_try_arena(call), format, arguments);
    va_end(arguments);
    return text;
}

void stampd_defer(struct stampd_call *call, void (*function)(void *), void *pointer)
{
    arena_defer(module_try_arena(call), function, pointer);
}

/* --- the log --- */

void stampd_log(enum stampd_level level, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        return;
    switch (level) {
    case STAMPD_ERROR:
        log_error("%s", text);
        break;
    case STAMPD_WARNING:
        log_warning("%s", text);
        break;
    case STAMPD_INFO:
        log_info("%s", text);
        break;
    default:
        log_debug("%s", text);
    }
    free(text);
}

/* Digests, random values and comparison for modules (stampd.h). */

static struct bytes bytes_from(struct stampd_bytes bytes)
{
    return (struct bytes){bytes.data ? bytes.data : "", bytes.size};
}

void stampd_sha256(struct stampd_bytes bytes, unsigned char digest_r[STAMPD_SHA256_BYTES])
{
    char hex[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(bytes_from(bytes), hex);
    for (size_t i = 0; i < STAMPD_SHA256_BYTES; i++)
        digest_r[i] = (unsigned char)hex_byte(hex + 2 * i);
}

void stampd_hmac_sha256(struct stampd_bytes key, struct stampd_bytes bytes,
                        unsigned char digest_r[STAMPD_SHA256_BYTES])
{
    crypto_hmac(bytes_from(key), bytes_from(bytes), digest_r);
}

const char *stampd_hex(struct stampd_call *call, struct stampd_bytes bytes)
{
    char *text = arena_zalloc(module_try_arena(call), bytes.size + 1, 2);
    hex_write((const unsigned char *)bytes.data, bytes.size, text);
    return text;
}

const char *stampd_base64url(struct stampd_call *call, struct stampd_bytes bytes)
{
    struct builder text = {0};
    base64_add(&text, bytes_from(bytes));
    const char *copy = arena_copy(module_try_arena(call), text.size ? text.data : "", text.size);
    builder_free(&text);
    return copy;
}

bool stampd_equal_secrets(struct stampd_bytes a, struct stampd_bytes b)
{
    return crypto_equal(bytes_from(a), bytes_from(b));
}

void stampd_random(void *buffer, size_t size)
{
    crypto_random(buffer, size);
}

const char *stampd_random_token(struct stampd_call *call)
{
    unsigned char secret[STAMPD_SHA256_BYTES];
    crypto_random(secret, sizeof secret);
    return stampd_base64url(call, (struct stampd_bytes){(const char *)secret, sizeof secret});
}
