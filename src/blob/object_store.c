/* object_store: requests, one at a time, and what their answers mean. */
#include "blob/object_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/http.h"
#include "blob/object_signature.h"

enum {
    TRIES = 4,
    FIRST_WAIT_MS = 250, /* before the second try, then four times as long each time */
    LONGEST_WAIT_S = 30, /* whatever Retry-After says */
    SLOWEST = 64 << 10,  /* bytes a second */
    CONNECT_MS = 10000,
    PARTS_MOST = 9000, /* servers allow 10,000 */
    ID_MOST = 1024,    /* bytes of the id of a multipart upload */
    ETAG_MOST = 80,
    PROBLEM_BYTES = 400,
    STATUS_OK = 200,
    STATUS_PARTIAL = 206,
    STATUS_ABSENT = 404,
    STATUS_MANY = 429,
    STATUS_INTERNAL = 500,
    STATUS_AWAY = 502, /* and those after it, 503 and 504 */
    STATUS_LATE = 504,
};

struct object_store {
    struct object_store_place place;
    struct http *http;
    char *host, *base; /* the header Host; scheme and host of URLs */
    char problem[PROBLEM_BYTES];
};

struct object_upload {
    struct object_store *store;
    char *name;
    int64_t size, taken, part_size;
    struct builder part; /* not sent yet */
    struct builder list; /* of the parts sent, as the request that completes them has it */
    int parts;
    char id[ID_MOST + 1]; /* ""; no part has been sent */
};

struct object_request {
    const char *method, *name;
    const char *query; /* encoded; "": none */
    struct bytes body; /* data NULL: none */
    const char *range; /* value of the header; NULL: none */
    int64_t expected;  /* bytes of the answer */
};

static char *object_store_compose(const char *a, const char *b, const char *c)
{
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", a, b, c) < 0)
        log_fatal("out of memory object store");
    return text;
}

struct object_store *object_store_open(const struct object_store_place *place)
{
    struct object_store *store = memory_zeroed(1, sizeof *store, "object store");
    const struct http_options options = {
        .parallel = 1,
        .ca_file = place->ca_file,
        .connect_timeout_ms = CONNECT_MS,
        .answer_most = OBJECT_STORE_PIECE,
    };
    const char *host = strstr(place->endpoint, "://");
    assert(host);
    host += strlen("://");
    store->place = *place;
    store->http = http_open(&options);
    store->host = place->is_path_style ? object_store_compose(host, "", "")
                                       : object_store_compose(place->bucket, ".", host);
    char *scheme = strndup(place->endpoint, (size_t)(host - place->endpoint));
    if (!scheme)
        log_fatal("out of memory object store");
    store->base = object_store_compose(scheme, store->host, "");
    free(scheme);
    return store;
}

void object_store_close(struct object_store *store)
{
    http_close(store->http);
    free(store->host);
    free(store->base);
    free(store);
}

const char *object_store_problem(const struct object_store *store)
{
    return store->problem;
}

/* --- one request --- */

/* The text of the first element of this name, without entities; NO_BYTES: there is none. */
static struct bytes find_element(struct bytes xml, const char *name)
{
    char begin[40], end[40];
    snprintf(begin, sizeof begin, "<%s>", name);
    snprintf(end, sizeof end, "</%s>", name);
    const char *from = memmem(xml.data, xml.size, begin, strlen(begin));
    if (!from)
        return NO_BYTES;
    from += strlen(begin);
    const char *to = memmem(from, (size_t)(xml.data + xml.size - from), end, strlen(end));
    return to ? (struct bytes){from, (size_t)(to - from)} : NO_BYTES;
}

/* Codes of errors are words; whatever else a server writes there is not shown. */
static bool is_word(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!((text.data[i] | 0x20) >= 'a' && (text.data[i] | 0x20) <= 'z'))
            return false;
    return text.size && text.size <= 64;
}

static bool object_store_fail(struct object_store *store, const struct http_result *result)
{
    struct bytes code = find_element(result->body, "Code");
    if (result->is_too_large)
        snprintf(store->problem, sizeof store->problem, "%s", result->reason);
    else if (!result->status)
        snprintf(store->problem, sizeof store->problem, "no answer: %s", result->reason);
    else if (is_word(code))
        snprintf(store->problem, sizeof store->problem, "status %d, %.*s", result->status, (int)code.size,
                 code.data);
    else
        snprintf(store->problem, sizeof store->problem, "status %d", result->status);
    return false;
}

static bool fail_with(struct object_store *store, const char *problem)
{
    snprintf(store->problem, sizeof store->problem, "%s", problem);
    return false;
}

static void send_once(struct object_store *store, const struct object_request *request,
                      struct http_result *result_r)
{
    const struct object_store_place *place = &store->place;
    struct object_signature signature = {
        .method = request->method,
        .host = store->host,
        .query = request->query,
        .region = place->region,
        .key_id = place->key_id,
        .secret_key = place->secret_key,
        .time_s = clock_wall_ms() / 1000,
    };
    struct builder path = {0}, url = {0}, header = {0}, range = {0};
    char host[600], digest[CRYPTO_SHA256_HEX + 40], date[60], time[OBJECT_SIGNATURE_DATE + 1];
    builder_printf(&path, "/%s%s%s%s%c", place->is_path_style ? place->bucket : "",
                   place->is_path_style ? "/" : "", place->prefix, request->name, '\0');
    builder_printf(&url, "%s%s%s%s%c", store->base, path.data, *request->query ? "?" : "", request->query,
                   '\0');
    signature.path = path.data;
    crypto_sha256_hex(request->body.data ? request->body : BYTES(""), signature.body_sha256);
    object_signature_date(signature.time_s, time);
    builder_add_text(&header, "Authorization: ");
    object_signature_add(&header, &signature);
    builder_add(&header, "", 1);
    builder_printf(&range, "Range: %s%c", request->range ? request->range : "", '\0');
    snprintf(host, sizeof host, "Host: %s", store->host);
    snprintf(digest, sizeof digest, "x-amz-content-sha256: %s", signature.body_sha256);
    snprintf(date, sizeof date, "x-amz-date: %s", time);
    const char *const headers[] = {host, digest, date, header.data, request->range ? range.data : NULL, NULL};
    const struct http_request http = {
        .method = request->method,
        .url = url.data,
        .content_type = request->body.data ? "application/octet-stream" : NULL,
        .body = request->body,
        .headers = headers,
        .timeout_ms = (place->timeout_s + (request->expected + (int64_t)request->body.size) / SLOWEST) * 1000,
    };
    http_run(store->http, &http, result_r);
    builder_free(&path);
    builder_free(&url);
    builder_free(&header);
    builder_free(&range);
}

static bool is_transient(const struct http_result *result)
{
    int status = result->status;
    return (!status && !result->is_too_large) || status == STATUS_MANY || status == STATUS_INTERNAL ||
           (status >= STATUS_AWAY && status <= STATUS_LATE);
}

/* Repeats a request that failed for the moment.  The result is valid until the next request. */
static void object_store_run(struct object_store *store, const struct object_request *request,
                             struct http_result *result_r)
{
    int64_t wait_ms = FIRST_WAIT_MS;
    for (int tries = 1;; tries++) {
        send_once(store, request, result_r);
        if (!is_transient(result_r) || tries == TRIES)
            return;
        int64_t asked_s = result_r->retry_after_s < LONGEST_WAIT_S ? result_r->retry_after_s : LONGEST_WAIT_S;
        clock_sleep_ms(asked_s * 1000 > wait_ms ? asked_s * 1000 : wait_ms);
        wait_ms *= 4;
    }
}

/* --- one object is written --- */

struct object_upload *object_store_begin(struct object_store *store, const char *name, int64_t size)
{
    struct object_upload *upload = memory_zeroed(1, sizeof *upload, "object store");
    upload->store = store;
    upload->name = object_store_compose(name, "", "");
    upload->size = size;
    upload->part_size = size / PARTS_MOST + 1;
    if (upload->part_size < OBJECT_STORE_PIECE)
        upload->part_size = OBJECT_STORE_PIECE;
    return upload;
}

static void end_upload(struct object_upload *upload)
{
    builder_free(&upload->part);
    builder_free(&upload->list);
    free(upload->name);
    free(upload);
}

static bool is_unreserved(unsigned char byte) /* RFC 3986 */
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte && strchr("-._~", byte));
}

/* The id of an upload as a query has it. */
static bool take_id(struct object_upload *upload, struct bytes id)
{
    size_t size = 0;
    if (!id.size || id.size > ID_MOST / 3)
        return fail_with(upload->store, "its answer has no id of an upload");
    for (size_t i = 0; i < id.size; i++) {
        unsigned char byte = (unsigned char)id.data[i];
        size +=
            (size_t)snprintf(upload->id + size, sizeof "%FF", is_unreserved(byte) ? "%c" : "%%%02X", byte);
    }
    return true;
}

static bool begin_parts(struct object_upload *upload)
{
    const struct object_request request = {"POST", upload->name, "uploads=", BYTES(""), NULL, 0};
    struct http_result result;
    object_store_run(upload->store, &request, &result);
    return result.status == STATUS_OK ? take_id(upload, find_element(result.body, "UploadId"))
                                      : object_store_fail(upload->store, &result);
}

static bool is_etag(const char *etag)
{
    for (const char *byte = etag; *byte; byte++)
        if (*byte < '!' || *byte > '~' || strchr("<>&", *byte))
            return false;
    return *etag && strlen(etag) <= ETAG_MOST;
}

static bool send_part(struct object_upload *upload)
{
    struct http_result result;
    char query[ID_MOST + 60];
    if (!*upload->id && !begin_parts(upload))
        return false;
    snprintf(query, sizeof query, "partNumber=%d&uploadId=%s", ++upload->parts, upload->id);
    const struct object_request request = {"PUT", upload->name, query, builder_bytes(&upload->part), NULL, 0};
    object_store_run(upload->store, &request, &result);
    builder_clear(&upload->part, (size_t)upload->part_size);
    if (result.status != STATUS_OK)
        return object_store_fail(upload->store, &result);
    if (!is_etag(result.etag))
        return fail_with(upload->store, "its answer has no ETag of a part");
    builder_printf(&upload->list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", upload->parts,
                   result.etag);
    return true;
}

bool object_store_write(struct object_upload *upload, struct bytes piece)
{
    upload->taken += (int64_t)piece.size;
    if (upload->taken > upload->size)
        return fail_with(upload->store, "the file is larger than announced");
    while (piece.size) {
        size_t room = (size_t)upload->part_size - upload->part.size;
        size_t size = piece.size < room ? piece.size : room;
        builder_add(&upload->part, piece.data, size);
        piece = (struct bytes){piece.data + size, piece.size - size};
        if (size == room && upload->size > upload->part_size && !send_part(upload))
            return false;
    }
    return true;
}

static bool put_whole(struct object_upload *upload)
{
    const struct object_request request = {"PUT", upload->name, "", builder_bytes(&upload->part), NULL, 0};
    struct http_result result;
    object_store_run(upload->store, &request, &result);
    return result.status == STATUS_OK || object_store_fail(upload->store, &result);
}

/* A failure may follow the status 200. */
static bool complete_parts(struct object_upload *upload)
{
    struct builder body = {0};
    char query[ID_MOST + 60];
    struct http_result result;
    snprintf(query, sizeof query, "uploadId=%s", upload->id);
    builder_add_text(&body, "<CompleteMultipartUpload>");
    builder_add_bytes(&body, builder_bytes(&upload->list));
    builder_add_text(&body, "</CompleteMultipartUpload>");
    const struct object_request request = {"POST", upload->name, query, builder_bytes(&body), NULL, 0};
    object_store_run(upload->store, &request, &result);
    builder_free(&body);
    bool is_done = result.status == STATUS_OK &&
                   memmem(result.body.data, result.body.size, "<CompleteMultipartUploadResult",
                          strlen("<CompleteMultipartUploadResult"));
    return is_done || object_store_fail(upload->store, &result);
}

bool object_store_finish(struct object_upload *upload)
{
    bool is_done =
        upload->taken == upload->size || fail_with(upload->store, "the file is smaller than announced");
    if (is_done && upload->size > upload->part_size)
        is_done = (!upload->part.size || send_part(upload)) && complete_parts(upload);
    else if (is_done)
        is_done = put_whole(upload);
    if (is_done)
        end_upload(upload);
    else
        object_store_abandon(upload);
    return is_done;
}

void object_store_abandon(struct object_upload *upload)
{
    char query[ID_MOST + 60];
    struct http_result result;
    snprintf(query, sizeof query, "uploadId=%s", upload->id);
    const struct object_request request = {"DELETE", upload->name, query, NO_BYTES, NULL, 0};
    if (*upload->id)
        send_once(upload->store, &request, &result); /* else the bucket's rule for uploads removes it */
    end_upload(upload);
}

/* --- objects --- */

bool object_store_measure(struct object_store *store, const char *name, int64_t *size_r)
{
    const struct object_request request = {"HEAD", name, "", NO_BYTES, NULL, 0};
    struct http_result result;
    object_store_run(store, &request, &result);
    *size_r = -1;
    if (result.status == STATUS_ABSENT)
        return true;
    if (result.status != STATUS_OK)
        return object_store_fail(store, &result);
    *size_r = result.length;
    return result.length >= 0 || fail_with(store, "its answer has no length");
}

bool object_store_read_part(struct object_store *store, const char *name, int64_t from, int64_t size,
                            int64_t piece, bool (*take)(void *context, struct bytes piece), void *context)
{
    for (int64_t end = from + size; from < end; from += piece) {
        char range[60];
        int64_t left = end - from, wanted = left < piece ? left : piece;
        snprintf(range, sizeof range, "bytes=%lld-%lld", (long long)from, (long long)(from + wanted - 1));
        const struct object_request request = {"GET", name, "", NO_BYTES, range, wanted};
        struct http_result result;
        object_store_run(store, &request, &result);
        if (result.status == STATUS_OK)
            return fail_with(store, "it ignores ranges");
        if (result.status != STATUS_PARTIAL)
            return object_store_fail(store, &result);
        if ((int64_t)result.body.size != wanted)
            return fail_with(store, "the object has another size than the file");
        if (!take(context, result.body))
            return true;
    }
    return true;
}

bool object_store_read(struct object_store *store, const char *name, int64_t size,
                       bool (*take)(void *context, struct bytes piece), void *context)
{
    const struct object_request request = {"GET", name, "", NO_BYTES, NULL, size};
    struct http_result result;
    if (size > OBJECT_STORE_PIECE)
        return object_store_read_part(store, name, 0, size, OBJECT_STORE_PIECE, take, context);
    object_store_run(store, &request, &result);
    if (result.status != STATUS_OK)
        return object_store_fail(store, &result);
    if ((int64_t)result.body.size != size)
        return fail_with(store, "the object has another size than the file");
    (void)take(context, result.body);
    return true;
}

bool object_store_remove(struct object_store *store, const char *name)
{
    const struct object_request request = {"DELETE", name, "", NO_BYTES, NULL, 0};
    struct http_result result;
    object_store_run(store, &request, &result);
    return (result.status >= STATUS_OK && result.status < 300) || result.status == STATUS_ABSENT ||
           object_store_fail(store, &result);
}

/* --- requests that another program sends --- */

const char *object_store_host(const struct object_store_place *place, struct arena *arena)
{
    const char *host = strstr(place->endpoint, "://") + strlen("://");
    return place->is_path_style ? arena_copy(arena, host, strlen(host))
                                : arena_printf(arena, "%s.%s", place->bucket, host);
}

void object_store_sign(const struct object_store_place *place, struct arena *arena, const char *method,
                       const char *name, struct object_store_signed *signed_r)
{
    struct object_signature signature = {
        .method = method,
        .host = object_store_host(place, arena),
        .path = arena_printf(arena, "/%s%s%s%s", place->is_path_style ? place->bucket : "",
                             place->is_path_style ? "/" : "", place->prefix, name),
        .query = "",
        .region = place->region,
        .key_id = place->key_id,
        .secret_key = place->secret_key,
        .time_s = clock_wall_ms() / 1000,
    };
    char date[OBJECT_SIGNATURE_DATE + 1];
    struct builder header = {0};
    crypto_sha256_hex(BYTES(""), signature.body_sha256);
    object_signature_date(signature.time_s, date);
    object_signature_add(&header, &signature);
    *signed_r = (struct object_store_signed){
        .path = signature.path,
        .authorization = arena_copy(arena, header.data, header.size),
        .date = arena_copy(arena, date, OBJECT_SIGNATURE_DATE),
        .body = arena_copy(arena, signature.body_sha256, CRYPTO_SHA256_HEX),
    };
    builder_free(&header);
}
