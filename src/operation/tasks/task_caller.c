/* task_caller: the account of a task becomes the caller of its call. */
#include "operation/tasks/task_caller.h"

#include "operation/access.h"
#include "operation/caller.h"
#include "operation/configurations.h"

struct bytes task_caller_credential(const struct call *call)
{
    if (call->task)
        return call->caller.account.data ? call->task->credential : NO_BYTES;
    if (!call->caller.account.data)
        return NO_BYTES;
    return call->is_by_service_key     ? BYTES(TASK_KEY)
           : call->caller_session.data ? BYTES(TASK_SESSION)
                                       : BYTES(TASK_TOKEN);
}

bool task_caller_is_same(const struct task *one, const struct task *other)
{
    return one->is_of_client == other->is_of_client && bytes_equal(one->account, other->account) &&
           bytes_equal(one->credential, other->credential);
}

/* The rules, the level and the quotas that hold now for a caller without the administrator's key. */
static enum fault find_rights(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct configuration *own, *z;
    struct ns_conf conf;
    enum fault fault = configurations_find(attempt->worker_context, call, &own, &z);
    if (!fault)
        configurations_hold(own, call->arena);
    if (!fault)
        fault = access_configuration(attempt->worker_context, call, &conf);
    if (fault)
        return fault;
    call->rules = own->rules;
    call->rules_version = own->rules_version;
    if (conf.quotas && conf.quotas != own->conf.quotas)
        configurations_hold(z, call->arena);
    call->quotas = conf.quotas;
    call->level = access_level(attempt->worker_context->settings, &conf, call->database, false);
    return FAULT_NONE;
}

static enum fault find_account(struct attempt *attempt, bool *is_served_r)
{
    struct call *call = attempt->call;
    const struct document_name name = {BYTES("Account"), call->task->account};
    const struct document *account;
    call->caller = (struct rules_caller){0};
    *is_served_r = true;
    if (!call->task->account.data)
        return FAULT_NONE;
    enum fault fault = transaction_consult(attempt->transaction, name, &account);
    if (!fault)
        *is_served_r = caller_is_served(call->arena, account,
                                        bytes_equal(call->task->credential, BYTES(TASK_KEY)), &call->caller);
    if (!*is_served_r)
        call->caller = (struct rules_caller){0};
    return fault;
}

/* Rights that are gone do not come back by themselves. */
static enum fault refuse(struct attempt *attempt, enum fault fault)
{
    attempt->is_final = true;
    return attempt->reply->fault == fault ? fault
                                          : reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
}

enum fault task_caller_enter(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct task *task = call->task;
    bool is_served;
    if (!task->account.data && !task->is_of_client)
        return FAULT_NONE;
    enum fault fault = task->is_of_client ? find_rights(attempt) : FAULT_NONE;
    if (!fault)
        fault = find_account(attempt, &is_served);
    if (fault || !task->is_of_client)
        return fault;
    if (!is_served)
        return refuse(attempt, FAULT_SACCOUNT);
    fault = access_check(call, attempt->reply, attempt->operation);
    return fault == FAULT_SCLOSED ? refuse(attempt, fault) : fault;
}
