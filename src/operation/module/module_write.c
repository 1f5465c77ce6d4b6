/* module_write: JSON texts written by modules, and results (stampd.h). */
#include "operation/module/module_convert.h"
#include "operation/module/module_try.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "operation/reply.h"

/* Most arrays and objects that are open at once in a text. */
enum { DEPTH_MOST = 128 };

struct stampd_writer {
    struct stampd_call *call;
    struct builder text; /* given back with the arena */
    int depth;           /* 0: finished */
    bool is_object[DEPTH_MOST];
    bool has_members[DEPTH_MOST];
};

static void free_text(void *text)
{
    builder_free(text);
}

static void misuse(struct stampd_writer *writer, const char *words, const char *name)
{
    module_try_fail(writer->call, FAULT_BMODULE, words, name);
}

static void open(struct stampd_writer *writer, bool is_object)
{
    if (writer->depth == DEPTH_MOST) {
        misuse(writer, "A text is written with too many levels.", NULL);
        return;
    }
    builder_add(&writer->text, is_object ? "{" : "[", 1);
    writer->is_object[writer->depth] = is_object;
    writer->has_members[writer->depth++] = false;
}

static struct stampd_writer *module_write_create(struct stampd_call *call, bool is_object)
{
    struct stampd_writer *writer = ARENA_NEW(module_try_arena(call), struct stampd_writer);
    writer->call = call;
    arena_defer(module_try_arena(call), free_text, &writer->text);
    open(writer, is_object);
    return writer;
}

struct stampd_writer *stampd_write_object(struct stampd_call *call)
{
    return module_write_create(call, true);
}

struct stampd_writer *stampd_write_array(struct stampd_call *call)
{
    return module_write_create(call, false);
}

/* Writes what precedes a value: the comma, the name.  False: no value is allowed here. */
static bool module_write_begin(struct stampd_writer *writer, const char *name)
{
    if (!writer->depth) {
        misuse(writer, "More is written to a text that is finished.", name);
        return false;
    }
    int level = writer->depth - 1;
    if (writer->is_object[level] != (name != NULL)) {
        misuse(writer, name ? "An element of an array is given a name." : "A member has no name.", name);
        return false;
    }
    if (name && !bytes_is_utf8(bytes_of(name))) {
        misuse(writer, "The name of a member is not UTF-8.", NULL);
        return false;
    }
    if (writer->has_members[level])
        builder_add_text(&writer->text, ",");
    writer->has_members[level] = true;
    if (name) {
        json_add_string(&writer->text, bytes_of(name));
        builder_add_text(&writer->text, ":");
    }
    return true;
}

static void module_write_add(struct stampd_writer *writer, const char *name, struct bytes text)
{
    if (module_write_begin(writer, name))
        builder_add_bytes(&writer->text, text);
}

static void add_string(struct stampd_writer *writer, const char *name, struct bytes text)
{
    if (memchr(text.data, '\0', text.size) || !bytes_is_utf8(text))
        misuse(writer, "A text that is written is not UTF-8 without NUL.", name);
    else if (module_write_begin(writer, name))
        json_add_string(&writer->text, text);
}

void stampd_add_text(struct stampd_writer *writer, const char *name, const char *text)
{
    if (text)
        add_string(writer, name, bytes_of(text));
    else
        stampd_add_null(writer, name);
}

void stampd_add_bytes(struct stampd_writer *writer, const char *name, struct stampd_bytes text)
{
    if (text.data)
        add_string(writer, name, bytes_from(text));
    else
        stampd_add_null(writer, name);
}

void stampd_add_integer(struct stampd_writer *writer, const char *name, int64_t number)
{
    if (module_write_begin(writer, name))
        builder_add_i64(&writer->text, number);
}

/* The shortest text that parses to the same number. */
void stampd_add_number(struct stampd_writer *writer, const char *name, double number)
{
    char text[32];
    if (!isfinite(number)) {
        misuse(writer, "A number that is written is not finite.", name);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    module_write_add(writer, name, bytes_of(text));
}

void stampd_add_boolean(struct stampd_writer *writer, const char *name, bool value)
{
    module_write_add(writer, name, value ? BYTES("true") : BYTES("false"));
}

void stampd_add_null(struct stampd_writer *writer, const char *name)
{
    module_write_add(writer, name, BYTES("null"));
}

void stampd_add_value(struct stampd_writer *writer, const char *name, const struct stampd_json *value)
{
    module_write_add(writer, name, value ? json_of(value)->text : BYTES("null"));
}

void stampd_add_content(struct stampd_writer *writer, const char *name, const struct stampd_item *item)
{
    if (!item->content.data)
        stampd_add_null(writer, name);
    else if (item->is_raw)
        add_string(writer, name, bytes_from(item->content));
    else
        module_write_add(writer, name, bytes_from(item->content));
}

void stampd_open_object(struct stampd_writer *writer, const char *name)
{
    if (module_write_begin(writer, name))
        open(writer, true);
}

void stampd_open_array(struct stampd_writer *writer, const char *name)
{
    if (module_write_begin(writer, name))
        open(writer, false);
}

void stampd_close(struct stampd_writer *writer)
{
    if (writer->depth)
        builder_add(&writer->text, writer->is_object[--writer->depth] ? "}" : "]", 1);
    else
        misuse(writer, "More is closed than was opened.", NULL);
}

struct stampd_bytes stampd_written(struct stampd_writer *writer)
{
    while (writer->depth)
        stampd_close(writer);
    return bytes_to(builder_bytes(&writer->text));
}

/* --- the result --- */

static enum stampd_outcome set_result(struct stampd_call *call, const char *mime, struct bytes result)
{
    int64_t most = module_try_settings(call)->limit_answer_bytes;
    if (!module_try_fault(call) && (int64_t)result.size > most)
        module_try_fail_limit(call, "limit_answer_bytes", most, (int64_t)result.size);
    if (module_try_fault(call))
        return STAMPD_FAULT;
    module_try_set_result(call, mime, result);
    return STAMPD_DONE;
}

enum stampd_outcome stampd_result(struct stampd_call *call, struct stampd_writer *writer)
{
    return set_result(call, MIME_JSON, bytes_from(stampd_written(writer)));
}

enum stampd_outcome stampd_result_value(struct stampd_call *call, const struct stampd_json *value)
{
    return set_result(call, MIME_JSON, value ? json_of(value)->text : BYTES("null"));
}

enum stampd_outcome stampd_result_json(struct stampd_call *call, struct stampd_bytes text)
{
    const struct json_limits limits = {.depth = DEPTH_MOST};
    struct json *root;
    struct json_problem problem;
    if (!text.data || json_read(module_try_arena(call), bytes_from(text), &limits, &root, &problem))
        module_try_fail(call, FAULT_BMODULE, "A result that should be JSON is none.", NULL);
    return set_result(call, MIME_JSON, bytes_from(text));
}

static enum stampd_outcome set_plain(struct stampd_call *call, const char *mime, struct stampd_bytes result)
{
    if (!reply_is_mime(bytes_of(mime)) || strcmp(mime, MIME_JSON) == 0) /* JSON has functions of its own */
        module_try_fail(call, FAULT_BMODULE, "A result has no type that it could have.", NULL);
    else if (!result.data)
        module_try_fail(call, FAULT_BMODULE, "A result is nothing at all.", NULL);
    return set_result(call, arena_copy(module_try_arena(call), mime, strlen(mime)), bytes_from(result));
}

enum stampd_outcome stampd_result_text(struct stampd_call *call, const char *mime, struct stampd_bytes text)
{
    if (text.data && !bytes_is_utf8(bytes_from(text)))
        module_try_fail(call, FAULT_BMODULE, "A result that should be text is not UTF-8.", NULL);
    return set_plain(call, mime ? mime : "text/plain; charset=utf-8", text);
}

enum stampd_outcome stampd_result_bytes(struct stampd_call *call, const char *mime, struct stampd_bytes bytes)
{
    return set_plain(call, mime ? mime : "application/octet-stream", bytes);
}

const struct stampd_json *stampd_result_of_work(struct stampd_call *call)
{
    const struct reply *reply = module_try_attempt(call)->reply;
    const char *what;
    size_t out = module_try_attempt(call)->out;
    if (!module_try_is_afterwork(call) || reply->body->size == out || strcmp(reply->mime, MIME_JSON) != 0)
        return NULL;
    size_t size = reply->body->size - out; /* a copy: the body is rewritten */
    return value_of(module_try_read_json(
        call, (struct bytes){arena_copy(module_try_arena(call), reply->body->data + out, size), size},
        &what));
}
