/* membership: invitations by which accounts become members of one document. param, one member:
 * {"invite":{"c","id","content","name_as","label","days","uses"}} → {"invitation","key","expires","uses"};
 * {"list":{"c","id"}} → {"invitations":[{"key","by","label","content","expires","uses"}…]};
 * {"revoke":{"c","id","key"}} → {"ended"}; {"look":invitation} → {"c","id","label","expires"};
 * {"join":invitation} → {"c","id","joined"}.
 *
 * The rules of the namespace name the items that make accounts members (rules_members).  Whoever may write
 * such an item of the document may invite, and see and revoke what others have sent.  To join is a change on
 * behalf of the account that has invited: it is judged by the rules and by the rights that this account has
 * at that moment, in the same commit, so that an invitation is worth nothing any more when its sender has
 * lost the right.  One that the administrator has sent has all rights. */
#include "operation/accounts/accounts.h"

#include "base/clock.h"
#include "model/document/stamp.h"
#include "operation/access/configurations.h"
#include "operation/access/external_token.h"
#include "operation/access/stored_caller.h"
#include "operation/accounts/account_session.h"
#include "operation/accounts/membership_ticket.h"
#include "operation/documents/change.h"
#include "operation/judge/judge.h"
#include "operation/tasks/task_caller.h"

enum { DAY_MINUTES = 1440, DAYS = 7, DAYS_MOST = 366, USES = 1, USES_MOST = 1000000 };
enum { CONTENT_MOST = 4096, DEPTH_MOST = 64 }; /* of the content of an item */

static enum fault membership_refuse(struct attempt *attempt, const char *detail)
{
    return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED, detail, "membership", NULL);
}

static enum fault refuse_invitation(struct attempt *attempt)
{
    return membership_refuse(attempt, "The invitation is wrong, used or expired.");
}

static enum fault check_session(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    return call->caller.account.data || call->level == LEVEL_EVERYTHING
               ? FAULT_NONE
               : membership_refuse(attempt, "A session is expected: log in first.");
}

/* --- the item --- */

/* The class of the items that make members of such documents. */
static enum fault find_class(struct attempt *attempt, struct bytes class, struct bytes *members_r)
{
    const struct configuration *own, *z;
    enum fault fault = configurations_find(attempt->worker_context, attempt->call, &own, &z);
    if (fault)
        return fault;
    configurations_hold(own, attempt->call->arena);
    *members_r = own->rules ? rules_members(own->rules, class) : NO_BYTES;
    return members_r->data
               ? FAULT_NONE
               : membership_refuse(attempt, "The rules name no members of documents of this class.");
}

/* [{"c","k","j"}], as put takes it; NULL: the content is malformed. */
static const struct json *write_items(struct attempt *attempt, struct bytes class, struct bytes key,
                                      struct bytes content)
{
    struct builder text = {0};
    struct json *items;
    json_add_text(&text, "[{\"c\":", class);
    json_add_text(&text, ",\"k\":", key);
    builder_add_text(&text, ",\"j\":");
    builder_add_bytes(&text, content);
    builder_add_text(&text, "}]");
    struct bytes written = builder_take(&text, attempt->call->arena);
    return json_is_tree(attempt->call->arena, written, DEPTH_MOST + 2, 2, &items) ? items : NULL;
}

/* Makes the account a member in the draft, as far as the caller may. */
static enum fault add_member(struct attempt *attempt, struct draft *draft, struct bytes class,
                             struct bytes account, struct bytes content, bool *may_r)
{
    const struct json *items = write_items(attempt, class, account, content);
    *may_r = true;
    if (!items)
        return reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "Join", NULL);
    if (call_is_judged(attempt->call)) {
        enum fault fault = judge_name(attempt, draft, class, account, may_r);
        if (fault || !*may_r)
            return fault;
    }
    return FAULT_FIRST(change_items(attempt, draft, items, false), judge_change(attempt, draft, may_r));
}

/* The document, if the caller may read it; else FAULT_NDOCUMENT. */
static enum fault fetch_document(struct attempt *attempt, struct document_name name, struct draft **draft_r)
{
    struct arena *arena = attempt->call->arena;
    struct view view;
    enum fault fault = FAULT_FIRST(transaction_fetch(attempt->transaction, name, draft_r),
                                   judge_draft(attempt, draft_r, &view));
    return fault || draft_exists(*draft_r) ? fault
                                           : reply_fault(attempt->call, attempt->reply, FAULT_NDOCUMENT, NULL,
                                                         arena_copy(arena, name.class.data, name.class.size),
                                                         arena_copy(arena, name.id.data, name.id.size), NULL);
}

/* May the caller make members of this document?  It is tried with an account that nobody has. */
static enum fault check_right(struct attempt *attempt, struct document_name name, struct bytes content)
{
    struct bytes members;
    struct draft *draft;
    bool may;
    enum fault fault = FAULT_FIRST(check_session(attempt), find_class(attempt, name.class, &members),
                                   fetch_document(attempt, name, &draft));
    if (fault)
        return fault;
    struct draft *trial = draft_open(attempt->call->arena, (struct document *)draft_base(draft));
    fault = add_member(attempt, trial, members, account_session_new_id(attempt), content, &may);
    return fault || may ? fault : judge_refuse(attempt, draft);
}

/* --- invite, list, revoke --- */

static enum fault check_content(const struct reader *reader, const struct json *wish,
                                struct membership_ticket *ticket)
{
    const struct json *content = json_member(wish, "content");
    struct json *root;
    ticket->content = content ? content->text : BYTES("{}");
    if (ticket->content.size > CONTENT_MOST ||
        !json_is_tree(reader->call->arena, ticket->content, DEPTH_MOST, 1, &root) ||
        root->kind != JSON_OBJECT)
        return reader_wrong(reader, wish, "content",
                            "An object of at most 4096 bytes and 64 levels is expected.");
    if (!ticket->name_as.data)
        return FAULT_NONE;
    if (!ticket->name_as.size || ticket->name_as.size > ACCOUNT_DEVICE_MOST)
        return reader_wrong(reader, wish, "name_as", "The name of a member of the content is expected.");
    for (const struct json *one = root->first; one; one = one->next)
        if (bytes_equal(one->name, ticket->name_as))
            return reader_wrong(reader, wish, "name_as", "The content has a member of this name.");
    return FAULT_NONE;
}

static enum fault read_invitation(struct attempt *attempt, const struct reader *reader,
                                  const struct json *wish, struct membership_ticket *ticket)
{
    int64_t days;
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "c id content name_as label days uses"),
                                   reader_name(reader, wish, &ticket->name),
                                   reader_text(reader, wish, "label", &ticket->label),
                                   reader_text(reader, wish, "name_as", &ticket->name_as),
                                   reader_integer(reader, wish, "days", 1, DAYS_MOST, DAYS, &days),
                                   reader_integer(reader, wish, "uses", 1, USES_MOST, USES, &ticket->uses),
                                   check_content(reader, wish, ticket));
    if (!fault && !account_is_device(ticket->label))
        fault =
            reader_wrong(reader, wish, "label", "At most 200 bytes without control characters are expected.");
    if (fault)
        return fault;
    const struct call *call = attempt->call;
    ticket->expires = account_stamp_of(clock_present_minute() + days * DAY_MINUTES);
    ticket->by = call->level == LEVEL_EVERYTHING ? BYTES("") : call->caller.account;
    ticket->credential = ticket->by.size ? task_caller_credential(call) : BYTES("");
    int64_t token_end = call->external ? stamp_from_epoch_ms(call->external->token_end_ms) : ticket->expires;
    if (ticket->by.size && token_end < ticket->expires)
        ticket->expires = token_end;
    return FAULT_NONE;
}

static enum fault membership_invite(struct attempt *attempt, const struct reader *reader,
                                    const struct json *wish)
{
    const struct settings *settings = reader->settings;
    struct membership_ticket ticket = {.label = BYTES("")};
    struct draft *of_name;
    struct bytes secret = account_session_new_secret(attempt, &ticket.key);
    enum fault fault =
        FAULT_FIRST(read_invitation(attempt, reader, wish, &ticket), account_gate_count(attempt, NO_BYTES),
                    account_gate_count_account(attempt), check_right(attempt, ticket.name, ticket.content),
                    membership_ticket_fetch_all(attempt, ticket.name, &of_name));
    if (fault)
        return fault;
    size_t count = membership_ticket_clean(attempt, of_name);
    if ((int64_t)count >= settings->limit_invitations)
        return reader_over(reader, NULL, "limit_invitations", settings->limit_invitations,
                           (int64_t)count + 1);
    fault = membership_ticket_create(attempt, &ticket);
    if (fault)
        return fault;
    json_add_text(attempt->reply->body, "{\"invitation\":", secret);
    json_add_text(attempt->reply->body, ",\"key\":", (struct bytes){ticket.key.data, MEMBERSHIP_SHOWN});
    builder_printf(attempt->reply->body, ",\"expires\":%lld,\"uses\":%lld}", (long long)ticket.expires,
                   (long long)ticket.uses);
    return FAULT_NONE;
}

static enum fault fetch_invitations(struct attempt *attempt, const struct reader *reader,
                                    const struct json *wish, const char *known, struct draft **of_name_r)
{
    struct document_name name;
    return FAULT_FIRST(reader_members(reader, wish, known), reader_name(reader, wish, &name),
                       check_right(attempt, name, BYTES("{}")),
                       membership_ticket_fetch_all(attempt, name, of_name_r));
}

static enum fault membership_list(struct attempt *attempt, const struct reader *reader,
                                  const struct json *wish)
{
    struct builder *body = attempt->reply->body;
    struct membership_ticket ticket = {.label = BYTES("")};
    struct bytes key = BYTES("");
    const struct item *item;
    struct draft *of_name;
    enum fault fault = fetch_invitations(attempt, reader, wish, "c id", &of_name);
    if (fault)
        return fault;
    builder_add_text(body, "{\"invitations\":[");
    const char *comma = "";
    while (draft_exists(of_name) && (item = draft_next_item(of_name, BYTES("Join"), key))) {
        key = item->key;
        if (membership_ticket_is_over(attempt, item, &ticket))
            continue;
        builder_add_bytes(body, bytes_of(comma));
        json_add_text(body, "{\"key\":", (struct bytes){key.data, MEMBERSHIP_SHOWN});
        json_add_filled(body, "by", ticket.by);
        json_add_filled(body, "label", ticket.label);
        builder_printf(body, ",\"content\":%.*s,\"expires\":%lld,\"uses\":%lld}", (int)ticket.content.size,
                       ticket.content.data, (long long)ticket.expires, (long long)ticket.uses);
        comma = ",";
    }
    builder_add_text(body, "]}");
    return FAULT_NONE;
}

/* One, or all of the document. */
static enum fault membership_revoke(struct attempt *attempt, const struct reader *reader,
                                    const struct json *wish)
{
    struct bytes key;
    struct draft *of_name;
    enum fault fault = reader_text(reader, wish, "key", &key);
    if (!fault && key.data && key.size != MEMBERSHIP_SHOWN)
        fault = reader_wrong(reader, wish, "key", "The key of an invitation, as it is listed, is expected.");
    if (!fault)
        fault = fetch_invitations(attempt, reader, wish, "c id key", &of_name);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"ended\":%zu}",
                       membership_ticket_remove(of_name, key.data ? key : BYTES("")));
    return fault;
}

/* --- look, join --- */

static enum fault find_invitation(struct attempt *attempt, const struct json *wish,
                                  struct membership_ticket *ticket)
{
    bool is_one;
    enum fault fault = FAULT_FIRST(account_gate_count(attempt, NO_BYTES), account_gate_count_account(attempt),
                                   membership_ticket_find(attempt, wish->value, ticket, &is_one));
    return fault || is_one ? fault : refuse_invitation(attempt);
}

static enum fault membership_look(struct attempt *attempt, const struct reader *reader UNUSED,
                                  const struct json *wish)
{
    struct builder *body = attempt->reply->body;
    struct membership_ticket ticket;
    enum fault fault = find_invitation(attempt, wish, &ticket);
    if (fault)
        return fault;
    json_add_text(body, "{\"c\":", ticket.name.class);
    json_add_text(body, ",\"id\":", ticket.name.id);
    json_add_filled(body, "label", ticket.label);
    builder_printf(body, ",\"expires\":%lld}", (long long)ticket.expires);
    return FAULT_NONE;
}

/* The content, with the name of the account that joins if it has one. */
static enum fault write_content(struct attempt *attempt, const struct membership_ticket *ticket,
                                struct bytes *content_r)
{
    struct account account;
    const struct document *document;
    struct builder text = {0};
    struct bytes content = *content_r = ticket->content;
    if (!ticket->name_as.size)
        return FAULT_NONE;
    enum fault fault = transaction_consult(attempt->transaction,
                                           account_gate_name(attempt->call->caller.account), &document);
    bool has_name = !fault && document_exists(document) &&
                    account_read(attempt->call->arena, account_find(document, BYTES("Self"), BYTES("")),
                                 NO_BYTES, &account) &&
                    account.name.size;
    if (!has_name)
        return fault;
    while (content.size && content.data[content.size - 1] != '}')
        content.size--;
    bool is_empty = !memchr(content.data, '"', content.size);
    builder_add_bytes(&text, (struct bytes){content.data, content.size - 1});
    builder_add_bytes(&text, bytes_of(is_empty ? "" : ","));
    json_add_string(&text, ticket->name_as);
    json_add_text(&text, ":", account.name);
    builder_add_text(&text, "}");
    *content_r = builder_take(&text, attempt->call->arena);
    return FAULT_NONE;
}

/* From now on the call has the rights of the account that has invited, as they are at this moment. */
static enum fault take_rights(struct attempt *attempt, const struct membership_ticket *ticket,
                              bool *is_served_r)
{
    struct call *call = attempt->call;
    const struct document *account;
    *is_served_r = true;
    if (!ticket->by.size) {
        call->rules = NULL;
        call->filters = NULL;
        return FAULT_NONE;
    }
    enum fault fault = transaction_consult(attempt->transaction, account_gate_name(ticket->by), &account);
    if (!fault)
        *is_served_r =
            stored_caller_is_served(call->arena, &call->accounts, ticket->credential, account,
                                    bytes_equal(ticket->credential, BYTES(TASK_KEY)), &call->caller);
    return fault;
}

static enum fault join_as_inviter(struct attempt *attempt, const struct membership_ticket *ticket,
                                  struct bytes members, struct bytes account, struct bytes content,
                                  bool *is_new_r)
{
    struct view view;
    struct draft *draft;
    bool is_served, may;
    enum fault fault = take_rights(attempt, ticket, &is_served);
    if (!fault && !is_served)
        fault = refuse_invitation(attempt);
    if (!fault)
        fault = FAULT_FIRST(transaction_fetch(attempt->transaction, ticket->name, &draft),
                            judge_draft(attempt, &draft, &view));
    if (fault)
        return fault;
    if (!draft_exists(draft))
        return refuse_invitation(attempt);
    *is_new_r = !draft_find_item(draft, members, account);
    struct draft *trial = draft_open(attempt->call->arena, (struct document *)draft_base(draft));
    fault = add_member(attempt, *is_new_r ? draft : trial, members,
                       *is_new_r ? account : account_session_new_id(attempt), content, &may);
    return fault || may ? fault : refuse_invitation(attempt);
}

static enum fault membership_join(struct attempt *attempt, const struct reader *reader UNUSED,
                                  const struct json *wish)
{
    struct call *call = attempt->call;
    struct builder *body = attempt->reply->body;
    const struct rules *rules = call->rules;
    const struct filters *filters = call->filters;
    const struct rules_caller caller = call->caller;
    struct membership_ticket ticket;
    struct bytes members, content;
    bool is_new = false;
    if (!caller.account.data || call->level == LEVEL_EVERYTHING)
        return membership_refuse(attempt, "A session is expected: log in first.");
    enum fault fault =
        FAULT_FIRST(find_invitation(attempt, wish, &ticket), find_class(attempt, ticket.name.class, &members),
                    write_content(attempt, &ticket, &content));
    if (fault)
        return fault;
    fault = join_as_inviter(attempt, &ticket, members, caller.account, content, &is_new);
    call->rules = rules;
    call->filters = filters;
    call->caller = caller;
    if (fault)
        return fault;
    if (is_new)
        membership_ticket_use(attempt, &ticket);
    json_add_text(body, "{\"c\":", ticket.name.class);
    json_add_text(body, ",\"id\":", ticket.name.id);
    builder_printf(body, ",\"joined\":%s}", is_new ? "true" : "false");
    return FAULT_NONE;
}

/* --- the operation --- */

static const struct {
    const char *member;
    enum fault (*act)(struct attempt *attempt, const struct reader *reader, const struct json *wish);
    bool is_text; /* the wish is a text, otherwise an object */
} acts[] = {{"invite", membership_invite, false},
            {"list", membership_list, false},
            {"revoke", membership_revoke, false},
            {"look", membership_look, true},
            {"join", membership_join, true}};

static enum fault membership_work(struct attempt *attempt)
{
    const struct reader reader = account_gate_reader(attempt);
    const struct json *param = attempt->call->param;
    enum fault fault = FAULT_FIRST(account_gate_check(attempt),
                                   reader_members(&reader, param, "invite list revoke look join"));
    if (fault)
        return fault;
    if (!param || param->kind != JSON_OBJECT || !param->first || param->first->next)
        return reader_wrong_value(&reader, NULL, "param",
                                  "One of invite, list, revoke, look, join is expected.");
    const struct json *wish = param->first;
    bool is_object = wish->kind == JSON_OBJECT && !wish->is_shallow;
    for (size_t i = 0; i < COUNT_OF(acts); i++)
        if (json_member(param, acts[i].member)) {
            if (acts[i].is_text ? wish->kind == JSON_STRING : is_object)
                return acts[i].act(attempt, &reader, wish);
            return reader_wrong_value(&reader, wish, acts[i].member,
                                      acts[i].is_text ? "A text is expected." : "An object is expected.");
        }
    return FAULT_BINTERNAL;
}

static bool membership_is_look(const struct call *call)
{
    return json_member(call->param, "list") || json_member(call->param, "look");
}

const struct operation accounts_membership = {.name = "membership",
                                              .right = RIGHT_PUBLIC,
                                              .is_secret = true,
                                              .work = membership_work,
                                              .is_look = membership_is_look};
