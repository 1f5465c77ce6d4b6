/* whois: the id of the account with a name, or with a confirmed address where the namespace finds people by
 * that.  Only for the callers that the namespace admits, and counted as attempts to log in are, for their
 * address and their account: nobody reads the list of people by guesses.  The work and the answer are the
 * same whether there is no such account, it is disabled, or it does not want to be found. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_address.h"
#include "operation/accounts/account_mail.h"

static enum fault whois_refuse(struct attempt *attempt, const char *detail)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, "whois", NULL);
}

static bool has_role(const struct rules_caller *caller, struct bytes role)
{
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], role))
            return true;
    return false;
}

/* Everybody can make anonymous accounts where they are allowed, as many as its address may: they ask nothing
 * unless they have the role. */
static enum fault check_named(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    struct account_session session;
    struct account account;
    struct draft *draft;
    if (account_gate_is_external(attempt))
        return FAULT_NONE;
    enum fault fault =
        transaction_fetch(attempt->transaction, account_gate_name(call->caller.account), &draft);
    if (fault)
        return fault;
    struct bytes content = account_find(draft_base(draft), BYTES("Sess"), call->caller_session);
    if (account_read_session(call->arena, content, &session) && session.is_service)
        return FAULT_NONE;
    fault = account_gate_read(attempt, draft, &account);
    return fault || account.name.size
               ? fault
               : whois_refuse(attempt, "An account with a name may ask, and this one has none.");
}

static enum fault check_caller(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    if (call->level == LEVEL_EVERYTHING)
        return FAULT_NONE;
    if (call->accounts.whois == WHOIS_NOBODY)
        return whois_refuse(attempt, "Accounts are not found by their names here.");
    if (!call->caller.account.data)
        return whois_refuse(attempt, "A session is expected: log in first.");
    if (call->accounts.whois == WHOIS_ACCOUNT)
        return check_named(attempt);
    return has_role(&call->caller, call->accounts.whois_role)
               ? FAULT_NONE
               : whois_refuse(attempt, "A role that the account has not is expected.");
}

/* Either a name or an address, in lower case. */
static enum fault read_whom(struct attempt *attempt, struct bytes *name_r, struct bytes *address_r)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    struct bytes given;
    *address_r = NO_BYTES;
    enum fault fault = FAULT_FIRST(reader_members(&reader, param, "name address"),
                                   account_gate_read_name(&reader, param, &given, name_r),
                                   account_mail_read_address(&reader, param, &given, address_r));
    if (!fault && (name_r->data != NULL) == (address_r->data != NULL))
        fault = reader_wrong(&reader, param, "name", "Either a name or an address is expected.");
    bool may_ask_address =
        attempt->call->accounts.has_whois_by_address || attempt->call->level == LEVEL_EVERYTHING;
    if (!fault && address_r->data && !may_ask_address)
        fault = whois_refuse(attempt, "Accounts are not found by their addresses here.");
    return fault;
}

/* NO_BYTES: nobody, or somebody who is not to be found. */
static enum fault whois_find(struct attempt *attempt, struct bytes name, struct bytes address,
                             struct bytes *id_r)
{
    struct document_name login_name = account_gate_login_name(name);
    struct account account = {0};
    struct draft *login, *draft;
    bool is_there;
    enum fault fault =
        FAULT_FIRST(address.data ? account_address_name(attempt, address, &login_name) : FAULT_NONE,
                    transaction_fetch(attempt->transaction, login_name, &login));
    if (fault)
        return fault;
    struct bytes id =
        account_gate_find_id_or_nobody(attempt, login, address.data ? address : name, &is_there);
    fault = transaction_fetch(attempt->transaction, account_gate_name(id), &draft);
    bool is_one = !fault && is_there && draft_exists(draft);
    if (is_one)
        fault = account_gate_read(attempt, draft, &account);
    *id_r = is_one && !account.is_disabled && !account.is_hidden ? id : NO_BYTES;
    return fault;
}

static enum fault whois_work(struct attempt *attempt)
{
    struct builder *body = attempt->reply->body;
    struct bytes name, address, id = NO_BYTES;
    enum fault fault =
        FAULT_FIRST(account_gate_check(attempt), check_caller(attempt), read_whom(attempt, &name, &address),
                    account_gate_count(attempt, NO_BYTES), account_gate_count_account(attempt),
                    whois_find(attempt, name, address, &id));
    if (fault)
        return fault;
    builder_add_text(body, "{\"account\":");
    if (id.data)
        json_add_string(body, id);
    else
        builder_add_text(body, "null");
    builder_add_text(body, "}");
    return FAULT_NONE;
}

static bool whois_is_look(const struct call *call UNUSED)
{
    return true;
}

const struct operation accounts_whois = {.name = "whois",
                                         .right = RIGHT_PUBLIC,
                                         .is_secret = true,
                                         .only_reads = true,
                                         .work = whois_work,
                                         .is_look = whois_is_look};
