/* response: status, headers, and faults as application/problem+json (RFC 9457) or as text for people. */
#include "serve/response.h"

#include "edge/json.h"

static const char *status_words(int status)
{
    static const struct {
        int status;
        const char *words;
    } all[] = {
        {200, "OK"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i].status == status)
            return all[i].words;
    return "Bad Request";
}

int response_status(const struct reply *reply)
{
    if (reply->fault == FAULT_ALIMIT && reply->argument_count &&
        strcmp(reply->arguments[0], "limit_body_bytes") == 0)
        return 413;
    if (reply->fault == FAULT_RAISED)
        return reply_code(reply)[0] == 'N' ? 404 : 400;
    return fault_status(reply->fault, false);
}

/* --- the text of a fault --- */

/* What clients sent may be given back; only as text. */
static struct bytes printable(const char *text)
{
    struct bytes bytes = bytes_of(text);
    return bytes_is_utf8(bytes) ? bytes : BYTES("?");
}

static void add_member(struct builder *out, const char *name, struct bytes value)
{
    builder_add(out, ",\"", 2);
    builder_add(out, name, strlen(name));
    builder_add(out, "\":", 2);
    json_add_string(out, value);
}

static void add_number(struct builder *out, const char *name, int64_t value)
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
    add_member(out, "title", bytes_of(reply_words(reply)));
    add_number(out, "status", status);
    add_member(out, "code", bytes_of(reply_code(reply)));
    add_number(out, "major", reply_major(reply));
    add_number(out, "phase", reply->phase);
    add_member(out, "message", builder_bytes(&message));
    builder_add_text(out, ",\"args\":[");
    for (int i = 0; i < reply->argument_count; i++) {
        if (i)
            builder_add_text(out, ",");
        json_add_string(out, printable(reply->arguments[i]));
    }
    builder_add_text(out, "]");
    if (reply->detail)
        add_member(out, "detail", printable(reply->detail));
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
    for (int i = 0; i < reply->argument_count; i++) {
        builder_add_text(out, "- ");
        builder_add_bytes(out, printable(reply->arguments[i]));
        builder_add_text(out, "\n");
    }
}

/* --- the head --- */

/* Nothing that a header could be split with. */
static bool is_plain(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+";
    size_t size = text ? strlen(text) : 0;
    return size && size <= 64 && strspn(text, plain) == size;
}

static void add_header(struct builder *head, const char *name, const char *value)
{
    builder_add_bytes(head, bytes_of(name));
    builder_add_text(head, ": ");
    builder_add_bytes(head, bytes_of(value));
    builder_add_text(head, "\r\n");
}

void response_compose(const struct response_form *form, struct reply *reply, struct builder *head)
{
    const char *mime = reply->mime ? reply->mime : "application/json";
    int status = form->status ? form->status : response_status(reply);
    if (reply->fault) {
        assert(!reply->body->size);
        mime = form->is_for_people ? "text/plain; charset=utf-8" : "application/problem+json";
        if (form->is_for_people)
            write_for_people(reply, reply->body);
        else
            write_problem(reply, status, reply->body);
    }
    builder_add_text(head, "Status: ");
    builder_add_i64(head, status);
    builder_add_text(head, " ");
    builder_add_bytes(head, bytes_of(status_words(status)));
    builder_add_text(head, "\r\n");
    add_header(head, "Content-Type", mime);
    builder_add_text(head, "Content-Length: ");
    builder_add_i64(head, (int64_t)reply->body->size);
    builder_add_text(head, "\r\n");
    add_header(head, "Cache-Control", reply->fault ? "no-store" : "private, no-cache");
    add_header(head, "X-Content-Type-Options", "nosniff");
    if (reply->is_replayed && !reply->fault)
        add_header(head, "Idempotency-Replayed", "true");
    if (status == 405)
        add_header(head, "Allow", "GET, HEAD, POST");
    if (is_plain(form->request_id))
        add_header(head, "X-Request-Id", form->request_id);
    if (is_plain(form->build))
        add_header(head, "X-Stampd-Build", form->build);
    builder_add_text(head, "\r\n");
}

struct bytes response_body(const struct response_form *form, const struct reply *reply)
{
    return form->is_head ? BYTES("") : builder_bytes(reply->body);
}
