/* rules_world: documents as texts. */
#include "rules_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIRTH INT64_C(230501100000000)

struct arena *rules_world_arena;

int rules_world_set_up(void **state UNUSED)
{
    rules_world_arena = arena_create("test");
    return 0;
}

int rules_world_tear_down(void **state UNUSED)
{
    arena_destroy(rules_world_arena);
    return 0;
}

/* --- documents --- */

enum { ITEMS_MOST = 16 };

static void release(void *document)
{
    document_release(document);
}

static int compare(const void *a, const void *b)
{
    const struct item *one = a, *other = b;
    return item_compare(one->iclass, one->key, other->iclass, other->key);
}

/* "Info={…}", "Member/ann={…}", "Raw:text", "Gone-" (a tombstone), one to a line; without a content: no such
 * item.  NULL: no items. */
static size_t read_items(const char *text, struct item items[ITEMS_MOST])
{
    size_t count = 0;
    struct bytes rest = bytes_of(text);
    while (rest.size) {
        struct bytes line = bytes_cut(&rest, '\n');
        size_t end = 0;
        assert_true(count < ITEMS_MOST);
        while (!strchr("=:-", line.data[end]))
            end++;
        struct bytes name = {line.data, end};
        struct item *item = &items[count++];
        *item = (struct item){.version = BIRTH, .raw = line.data[end] == ':'};
        item->iclass = bytes_cut(&name, '/');
        item->key = name.size ? name : BYTES("");
        if (line.data[end] != '-') {
            item->vop = BIRTH;
            item->content = (struct bytes){line.data + end + 1, line.size - end - 1};
        }
    }
    return count;
}

/* NULL: a document that does not exist. */
struct document *rules_world_make(const char *class, const char *id, const char *text)
{
    struct item items[ITEMS_MOST];
    struct header header = {.class = bytes_of(class), .id = bytes_of(id), .version = BIRTH};
    size_t count = text ? read_items(text, items) : 0;
    header.ctime = text ? BIRTH : 0;
    qsort(items, count, sizeof *items, compare);
    struct document *document = document_build(&header, items, count);
    arena_defer(rules_world_arena, release, document);
    return document;
}

/* `after`: items that are set or, without content, removed; `nothing`; "again" and the items of the new one.
 */
struct draft *rules_world_change(struct document *base, const char *after)
{
    struct draft *draft = draft_open(rules_world_arena, base);
    struct item items[ITEMS_MOST];
    if (strcmp(after, NOTHING) == 0) {
        draft_delete(draft);
        return draft;
    }
    if (strncmp(after, AGAIN, strlen(AGAIN)) == 0) {
        draft_delete(draft);
        draft_create(draft);
        after += strlen(AGAIN);
    }
    if (!document_exists(base))
        draft_create(draft);
    size_t count = read_items(after, items);
    for (size_t i = 0; i < count; i++) {
        if (item_is_tombstone(&items[i]))
            draft_remove_item(draft, items[i].iclass, items[i].key);
        else
            draft_set_item(draft, items[i].iclass, items[i].key, items[i].raw, items[i].content);
    }
    return draft;
}

/* --- questions --- */

int rules_world_loads;

/* Teams: "red" of ann, a member with the role chief, and bob; "broken" cannot be loaded. */
static enum fault load(void *context UNUSED, struct bytes class, struct bytes id,
                       const struct document **document_r)
{
    rules_world_loads++;
    assert_true(bytes_equal(class, BYTES("Team")));
    if (bytes_equal(id, BYTES("broken")))
        return FAULT_XAWAY;
    *document_r = rules_world_make(
        "Team", arena_copy(rules_world_arena, id.data, id.size),
        bytes_equal(id, BYTES("red")) ? "Member/ann={\"role\":\"chief\"}\nMember/bob={}\nMember/cid-\nInfo={}"
                                      : NULL);
    return FAULT_NONE;
}

static struct rules *read_rules(const char *text)
{
    struct rules *rules;
    struct rules_problem problem;
    if (rules_read(rules_world_arena, bytes_of(text), &rules, &problem))
        fail_msg("%s: %s %s", text, problem.path, problem.expected);
    return rules;
}

/* "ann editor,admin"; "": not signed in. */
static struct rules_caller *caller_of(const char *text)
{
    struct rules_caller *caller = ARENA_NEW(rules_world_arena, struct rules_caller);
    struct bytes rest = bytes_of(text),
                 *roles = ARENA_ARRAY(rules_world_arena, struct bytes, RULES_ROLES_MOST);
    struct bytes account = bytes_cut(&rest, ' ');
    caller->account = account.size ? account : NO_BYTES;
    while (rest.size)
        roles[caller->role_count++] = bytes_cut(&rest, ',');
    caller->roles = roles;
    return caller;
}

struct rules_question rules_world_ask(const char *rules, const char *caller)
{
    return (struct rules_question){
        .rules = read_rules(rules), .caller = caller_of(caller), .load = load, .arena = rules_world_arena};
}

void rules_world_check(bool may, const struct rules_question *question, const char *rule, const char *what,
                       bool is_expected)
{
    if (may != is_expected)
        fail_msg("%s: %s by %s", what, may ? "allowed" : "refused", question->rule);
    if (rule && strcmp(question->rule, rule) != 0)
        fail_msg("%s: rule %s, not %s", what, question->rule, rule);
}

/* `rule`: that allows, or with "!" before it: that refuses; an item after "=": the class that is hidden. */
void rules_world_read(const char *rules, const char *caller, const char *items, const char *rule)
{
    struct rules_question question = rules_world_ask(rules, caller);
    struct rules_view view;
    bool is_expected = *rule != '!';
    rules_world_check(rules_may_read(&question, rules_world_make("Note", "1", items), &view), &question,
                      rule + !is_expected, rules, is_expected);
    assert_true(is_expected || rules_view_is_whole(&view));
}

void rules_world_list(const char *rules, const char *caller, const char *items, const char *rule)
{
    struct rules_question question = rules_world_ask(rules, caller);
    struct rules_view view;
    bool is_expected = *rule != '!';
    rules_world_check(rules_may_list(&question, rules_world_make("Note", "1", items), &view), &question,
                      rule + !is_expected, rules, is_expected);
}

void rules_world_alter(const char *rules, const char *caller, const char *before, const char *after,
                       const char *rule)
{
    struct rules_question question = rules_world_ask(rules, caller);
    bool is_expected = *rule != '!';
    struct draft *draft = rules_world_change(rules_world_make("Note", "1", before), after);
    rules_world_check(rules_may_change(&question, draft), &question, rule + !is_expected, rules, is_expected);
}
