/* account_mail: see the header. */
#include "operation/accounts/account_mail.h"

#include "operation/accounts/accounts.h"
#include "operation/keyed_digest.h"
#include "operation/tasks/task_request.h"

enum { RESOURCE_CHARACTERS = 32, LATEST_MS = 1 };

bool account_mail_is_set_up(const struct attempt *attempt)
{
    return *attempt->worker_context->settings->mail_from != '\0';
}

/* FAULT_OMAIL: no mails are set up (mail_from). */
static enum fault account_mail_check(struct attempt *attempt)
{
    return account_mail_is_set_up(attempt)
               ? FAULT_NONE
               : reply_fault(attempt->call, attempt->reply, FAULT_OMAIL, NULL, NULL);
}

static struct bytes write_param(struct arena *arena, const struct account_mail_wish *wish)
{
    struct builder text = {0};
    builder_printf(&text, "{\"kind\":\"%s\"", letter_word(wish->kind));
    json_add_member(&text, "name", wish->name);
    json_add_member(&text, "address", wish->address);
    json_add_member(&text, "account", wish->account);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

enum fault account_mail_plan(struct attempt *attempt, const struct account_mail_wish *wish)
{
    const struct reader reader = account_gate_reader(attempt);
    struct arena *arena = attempt->call->arena;
    struct task_excess excess;
    struct bytes param = write_param(arena, wish), digest;
    enum fault fault = keyed_digest(attempt, "mail", param, &digest);
    if (fault)
        return fault;
    const struct task_request request = {
        .operation = &accounts_accountmail,
        .param = param,
        .resource = bytes_of(arena_printf(arena, "accountmail/%.*s", RESOURCE_CHARACTERS, digest.data)),
        .longest_ms = LATEST_MS, /* another request never delays it */
        .priority = TASK_PRIORITY,
    };
    fault = task_request_add(attempt, &request, &excess);
    return fault ? reader_over(&reader, NULL, excess.limit, excess.most, excess.value) : FAULT_NONE;
}

enum fault account_mail_request(struct attempt *attempt, const struct account_mail_wish *wish,
                                struct bytes subject)
{
    enum fault fault = FAULT_FIRST(account_mail_check(attempt),
                                   account_gate_count_mail(attempt, letter_word(wish->kind), subject),
                                   account_mail_plan(attempt, wish));
    if (!fault)
        builder_add_text(attempt->reply->body, "{\"sent\":true}");
    return fault;
}

enum fault account_mail_request_by(struct attempt *attempt, enum letter_kind kind)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    struct account_mail_wish wish = {.kind = kind};
    struct bytes given, address, lower;
    enum fault fault = FAULT_FIRST(reader_members(&reader, param, "name address"),
                                   account_gate_read_name(&reader, param, &given, &wish.name),
                                   account_mail_read_address(&reader, param, &address, &lower));
    if (!fault && (wish.name.data != NULL) == (lower.data != NULL))
        fault = reader_wrong(&reader, param, "name", "Either a name or an address is expected.");
    if (fault)
        return fault;
    wish.address = lower;
    return account_mail_request(attempt, &wish, wish.name.data ? wish.name : lower);
}

enum fault account_mail_read_address(const struct reader *reader, const struct json *object,
                                     struct bytes *address_r, struct bytes *lower_r)
{
    *lower_r = NO_BYTES;
    enum fault fault = account_gate_read_address(reader, object, address_r);
    if (fault || !address_r->data)
        return fault;
    if (!letter_is_address(*address_r) || !account_normalise(reader->call->arena, *address_r, lower_r))
        return reader_wrong(reader, object, "address",
                            "An address of at most 128 characters to which mails can be sent is expected.");
    return FAULT_NONE;
}
