/* membership_ticket: the document of all invitations decides; the other only leads to it. */
#include "operation/accounts/membership_ticket.h"

#include "base/clock.h"
#include "operation/accounts/account_ticket.h"
#include "operation/keyed_digest.h"

#define JOIN BYTES("Join")

enum fault membership_ticket_fetch_all(struct attempt *attempt, struct document_name name,
                                       struct draft **draft_r)
{
    struct bytes digest, text = bytes_of(arena_printf(attempt->call->arena, "%.*s/%.*s", (int)name.class.size,
                                                      name.class.data, (int)name.id.size, name.id.data));
    enum fault fault = keyed_digest(attempt, "joins", text, &digest);
    if (fault)
        return fault;
    const char *id = arena_printf(attempt->call->arena, "joins %.*s", (int)digest.size, digest.data);
    return transaction_fetch(attempt->transaction, account_ticket_name(bytes_of(id)), draft_r);
}

/* --- the item --- */

static struct bytes write_item(struct arena *arena, const struct membership_ticket *ticket)
{
    struct builder text = {0};
    builder_printf(&text, "{\"expires\":%lld,\"uses\":%lld", (long long)ticket->expires,
                   (long long)ticket->uses);
    json_add_text(&text, ",\"content\":", ticket->content);
    json_add_filled(&text, "by", ticket->by);
    json_add_filled(&text, "credential", ticket->credential);
    json_add_filled(&text, "label", ticket->label);
    json_add_filled(&text, "name_as", ticket->name_as);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

static bool read_item(struct attempt *attempt, const struct item *item, struct membership_ticket *ticket_r)
{
    struct json *root;
    if (!json_is_tree(attempt->call->arena, item->content, 2, 2, &root))
        return false;
    ticket_r->key = item->key;
    ticket_r->by = json_text_of(root, "by", BYTES(""));
    ticket_r->credential = json_text_of(root, "credential", BYTES(""));
    ticket_r->label = json_text_of(root, "label", BYTES(""));
    ticket_r->content = json_text_of(root, "content", BYTES("{}"));
    ticket_r->name_as = json_text_of(root, "name_as", BYTES(""));
    ticket_r->expires = json_i64_of(root, "expires", 0);
    ticket_r->uses = json_i64_of(root, "uses", 0);
    return true;
}

bool membership_ticket_is_over(struct attempt *attempt, const struct item *item,
                               struct membership_ticket *ticket_r)
{
    return !read_item(attempt, item, ticket_r) || ticket_r->uses < 1 ||
           account_is_over(ticket_r->expires, clock_present_minute());
}

/* --- created, found, used, removed --- */

/* The document exists as long as it has an invitation. */
static void leave_none(struct draft *of_name)
{
    if (draft_exists(of_name) && !draft_next_item(of_name, JOIN, BYTES("")))
        draft_delete(of_name);
}

size_t membership_ticket_clean(struct attempt *attempt, struct draft *of_name)
{
    struct membership_ticket ticket;
    struct bytes key = BYTES("");
    const struct item *item;
    size_t count = 0;
    while (draft_exists(of_name) && (item = draft_next_item(of_name, JOIN, key))) {
        key = item->key;
        if (membership_ticket_is_over(attempt, item, &ticket))
            draft_remove_item(of_name, JOIN, key);
        else
            count++;
    }
    leave_none(of_name);
    return count;
}

enum fault membership_ticket_create(struct attempt *attempt, const struct membership_ticket *ticket)
{
    struct arena *arena = attempt->call->arena;
    struct builder text = {0};
    struct draft *pointer, *of_name;
    enum fault fault =
        FAULT_FIRST(transaction_fetch(attempt->transaction, account_ticket_name(ticket->key), &pointer),
                    membership_ticket_fetch_all(attempt, ticket->name, &of_name));
    if (fault)
        return fault;
    json_add_text(&text, "{\"c\":", ticket->name.class);
    json_add_text(&text, ",\"id\":", ticket->name.id);
    builder_add_text(&text, "}");
    draft_set_item(pointer, JOIN, BYTES(""), false, builder_take(&text, arena));
    draft_set_item(of_name, JOIN, ticket->key, false, write_item(arena, ticket));
    return account_ticket_plan_end(attempt, ticket->key, ticket->expires);
}

/* The name of the document that the ticket leads to; false: it is no invitation to one. */
static bool read_pointer(struct attempt *attempt, const struct draft *pointer, struct document_name *name_r)
{
    const struct item *item = draft_exists(pointer) ? draft_find_item(pointer, JOIN, BYTES("")) : NULL;
    struct json *root;
    if (!item || !json_is_tree(attempt->call->arena, item->content, 2, 2, &root))
        return false;
    *name_r = (struct document_name){json_text_of(root, "c", BYTES("")), json_text_of(root, "id", BYTES(""))};
    return true;
}

enum fault membership_ticket_find(struct attempt *attempt, struct bytes secret,
                                  struct membership_ticket *ticket_r, bool *is_one_r)
{
    struct bytes key = account_ticket_key(attempt, secret);
    enum fault fault = transaction_fetch(attempt->transaction, account_ticket_name(key), &ticket_r->pointer);
    *is_one_r = !fault && read_pointer(attempt, ticket_r->pointer, &ticket_r->name);
    if (!*is_one_r)
        return fault;
    fault = membership_ticket_fetch_all(attempt, ticket_r->name, &ticket_r->of_name);
    const struct item *item =
        !fault && draft_exists(ticket_r->of_name) ? draft_find_item(ticket_r->of_name, JOIN, key) : NULL;
    *is_one_r = item && !membership_ticket_is_over(attempt, item, ticket_r);
    ticket_r->key = key;
    return fault;
}

void membership_ticket_use(struct attempt *attempt, const struct membership_ticket *ticket)
{
    struct membership_ticket rest = *ticket;
    rest.uses--;
    if (rest.uses) {
        draft_set_item(ticket->of_name, JOIN, ticket->key, false, write_item(attempt->call->arena, &rest));
        return;
    }
    draft_remove_item(ticket->of_name, JOIN, ticket->key);
    leave_none(ticket->of_name);
    draft_delete(ticket->pointer);
}

size_t membership_ticket_remove(struct draft *of_name, struct bytes prefix)
{
    struct bytes key = BYTES("");
    const struct item *item;
    size_t count = 0;
    while (draft_exists(of_name) && (item = draft_next_item(of_name, JOIN, key))) {
        key = item->key;
        if (!bytes_has_prefix(key, prefix))
            continue;
        draft_remove_item(of_name, JOIN, key);
        count++;
    }
    leave_none(of_name);
    return count;
}

enum fault membership_ticket_end(struct attempt *attempt, struct draft *pointer)
{
    struct document_name name;
    struct draft *of_name;
    if (!read_pointer(attempt, pointer, &name))
        return FAULT_NONE;
    enum fault fault = membership_ticket_fetch_all(attempt, name, &of_name);
    if (fault || !draft_exists(of_name))
        return fault;
    draft_remove_item(of_name, JOIN, draft_base(pointer)->header.id);
    leave_none(of_name);
    return FAULT_NONE;
}
