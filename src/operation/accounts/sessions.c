/* sessions: the sessions of the caller's account; logout ends its own. */
#include "operation/accounts/accounts.h"

#include "operation/accounts/account_session.h"
#include "operation/access/caller.h"

/* Of a browser whose cookie is the session that has ended. */
static void remove_cookie(struct attempt *attempt)
{
    if (attempt->call->is_by_cookie)
        attempt->reply->cookie = caller_cookie(attempt->call, BYTES(""), 0);
}

static enum fault logout_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct draft *account;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, ""),
                                   account_gate_fetch_caller(attempt, &account));
    if (fault)
        return fault;
    draft_remove_item(account, BYTES("Sess"), attempt->call->caller_session);
    remove_cookie(attempt);
    builder_add_text(attempt->reply->body, "{\"ended\":1}");
    return FAULT_NONE;
}

const struct operation accounts_logout = {
    .name = "logout", .right = RIGHT_PUBLIC, .is_of_z = true, .work = logout_work};

static enum fault revoke(struct attempt *attempt, const struct reader *reader, struct draft *account,
                         struct bytes which)
{
    bool is_all = bytes_equal(which, BYTES("all")), is_others = bytes_equal(which, BYTES("others"));
    if (!is_all && !is_others && which.size != ACCOUNT_SESSION_NAME)
        return reader_wrong(reader, reader->call->param, "revoke",
                            "A session, as it is listed, or others, or all, is expected.");
    size_t ended = account_session_end(attempt, account, is_all || is_others ? BYTES("") : which,
                                       is_others ? attempt->call->caller_session : NO_BYTES);
    if (!draft_find_item(account, BYTES("Sess"), attempt->call->caller_session))
        remove_cookie(attempt);
    builder_printf(attempt->reply->body, "{\"ended\":%zu}", ended);
    return FAULT_NONE;
}

static enum fault sessions_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    struct draft *account;
    struct bytes which;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "revoke"),
                                   reader_text(&reader, attempt->call->param, "revoke", &which),
                                   account_gate_fetch_caller(attempt, &account));
    if (fault)
        return fault;
    if (which.data)
        return revoke(attempt, &reader, account, which);
    builder_add_text(attempt->reply->body, "{\"sessions\":");
    account_session_write(attempt, account);
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

static bool sessions_is_look(const struct call *call)
{
    return !json_member(call->param, "revoke");
}

const struct operation accounts_sessions = {
    .name = "sessions", .right = RIGHT_PUBLIC, .work = sessions_work, .is_look = sessions_is_look};
