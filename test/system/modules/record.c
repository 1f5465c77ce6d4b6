/* record: records from a module: every function, what is refused, and a death inside of a change. */
#include <stampd.h>
#include <stampd_filter.h>
#include <stampd_record.h>

#include <string.h>

static const char *const words[] = {
    "OK",         "NOT_FOUND",       "NOT_FREE",      "OLDER", "LOCKED",      "NOT_LOCKED",
    "WRONG_TYPE", "OUT_OF_RANGE",    "OUT_OF_MEMORY", "BUSY",  "FAILED",      "NO_DISK",
    "NOT_SAVED",  "WORKED_ON",       "NOT_READ",      "LOST",  "OTHER_STAMP", "OUT_OF_SHARE",
    "UNKNOWN",    "NO_PARTICIPANTS", "UNSUPPORTED"};
static const char *const deeds[] = {"get",        "set", "add",      "delete", "lock", "unlock", "odd",
                                    "add_number", "not", "truncate", "rename", "work", "put",    NULL};

static void read_value(struct stampd_call *call, const struct stampd_json *param,
                       struct stampd_record_value *value)
{
    const char *text = stampd_read_text_or(call, param, "text", 0, 1000000, NULL);
    *value = (struct stampd_record_value){.type = STAMPD_RECORD_INTEGER};
    if (text) {
        value->type = stampd_read_boolean_or(call, param, "buffer", false) ? STAMPD_RECORD_BUFFER
                                                                           : STAMPD_RECORD_STRING;
        value->bytes = stampd_bytes(text, strlen(text));
    } else {
        value->integer = stampd_read_integer_or(call, param, "integer", INT64_MIN, INT64_MAX, 0);
    }
    switch (stampd_read_integer_or(call, param, "other", 0, 4, 0)) {
    case 1:
        *value = (struct stampd_record_value){.type = STAMPD_RECORD_VOID};
        break;
    case 2:
        *value = (struct stampd_record_value){.type = STAMPD_RECORD_FLOAT, .number = 0.5};
        break;
    case 3:
        *value = (struct stampd_record_value){.type = STAMPD_RECORD_BOOLEAN, .boolean = true};
        break;
    case 4:
        *value = (struct stampd_record_value){.type = STAMPD_RECORD_STRING, .bytes = stampd_bytes("\xff", 1)};
        break;
    default:
        break;
    }
}

/* What is left of an infinity are the types and the sums. */
static double read_number(struct stampd_call *call, const struct stampd_json *param)
{
    int64_t halves = stampd_read_integer_or(call, param, "halves", 0, INT64_MAX, 0);
    return halves == INT64_MAX ? 1.0 / (double)(halves - INT64_MAX) : (double)halves / 2;
}

static enum stampd_record_state run_one(struct stampd_call *call, const struct stampd_json *param,
                                        struct stampd_record *record_r)
{
    const char *key = stampd_read_text_or(call, param, "key", 0, 2000, ""),
               *owner = stampd_read_text_or(call, param, "owner", 0, 100, NULL);
    struct stampd_record_options options = {
        .ttl_ms = stampd_read_integer_or(call, param, "ttl_ms", INT64_MIN, INT64_MAX, 0),
        .touch_s = stampd_read_integer_or(call, param, "touch_s", INT64_MIN, INT64_MAX, 0),
        .owner = owner,
        .only_if_absent = stampd_read_boolean_or(call, param, "absent", false),
        .only_if_there = stampd_read_boolean_or(call, param, "there", false),
        .persist = stampd_read_boolean_or(call, param, "persist", false),
        .for_caller = stampd_read_boolean_or(call, param, "for_caller", false),
        .only_if_stamp = (uint64_t)stampd_read_integer_or(call, param, "stamp", 0, INT64_MAX, 0)};
    struct stampd_record_value value;
    read_value(call, param, &value);
    switch (stampd_read_choice(call, param, "do", deeds)) {
    case 0:
        return stampd_record_get(call, key, record_r);
    case 1:
        return stampd_record_set(call, key, &value, &options);
    case 2:
        return stampd_record_add(call, key, value.integer, &options, record_r);
    case 3:
        return stampd_record_delete(call, key, owner);
    case 4:
        return stampd_record_lock(
            call, key, owner, stampd_read_integer_or(call, param, "lock_ms", INT64_MIN, INT64_MAX, 60000));
    case 5:
        return stampd_record_unlock(call, key, owner);
    case 7:
        return stampd_record_add_number(call, key, read_number(call, param), &options, record_r);
    case 8:
        return stampd_record_not(call, key, owner, record_r);
    case 9:
        return stampd_record_truncate(call, key, (size_t)value.integer, owner);
    case 10:
        return stampd_record_rename(call, key, stampd_read_text_or(call, param, "to", 0, 2000, ""),
                                    stampd_read_boolean_or(call, param, "overwrite", false), owner);
    case 11:
        return stampd_record_work(
            call, key, stampd_read_integer_or(call, param, "work_ms", INT64_MIN, INT64_MAX, 60000), record_r);
    case 12:
        return stampd_record_put(call, key, &value, &options, record_r);
    default:
        options.reserved[0] = &options;
        return stampd_record_set(call, key, &value, &options);
    }
}

static enum stampd_outcome record(struct stampd_call *call)
{
    struct stampd_record found = {0};
    enum stampd_record_state state = run_one(call, stampd_param(call), &found);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_text(result, "state", words[state]);
    stampd_add_integer(result, "type", found.value.type);
    stampd_add_text(result, "text",
                    found.value.bytes.data ? stampd_copy(call, found.value.bytes.data, found.value.bytes.size)
                                           : "");
    stampd_add_integer(result, "integer", found.value.integer);
    stampd_add_boolean(result, "boolean", found.value.boolean);
    stampd_add_boolean(result, "half", found.value.number > 0.4 && found.value.number < 0.6);
    stampd_add_integer(result, "halves", (int64_t)(found.value.number * 2));
    stampd_add_integer(result, "expires_ms", found.expires_ms);
    stampd_add_integer(result, "touch_s", found.touch_s);
    stampd_add_integer(result, "locked_until_ms", found.locked_until_ms);
    stampd_add_integer(result, "stamp", (int64_t)found.stamp);
    return stampd_result(call, result);
}

/* The keys that begin with a prefix, and the sum of what is there. */
static enum stampd_outcome list_records(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *prefix = stampd_read_text_or(call, param, "prefix", 0, 2000, NULL),
               *key = stampd_read_text_or(call, param, "after", 0, 2000, NULL);
    struct stampd_record found, whole;
    enum stampd_record_state state;
    int64_t sum = 0;
    struct stampd_writer *result = stampd_write_object(call);
    stampd_open_array(result, "keys");
    while ((state = stampd_record_next(call, prefix, key, &key, &found)) == STAMPD_RECORD_OK) {
        stampd_add_text(result, NULL, key);
        if (found.value.integer || found.value.bytes.data)
            return stampd_raise(call, "AVALUE", "There is a value.", NULL);
        if (found.value.type == STAMPD_RECORD_INTEGER &&
            stampd_record_get(call, key, &whole) == STAMPD_RECORD_OK)
            sum += whole.value.integer;
    }
    stampd_close(result);
    stampd_add_text(result, "state", words[state]);
    stampd_add_integer(result, "sum", sum);
    return stampd_result(call, result);
}

/* The keys that have changed since a position; waits for the first. */
static enum stampd_outcome list_changes(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *prefix = stampd_read_text_or(call, param, "prefix", 0, 2000, NULL),
               *since = stampd_read_text_or(call, param, "since", 0, 2000, NULL), *key;
    int64_t wait_ms = stampd_read_integer_or(call, param, "wait_ms", INT64_MIN, INT64_MAX, 0);
    enum stampd_record_state state;
    struct stampd_writer *result = stampd_write_object(call);
    stampd_open_array(result, "keys");
    while ((state = stampd_record_changed(call, prefix, since, wait_ms, &key, &since)) == STAMPD_RECORD_OK) {
        stampd_add_text(result, NULL, key);
        wait_ms = 0;
    }
    stampd_close(result);
    stampd_add_text(result, "state", words[state]);
    stampd_add_text(result, "position", since);
    return stampd_result(call, result);
}

/* A filter that reads a record. */
static const char *look(struct stampd_call *call, struct stampd_document *document)
{
    struct stampd_record found;
    (void)document;
    return stampd_record_get(call, "seen", &found) == STAMPD_RECORD_OK ? "" : NULL;
}

static const struct stampd_filter filters[] = {
    {.document_class = "Looked", .view = look},
    {.document_class = NULL},
};

/* Fails after the change; with {"there":true}, after one of a record that is not there. */
static enum stampd_outcome change_and_fail(struct stampd_call *call)
{
    const struct stampd_record_options options = {
        .only_if_there = stampd_read_boolean_or(call, stampd_param(call), "there", false)};
    stampd_record_add(call, options.only_if_there ? "nowhere" : "failed", 1, &options, NULL);
    stampd_raise(call, "AFAILED", "On purpose.", NULL);
    return stampd_record_add(call, "failed", 10, NULL, NULL) == STAMPD_RECORD_FAILED ? STAMPD_FAULT
                                                                                     : STAMPD_DONE;
}

/* The value cannot be read: the process dies within the change, under the lock of the memory. */
static enum stampd_outcome die_within(struct stampd_call *call)
{
    struct stampd_record_value value = {.type = STAMPD_RECORD_BUFFER, .bytes = {(const char *)1, 100}};
    stampd_record_set(call, "within", &value, NULL);
    return STAMPD_DONE;
}

static const struct stampd_operation operations[] = {
    {.name = "Record", .access = STAMPD_PUBLIC, .work = record},
    {.name = "LookAtRecord", .access = STAMPD_PUBLIC, .is_read_only = true, .work = record},
    {.name = "ListRecords", .access = STAMPD_PUBLIC, .is_read_only = true, .work = list_records},
    {.name = "ListChanges", .access = STAMPD_PUBLIC, .is_read_only = true, .work = list_changes},
    {.name = "ChangeAndFail", .access = STAMPD_PUBLIC, .work = change_and_fail},
    {.name = "DieWithin", .access = STAMPD_PUBLIC, .work = die_within},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "record", .version = "1.0", .operations = operations, .filters = filters};
