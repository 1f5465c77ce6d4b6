/* account_list: see the header. */
#include "operation/accounts/account_list.h"

#include "base/clock.h"
#include "operation/accounts/account_change.h"
#include "operation/accounts/account_walk.h"
#include "store/collections/store_list.h"

enum { LIMIT_MOST = 100 };

static enum fault account_list_read(struct attempt *attempt, const struct reader *reader,
                                    const struct json *wish, struct list_query *query)
{
    struct bytes prefix, cursor;
    int64_t limit = LIMIT_MOST;
    enum fault fault = reader_members(reader, wish, "name limit cursor");
    if (!fault)
        fault = reader_text(reader, wish, "name", &prefix);
    if (!fault)
        fault = reader_text(reader, wish, "cursor", &cursor);
    if (!fault && cursor.size)
        fault = reader_check_length(reader, wish, "cursor", cursor);
    if (!fault)
        fault = reader_integer(reader, wish, "limit", 1, LIMIT_MOST, LIMIT_MOST, &limit);
    if (fault)
        return fault;
    *query = (struct list_query){.class = prefix.data ? BYTES("Login") : BYTES("Account"),
                                 .prefix = BYTES(""),
                                 .cursor = cursor.data ? cursor : BYTES(""),
                                 .minute = clock_present_minute(),
                                 .limit = (int32_t)limit};
    if (prefix.size && !account_normalise(attempt->call->arena, prefix, &query->prefix))
        return reader_wrong(reader, wish, "name", "The beginning of a name is expected.");
    return FAULT_NONE;
}

/* A page under way: the rows that are visited, and the accounts that they stand for. */
struct account_list {
    struct account_page rows, accounts;
};

/* Other documents of the class Login, those of addresses, have a blank in their id. */
static bool is_login(const struct document_name *name)
{
    return !memchr(name->id.data, ' ', name->id.size);
}

/* Keeps those rows Login/… that name an account. */
static enum fault follow_logins(struct attempt *attempt, struct account_list *list)
{
    const struct document **logins;
    size_t count = 0;
    list->accounts.names = ARENA_ROOM(attempt->call->arena, struct document_name, list->rows.count);
    enum fault fault = account_walk_load(attempt, &list->rows, &logins);
    for (size_t i = 0; !fault && i < list->rows.count && logins[i]; i++) {
        struct bytes id = account_gate_id_of(attempt, account_find(logins[i], BYTES("Acc"), BYTES("")));
        if (!id.data || !is_login(&list->rows.names[i]))
            continue;
        list->rows.names[count] = list->rows.names[i];
        list->accounts.names[count++] = account_gate_name(id);
    }
    list->rows.count = list->accounts.count = count;
    return fault;
}

/* An account that cannot be read is listed by its id. */
static void write_one(struct attempt *attempt, struct bytes id, const struct document *document)
{
    struct account account;
    if (!account_read(attempt->call->arena, account_find(document, BYTES("Self"), BYTES("")),
                      account_find(document, BYTES("Roles"), BYTES("")), &account))
        account = (struct account){0};
    account_change_write(attempt, id, &account);
}

/* Up to the first account for which there was no memory. */
static enum fault account_list_write(struct attempt *attempt, const struct account_list *list)
{
    struct builder *body = attempt->reply->body;
    struct bytes more = list->rows.more;
    const struct document **documents;
    size_t count = 0;
    enum fault fault = account_walk_load(attempt, &list->accounts, &documents);
    if (fault)
        return fault;
    builder_add_text(body, "{\"accounts\":[");
    for (size_t i = 0; i < list->accounts.count; i++) {
        if (!documents[i]) {
            more = list->rows.names[i - (i > 0)].id;
            break;
        }
        if (!document_exists(documents[i]))
            continue;
        if (count++)
            builder_add_text(body, ",");
        write_one(attempt, list->accounts.names[i].id, documents[i]);
    }
    builder_add_text(body, "]");
    if (more.data) {
        builder_add_text(body, ",\"cursor\":");
        json_add_string(body, more);
    }
    builder_add_text(body, "}");
    return FAULT_NONE;
}

enum fault account_list_answer(struct attempt *attempt, const struct reader *reader, const struct json *wish)
{
    struct account_list list;
    struct list_query query;
    enum fault fault = account_list_read(attempt, reader, wish, &query);
    if (!fault)
        fault = account_walk_query(attempt, &query, &list.rows);
    if (fault)
        return fault;
    list.accounts = list.rows;
    if (bytes_equal(query.class, BYTES("Login")))
        fault = follow_logins(attempt, &list);
    return fault ? fault : account_list_write(attempt, &list);
}
