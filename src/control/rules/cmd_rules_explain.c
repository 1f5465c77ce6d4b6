/* cmd_rules_explain: `stampctl rules explain`: what the rules of a namespace decide of one request, by its
 * documents as they are. */
#include "control/rules/cmd_rules.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "model/account/account.h"
#include "model/rules/rules_case.h"
#include "model/rules/rules_sight.h"

struct rules_inquiry {
    struct control *control;
    struct ns_target target;
    struct data_keys *keys; /* none: it is not encrypted */
    struct rules_documents documents;
    struct rules *rules;
    struct rules_case one;
};

/* --- documents of the namespace --- */

static const char *cmd_rules_explain_name_of(struct arena *arena, struct bytes class, struct bytes id)
{
    return arena_printf(arena, "%.*s/%.*s", (int)class.size, class.data, (int)id.size, id.data);
}

/* Why a document was refused. */
static void cmd_rules_explain_report(const struct rules_inquiry *inquiry)
{
    message_print("%s: %s", inquiry->documents.place, inquiry->documents.problem);
}

/* The item of the row, as it was before it was encrypted. */
static bool cmd_rules_explain_read_item(struct rules_inquiry *inquiry, struct bytes class, struct bytes id,
                                        const struct pg_result *rows, int row, struct item *item_r)
{
    enum { ICLASS, KEY, CONTENT, RAW };
    struct bytes content = pg_get_text(rows, row, CONTENT);
    struct item_place place = {class,
                               id,
                               pg_get_text(rows, row, ICLASS),
                               pg_get_text(rows, row, KEY),
                               pg_get_bool(rows, row, RAW),
                               BYTES("")};
    if (!data_keys_open_item(inquiry->keys, inquiry->control->arena, &place, &content))
        return message_refuse("%s: an item cannot be decrypted: it was altered, or is of another place",
                              cmd_rules_explain_name_of(inquiry->control->arena, class, id));
    *item_r =
        (struct item){.iclass = place.iclass, .key = place.key, .content = content, .raw = place.is_raw};
    return true;
}

/* One that does not exist, too.  NULL: it could not be read, which is reported. */
static const struct document *cmd_rules_explain_fetch(struct rules_inquiry *inquiry, struct bytes class,
                                                      struct bytes id)
{
    struct arena *arena = inquiry->control->arena;
    const char *name = cmd_rules_explain_name_of(arena, class, id);
    struct pg_result *result;
    const struct pg_params *params =
        PG_PARAMS(arena, PG_TEXT(class), PG_TEXT(data_keys_seal_id(inquiry->keys, arena, class, id)));
    if (!control_query(
            inquiry->control, inquiry->target.pg, name,
            "select i.iclass, i.key, i.content, i.raw from stampd.doc d left join stampd.item i on "
            "i.class = d.class and i.id = d.id and i.content is not null where d.class = $1::text and "
            "d.id = $2::text and d.ctime <> 0",
            params, &result))
        return NULL;
    size_t count = (size_t)pg_rows(result), kept = 0;
    if (!count)
        return rules_documents_none(&inquiry->documents, class, id);
    struct item *items = ARENA_ARRAY(arena, struct item, count);
    for (size_t i = 0; i < count; i++) {
        if (!pg_is_null(result, (int)i, 0) &&
            !cmd_rules_explain_read_item(inquiry, class, id, result, (int)i, &items[kept++]))
            return NULL;
    }
    const struct document *document =
        rules_documents_build(&inquiry->documents, name, class, id, items, kept);
    if (!document)
        cmd_rules_explain_report(inquiry);
    return document;
}

static enum fault cmd_rules_explain_load(void *context, struct bytes class, struct bytes id,
                                         const struct document **document_r)
{
    *document_r = cmd_rules_explain_fetch(context, class, id);
    return *document_r ? FAULT_NONE : FAULT_XAWAY;
}

/* The roles that the account has in the namespace. */
static bool find_roles(struct rules_inquiry *inquiry)
{
    struct rules_caller *caller = &inquiry->one.caller;
    struct account account;
    if (!caller->account.data)
        return true;
    const struct document *document = cmd_rules_explain_fetch(inquiry, BYTES("Account"), caller->account);
    if (!document)
        return false;
    const struct item *self = document_find_item(document, BYTES("Self"), BYTES("")),
                      *roles = document_find_item(document, BYTES("Roles"), BYTES(""));
    if (!self || !roles || !account_read(inquiry->control->arena, self->content, roles->content, &account))
        return true;
    rules_caller_set_roles(inquiry->control->arena, caller, account.roles, account.role_count);
    return true;
}

/* --- the request --- */

struct rules_wish {
    const char *account, *item, *after;
    struct option_words roles;
    bool is_json;
};

static bool wrong(const char *expected)
{
    return message_refuse("rules explain: expected %s", expected);
}

/* What needs no database; `words`: CODE CLASS/ID DEED. */
static bool cmd_rules_explain_read_wish(struct rules_inquiry *inquiry, const struct rules_wish *wish,
                                        char **words, struct bytes *class_r, struct bytes *id_r)
{
    struct rules_case *one = &inquiry->one;
    struct bytes roles[OPTION_WORDS_MOST];
    if (!rules_documents_is_name(bytes_of(words[1]), class_r, id_r))
        return wrong("CLASS/ID, the name of a document");
    if (!rules_deed_find(bytes_of(words[2]), &one->deed))
        return wrong("one of read, list, create, update, delete, see, write");
    bool needs_item = one->deed == RULES_DEED_SEE || one->deed == RULES_DEED_WRITE;
    if (needs_item != (wish->item != NULL))
        return wrong("--item with see and write, and only there");
    if (one->deed == RULES_DEED_CREATE && !wish->after)
        return wrong("--after with create: the document");
    if (wish->roles.count && !wish->account)
        return wrong("--role with --account alone");
    one->item = bytes_of(wish->item);
    one->caller.account = bytes_of(wish->account);
    for (int i = 0; i < wish->roles.count; i++)
        roles[i] = bytes_of(wish->roles.words[i]);
    rules_caller_set_roles(inquiry->control->arena, &one->caller, roles, (size_t)wish->roles.count);
    return true;
}

/* The document as it is to become. */
static bool read_after(struct rules_inquiry *inquiry, const char *path, struct bytes class, struct bytes id)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 128, .nodes = 2000000};
    struct bytes text;
    struct json *root;
    struct json_problem problem;
    if (!path)
        return true;
    if (!control_read_file(inquiry->control->arena, path, &text))
        return false;
    if (json_read(inquiry->control->arena, text, &limits, &root, &problem))
        return message_refuse("%s: A document is expected: %s, at byte %zu.", path, problem.what,
                              problem.offset);
    const struct document *after = rules_documents_read(&inquiry->documents, path, root);
    if (!after)
        cmd_rules_explain_report(inquiry);
    if (after && (!bytes_equal(after->header.class, class) || !bytes_equal(after->header.id, id)))
        return message_refuse("%s: The document %.*s/%.*s is expected.", path, (int)class.size, class.data,
                              (int)id.size, id.data);
    inquiry->one.after = after;
    return after != NULL;
}

static bool cmd_rules_explain_read_rules(struct rules_inquiry *inquiry, const char *code)
{
    struct bytes text;
    if (!cmd_rules_fetch(inquiry->control, inquiry->target.z, code, &text))
        return false;
    return cmd_rules_read(inquiry->control->arena, code, text.data ? text : BYTES("{}"), &inquiry->rules);
}

/* --- the answer --- */

static void add_hidden(const struct rules_inquiry *inquiry, const struct rules_view *view,
                       struct builder *names, bool is_json)
{
    const struct document *document = inquiry->one.before;
    const struct item *last = NULL;
    for (const struct item *item = document->items; item < document->items + document->item_count; item++) {
        if ((last && bytes_equal(last->iclass, item->iclass)) || rules_view_shows(view, item->iclass))
            continue;
        last = item;
        builder_printf(names, "%s", names->size ? (is_json ? "," : ", ") : "");
        if (is_json)
            json_add_string(names, item->iclass);
        else
            builder_add_bytes(names, item->iclass);
    }
}

static void print_answer(const struct rules_inquiry *inquiry, const struct rules_answer *answer, bool is_json)
{
    struct builder hidden = {0};
    struct record record = {0};
    bool ends = rules_left_ends_class(inquiry->rules, inquiry->one.before->header.class);
    add_hidden(inquiry, &answer->view, &hidden, is_json);
    if (is_json) {
        record_add_bool(&record, "allowed", answer->may);
        record_add_word(&record, "rule", answer->rule);
        record_add_bool(&record, "exists", document_exists(inquiry->one.before));
        record_add_json(&record, "hidden",
                        bytes_of(arena_printf(inquiry->control->arena, "[%.*s]", (int)hidden.size,
                                              hidden.size ? hidden.data : "")));
        if (ends)
            record_add_word(&record, "on_owner_deleted", "delete");
        record_print(&record);
    } else {
        printf("%s by %s%s\n", answer->may ? "allowed" : "refused",
               *answer->rule ? answer->rule : "no rule of the class",
               document_exists(inquiry->one.before) ? "" : " (the document does not exist)");
        if (hidden.size)
            printf("hidden: %.*s\n", (int)hidden.size, hidden.data);
        if (ends)
            printf("deleted with the account of its owner\n");
    }
    builder_free(&hidden);
}

static bool cmd_rules_explain_explain(struct rules_inquiry *inquiry, const struct rules_wish *wish,
                                      const char *code, struct bytes class, struct bytes id)
{
    struct control *control = inquiry->control;
    if (!ns_registry_connect(control, code, &inquiry->target) ||
        !ns_keys_read(control, inquiry->target.pg, &inquiry->keys) ||
        !cmd_rules_explain_read_rules(inquiry, code) || !read_after(inquiry, wish->after, class, id))
        return false;
    inquiry->one.before = cmd_rules_explain_fetch(inquiry, class, id);
    if (!inquiry->one.before || (!wish->roles.count && !find_roles(inquiry)))
        return false;
    const struct rules_answer answer =
        rules_case_decide(control->arena, inquiry->rules, &inquiry->one, cmd_rules_explain_load, inquiry);
    if (!answer.fault)
        print_answer(inquiry, &answer, wish->is_json);
    return !answer.fault;
}

int cmd_rules_explain(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("rules explain", "CODE CLASS/ID read|list|create|update|delete|see|write",
                "Explain what the rules of a namespace decide of one request.",
                "Prints whether it is allowed, by which rule, and the classes of "
                "items that the caller does not see;\n"
                "and whether the document is deleted with the account of its "
                "owner.\n"
                "The rules and the documents are those of the namespace.\n");
    struct rules_inquiry inquiry = {.control = control, .documents = {.arena = control->arena}};
    struct rules_wish wish = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("account", "ID", &wish.account, "The caller's account (default: nobody has signed in)."),
        OPTION_WORDS("role", "ROLE", &wish.roles,
                     "A role of the caller (default: those of the account).  May be repeated."),
        OPTION_TEXT("item", "CLASS", &wish.item, "The class of items, of see and write."),
        OPTION_TEXT("after", "FILE", &wish.after,
                    "The document as it is to become, as in a case of `rules test`."),
        RECORD_JSON_LINE(&wish.is_json)};
    struct bytes class, id;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_rules_explain_read_wish(&inquiry, &wish, words, &class, &id))
        return CONTROL_WRONG;
    return cmd_rules_explain_explain(&inquiry, &wish, words[0], class, id) ? CONTROL_DONE : CONTROL_FAILED;
}
