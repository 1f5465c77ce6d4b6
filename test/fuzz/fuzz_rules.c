/* fuzz_rules: rules_read on any text, and what is decided by rules of the document Note/1 before and after.
 *
 * The input: the rules on a line; the caller, "ann editor,admin", on a line; items "Class/key=content", one
 * to a line; after a line "--" those that are set then.  A refusal has a place and a sentence; what may be
 * listed may be read; a changed document could be read; a member found in a text is the one that the full
 * parser finds. */
#include "fuzz.h"

#include <stdlib.h>

#include "edge/json/json_scan.h"
#include "model/rules/rules.h"

const char fuzz_target[] = "rules";

enum { ITEMS_MOST = 32 };

static bool read_line(struct bytes *rest, struct bytes *line_r)
{
    *line_r = rest->data ? bytes_cut(rest, '\n') : NO_BYTES;
    return line_r->data != NULL;
}

static int compare(const void *a, const void *b)
{
    const struct item *one = a, *other = b;
    return item_compare(one->iclass, one->key, other->iclass, other->key);
}

/* Up to "--", sorted, each once. */
static size_t read_items(struct bytes *rest, struct item *items)
{
    struct bytes line;
    size_t count = 0, kept = 0;
    while (rest->size && count < ITEMS_MOST && read_line(rest, &line) && !bytes_equal(line, BYTES("--"))) {
        struct bytes name = bytes_cut(&line, '='), iclass = bytes_cut(&name, '/');
        if (item_is_class_name(iclass))
            items[count++] = (struct item){.iclass = iclass,
                                           .key = name.size ? name : BYTES(""),
                                           .content = line.data ? line : BYTES(""),
                                           .version = 1,
                                           .vop = 1};
    }
    qsort(items, count, sizeof *items, compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || compare(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    return kept;
}

static enum fault load(void *context, struct bytes class, struct bytes id, const struct document **document_r)
{
    assert(item_is_class_name(class) && !rules_is_reserved(class) && id.size && id.size <= 255);
    *document_r = context;
    return bytes_equal(id, BYTES("away")) ? FAULT_XAWAY : FAULT_NONE;
}

/* The scan finds what the parser finds. */
static void check_members(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = 64, .tree_depth = 1};
    struct json *root, found;
    struct json_problem problem;
    if (json_read(arena, content, &limits, &root, &problem))
        return;
    assert(!json_scan_member(arena, content, BYTES("\x01 no such name"), &found));
    for (const struct json *member = root->kind == JSON_OBJECT ? root->first : NULL; member;
         member = member->next) {
        bool is_found = json_scan_member(arena, content, member->name, &found);
        assert(is_found && found.kind == member->kind && bytes_equal(found.text, member->text));
        assert(bytes_equal(found.value, member->value));
    }
}

static void check_reading(struct rules_question *question, const struct document *document)
{
    struct rules_view view, listed;
    bool may_list = rules_may_list(question, document, &listed);
    bool may_read = rules_may_read(question, document, &view);
    assert(question->rule && (may_read || rules_view_is_whole(&view)));
    assert(!may_list || (may_read && listed.hidden == view.hidden));
    assert(!may_read || document_exists(document));
    assert(rules_view_is_whole(&view) == (*rules_view_name(&view, question->arena) == '\0'));
    for (size_t i = 0; i < document->item_count; i++) {
        struct bytes iclass = document->items[i].iclass;
        bool may_see = rules_may_see(question, document, iclass);
        assert(may_see == (may_read && rules_view_shows(&view, iclass)) || question->fault);
    }
}

static void check_changing(struct rules_question *question, const struct draft *draft)
{
    const struct document *before = draft_base(draft);
    struct rules_view view;
    bool may = rules_may_change(question, draft), may_again = rules_may_change(question, draft);
    assert(may == may_again && question->rule);
    assert(may || draft_is_changed(draft));
    assert(!may || !draft_is_changed(draft) || !document_exists(before) ||
           rules_may_read(question, before, &view) || question->fault);
    for (size_t i = 0; i < before->item_count; i++)
        (void)rules_may_write(question, draft, before->items[i].iclass);
    (void)rules_may_name(question, draft, BYTES("Info"));
}

static void decide(struct arena *arena, const struct rules *rules, struct bytes rest)
{
    struct item items[ITEMS_MOST];
    struct bytes line, roles[RULES_ROLES_MOST];
    struct rules_caller caller = {.roles = roles};
    (void)read_line(&rest, &line);
    caller.account = line.size ? bytes_cut(&line, ' ') : NO_BYTES;
    while (line.size && caller.role_count < RULES_ROLES_MOST)
        roles[caller.role_count++] = bytes_cut(&line, ',');
    struct header header = {
        .class = BYTES("Note"), .id = BYTES("1"), .version = 1, .ctime = !bytes_equal(rest, BYTES("--"))};
    size_t count = header.ctime ? read_items(&rest, items) : 0;
    struct document *document = document_build(&header, items, count);
    for (size_t i = 0; i < count; i++)
        check_members(arena, items[i].content);
    struct rules_question question = {
        .rules = rules, .caller = &caller, .load = load, .context = document, .arena = arena};
    check_reading(&question, document);
    struct draft *draft = draft_open(arena, document);
    check_changing(&question, draft);
    count = read_items(&rest, items);
    for (size_t i = 0; i < count; i++)
        draft_set_item(draft, items[i].iclass, items[i].key, false, items[i].content);
    check_changing(&question, draft);
    draft_delete(draft);
    check_changing(&question, draft);
    document_release(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text, rest;
    struct rules *rules;
    struct rules_problem problem = {0};
    if (!fuzz_divide(data, size, &text, &rest))
        return 0;
    struct arena *arena = arena_create("fuzz");
    enum fault fault = rules_read(arena, text, &rules, &problem);
    if (fault == FAULT_NONE)
        decide(arena, rules, rest);
    else
        assert(fault == FAULT_AARG && !rules && problem.path && problem.pointer && problem.expected &&
               *problem.expected);
    arena_destroy(arena);
    return 0;
}
