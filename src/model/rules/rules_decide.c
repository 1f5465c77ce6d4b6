/* rules_decide: looks for a grant in the lists of a class.  Grants are sorted by cost: those that depend on
 * the caller alone are decided before the document is read. */
#include "model/rules/rules_private.h"

#include <stdlib.h>

#include "base/coding/hash.h"

enum { STEPS_MOST = 1000000 }; /* of all comparisons of a decision */

bool rules_is_reserved(struct bytes class)
{
    static const char *const names[] = {"Account", "Issuer", "Login", "Ticket"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (bytes_equal(class, bytes_of(names[i])))
            return true;
    return false;
}

size_t rules_count_classes(const struct rules *rules)
{
    return rules->class_count;
}

const char *rules_right_word(enum rules_right right)
{
    static const char *const words[] = {[RULES_READ] = "read",
                                        [RULES_LIST] = "list",
                                        [RULES_CREATE] = "create",
                                        [RULES_UPDATE] = "update",
                                        [RULES_DELETE] = "delete"};
    return words[right];
}

const struct rules_class *rules_find_class(const struct rules *rules, struct bytes name)
{
    size_t low = 0, high = rules->class_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(rules->classes[middle].name, name);
        if (order == 0)
            return &rules->classes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct bytes rules_members(const struct rules *rules, struct bytes class)
{
    const struct rules_class *own = rules_find_class(rules, class);
    struct bytes members = own ? own->members : NO_BYTES;
    for (size_t i = 0; !members.data && i < rules->class_count; i++)
        if (rules->classes[i].team.class.data && bytes_equal(rules->classes[i].team.class, class))
            members = rules->classes[i].team.members;
    return members;
}

const struct rules_item *rules_find_item(const struct rules_class *class, struct bytes name)
{
    for (size_t i = 0; i < class->item_count; i++)
        if (bytes_equal(class->items[i].name, name))
            return &class->items[i];
    return NULL;
}

/* --- the caller and one state of the document --- */

/* The text at a place; false: there is none. */
static bool find_text(struct rules_decision *decision, const struct rules_place *place, struct bytes *text_r)
{
    const struct item *item = rules_item_of(decision->subject, place->item, BYTES(""));
    struct json value;
    if (!rules_member_of(decision, item, place->member, &value) || value.kind != JSON_STRING)
        return false;
    *text_r = value.value;
    return text_r->size > 0;
}

static bool is_owner(struct rules_decision *decision)
{
    struct rules_facts *facts = decision->subject;
    struct bytes owner;
    if (!facts->knows_owner) {
        facts->is_owner = find_text(decision, &decision->class->owner, &owner) &&
                          bytes_equal(owner, decision->question->caller->account);
        facts->knows_owner = true;
    }
    return facts->is_owner;
}

static const struct item *rules_decide_find_member(struct rules_decision *decision)
{
    struct rules_facts *facts = decision->subject;
    if (!facts->knows_member)
        facts->member = rules_item_of(facts, decision->class->members, decision->question->caller->account);
    facts->knows_member = true;
    return facts->member;
}

/* The caller's item in the team of the document.  A fault ends the decision. */
static const struct item *find_in_team(struct rules_decision *decision)
{
    struct rules_question *question = decision->question;
    const struct rules_class *class = decision->class;
    const struct document *team;
    struct bytes id;
    if (!find_text(decision, &class->team.id, &id) || id.size > RULES_ID_MOST)
        return NULL;
    question->fault = question->load(question->context, class->team.class, id, &team);
    if (question->fault) {
        decision->is_broken = true;
        return NULL;
    }
    const struct rules_facts facts = {.document = team, .exists = document_exists(team)};
    return rules_item_of(&facts, class->team.members, question->caller->account);
}

static const struct item *find_team_member(struct rules_decision *decision)
{
    struct rules_facts *facts = decision->subject;
    if (!facts->knows_team)
        facts->team_member = find_in_team(decision);
    facts->knows_team = true;
    return facts->team_member;
}

/* Is the item there, with this role (NO_BYTES: any)? */
static bool is_member(struct rules_decision *decision, const struct item *item, struct bytes role)
{
    struct json value;
    if (!item || !role.data)
        return item != NULL;
    return rules_member_of(decision, item, BYTES("role"), &value) && value.kind == JSON_STRING &&
           bytes_equal(value.value, role);
}

/* --- grants --- */

static bool is_grantee(struct rules_decision *decision, const struct rules_grant *grant)
{
    const struct rules_caller *caller = decision->question->caller;
    if (grant->to != RULES_TO_ANYBODY && !caller->account.size)
        return false;
    switch (grant->to) {
    case RULES_TO_ANYBODY:
    case RULES_TO_ACCOUNT:
        return true;
    case RULES_TO_ROLE:
        return rules_caller_has_role(caller, grant->role);
    case RULES_TO_OWNER:
        return is_owner(decision);
    case RULES_TO_MEMBERS:
        return is_member(decision, rules_decide_find_member(decision), grant->role);
    case RULES_TO_TEAM:
        return is_member(decision, find_team_member(decision), grant->role);
    }
    return false;
}

/* Does the list grant?  Leaves the path of the grant, or of the list, in the question. */
static bool is_granted(struct rules_decision *decision, const struct rules_list *list)
{
    decision->question->rule = list->path;
    for (size_t i = 0; i < list->count && !decision->is_broken; i++) {
        const struct rules_grant *grant = &list->grants[i];
        if (!is_grantee(decision, grant) || decision->is_broken ||
            (grant->condition && !rules_condition_holds(decision, grant->condition)))
            continue;
        decision->question->rule = grant->path;
        return true;
    }
    return false;
}

/* Judges by the document before, or after, the change. */
static bool is_granted_by(struct rules_decision *decision, struct rules_facts *subject,
                          const struct rules_list *list)
{
    decision->subject = subject;
    return is_granted(decision, list);
}

static bool is_right_granted(struct rules_decision *decision, struct rules_facts *subject,
                             enum rules_right right)
{
    return is_granted_by(decision, subject, &decision->class->lists[right]);
}

/* --- reading --- */

/* Rules of the document's class; false: there are none, so nothing is granted. */
static bool rules_decide_begin(struct rules_decision *decision, struct rules_question *question,
                               const struct document *document, const struct draft *draft)
{
    question->rule = "";
    question->fault = FAULT_NONE;
    *decision = (struct rules_decision){
        .question = question,
        .class = rules_find_class(question->rules, document->header.class),
        .before = {.document = document, .exists = document_exists(document)},
        .after = {.document = document, .draft = draft, .exists = draft && draft_exists(draft)},
        .budget = {STEPS_MOST}};
    return decision->class != NULL;
}

/* May the caller see the items of this class, in a document that it may read? */
static bool may_see(struct rules_decision *decision, const struct rules_item *item)
{
    return !item->see.is_declared || is_granted_by(decision, &decision->before, &item->see);
}

/* What the caller sees of a document that it may read; false: a fault. */
static bool find_view(struct rules_decision *decision, struct rules_view *view_r)
{
    const char *rule = decision->question->rule;
    for (size_t i = 0; i < decision->class->item_count; i++)
        if (!may_see(decision, &decision->class->items[i]))
            view_r->hidden |= UINT64_C(1) << i;
    view_r->class = view_r->hidden ? decision->class : NULL;
    decision->question->rule = rule;
    return !decision->question->fault;
}

bool rules_may_read(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r)
{
    struct rules_decision decision;
    *view_r = (struct rules_view){0};
    return rules_decide_begin(&decision, question, document, NULL) && decision.before.exists &&
           is_right_granted(&decision, &decision.before, RULES_READ) && find_view(&decision, view_r);
}

bool rules_may_list(struct rules_question *question, const struct document *document,
                    struct rules_view *view_r)
{
    struct rules_decision decision;
    *view_r = (struct rules_view){0};
    return rules_decide_begin(&decision, question, document, NULL) && decision.before.exists &&
           is_right_granted(&decision, &decision.before, RULES_LIST) &&
           is_right_granted(&decision, &decision.before, RULES_READ) && find_view(&decision, view_r);
}

bool rules_may_see(struct rules_question *question, const struct document *document, struct bytes item_class)
{
    struct rules_decision decision;
    if (!rules_decide_begin(&decision, question, document, NULL) || !decision.before.exists ||
        !is_right_granted(&decision, &decision.before, RULES_READ))
        return false;
    const struct rules_item *item = rules_find_item(decision.class, item_class);
    return !item || may_see(&decision, item);
}

/* --- changing --- */

/* May the caller write items of this class?  Judged by the document that the caller found, or created. */
static bool may_write(struct rules_decision *decision, struct bytes item_class)
{
    const struct rules_item *item = rules_find_item(decision->class, item_class);
    if (!item || !item->write.is_declared)
        return true;
    bool is_new = draft_act(decision->after.draft) == DRAFT_RENEW || !decision->before.exists;
    return is_granted_by(decision, is_new ? &decision->after : &decision->before, &item->write);
}

struct rules_writing {
    struct rules_decision *decision;
    struct bytes allowed; /* the class of items judged last; the items come in the order of their classes */
};

static bool is_refused(void *context, const struct item *item)
{
    struct rules_writing *writing = context;
    if (writing->allowed.data && bytes_equal(writing->allowed, item->iclass))
        return false;
    writing->allowed = item->iclass;
    return !may_write(writing->decision, item->iclass);
}

static bool may_write_all(struct rules_decision *decision)
{
    struct rules_writing writing = {.decision = decision};
    const char *rule = decision->question->rule;
    if (draft_find_written(decision->after.draft, is_refused, &writing))
        return false;
    decision->question->rule = rule;
    return true;
}

/* The rights that the change of the document itself needs. */
static bool may_act(struct rules_decision *decision, enum draft_act act)
{
    struct rules_facts *before = &decision->before, *after = &decision->after;
    if (act == DRAFT_READ)
        return true;
    if (before->exists && !is_right_granted(decision, before, RULES_READ))
        return false;
    if (before->exists && act == DRAFT_WRITE)
        return is_right_granted(decision, before, RULES_UPDATE);
    if (before->exists && !is_right_granted(decision, before, RULES_DELETE))
        return false;
    return act == DRAFT_DELETE || is_right_granted(decision, after, RULES_CREATE);
}

/* May the caller update the document, or create it if it does not exist? */
static bool may_enter(struct rules_decision *decision)
{
    struct rules_facts *before = &decision->before;
    if (!before->exists)
        return is_right_granted(decision, &decision->after, RULES_CREATE);
    return is_right_granted(decision, before, RULES_READ) && is_right_granted(decision, before, RULES_UPDATE);
}

bool rules_may_change(struct rules_question *question, const struct draft *draft)
{
    struct rules_decision decision;
    enum draft_act act = draft_act(draft);
    bool is_known = rules_decide_begin(&decision, question, draft_base(draft), draft);
    if (act == DRAFT_READ)
        return true;
    return is_known && may_act(&decision, act) && may_write_all(&decision);
}

bool rules_may_write(struct rules_question *question, const struct draft *draft, struct bytes item_class)
{
    struct rules_decision decision;
    bool is_known = rules_decide_begin(&decision, question, draft_base(draft), draft);
    return is_known && may_enter(&decision) && may_write(&decision, item_class);
}

bool rules_may_name(struct rules_question *question, const struct draft *draft, struct bytes item_class)
{
    struct rules_decision decision;
    if (!rules_decide_begin(&decision, question, draft_base(draft), draft))
        return false;
    if (!decision.before.exists)
        return true;
    if (!is_right_granted(&decision, &decision.before, RULES_READ))
        return false;
    const struct rules_item *item = rules_find_item(decision.class, item_class);
    if (!item || may_see(&decision, item))
        return true;
    return may_enter(&decision) && may_write(&decision, item_class);
}

/* --- rules caller --- */

static int rules_caller_compare(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

void rules_caller_set_roles(struct arena *arena, struct rules_caller *caller, const struct bytes *roles,
                            size_t count)
{
    struct bytes *sorted = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = roles[i];
    qsort(sorted, count, sizeof *sorted, rules_caller_compare);
    caller->roles = sorted;
    caller->role_count = count;
}

bool rules_caller_has_role(const struct rules_caller *caller, struct bytes role)
{
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], role))
            return true;
    return false;
}

/* --- rules view --- */

bool rules_view_is_whole(const struct rules_view *view)
{
    return !view->class || !view->hidden;
}

bool rules_view_shows(const struct rules_view *view, struct bytes item_class)
{
    if (rules_view_is_whole(view))
        return true;
    const struct rules_item *item = rules_find_item(view->class, item_class);
    return !item || !(view->hidden >> (item - view->class->items) & 1);
}

struct bytes rules_view_hidden(const struct rules_view *view, struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; !rules_view_is_whole(view) && i < view->class->item_count; i++)
        if (view->hidden >> i & 1)
            text = arena_printf(arena, "%s%s%.*s", text, *text ? " " : "",
                                (int)view->class->items[i].name.size, view->class->items[i].name.data);
    return bytes_of(text);
}

const char *rules_view_name(const struct rules_view *view, struct arena *arena)
{
    uint64_t hash = HASH_START;
    if (rules_view_is_whole(view))
        return "";
    for (size_t i = 0; i < view->class->item_count; i++)
        if (view->hidden >> i & 1)
            hash = hash_more(hash_more(hash, view->class->items[i].name), BYTES("."));
    return arena_printf(arena, "%016llx", (unsigned long long)hash);
}
