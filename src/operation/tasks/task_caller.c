/* task_caller: the account of a task becomes the caller of its call. */
#include "operation/tasks/task_caller.h"

#include "operation/access/access.h"
#include "operation/access/stored_caller.h"

struct bytes task_caller_credential(const struct call *call)
{
    if (call->task)
        return call->caller.account.data ? call->task->credential : NO_BYTES;
    if (!call->caller.account.data)
        return NO_BYTES;
    return call->is_by_service_key     ? BYTES(TASK_KEY)
           : call->caller_session.data ? BYTES(TASK_SESSION)
                                       : stored_caller_token(call);
}

bool task_caller_is_same(const struct task *one, const struct task *other)
{
    return one->is_of_client == other->is_of_client && bytes_equal(one->account, other->account) &&
           bytes_equal(one->credential, other->credential);
}

static enum fault find_account(struct attempt *attempt, const struct ns_accounts *accounts, bool *is_served_r)
{
    struct call *call = attempt->call;
    const struct task *task = call->task;
    const struct document_name name = {BYTES("Account"), task->account};
    const struct document *account;
    call->caller = (struct rules_caller){0};
    *is_served_r = true;
    if (!task->account.data)
        return FAULT_NONE;
    enum fault fault = transaction_consult(attempt->transaction, name, &account);
    if (!fault)
        *is_served_r = stored_caller_is_served(call->arena, accounts, task->credential, account,
                                               bytes_equal(task->credential, BYTES(TASK_KEY)), &call->caller);
    if (!*is_served_r)
        call->caller = (struct rules_caller){0};
    return fault;
}

/* Rights that are gone do not come back by themselves. */
static enum fault task_caller_refuse(struct attempt *attempt, enum fault fault)
{
    attempt->is_final = true;
    return attempt->reply->fault == fault ? fault
                                          : reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
}

enum fault task_caller_enter(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct task *task = call->task;
    struct stored_caller_rights rights;
    bool is_served;
    if (!task->account.data && !task->is_of_client)
        return FAULT_NONE;
    enum fault fault = FAULT_FIRST(stored_caller_find_rights(attempt->worker_context, call, &rights),
                                   find_account(attempt, &rights.own->conf.accounts, &is_served));
    if (fault || !task->is_of_client)
        return fault;
    call->rules = rights.own->rules;
    call->rules_version = rights.own->rules_version;
    call->filters = rights.filters;
    call->quotas = rights.quotas;
    call->level = rights.level;
    if (!is_served)
        return task_caller_refuse(attempt, FAULT_SACCOUNT);
    fault = access_check(call, attempt->reply, attempt->operation);
    return fault == FAULT_SCLOSED ? task_caller_refuse(attempt, fault) : fault;
}
