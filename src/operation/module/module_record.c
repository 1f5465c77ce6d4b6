/* module_record: records for modules (stampd_record.h), as commands of records/records.h. */
#include "operation/module/module_record.h"

#include "base/clock.h"
#include "operation/access/access.h"
#include "operation/long_poll.h"
#include "operation/module/module_convert.h"
#include "operation/record_changes.h"
#include "operation/records/record_hosts.h"
#include "operation/records/record_right.h"
#include "records/records_save.h"
#include "seal/site_key.h"
#include "stampd_record.h"

static const enum stampd_record_state states[RECORDS_OUTCOMES] = {
    [RECORDS_OK] = STAMPD_RECORD_OK,
    [RECORDS_NOT_FOUND] = STAMPD_RECORD_NOT_FOUND,
    [RECORDS_NOT_FREE] = STAMPD_RECORD_NOT_FREE,
    [RECORDS_OLDER] = STAMPD_RECORD_OLDER,
    [RECORDS_LOCKED] = STAMPD_RECORD_LOCKED,
    [RECORDS_NOT_LOCKED] = STAMPD_RECORD_NOT_LOCKED,
    [RECORDS_WRONG_TYPE] = STAMPD_RECORD_WRONG_TYPE,
    [RECORDS_OUT_OF_RANGE] = STAMPD_RECORD_OUT_OF_RANGE,
    [RECORDS_OUT_OF_MEMORY] = STAMPD_RECORD_OUT_OF_MEMORY,
    [RECORDS_BUSY] = STAMPD_RECORD_BUSY,
    [RECORDS_NO_DISK] = STAMPD_RECORD_NO_DISK,
    [RECORDS_NOT_SAVED] = STAMPD_RECORD_NOT_SAVED,
    [RECORDS_WORKED_ON] = STAMPD_RECORD_WORKED_ON,
    [RECORDS_NOT_READ] = STAMPD_RECORD_NOT_READ,
    [RECORDS_OTHER_STAMP] = STAMPD_RECORD_OTHER_STAMP,
    [RECORDS_OUT_OF_SHARE] = STAMPD_RECORD_OUT_OF_SHARE,
    [RECORDS_ELSEWHERE] =
        STAMPD_RECORD_BUSY, /* as of now; the next call learns that from the configuration */
    [RECORDS_UNKNOWN] = STAMPD_RECORD_UNKNOWN,
    [RECORDS_NO_PARTICIPANTS] = STAMPD_RECORD_NO_PARTICIPANTS,
    [RECORDS_UNSUPPORTED] = STAMPD_RECORD_UNSUPPORTED,
    /* No call asks for what ends so. */
    [RECORDS_TOO_MANY_KEYS] = STAMPD_RECORD_FAILED,
};

_Static_assert((int)STAMPD_RECORD_VOID == RECORDS_VOID && (int)STAMPD_RECORD_BOOLEAN == RECORDS_BOOLEAN &&
                   (int)STAMPD_RECORD_FLOAT == RECORDS_FLOAT,
               "the types are the same");

static const struct stampd_record_options no_options;

/* --- what is asked --- */

/* An invalid request is a mistake of the application; NULL: it is well formed. */
static const char *wrong_with(const struct records_command *command,
                              const struct stampd_record_options *options)
{
    bool needs_owner = command->deed == RECORDS_LOCK || command->deed == RECORDS_UNLOCK;
    bool is_marked = command->deed == RECORDS_GET && command->leaves_worked;
    if (!records_is_key(command->key) || (command->deed == RECORDS_RENAME && !records_is_key(command->to)))
        return "Invalid record: its key is not 1 to 1024 bytes of UTF-8.";
    if (needs_owner ? !command->owner.size : command->owner.data && !command->owner.size)
        return "Invalid record: the owner is empty.";
    if (command->owner.size > RECORDS_OWNER_MOST)
        return "Invalid record: the owner has more than 64 bytes.";
    if (command->deed == RECORDS_LOCK && (command->lease_ms < 1 || command->lease_ms > RECORDS_LEASE_MOST_MS))
        return "Invalid record: the time of the lock is out of range.";
    if (is_marked && (command->lease_ms < 1 || command->lease_ms > RECORDS_LEASE_MOST_MS))
        return "Invalid record: the time of the mark is out of range.";
    if (options->ttl_ms < 0 || options->ttl_ms > RECORDS_TOUCH_MOST_S * 1000)
        return "Invalid record: ttl_ms is out of range.";
    if (options->touch_s < 0 || options->touch_s > RECORDS_TOUCH_MOST_S)
        return "Invalid record: touch_s is out of range.";
    if (options->only_if_stamp && options->only_if_absent)
        return "Invalid record: it cannot be absent and have a stamp.";
    for (size_t i = 0; i < COUNT_OF(options->reserved); i++)
        if (options->reserved[i])
            return "Invalid record: a reserved member is set.";
    bool has_content = command->deed == RECORDS_SET || command->deed == RECORDS_ADD;
    if (has_content && !records_is_content(command->type, command->content))
        return "Invalid record: the value is not one of its type.";
    return NULL;
}

bool module_record_is_open(struct stampd_call *call, bool is_change)
{
    if (module_try_fault(call))
        return false;
    if (module_try_is_filter(call)) {
        module_try_fail(call, FAULT_BMODULE, "A filter has no records.", NULL);
        return false;
    }
    if (is_change && module_try_operation(call)->is_read_only) {
        module_try_fail(call, FAULT_BREADONLY, NULL, NULL);
        return false;
    }
    if (!module_try_attempt(call)->worker_context->segment->records) {
        struct attempt *attempt = module_try_attempt(call);
        module_try_set_fault(call, reply_fault(attempt->call, attempt->reply, FAULT_ORECORDS, NULL, NULL));
        return false;
    }
    return true;
}

static bool module_record_is_change(const struct records_command *command)
{
    return command->deed != RECORDS_GET || command->lease_ms || command->expires_ms;
}

/* False: the try has failed. */
static bool may_run(struct stampd_call *call, const struct records_command *command,
                    const struct stampd_record_options *options)
{
    if (!module_record_is_open(call, command->deed != RECORDS_GET || command->lease_ms))
        return false;
    int64_t most = module_try_settings(call)->limit_content_bytes;
    if (most > RECORDS_CONTENT_MOST)
        most = RECORDS_CONTENT_MOST;
    if (command->content.size > (size_t)most) {
        module_try_fail_limit(call, "limit_content_bytes", most, (int64_t)command->content.size);
        return false;
    }
    const char *wrong = wrong_with(command, options);
    if (wrong)
        module_try_fail(call, FAULT_BMODULE, wrong, NULL);
    return !wrong;
}

static bool read_place(struct stampd_call *call, bool may_be_spread, bool *is_encrypted_r, bool *is_spread_r)
{
    const struct attempt *attempt = module_try_attempt(call);
    const struct reader reader = {module_try_settings(call), attempt->call, attempt->reply};
    struct ns_conf conf;
    *is_encrypted_r = *is_spread_r = false;
    enum fault fault = access_configuration(attempt->worker_context, attempt->call, &conf);
    if (!fault && !may_be_spread)
        fault = record_right_refuse_spread(&reader, &conf);
    if (!fault)
        *is_spread_r = conf.is_spread;
    if (fault)
        module_try_set_fault(call, fault);
    else if (*site_key_mark()) /* without a site key no namespace is */
        *is_encrypted_r = conf.is_encrypted;
    return !fault;
}

bool module_record_is_encrypted(struct stampd_call *call, bool *is_encrypted_r)
{
    bool is_spread;
    return read_place(call, false, is_encrypted_r, &is_spread);
}

/* --- what is answered --- */

static void tell(const struct stampd_call *call, const struct records_found *found,
                 struct stampd_record *record_r)
{
    struct stampd_record_value *value = &record_r->value;
    *record_r = (struct stampd_record){
        .expires_ms = found->expires_ms,
        .touch_s = found->touch_s,
        .created_s = found->created_s,
        .modified_s = found->modified_s,
        .accessed_s = found->accessed_s,
        .locked_until_ms = found->locked_until_ms,
        .stamp = found->stamp,
    };
    value->type = (enum stampd_record_type)found->type;
    if (!found->content.data)
        return;
    switch (found->type) {
    case RECORDS_BUFFER:
    case RECORDS_STRING:
        value->bytes.data = arena_copy(module_try_arena(call), found->content.data, found->content.size);
        value->bytes.size = found->content.size;
        break;
    case RECORDS_INTEGER:
        value->integer = records_read_integer(found->content);
        break;
    case RECORDS_FLOAT:
        value->number = records_read_float(found->content);
        break;
    case RECORDS_BOOLEAN:
        value->boolean = found->content.data[0] != 0;
        break;
    case RECORDS_VOID:
    case RECORDS_TYPES:
        break;
    }
}

/* The command as one of the caller.  False: the try has failed. */
static bool hold_to_terms(struct stampd_call *call, struct records_command *command)
{
    const struct attempt *attempt = module_try_attempt(call);
    const struct reader reader = {module_try_settings(call), attempt->call, attempt->reply};
    struct ns_conf conf;
    enum fault fault = access_configuration(attempt->worker_context, attempt->call, &conf);
    if (!fault && !record_right_allows(attempt->call, conf.records, command->key, true))
        fault = reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED,
                            "No rule for records of the namespace allows it.", "record", NULL);
    if (fault)
        module_try_set_fault(call, fault);
    else
        record_right_hold_one(&reader, conf.records, command->key, command);
    return !fault;
}

static enum stampd_record_state module_record_run(struct stampd_call *call, struct records_command *command,
                                                  const struct stampd_record_options *options,
                                                  struct stampd_record *record_r)
{
    struct attempt *attempt = module_try_attempt(call);
    struct records_found found;
    bool is_spread;
    if (record_r)
        *record_r = (struct stampd_record){0};
    options = options ? options : &no_options;
    if (!command->owner.data)
        command->owner = bytes_of(options->owner);
    if (!may_run(call, command, options))
        return STAMPD_RECORD_FAILED;
    command->expires_ms = options->ttl_ms ? clock_present_ms() + options->ttl_ms : 0;
    command->touch_s = options->touch_s;
    command->is_persisted = options->persist;
    command->stamp = options->only_if_stamp;
    command->records_most = (uint64_t)module_try_settings(call)->limit_namespace_records;
    if (options->for_caller && !hold_to_terms(call, command))
        return STAMPD_RECORD_FAILED;
    if (!read_place(call, true, &command->is_encrypted, &is_spread))
        return STAMPD_RECORD_FAILED;
    if (module_record_is_change(command))
        attempt_note_change(attempt);
    size_t quota = (size_t)module_try_settings(call)->limit_namespace_records_mb << 20;
    struct records *records = attempt->worker_context->segment->records;
    enum records_outcome outcome = is_spread
                                       ? record_hosts_run(attempt, command, &found)
                                       : records_run(records, attempt->call->ns, quota, command, &found);
    if (module_record_is_change(command) && outcome != RECORDS_OK && outcome != RECORDS_UNKNOWN &&
        !found.saving)
        attempt_undo_change(attempt);
    if (outcome == RECORDS_OK && found.saving && !records_save(records, found.saving))
        outcome = RECORDS_NOT_SAVED;
    bool is_met = outcome == RECORDS_NOT_FREE || outcome == RECORDS_OTHER_STAMP;
    if ((outcome == RECORDS_OK || outcome == RECORDS_NOT_SAVED || (is_met && command->shows_present)) &&
        record_r)
        tell(call, &found, record_r);
    return states[outcome];
}

/* --- the functions --- */

enum stampd_record_state stampd_record_get(struct stampd_call *call, const char *key,
                                           struct stampd_record *record_r)
{
    struct records_command command = {.deed = RECORDS_GET, .key = bytes_of(key)};
    return module_record_run(call, &command, NULL, record_r);
}

/* The content of a number or a boolean is in `room`. */
static struct bytes content_of(const struct stampd_record_value *value, char room[8])
{
    switch (value->type) {
    case STAMPD_RECORD_BUFFER:
    case STAMPD_RECORD_STRING:
        return value->bytes.data ? bytes_from(value->bytes) : BYTES("");
    case STAMPD_RECORD_INTEGER:
        records_write_integer(room, value->integer);
        return (struct bytes){room, 8};
    case STAMPD_RECORD_FLOAT:
        records_write_float(room, value->number);
        return (struct bytes){room, 8};
    case STAMPD_RECORD_BOOLEAN:
        room[0] = value->boolean;
        return (struct bytes){room, 1};
    case STAMPD_RECORD_VOID:
        break;
    }
    return BYTES("");
}

enum stampd_record_state stampd_record_set(struct stampd_call *call, const char *key,
                                           const struct stampd_record_value *value,
                                           const struct stampd_record_options *options)
{
    return stampd_record_put(call, key, value, options, NULL);
}

enum stampd_record_state stampd_record_put(struct stampd_call *call, const char *key,
                                           const struct stampd_record_value *value,
                                           const struct stampd_record_options *options,
                                           struct stampd_record *record_r)
{
    char room[8];
    struct records_command command = {.deed = RECORDS_SET,
                                      .key = bytes_of(key),
                                      .type = (enum records_type)value->type,
                                      .content = content_of(value, room),
                                      .may_overwrite = !options || !options->only_if_absent,
                                      .is_only_present = options && options->only_if_there,
                                      .shows_present = record_r != NULL};
    return module_record_run(call, &command, options, record_r);
}

/* `room`: 8 bytes, the content of the type. */
static enum stampd_record_state module_record_add(struct stampd_call *call, const char *key,
                                                  enum records_type type, const char *room,
                                                  const struct stampd_record_options *options,
                                                  struct stampd_record *record_r)
{
    struct records_command command = {.deed = RECORDS_ADD,
                                      .key = bytes_of(key),
                                      .type = type,
                                      .content = {room, 8},
                                      .may_overwrite = !options || !options->only_if_there};
    return module_record_run(call, &command, options, record_r);
}

enum stampd_record_state stampd_record_add(struct stampd_call *call, const char *key, int64_t by,
                                           const struct stampd_record_options *options,
                                           struct stampd_record *record_r)
{
    char room[8];
    records_write_integer(room, by);
    return module_record_add(call, key, RECORDS_INTEGER, room, options, record_r);
}

enum stampd_record_state stampd_record_add_number(struct stampd_call *call, const char *key, double by,
                                                  const struct stampd_record_options *options,
                                                  struct stampd_record *record_r)
{
    char room[8];
    records_write_float(room, by);
    return module_record_add(call, key, RECORDS_FLOAT, room, options, record_r);
}

enum stampd_record_state stampd_record_not(struct stampd_call *call, const char *key, const char *owner,
                                           struct stampd_record *record_r)
{
    struct records_command command = {.deed = RECORDS_NOT, .key = bytes_of(key), .owner = bytes_of(owner)};
    return module_record_run(call, &command, NULL, record_r);
}

enum stampd_record_state stampd_record_truncate(struct stampd_call *call, const char *key, size_t size,
                                                const char *owner)
{
    struct records_command command = {
        .deed = RECORDS_TRUNCATE, .key = bytes_of(key), .size = size, .owner = bytes_of(owner)};
    int64_t most = module_try_settings(call)->limit_content_bytes;
    if (!module_try_fault(call) && size > (size_t)most) {
        module_try_fail_limit(call, "limit_content_bytes", most,
                              size > INT64_MAX ? INT64_MAX : (int64_t)size);
        return STAMPD_RECORD_FAILED;
    }
    return module_record_run(call, &command, NULL, NULL);
}

enum stampd_record_state stampd_record_rename(struct stampd_call *call, const char *key, const char *to,
                                              bool may_overwrite, const char *owner)
{
    struct records_command command = {.deed = RECORDS_RENAME,
                                      .key = bytes_of(key),
                                      .to = bytes_of(to),
                                      .may_overwrite = may_overwrite,
                                      .owner = bytes_of(owner)};
    return module_record_run(call, &command, NULL, NULL);
}

enum stampd_record_state stampd_record_work(struct stampd_call *call, const char *key, int64_t work_ms,
                                            struct stampd_record *record_r)
{
    struct records_command command = {
        .deed = RECORDS_GET, .key = bytes_of(key), .lease_ms = work_ms, .leaves_worked = true};
    return module_record_run(call, &command, NULL, record_r);
}

/* Between `prefix` and the end of what begins with it; the steps of records_next are passed here. */
static enum records_outcome find_next(struct stampd_call *call, bool is_encrypted, struct bytes prefix,
                                      struct bytes after, struct records_found *found_r)
{
    const struct attempt *attempt = module_try_attempt(call);
    struct records *records = attempt->worker_context->segment->records;
    enum records_outcome outcome;
    if (after.data && bytes_compare(after, prefix) < 0)
        after = NO_BYTES;
    do {
        outcome = records_next(records, attempt->call->ns, is_encrypted, prefix, after, NO_BYTES, found_r);
        after = found_r->key;
    } while (outcome == RECORDS_BUSY && after.size && bytes_has_prefix(after, prefix));
    bool is_beyond = after.size && !bytes_has_prefix(after, prefix);
    return is_beyond ? RECORDS_NOT_FOUND : outcome;
}

enum stampd_record_state stampd_record_next(struct stampd_call *call, const char *prefix, const char *after,
                                            const char **key_r, struct stampd_record *record_r)
{
    struct records_found found;
    struct bytes begin = prefix ? bytes_of(prefix) : BYTES(""), last = bytes_of(after);
    *key_r = NULL;
    if (record_r)
        *record_r = (struct stampd_record){0};
    if (!module_record_is_open(call, false))
        return STAMPD_RECORD_FAILED;
    if ((begin.size && !records_is_key(begin)) || (last.data && !records_is_key(last))) {
        module_try_fail(call, FAULT_BMODULE, "Invalid record: its key is not 1 to 1024 bytes of UTF-8.",
                        NULL);
        return STAMPD_RECORD_FAILED;
    }
    bool is_encrypted;
    if (!module_record_is_encrypted(call, &is_encrypted))
        return STAMPD_RECORD_FAILED;
    enum records_outcome outcome = find_next(call, is_encrypted, begin, last, &found);
    if (outcome != RECORDS_OK)
        return states[outcome];
    *key_r = arena_copy(module_try_arena(call), found.key.data, found.key.size);
    if (record_r)
        tell(call, &found, record_r);
    return STAMPD_RECORD_OK;
}

enum stampd_record_state stampd_record_delete(struct stampd_call *call, const char *key, const char *owner)
{
    struct records_command command = {.deed = RECORDS_DELETE, .key = bytes_of(key), .owner = bytes_of(owner)};
    return module_record_run(call, &command, NULL, NULL);
}

enum stampd_record_state stampd_record_lock(struct stampd_call *call, const char *key, const char *owner,
                                            int64_t lock_ms)
{
    struct records_command command = {.deed = RECORDS_LOCK,
                                      .key = bytes_of(key),
                                      .owner = bytes_of(owner),
                                      .lease_ms = lock_ms,
                                      .may_overwrite = true};
    return module_record_run(call, &command, NULL, NULL);
}

enum stampd_record_state stampd_record_unlock(struct stampd_call *call, const char *key, const char *owner)
{
    struct records_command command = {.deed = RECORDS_UNLOCK, .key = bytes_of(key), .owner = bytes_of(owner)};
    return module_record_run(call, &command, NULL, NULL);
}

/* Changes of records for modules, one key after the other. */

struct changed {
    struct record_changes changes;
    struct bytes prefix;
    const char *key; /* NULL: none has changed */
};

/* Leaves the changes behind the key to the next call. */
static bool take_key(void *context, struct bytes key)
{
    struct changed *changed = context;
    if (changed->key)
        return false;
    if (bytes_has_prefix(key, changed->prefix))
        changed->key = arena_copy(changed->changes.attempt->call->arena, key.data, key.size);
    return true;
}

static bool module_record_changed_is_worth_a_look(void *context)
{
    const struct changed *changed = context;
    return record_changes_are_likely(&changed->changes);
}

static enum fault module_record_changed_look(void *context, bool *is_over_r)
{
    struct changed *changed = context;
    record_changes_read(&changed->changes, take_key, changed);
    *is_over_r = changed->key || changed->changes.is_lost;
    return FAULT_NONE;
}

static enum fault wait_for_change(struct changed *changed, int64_t wait_ms)
{
    struct attempt *attempt = changed->changes.attempt;
    const struct settings *settings = attempt->worker_context->settings;
    int64_t most_ms = settings->record_wait_s * 1000;
    struct long_poll poll = {
        .kind = PULSE_WAITS_FOR_RECORDS,
        .wait_ms = wait_ms < most_ms ? wait_ms : most_ms,
        .processes = settings->record_waiters,
        .context = changed,
        .is_worth_a_look = module_record_changed_is_worth_a_look,
        .look = module_record_changed_look,
    };
    return long_poll_wait(attempt, &poll);
}

static enum fault find_change(struct changed *changed, struct attempt *attempt, bool is_encrypted,
                              struct bytes since, int64_t wait_ms, bool *is_busy_r)
{
    enum fault fault = record_changes_begin(attempt, is_encrypted, since, &changed->changes, is_busy_r);
    if (fault || *is_busy_r || !since.data)
        return fault;
    *is_busy_r = !record_changes_read(&changed->changes, take_key, changed);
    if (*is_busy_r || changed->key || changed->changes.is_lost || wait_ms <= 0)
        return FAULT_NONE;
    return wait_for_change(changed, wait_ms);
}

enum stampd_record_state stampd_record_changed(struct stampd_call *call, const char *prefix,
                                               const char *since, int64_t wait_ms, const char **key_r,
                                               const char **position_r)
{
    struct changed changed = {.prefix = prefix ? bytes_of(prefix) : BYTES("")};
    struct bytes position = NO_BYTES;
    bool is_encrypted, is_busy = false;
    *key_r = *position_r = NULL;
    if (!module_record_is_open(call, false))
        return STAMPD_RECORD_FAILED;
    if (changed.prefix.size && !records_is_key(changed.prefix)) {
        module_try_fail(call, FAULT_BMODULE, "Invalid record: the prefix is not UTF-8 of at most 1024 bytes.",
                        NULL);
        return STAMPD_RECORD_FAILED;
    }
    if (!module_record_is_encrypted(call, &is_encrypted))
        return STAMPD_RECORD_FAILED;
    enum fault fault =
        find_change(&changed, module_try_attempt(call), is_encrypted, bytes_of(since), wait_ms, &is_busy);
    if (!fault && is_busy)
        return STAMPD_RECORD_BUSY;
    if (!fault)
        fault = record_changes_position(&changed.changes, &position);
    if (fault) {
        module_try_set_fault(call, fault);
        return STAMPD_RECORD_FAILED;
    }
    *key_r = changed.key;
    *position_r = position.data;
    return changed.changes.is_lost ? STAMPD_RECORD_LOST
           : changed.key           ? STAMPD_RECORD_OK
                                   : STAMPD_RECORD_NOT_FOUND;
}
