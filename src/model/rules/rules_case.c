/* rules_case: reads a case, and decides it by the functions that the server uses. */
#include "model/rules/rules_case.h"

#include <string.h>

/* --- reading --- */

static bool rules_case_refuse(struct rules_documents *documents, const char *where, const char *member,
                              const char *expected)
{
    return rules_documents_refuse(documents, arena_printf(documents->arena, "%s.%s", where, member),
                                  expected);
}

static bool rules_case_read_roles(struct rules_documents *documents, const char *where,
                                  const struct json *list, struct rules_caller *caller)
{
    struct bytes roles[RULES_ROLES_MOST];
    size_t count = 0;
    if (list->kind != JSON_ARRAY || list->is_shallow || list->count > RULES_ROLES_MOST)
        return rules_case_refuse(documents, where, "caller.roles",
                                 "A list of at most 32 names of roles is expected.");
    for (const struct json *one = list->first; one; one = one->next) {
        if (one->kind != JSON_STRING || !rules_is_role(one->value))
            return rules_case_refuse(documents, where, "caller.roles",
                                     "A list of at most 32 names of roles is expected.");
        roles[count++] = one->value;
    }
    rules_caller_set_roles(documents->arena, caller, roles, count);
    return true;
}

/* Absent: nobody has signed in. */
static bool read_caller(struct rules_documents *documents, const char *where, const struct json *value,
                        struct rules_caller *caller)
{
    *caller = (struct rules_caller){.account = NO_BYTES};
    if (!value)
        return true;
    if (!rules_documents_check_members(documents, arena_printf(documents->arena, "%s.caller", where), value,
                                       "account roles"))
        return false;
    const struct json *account = json_member(value, "account"), *roles = json_member(value, "roles");
    if (account && (account->kind != JSON_STRING || !account->value.size))
        return rules_case_refuse(documents, where, "caller.account",
                                 "The id of an account is expected; without one, leave it out.");
    if (account)
        caller->account = account->value;
    return !roles || rules_case_read_roles(documents, where, roles, caller);
}

static bool read_document(struct rules_documents *documents, const char *where, const char *member,
                          const struct json *value, const struct document **document_r)
{
    struct bytes class, id;
    if (value->kind != JSON_STRING) {
        const char *at = arena_printf(documents->arena, "%s.%s", where, member);
        *document_r = rules_documents_read(documents, at, value);
        return *document_r != NULL;
    }
    if (!rules_documents_is_name(value->value, &class, &id))
        return rules_case_refuse(documents, where, member,
                                 "A document is expected, or the name of one: \"Class/id\".");
    *document_r = rules_documents_find(documents, class, id);
    return *document_r ||
           rules_case_refuse(documents, where, member, "A document of this name is expected in documents.");
}

static bool read_deed(struct rules_documents *documents, const char *where, const struct json *value,
                      struct rules_case *case_r)
{
    const struct json *may = json_member(value, "may"), *item = json_member(value, "item");
    if (!may || may->kind != JSON_STRING || !rules_deed_find(may->value, &case_r->deed))
        return rules_case_refuse(documents, where, "may",
                                 "One of read, list, create, update, delete, see and write is expected.");
    bool needs_item = case_r->deed == RULES_DEED_SEE || case_r->deed == RULES_DEED_WRITE;
    if (needs_item != (item != NULL))
        return rules_case_refuse(documents, where, "item",
                                 "The class of items is expected with see and write, and only there.");
    if (item && (item->kind != JSON_STRING || !item_is_class_name(item->value)))
        return rules_case_refuse(documents, where, "item", "The name of a class of items is expected.");
    case_r->item = item ? item->value : NO_BYTES;
    return true;
}

/* Before and after: a document that is created is given as either. */
static bool rules_case_read_documents(struct rules_documents *documents, const char *where,
                                      const struct json *value, struct rules_case *case_r)
{
    const struct json *before = json_member(value, "document"), *after = json_member(value, "after");
    bool is_create = case_r->deed == RULES_DEED_CREATE;
    bool may_have_after = is_create || case_r->deed == RULES_DEED_UPDATE || case_r->deed == RULES_DEED_WRITE;
    if (after && !may_have_after)
        return rules_case_refuse(documents, where, "after",
                                 "It is expected with create, update and write alone.");
    if (!before && !(is_create && after))
        return rules_case_refuse(documents, where, "document",
                                 "A document is expected, or the name of one: \"Class/id\".");
    if ((before && !read_document(documents, where, "document", before, &case_r->before)) ||
        (after && !read_document(documents, where, "after", after, &case_r->after)))
        return false;
    if (is_create) {
        case_r->after = case_r->after ? case_r->after : case_r->before;
        const struct header *header = &case_r->after->header;
        case_r->before = rules_documents_none(documents, header->class, header->id);
    } else if (after && (!bytes_equal(case_r->before->header.class, case_r->after->header.class) ||
                         !bytes_equal(case_r->before->header.id, case_r->after->header.id))) {
        return rules_case_refuse(documents, where, "after",
                                 "The same document as in document is expected: its class and id.");
    }
    return true;
}

bool rules_case_read(struct rules_documents *documents, const char *where, const struct json *value,
                     struct rules_case *case_r)
{
    *case_r = (struct rules_case){.where = where};
    if (!rules_documents_check_members(documents, where, value,
                                       "name caller may document after item expected"))
        return false;
    const struct json *name = json_member(value, "name"), *expected = json_member(value, "expected");
    if (name && name->kind != JSON_STRING)
        return rules_case_refuse(documents, where, "name", "A text is expected.");
    if (!expected || (expected->kind != JSON_TRUE && expected->kind != JSON_FALSE))
        return rules_case_refuse(documents, where, "expected", "true or false is expected.");
    case_r->name = name ? name->value : NO_BYTES;
    case_r->expected = expected->kind == JSON_TRUE;
    return read_deed(documents, where, value, case_r) &&
           read_caller(documents, where, json_member(value, "caller"), &case_r->caller) &&
           rules_case_read_documents(documents, where, value, case_r);
}

/* --- deciding --- */

struct rules_answer rules_case_decide(struct arena *arena, const struct rules *rules,
                                      const struct rules_case *one,
                                      enum fault (*load)(void *context, struct bytes class, struct bytes id,
                                                         const struct document **document_r),
                                      void *context)
{
    struct rules_question question = {
        .rules = rules, .caller = &one->caller, .load = load, .context = context, .arena = arena};
    struct rules_answer answer = {0};
    const struct document *after = one->deed == RULES_DEED_DELETE ? NULL
                                   : one->after                   ? one->after
                                                                  : one->before;
    const struct draft *draft = rules_documents_change(arena, one->before, after);
    answer.may = rules_deed_may(&question, one->deed, draft, one->item, &answer.view);
    answer.rule = question.rule;
    answer.fault = question.fault;
    return answer;
}
