/* module_record_changed: changes of records for modules, one key after the other. */
#include "operation/long_poll.h"
#include "operation/module/module_record.h"
#include "operation/record_changes.h"
#include "stampd_record.h"

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
