/* response: status, headers, and faults as application/problem+json (RFC 9457) or as text for people. */
#include "http/response.h"

#include "base/coding/base64.h"
#include "base/coding/hex.h"
#include "edge/json/json.h"
#include "operation/reply.h"

enum {
    RETRY_AFTER_S = 5,
    PREFLIGHT_S = 600,
    STATUS_LOCKED = 423 /* for an upload in parts that must wait: clients of tus take 429 for the end */
};

static const char *status_words(int status)
{
    static const struct {
        int status;
        const char *words;
    } all[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {423, "Locked"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i].status == status)
            return all[i].words;
    return "Bad Request";
}

int response_status(const struct response_form *form, const struct reply *reply)
{
    if (!reply->fault)
        return reply->status ? reply->status : 200;
    if (form->is_upload && !form->judged && reply->fault == FAULT_XBUSY)
        return STATUS_LOCKED;
    if (reply->fault_status)
        return reply->fault_status;
    if (reply->fault == FAULT_ALIMIT && reply->argument_count &&
        (strcmp(reply->arguments[0], "limit_body_bytes") == 0 ||
         strcmp(reply->arguments[0], "limit_blob_bytes") == 0 ||
         strcmp(reply->arguments[0], "limit_anonymous_body_bytes") == 0))
        return 413;
    bool is_operation = !form->is_resource && !form->is_manager;
    if (is_operation && form->has_few_statuses && reply->fault == FAULT_RAISED)
        return reply_code(reply)[0] == 'N' ? 404 : 400;
    if (is_operation && form->has_few_statuses)
        return fault_few_status(reply->fault);
    if (reply->fault == FAULT_RAISED)
        return fault_status_of_code(reply_code(reply));
    if ((reply->fault == FAULT_SCLOSED || reply->fault == FAULT_SRULE) && !form->has_credentials)
        return 401;
    return fault_status(reply->fault, !is_operation);
}

/* --- the text of a fault --- */

/* Text sent by clients may be returned, but only printable text, and so much of it. */
enum { ECHO_MOST = 4096 };

static struct bytes printable(const char *text)
{
    struct bytes bytes = bytes_of(text);
    if (!bytes_is_utf8(bytes))
        return BYTES("?");
    if (bytes.size > ECHO_MOST)
        for (bytes.size = ECHO_MOST; ((unsigned char)bytes.data[bytes.size] & 0xc0) == 0x80;)
            bytes.size--; /* a character is whole */
    return bytes;
}

static void response_add_member(struct builder *out, const char *name, struct bytes value)
{
    builder_add(out, ",\"", 2);
    builder_add(out, name, strlen(name));
    builder_add(out, "\":", 2);
    json_add_string(out, value);
}

static void response_add_number(struct builder *out, const char *name, int64_t value)
{
    builder_printf(out, ",\"%s\":%lld", name, (long long)value);
}

static void add_message(struct builder *out, const struct reply *reply)
{
    builder_add_bytes(out, bytes_of(reply_words(reply)));
    if (reply->detail) {
        builder_add_text(out, " ");
        builder_add_bytes(out, printable(reply->detail));
    }
}

static void write_problem(const struct reply *reply, int status, struct builder *out)
{
    struct builder message = {0};
    add_message(&message, reply);
    builder_add_text(out, "{\"type\":\"about:blank\"");
    response_add_member(out, "title", bytes_of(reply_words(reply)));
    response_add_number(out, "status", status);
    response_add_member(out, "code", bytes_of(reply_code(reply)));
    response_add_number(out, "major", reply_major(reply));
    if (reply->phase != PHASE_UNKNOWN)
        response_add_number(out, "phase", reply->phase);
    response_add_member(out, "message", builder_bytes(&message));
    builder_add_text(out, ",\"args\":[");
    for (int i = 0; i < reply->argument_count; i++) {
        if (i)
            builder_add_text(out, ",");
        json_add_string(out, printable(reply->arguments[i]));
    }
    builder_add_text(out, "]");
    if (reply->at)
        response_add_member(out, "at", printable(reply->at));
    if (reply->detail)
        response_add_member(out, "detail", printable(reply->detail));
    if (reply->members) {
        builder_add_text(out, ",");
        builder_add_bytes(out, bytes_of(reply->members));
    }
    builder_add_text(out, "}");
    builder_free(&message);
}

static void write_for_people(const struct reply *reply, struct builder *out)
{
    builder_printf(out, "%s: %s\n", reply_code(reply), reply_words(reply));
    if (reply->detail) {
        builder_add_bytes(out, printable(reply->detail));
        builder_add_text(out, "\n");
    }
    if (reply->at) {
        builder_add_text(out, "At ");
        builder_add_bytes(out, *reply->at ? printable(reply->at) : BYTES("the top"));
        builder_add_text(out, "\n");
    }
    for (int i = 0; i < reply->argument_count; i++) {
        builder_add_text(out, "- ");
        builder_add_bytes(out, printable(reply->arguments[i]));
        builder_add_text(out, "\n");
    }
}

/* --- the head --- */

/* Has the text no characters that could split a header? */
static bool response_is_plain(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i], letter = byte | 0x20;
        bool is = (byte >= '0' && byte <= '9') || (letter >= 'a' && letter <= 'z') || byte == '-' ||
                  byte == '.' || byte == '_' || byte == '+';
        if (!is)
            return false;
    }
    return text.size && text.size <= 64;
}

/* Adds headers of constant text. */
#define add_headers(head, literal) builder_add_text((head), literal "\r\n")

static void add_header(struct builder *head, const char *name, const char *value)
{
    builder_add_bytes(head, bytes_of(name));
    builder_add_text(head, ": ");
    builder_add_bytes(head, bytes_of(value));
    builder_add_text(head, "\r\n");
}

static void add_number_header(struct builder *head, const char *name, int64_t value)
{
    builder_add_bytes(head, bytes_of(name));
    builder_add_text(head, ": ");
    builder_add_i64(head, value);
    builder_add_text(head, "\r\n");
}

static void add_status(struct builder *head, int status)
{
    if (status == 200) {
        builder_add_text(head, "Status: 200 OK\r\n");
        return;
    }
    builder_add_text(head, "Status: ");
    builder_add_i64(head, status);
    builder_add_text(head, " ");
    builder_add_bytes(head, bytes_of(status_words(status)));
    builder_add_text(head, "\r\n");
}

static bool has_content(int status)
{
    return status != 204 && status != 304;
}

static const char *methods_of(const struct response_form *form, const struct reply *reply)
{
    if (form->is_manager || reply->is_post_only)
        return "POST, OPTIONS";
    if (form->is_live)
        return "GET, POST, OPTIONS";
    if (form->is_file || form->is_digest)
        return "GET, HEAD, OPTIONS";
    if (form->is_upload)
        return form->is_part ? "HEAD, PATCH, DELETE, OPTIONS" : "POST, OPTIONS";
    if (form->is_attachment)
        return "GET, HEAD, PUT, DELETE, OPTIONS";
    return form->is_resource ? "GET, HEAD, PUT, PATCH, DELETE, OPTIONS" : "GET, HEAD, POST, OPTIONS";
}

/* Headers for pages of other origins (Fetch standard); 204 answers their preflight. */
static void add_origin(const struct response_form *form, const struct reply *reply, int status,
                       struct builder *head)
{
    if (form->has_origins)
        add_header(head, "Vary", "Origin");
    if (!form->origin)
        return;
    add_header(head, "Access-Control-Allow-Origin", form->origin);
    if (form->may_send_cookies)
        add_header(head, "Access-Control-Allow-Credentials", "true");
    if (status == 204 && !reply->upload) {
        add_header(head, "Access-Control-Allow-Methods", methods_of(form, reply));
        add_header(
            head, "Access-Control-Allow-Headers",
            "Authorization, Content-Digest, Content-Encoding, Content-Type, Idempotency-Key, If-Match, "
            "If-None-Match, If-Range, Last-Event-ID, Range, Repr-Digest, Traceparent, Tracestate, "
            "Tus-Resumable, "
            "Upload-Length, Upload-Metadata, Upload-Offset, X-Request-Id, X-Stampd-Build");
        add_number_header(head, "Access-Control-Max-Age", PREFLIGHT_S);
        return;
    }
    add_header(head, "Access-Control-Expose-Headers",
               "Accept-Ranges, Content-Digest, Content-Disposition, Content-Encoding, Content-Range, "
               "ETag, Idempotency-Replayed, Location, Repr-Digest, Retry-After, Server-Timing, "
               "Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, "
               "Upload-Expires, Upload-Length, Upload-Metadata, Upload-Offset, X-Request-Id, X-Stampd-Build");
    if (reply->timing && reply->timing->is_shown)
        add_header(head, "Timing-Allow-Origin", form->origin);
}

static void add_duration(struct builder *head, const char *name, int64_t us, const char *separator)
{
    builder_printf(head, "%s;dur=%lld.%03lld%s", name, (long long)us / 1000, (long long)us % 1000, separator);
}

/* The time until now, in milliseconds. */
static void add_timing(struct reply *reply, struct builder *head)
{
    static const char *const names[] = {
        [PHASE_BEFORE] = "before",       [PHASE_WORK] = "work", [PHASE_VALIDATION] = "validation",
        [PHASE_AFTERWORK] = "afterwork", [PHASE_SYNC] = "sync",
    };
    int64_t total_us = 0;
    if (!reply->timing || !reply->timing->is_shown)
        return;
    reply_enter(reply, reply->phase);
    builder_add_text(head, "Server-Timing: ");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        add_duration(head, names[i], reply->timing->us[i], ", ");
        total_us += reply->timing->us[i];
    }
    add_duration(head, "total", total_us, "\r\n");
}

/* What the client may or should do next. */
static void add_advice(const struct response_form *form, const struct reply *reply, int status,
                       struct builder *head)
{
    if (status == 405 || (status == 204 && !reply->upload))
        add_header(head, "Allow", methods_of(form, reply));
    if (status == 204 && form->is_resource && !form->is_attachment && !form->is_upload)
        add_header(head, "Accept-Patch", MIME_JSON);
    if (status == 201 && form->location)
        add_header(head, "Location", form->location);
    if (status == 401)
        add_header(head, "WWW-Authenticate", "Bearer realm=\"stampd\"");
    if (status == 503 || status == 429 || status == STATUS_LOCKED)
        add_number_header(head, "Retry-After", reply->retry_after_s ? reply->retry_after_s : RETRY_AFTER_S);
    if (reply->etag && !reply->fault && !reply->attachment) {
        builder_add_text(head, "ETag: \"");
        builder_add_i64(head, reply->etag);
        if (reply->etag_view && *reply->etag_view)
            builder_printf(head, "-%s", reply->etag_view);
        builder_add_text(head, "\"\r\n");
    }
}

static bool is_open(const struct reply *reply)
{
    return reply->outlet && reply->outlet->is_open;
}

/* What is read while it comes: a proxy that compresses holds it back.  For the same answers nginx.conf.in
 * says to proxies that they shall not collect them (X-Accel-Buffering). */
static bool is_stream(const struct reply *reply)
{
    return is_open(reply) || (reply->mime && strcmp(reply->mime, MIME_EVENTS) == 0);
}

/* Most answers have one content type; the length of an answer sent in pieces is not known yet. */
static void add_content(const struct reply *reply, const char *mime, struct builder *head)
{
    if (strcmp(mime, MIME_JSON) == 0)
        builder_add_text(head, "Content-Type: " MIME_JSON "\r\n");
    else
        add_header(head, "Content-Type", mime);
    if (reply->is_gzip && !reply->fault)
        add_header(head, "Content-Encoding", "gzip");
    if (is_open(reply))
        return;
    builder_add_text(head, "Content-Length: ");
    builder_add_i64(head, (int64_t)reply->body->size);
    builder_add_text(head, "\r\n");
}

/* Whoever has a file keeps it, and asks before each use whether it has changed, unless it cannot change at
 * this address. */
static void response_add_file(const struct reply_file *file, struct builder *head)
{
    add_number_header(head, "X-Accel-Expires",
                      file->proxy_s); /* first: else nginx heeds Cache-Control instead */
    if (file->is_immutable)
        add_headers(head, "Cache-Control: public, max-age=31536000, immutable");
    else
        add_headers(head, "Cache-Control: public, no-cache");
    builder_add_text(head, "ETag: \"");
    builder_add_bytes(head, bytes_of(file->tag));
    builder_add_text(head, "\"\r\nX-Content-Type-Options: nosniff\r\n");
    if (file->policy)
        add_header(head, "Content-Security-Policy", file->policy);
}

/* A digest of 64 digits as a member of RFC 9530. */
static void add_digest(const char *sha, struct builder *head)
{
    char bytes[32];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)hex_byte(sha + 2 * i);
    builder_add_text(head, "sha-256=:");
    size_t start = head->size;
    base64_add(head, (struct bytes){bytes, sizeof bytes});
    for (size_t i = start; i < head->size; i++) /* the alphabet of structured fields */
        head->data[i] = head->data[i] == '-' ? '+' : head->data[i] == '_' ? '/' : head->data[i];
    builder_add_text(head, "=:\r\n");
}

/* For nginx alone, which does not pass them on. */
static void add_object(const struct reply_object *object, struct builder *head)
{
    add_header(head, "X-Stampd-Object-Authorization", object->authorization);
    add_header(head, "X-Stampd-Object-Date", object->date);
    add_header(head, "X-Stampd-Object-Body", object->body);
    if (*object->range)
        add_header(head, "X-Stampd-Object-Range", object->range);
    add_number_header(head, "X-Stampd-Object-Size", object->size);
}

/* nginx passes these on with the file: /.stampd/files/ in its configuration. */
static void add_attachment(const struct reply_attachment *attachment, struct builder *head)
{
    const char *who = attachment->is_public ? "public" : "private";
    if (attachment->location)
        add_header(head, "X-Accel-Redirect", attachment->location);
    builder_printf(head, "Cache-Control: %s, %s\r\n", who,
                   attachment->is_immutable && attachment->is_public ? "max-age=86400, immutable"
                                                                     : "no-cache");
    builder_printf(head, "ETag: \"%s\"\r\n", attachment->sha);
    builder_add_text(head, "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: sandbox; default-src "
                           "'none'\r\nRepr-Digest: ");
    add_digest(attachment->sha, head);
    if (attachment->location) {
        builder_add_text(head, "Content-Digest: ");
        add_digest(attachment->sha, head);
    }
    if (attachment->disposition)
        add_header(head, "Content-Disposition", attachment->disposition);
    if (attachment->object)
        add_object(attachment->object, head);
}

/* What the tus protocol adds; without a result: what the server can do. */
static void add_upload(const struct response_form *form, const struct reply *reply, int status,
                       struct builder *head)
{
    const struct reply_upload *upload = reply->fault ? NULL : reply->upload;
    add_headers(head, "Tus-Resumable: " UPLOAD_VERSION);
    if (status == 204 && !upload) {
        add_headers(head, "Tus-Version: " UPLOAD_VERSION
                          "\r\nTus-Extension: creation,creation-with-upload,expiration,termination");
        add_number_header(head, "Tus-Max-Size", form->upload_most);
    }
    if (status == 412)
        add_headers(head, "Tus-Version: " UPLOAD_VERSION);
    if (!upload)
        return;
    if (upload->offset >= 0)
        add_number_header(head, "Upload-Offset", upload->offset);
    if (upload->length >= 0)
        add_number_header(head, "Upload-Length", upload->length);
    if (upload->location)
        add_header(head, "Location", upload->location);
    if (upload->expires)
        add_header(head, "Upload-Expires", upload->expires);
    if (upload->metadata)
        add_header(head, "Upload-Metadata", upload->metadata);
}

static void response_add_name(struct builder *head, const char *header, const char *name)
{
    struct bytes text = bytes_of(name);
    if (!response_is_plain(text))
        return;
    builder_add_bytes(head, bytes_of(header));
    builder_add_bytes(head, text);
    builder_add_text(head, "\r\n");
}

void response_compose(const struct response_form *form, struct reply *reply, struct builder *head)
{
    const char *mime = reply->mime ? reply->mime : MIME_JSON;
    int status = response_status(form, reply);
    if (reply->fault) {
        assert(!reply->body->size);
        mime = form->is_for_people ? "text/plain; charset=utf-8" : "application/problem+json";
        if (form->is_for_people)
            write_for_people(reply, reply->body);
        else
            write_problem(reply, status, reply->body);
    }
    add_status(head, status);
    if (has_content(status))
        add_content(reply, mime, head);
    if (reply->fault || reply->is_secret)
        add_headers(head, "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff");
    else if (reply->file)
        response_add_file(reply->file, head);
    else if (reply->attachment)
        add_attachment(reply->attachment, head);
    else if (is_stream(reply))
        add_headers(head,
                    "Cache-Control: private, no-cache, no-transform\r\nX-Content-Type-Options: nosniff");
    else
        add_headers(head, "Cache-Control: private, no-cache\r\nX-Content-Type-Options: nosniff");
    if (reply->is_replayed && !reply->fault)
        add_header(head, "Idempotency-Replayed", "true");
    if (reply->cookie && (!reply->fault || reply->fault == FAULT_SKEY))
        add_header(head, "Set-Cookie", reply->cookie);
    add_advice(form, reply, status, head);
    if (form->is_upload)
        add_upload(form, reply, status, head);
    add_origin(form, reply, status, head);
    add_timing(reply, head);
    response_add_name(head, "X-Request-Id: ", form->request_id);
    response_add_name(head, "X-Stampd-Build: ", form->build);
    if (form->judged)
        add_header(head, "X-Stampd-Judged", form->judged);
    builder_add_text(head, "\r\n");
}

struct bytes response_body(const struct response_form *form, const struct reply *reply)
{
    return form->is_head ? BYTES("") : builder_bytes(reply->body);
}
