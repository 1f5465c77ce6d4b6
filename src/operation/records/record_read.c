/* record_read: from JSON to commands of records, and back. */
#include "operation/records/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/coding/base64.h"
#include "base/clock.h"
#include "base/names.h"

/* The members of a command beside `do`. */
struct record_form {
    const char *word, *members;
    enum records_deed deed; /* GET of `listen` too: it changes nothing */
};

static const struct record_form forms[] = {
    {"listen", "do keys prefixes from to since wait", RECORDS_GET},
    {"set", "do key keys value ttl_ms touch_s at overwrite only if owner persist", RECORDS_SET},
    {"get", "do key from to prefix pattern after limit probe work_ms idle ttl_ms", RECORDS_GET},
    {"delete", "do key at owner immediate if", RECORDS_DELETE},
    {"add", "do key by create ttl_ms touch_s at owner persist if", RECORDS_ADD},
    {"not", "do key at owner if", RECORDS_NOT},
    {"truncate", "do key size at owner if", RECORDS_TRUNCATE},
    {"lock", "do key owner lock_ms create at persist", RECORDS_LOCK},
    {"unlock", "do key owner", RECORDS_UNLOCK},
    {"rename", "do key to overwrite at owner immediate if", RECORDS_RENAME},
    {"link", "do key to at owner if", RECORDS_LINK},
    {"unlink", "do key at owner if", RECORDS_UNLINK},
};

static const struct record_form *find_form(const struct json *wish)
{
    const struct json *word = json_member(wish, "do");
    for (size_t i = 0; word && word->kind == JSON_STRING && i < COUNT_OF(forms); i++)
        if (bytes_equal(word->value, bytes_of(forms[i].word)))
            return &forms[i];
    return NULL;
}

bool record_is_look(const struct call *call)
{
    const struct json *commands = json_member(call->param, "commands");
    for (const struct json *one = commands ? commands->first : NULL; one; one = one->next) {
        const struct record_form *form = find_form(one);
        if (!form || form->deed != RECORDS_GET || json_member(one, "work_ms") || json_member(one, "ttl_ms"))
            return false;
    }
    return commands && commands->kind == JSON_ARRAY && !commands->is_shallow;
}

bool record_is_write(const struct record_request *request)
{
    const struct records_command *command = &request->command;
    return command->deed != RECORDS_GET || command->lease_ms || command->expires_ms;
}

/* --- contents --- */

static struct bytes in_arena(const struct reader *reader, const void *data, size_t size)
{
    return (struct bytes){arena_copy(reader->call->arena, data, size), size};
}

#define VALUE_EXPECTED                                                                                       \
    "null, a boolean, a finite number (without fraction and exponent: an integer of 64 bits), a text, or "   \
    "{\"buffer\":base64url} is expected."

static bool record_read_read_number(const struct reader *reader, const struct json *value,
                                    struct records_command *command)
{
    char content[8];
    int64_t integer;
    if (json_is_i64(value, &integer)) {
        command->type = RECORDS_INTEGER;
        records_write_integer(content, integer);
    } else {
        double number = strtod(arena_copy(reader->call->arena, value->value.data, value->value.size), NULL);
        if (!memchr(value->value.data, '.', value->value.size) &&
            !memchr(value->value.data, 'e', value->value.size) &&
            !memchr(value->value.data, 'E', value->value.size))
            return false; /* an integer that does not fit */
        if (!isfinite(number))
            return false;
        command->type = RECORDS_FLOAT;
        records_write_float(content, number);
    }
    command->content = in_arena(reader, content, sizeof content);
    return true;
}

static bool read_buffer(const struct reader *reader, const struct json *value,
                        struct records_command *command)
{
    const struct json *text = json_member(value, "buffer");
    if (!text || text->kind != JSON_STRING || value->count != 1)
        return false;
    size_t size = text->value.size / 4 * 3 + (text->value.size % 4 ? text->value.size % 4 - 1 : 0);
    char *buffer = arena_alloc(reader->call->arena, size + 1);
    if (!base64_read_strict(text->value, buffer, size))
        return false;
    command->type = RECORDS_BUFFER;
    command->content = (struct bytes){buffer, size};
    return true;
}

static bool record_read_read_value(const struct reader *reader, const struct json *value,
                                   struct records_command *command)
{
    const char flag = value->kind == JSON_TRUE;
    switch (value->kind) {
    case JSON_NULL:
        command->type = RECORDS_VOID;
        command->content = BYTES("");
        return true;
    case JSON_FALSE:
    case JSON_TRUE:
        command->type = RECORDS_BOOLEAN;
        command->content = in_arena(reader, &flag, 1);
        return true;
    case JSON_NUMBER:
        return record_read_read_number(reader, value, command);
    case JSON_STRING:
        command->type = RECORDS_STRING;
        command->content = value->value;
        return true;
    case JSON_OBJECT:
        return read_buffer(reader, value, command);
    case JSON_ARRAY:
        break;
    }
    return false;
}

static enum fault record_read_read_content(const struct reader *reader, const struct json *wish,
                                           const char *member, struct records_command *command)
{
    const struct json *value = json_member(wish, member);
    if (!value || !record_read_read_value(reader, value, command))
        return reader_wrong(reader, wish, member, VALUE_EXPECTED);
    int64_t most = reader->settings->limit_content_bytes;
    if (most > RECORDS_CONTENT_MOST)
        most = RECORDS_CONTENT_MOST;
    if (command->content.size > (size_t)most)
        return reader_over(reader, value, "limit_content_bytes", most, (int64_t)command->content.size);
    bool is_number = command->type == RECORDS_INTEGER || command->type == RECORDS_FLOAT;
    if (command->deed == RECORDS_ADD && !is_number)
        return reader_wrong(reader, wish, member, "A number is expected.");
    return FAULT_NONE;
}

/* --- members --- */

#define KEY_EXPECTED "A text of 1 to 1024 bytes without NUL is expected."

static enum fault record_read_read_key(const struct reader *reader, const struct json *wish,
                                       const char *member, struct bytes *key_r)
{
    enum fault fault = reader_text(reader, wish, member, key_r);
    if (!fault && key_r->data && !records_is_key(*key_r))
        fault = reader_wrong(reader, wish, member, KEY_EXPECTED);
    return fault;
}

static enum fault need_key(const struct reader *reader, const struct json *wish, const char *member,
                           struct bytes *key_r)
{
    enum fault fault = record_read_read_key(reader, wish, member, key_r);
    return !fault && !key_r->data ? reader_wrong(reader, wish, member, KEY_EXPECTED) : fault;
}

/* An array of keys, or of prefixes; absent: none.  `expected`: of the array. */
static enum fault record_read_read_keys(const struct reader *reader, const struct json *wish,
                                        const char *member, size_t most, const char *expected,
                                        const struct bytes **list_r, size_t *count_r)
{
    const struct json *keys = json_member(wish, member);
    *list_r = NULL;
    *count_r = 0;
    if (!keys)
        return FAULT_NONE;
    if (keys->kind != JSON_ARRAY || keys->is_shallow || keys->count > most)
        return reader_wrong(reader, wish, member, expected);
    struct bytes *list = ARENA_ARRAY(reader->call->arena, struct bytes, keys->count + 1);
    for (const struct json *key = keys->first; key; key = key->next) {
        if (key->kind != JSON_STRING || !records_is_key(key->value))
            return reader_wrong_value(reader, key, member, KEY_EXPECTED);
        list[(*count_r)++] = key->value;
    }
    *list_r = list;
    return FAULT_NONE;
}

static enum fault read_owner(const struct reader *reader, const struct json *wish,
                             struct records_command *command)
{
    bool is_needed = command->deed == RECORDS_LOCK || command->deed == RECORDS_UNLOCK;
    enum fault fault = reader_text(reader, wish, "owner", &command->owner);
    if (!fault &&
        (command->owner.data ? !command->owner.size || command->owner.size > RECORDS_OWNER_MOST : is_needed))
        fault = reader_wrong(reader, wish, "owner", "A text of 1 to 64 bytes is expected.");
    return fault;
}

/* A timestamp far ahead would win against everybody else's for as long. */
static enum fault read_timestamp(const struct reader *reader, const struct json *wish,
                                 struct records_command *command)
{
    int64_t most_us = (clock_wall_ms() + reader->settings->dhop_future_ms) * 1000;
    enum fault fault = reader_integer(reader, wish, "at", 1, INT64_MAX, 0, &command->timestamp_us);
    if (!fault && command->timestamp_us > most_us)
        fault =
            reader_wrong(reader, wish, "at", "A time in microseconds that is not in the future is expected.");
    return fault;
}

static enum fault read_times(const struct reader *reader, const struct json *wish,
                             struct record_request *request)
{
    struct records_command *command = &request->command;
    enum fault fault = FAULT_FIRST(
        read_timestamp(reader, wish, command),
        reader_integer(reader, wish, "ttl_ms", 1, RECORDS_TOUCH_MOST_S * 1000, 0, &request->ttl_ms),
        reader_integer(reader, wish, "touch_s", 1, RECORDS_TOUCH_MOST_S, 0, &command->touch_s),
        reader_integer(reader, wish, command->deed == RECORDS_LOCK ? "lock_ms" : "work_ms", 1,
                       RECORDS_LEASE_MOST_MS, 0, &command->lease_ms));
    if (!fault && command->deed == RECORDS_LOCK && !command->lease_ms)
        fault =
            reader_wrong(reader, wish, "lock_ms", "A number of milliseconds is expected, at most 604800000.");
    command->expires_ms = request->ttl_ms ? clock_present_ms() + request->ttl_ms : 0;
    return fault;
}

static enum fault read_flags(const struct reader *reader, const struct json *wish,
                             struct records_command *command)
{
    bool is_create = command->deed == RECORDS_ADD || command->deed == RECORDS_LOCK;
    enum fault fault =
        reader_boolean(reader, wish, is_create ? "create" : "overwrite", &command->may_overwrite);
    if (!fault)
        fault = FAULT_FIRST(reader_boolean(reader, wish, "immediate", &command->is_immediate),
                            reader_boolean(reader, wish, "probe", &command->is_probe),
                            reader_boolean(reader, wish, "idle", &command->leaves_worked));
    return FAULT_FIRST(fault, reader_boolean(reader, wish, "persist", &command->is_persisted));
}

/* Of a SET: whether a record has to be there. */
static enum fault read_only(const struct reader *reader, const struct json *wish,
                            struct records_command *command)
{
    struct bytes only;
    enum fault fault = reader_text(reader, wish, "only", &only);
    if (fault || !only.data)
        return fault;
    command->is_only_present = bytes_equal(only, BYTES("present"));
    if (!command->is_only_present && !bytes_equal(only, BYTES("absent")))
        return reader_wrong(reader, wish, "only", "One of present, absent is expected.");
    if (command->may_overwrite)
        return reader_wrong(reader, wish, "only", "It cannot stand beside `overwrite`.");
    command->may_overwrite = command->is_only_present;
    return FAULT_NONE;
}

/* As record_write writes a stamp. */
static bool read_hex(struct bytes text, uint64_t *number_r)
{
    static const char digits[] = "0123456789abcdef";
    *number_r = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char *digit = text.data[i] ? strchr(digits, text.data[i]) : NULL;
        if (!digit)
            return false;
        *number_r = *number_r << 4 | (uint64_t)(digit - digits);
    }
    return text.size == 2 * sizeof *number_r;
}

static enum fault read_stamp(const struct reader *reader, const struct json *wish,
                             struct records_command *command)
{
    struct bytes text;
    enum fault fault = reader_text(reader, wish, "if", &text);
    if (fault || !text.data)
        return fault;
    if (!read_hex(text, &command->stamp) || !command->stamp)
        return reader_wrong(reader, wish, "if", "A stamp of a record is expected: 16 hexadecimal digits.");
    bool is_set = command->deed == RECORDS_SET, is_add = command->deed == RECORDS_ADD;
    const char *beside =
        is_add ? "It cannot stand beside `create`." : "It cannot stand beside `overwrite` and `only`.";
    if ((is_set && json_member(wish, "only")) || ((is_set || is_add) && command->may_overwrite))
        return reader_wrong(reader, wish, "if", beside);
    command->may_overwrite = command->may_overwrite || is_set;
    return FAULT_NONE;
}

static enum fault read_pattern(const struct reader *reader, const struct json *wish,
                               struct record_request *request)
{
    struct bytes *text = &request->query.pattern;
    struct pattern_problem problem;
    enum fault fault = reader_text(reader, wish, "pattern", text);
    if (!fault && text->data &&
        (text->size > PATTERN_TEXT_MOST ||
         !pattern_compile(reader->call->arena, *text, &request->pattern, &problem)))
        fault =
            reader_wrong(reader, wish, "pattern", "A regular expression of at most 1024 bytes is expected.");
    return fault;
}

/* Every key begins with "". */
static enum fault record_read_read_prefix(const struct reader *reader, const struct json *wish,
                                          struct bytes *prefix_r)
{
    const struct json *prefix = json_member(wish, "prefix");
    if (!prefix || prefix->kind != JSON_STRING || prefix->value.size)
        return record_read_read_key(reader, wish, "prefix", prefix_r);
    *prefix_r = NO_BYTES;
    return FAULT_NONE;
}

static enum fault read_query(const struct reader *reader, const struct json *wish,
                             struct record_request *request)
{
    struct record_query *query = &request->query;
    return FAULT_FIRST(
        record_read_read_key(reader, wish, "from", &query->from),
        record_read_read_key(reader, wish, "to", &query->to),
        record_read_read_prefix(reader, wish, &query->prefix),
        record_read_read_key(reader, wish, "after", &query->after), read_pattern(reader, wish, request),
        reader_integer(reader, wish, "limit", 1, RECORD_PAGE_MOST, RECORD_PAGE_STANDARD, &query->limit));
}

static enum fault read_listen(const struct reader *reader, const struct json *wish,
                              struct record_request *request)
{
    struct record_listen *listen = &request->listen;
    static const char expected[] = "An array of at most 100 texts is expected.";
    int64_t wait_s = 0;
    request->is_listen = true;
    enum fault fault = FAULT_FIRST(record_read_read_keys(reader, wish, "keys", RECORD_LISTENED_MOST, expected,
                                                         &listen->keys, &listen->key_count),
                                   record_read_read_keys(reader, wish, "prefixes", RECORD_LISTENED_MOST,
                                                         expected, &listen->prefixes, &listen->prefix_count),
                                   record_read_read_key(reader, wish, "from", &request->query.from),
                                   record_read_read_key(reader, wish, "to", &request->query.to),
                                   reader_text(reader, wish, "since", &listen->since),
                                   reader_integer(reader, wish, "wait", 0, 3600, 0, &wait_s));
    if (!fault && wait_s && !listen->since.data)
        fault = reader_wrong(reader, wish, "wait", "It needs `since`, a position.");
    listen->wait_ms = wait_s * 1000;
    return fault;
}

static enum fault read_subject(const struct reader *reader, const struct json *wish,
                               struct record_request *request)
{
    struct records_command *command = &request->command;
    bool has_key = json_member(wish, "key") != NULL;
    if (command->deed == RECORDS_GET && !has_key) {
        request->is_query = true;
        return read_query(reader, wish, request);
    }
    static const char *const of_queries[] = {"from", "to", "prefix", "pattern", "after", "limit"};
    for (size_t i = 0; command->deed == RECORDS_GET && i < COUNT_OF(of_queries); i++)
        if (json_member(wish, of_queries[i]))
            return reader_wrong(reader, wish, of_queries[i], "It cannot stand beside `key`.");
    enum fault fault = need_key(reader, wish, "key", &command->key);
    if (!fault && (command->deed == RECORDS_RENAME || command->deed == RECORDS_LINK))
        fault = need_key(reader, wish, "to", &command->to);
    if (!fault && command->deed == RECORDS_SET)
        fault = record_read_read_keys(reader, wish, "keys", RECORDS_KEYS_MOST - 1,
                                      "An array of at most 7 keys is expected.", &command->more,
                                      &command->more_count);
    return fault;
}

enum fault record_read(const struct reader *reader, const struct json *wish, struct record_request *request)
{
    const struct record_form *form = wish->kind == JSON_OBJECT && !wish->is_shallow ? find_form(wish) : NULL;
    int64_t size = 0;
    *request = (struct record_request){.at = wish};
    if (!form)
        return reader_wrong(reader, wish, "do",
                            "One of set, get, listen, delete, add, not, truncate, lock, unlock, rename, "
                            "link, unlink is expected.");
    struct records_command *command = &request->command;
    command->deed = form->deed;
    enum fault fault = reader_members(reader, wish, form->members);
    if (!fault && strcmp(form->word, "listen") == 0)
        return read_listen(reader, wish, request);
    if (!fault)
        fault = read_subject(reader, wish, request);
    if (!fault && (form->deed == RECORDS_SET || form->deed == RECORDS_ADD))
        fault = record_read_read_content(reader, wish, form->deed == RECORDS_SET ? "value" : "by", command);
    if (!fault && form->deed == RECORDS_TRUNCATE)
        fault = reader_integer(reader, wish, "size", 0, reader->settings->limit_content_bytes, -1, &size);
    if (!fault && size < 0)
        fault = reader_wrong(reader, wish, "size", "A number of bytes is expected.");
    command->size = (size_t)(size < 0 ? 0 : size);
    if (!fault)
        fault = FAULT_FIRST(read_owner(reader, wish, command), read_times(reader, wish, request),
                            read_flags(reader, wish, command));
    if (!fault && command->deed == RECORDS_SET)
        fault = read_only(reader, wish, command);
    return fault ? fault : read_stamp(reader, wish, command);
}

/* --- answers --- */

static void write_value(struct builder *body, const struct records_found *found)
{
    switch (found->type) {
    case RECORDS_VOID:
    case RECORDS_TYPES:
        builder_add_text(body, "null");
        return;
    case RECORDS_BUFFER:
        builder_add_text(body, "{\"buffer\":\"");
        base64_add(body, found->content);
        builder_add_text(body, "\"}");
        return;
    case RECORDS_STRING:
        json_add_string(body, found->content);
        return;
    case RECORDS_INTEGER:
        builder_add_i64(body, records_read_integer(found->content));
        return;
    case RECORDS_FLOAT:
        builder_printf(body, "%.17g", records_read_float(found->content));
        return;
    case RECORDS_BOOLEAN:
        builder_printf(body, "%s", found->content.data[0] ? "true" : "false");
        return;
    }
}

void record_write(struct builder *body, const struct records_found *found)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"expires_ms", found->expires_ms},
                   {"touch_s", found->touch_s},
                   {"locked_until_ms", found->locked_until_ms},
                   {"worked_until_ms", found->worked_until_ms}};
    builder_printf(body, ",\"type\":\"%s\"", records_type_word(found->type));
    if (found->content.data) {
        builder_add_text(body, ",\"value\":");
        write_value(body, found);
    }
    builder_printf(body,
                   ",\"size\":%zu,\"at\":%lld,\"stamp\":\"%016llx\",\"created_s\":%lld,\"modified_s\":%lld,"
                   "\"accessed_s\":%lld",
                   found->size, (long long)found->timestamp_us, (unsigned long long)found->stamp,
                   (long long)found->created_s, (long long)found->modified_s, (long long)found->accessed_s);
    if (found->is_persisted)
        builder_add_text(body, ",\"persist\":true");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i].value)
            builder_printf(body, ",\"%s\":%lld", numbers[i].name, (long long)numbers[i].value);
}
