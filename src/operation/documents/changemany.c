/* changemany: changes what a search finds (protocol.md).
 * param {"c","i","where":[…],"id","v","ct","delete":true | "del":true | "merge":{…},"limit"}: as of `find`;
 * then what is done with each document, or with each item.  As a request it changes nothing → out
 * {"count","more","ids":[id…],"refused"}: how many documents are found, the first of them that would be
 * changed, and how many beside these the rules would refuse.  As a task → out {"changed","refused","more"}.
 *
 * The task walks over what is found in the order of ids and keys; each commit stores what it has changed
 * together with the place that the walk has come to.  So a document is passed once, whatever dies, and what a
 * change makes of it does not bring it back.  An item that has changed since it was found is searched for
 * again.  Where rules decide, each document is judged as in `put`, on a draft of its own: what is refused is
 * counted and left as it is. */
#include "operation/builtin.h"

#include <inttypes.h>
#include <string.h>

#include "model/document/merge.h"
#include "operation/classes.h"
#include "operation/documents/change.h"
#include "operation/documents/find.h"
#include "operation/documents/find_search.h"
#include "operation/judge/judge.h"
#include "operation/reply.h"
#include "store/collections/store_search.h"

enum {
    SHOWN_MOST = 20, /* documents of a dry run */
    COUNT_MOST = 100000,
    PAGE_MOST = 1000,    /* items that are found at once */
    CHANGES_MOST = 100,  /* items of a commit */
    DOCUMENTS_MOST = 32, /* of a commit */
    LEVELS_ABOVE = 2     /* the list of items, the item */
};

enum many_act { MANY_DELETE, MANY_REMOVE, MANY_MERGE };

/* What is wanted. */
struct many {
    struct search search;
    enum many_act act;
    struct bytes patch; /* of MANY_MERGE */
    int64_t most;       /* items, or documents, that are changed; 0: any number */
    int64_t seen_most;  /* items that are visited; 0: any number */
};

/* Where the walk is: kept by the commit. */
struct many_walk {
    int64_t changed, refused, seen;
    struct bytes id, key; /* of the last item that was visited; empty: none */
};

/* What was found, behind `id` and `key`: kept in memory between two commits. */
struct many_page {
    struct bytes id, key;
    struct search_page page;
};

/* A document, and the items of it that were found. */
struct many_group {
    const struct search_found *found;
    size_t count;
    struct draft *draft;
};

/* What became of a group. */
enum many_verdict { MANY_PASSED, MANY_CHANGED, MANY_REFUSED, MANY_OUTDATED };

static struct reader many_reader(struct attempt *attempt)
{
    return (struct reader){attempt->worker_context->settings, attempt->call, attempt->reply};
}

/* --- the argument -------------------------------------------------------------------------------- */

static enum fault read_act(const struct reader *reader, struct many *many)
{
    const struct json *param = reader->call->param, *merge = json_member(param, "merge");
    bool is_delete, is_removal;
    enum fault fault = FAULT_FIRST(reader_members(reader, param, "c i where id v ct delete del merge limit"),
                                   reader_boolean(reader, param, "delete", &is_delete),
                                   reader_boolean(reader, param, "del", &is_removal));
    if (!fault && is_delete + is_removal + (merge != NULL) != 1)
        fault = reader_wrong(reader, param, "merge", "Exactly one of delete, del and merge is expected.");
    if (!fault && merge && !merge_is_patch(reader->call->arena, merge->text))
        fault = reader_wrong(reader, param, "merge",
                             "A JSON merge patch is expected: an object, of up to 100 members at each of up "
                             "to 32 levels.");
    if (fault)
        return fault;
    many->act = is_delete ? MANY_DELETE : is_removal ? MANY_REMOVE : MANY_MERGE;
    many->patch = merge ? merge->text : NO_BYTES;
    return FAULT_NONE;
}

static enum fault read_limit(const struct reader *reader, struct many *many)
{
    int64_t most = INT64_MAX;
    if (!find_search_is_free(reader->call)) {
        most = reader->settings->limit_change_items;
        many->seen_most = reader->settings->limit_find_items;
    }
    enum fault fault = reader_integer(reader, reader->call->param, "limit", 1, INT64_MAX, most, &many->most);
    if (many->most > most)
        many->most = most;
    return fault;
}

static enum fault changemany_check(struct attempt *attempt)
{
    const struct reader reader = many_reader(attempt);
    struct many many = {.most = 0};
    return FAULT_FIRST(read_act(&reader, &many), read_limit(&reader, &many));
}

/* --- a document ---------------------------------------------------------------------------------- */

/* The item as an element of `items` of `put`; false: there is nothing to change. */
static enum fault add_change(struct attempt *attempt, const struct many *many, const struct draft *draft,
                             const struct search_found *found, struct builder *items)
{
    const struct item *item = document_find_item(draft_base(draft), many->search.item->name, found->item.key);
    struct bytes content = NO_BYTES;
    enum fault fault = FAULT_NONE;
    if (many->act == MANY_MERGE)
        fault = merge_apply(attempt->call->arena, item->content, many->patch, &content);
    if (fault || (content.data && content.data == item->content.data))
        return fault;
    builder_add_bytes(items, bytes_of(items->size > 1 ? ",{\"c\":" : "{\"c\":"));
    json_add_string(items, many->search.item->name);
    if (found->item.key.size)
        json_add_text(items, ",\"k\":", found->item.key);
    builder_add_bytes(items, bytes_of(many->act == MANY_MERGE ? ",\"j\":" : ",\"del\":true"));
    builder_add_bytes(items, content.data ? content : BYTES(""));
    builder_add_text(items, "}");
    return FAULT_NONE;
}

/* The items are read and applied as those of `put` are.  count_r: how many there are to change. */
static enum fault apply_items(struct attempt *attempt, const struct many *many,
                              const struct many_group *group, struct draft *draft, size_t *count_r)
{
    const struct settings *settings = attempt->worker_context->settings;
    const struct json_limits limits = {.depth = (int)settings->limit_depth, .tree_depth = LEVELS_ABOVE};
    struct arena *arena = attempt->call->arena;
    struct json_problem problem;
    struct json *list;
    struct builder items = {0};
    enum fault fault = FAULT_NONE;
    builder_add_text(&items, "[");
    for (size_t i = 0; i < group->count && !fault; i++)
        fault = add_change(attempt, many, draft, &group->found[i], &items);
    builder_add_text(&items, "]");
    struct bytes text = builder_take(&items, arena);
    if (!fault)
        fault = json_read(arena, text, &limits, &list, &problem);
    if (fault)
        return reply_fault(attempt->call, attempt->reply, FAULT_ALIMIT,
                           "The content of an item would be nested too deep, or has too many members.",
                           "limit_depth", arena_printf(arena, "%lld", (long long)settings->limit_depth),
                           NULL);
    *count_r = list->count;
    return list->count ? change_items(attempt, draft, list, true) : FAULT_NONE;
}

static enum fault apply_act(struct attempt *attempt, const struct many *many, const struct many_group *group,
                            struct draft *draft, size_t *count_r)
{
    *count_r = 1;
    if (many->act != MANY_DELETE)
        return apply_items(attempt, many, group, draft, count_r);
    draft_delete(draft);
    return FAULT_NONE;
}

/* On a draft that is thrown away. */
static enum fault try_act(struct attempt *attempt, const struct many *many, const struct many_group *group,
                          size_t *count_r, bool *may_r)
{
    struct draft *draft =
        draft_open(attempt->call->arena, (struct document *)draft_base(group->draft)); /* borrowed */
    enum fault fault = apply_act(attempt, many, group, draft, count_r);
    *may_r = fault != FAULT_SRULE;
    if (fault == FAULT_SRULE)
        attempt->reply->fault = fault = FAULT_NONE;
    else if (!fault)
        fault = judge_change(attempt, draft, may_r);
    return fault;
}

/* Is each item what was found?  Those that are gone are taken out of the group. */
static enum many_verdict compare_group(const struct many *many, const struct document *shown,
                                       struct many_group *group)
{
    struct search_found *found = (struct search_found *)group->found; /* of a page of our own */
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct item *item = document_find_item(shown, many->search.item->name, found[i].item.key);
        if (!item || item_is_tombstone(item))
            continue;
        if (item->version != found[i].item.version)
            return MANY_OUTDATED;
        if (item->raw && many->act == MANY_MERGE)
            return MANY_REFUSED;
        found[kept++] = found[i];
    }
    group->count = kept;
    return kept ? MANY_CHANGED : MANY_PASSED;
}

/* count_r: what is changed, or refused. */
static enum fault settle_group(struct attempt *attempt, const struct many *many,
                               const struct many_group *found, bool is_dry, enum many_verdict *verdict_r,
                               size_t *count_r)
{
    const struct document *shown = draft_base(found->draft);
    struct many_group group = *found;
    struct view view = {0};
    bool may = true;
    *verdict_r = MANY_PASSED;
    *count_r = 0;
    struct search_found *copies = ARENA_ARRAY(attempt->call->arena, struct search_found, found->count);
    memcpy(copies, found->found, found->count * sizeof *copies);
    group.found = copies;
    enum fault fault = call_is_judged(attempt->call) ? judge_show_listed(attempt, &shown, &view) : FAULT_NONE;
    if (fault || !find_is_shown(&many->search, shown, &view))
        return fault;
    *verdict_r = compare_group(many, shown, &group);
    *count_r = many->act == MANY_DELETE ? 1 : group.count;
    if (*verdict_r != MANY_CHANGED)
        return FAULT_NONE;
    if (is_dry || call_is_judged(attempt->call))
        fault = try_act(attempt, many, &group, count_r, &may);
    if (!fault && may && !is_dry)
        fault = apply_act(attempt, many, &group, group.draft, count_r);
    *verdict_r = !may ? MANY_REFUSED : *count_r ? MANY_CHANGED : MANY_PASSED;
    if (!may)
        *count_r = many->act == MANY_DELETE ? 1 : group.count;
    return fault;
}

/* --- several ------------------------------------------------------------------------------------- */

/* The documents of the first of these items, which are in the order of documents. */
static enum fault fetch_groups(struct attempt *attempt, const struct many *many,
                               const struct search_found *found, size_t count, size_t most,
                               struct many_group *groups_r, size_t *count_r)
{
    struct document_name names[DOCUMENTS_MOST];
    struct draft *drafts[DOCUMENTS_MOST];
    size_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        if (groups && bytes_equal(groups_r[groups - 1].found->id, found[i].id)) {
            groups_r[groups - 1].count++;
            continue;
        }
        if (groups == most)
            break;
        names[groups] = (struct document_name){many->search.class->name, found[i].id};
        groups_r[groups++] = (struct many_group){&found[i], 1, NULL};
    }
    *count_r = groups;
    enum fault fault =
        groups ? transaction_fetch_many(attempt->transaction, names, groups, drafts) : FAULT_NONE;
    for (size_t i = 0; i < groups && !fault; i++)
        groups_r[i].draft = drafts[i];
    return fault;
}

static size_t documents_most(const struct attempt *attempt)
{
    int64_t most = attempt->worker_context->settings->limit_documents;
    return most < DOCUMENTS_MOST ? (size_t)most : DOCUMENTS_MOST;
}

/* --- as a request -------------------------------------------------------------------------------- */

static enum fault count_found(struct attempt *attempt, const struct many *many)
{
    struct search search = many->search;
    int64_t count;
    bool has_more;
    search.wants_items = false;
    search.wants_count = true;
    search.limit = COUNT_MOST;
    enum fault fault = find_count(attempt, &search, &count, &has_more);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"count\":%" PRId64 "%s,\"ids\":[", count,
                       has_more ? ",\"more\":true" : "");
    return fault;
}

static enum fault show_found(struct attempt *attempt, struct many *many)
{
    struct many_group groups[DOCUMENTS_MOST];
    size_t most = documents_most(attempt), count, changed, shown = 0;
    struct builder *body = attempt->reply->body;
    struct search_page page;
    int64_t refused = 0;
    many->search.limit = PAGE_MOST;
    enum fault fault = FAULT_FIRST(store_search(documents_store(attempt->worker_context->documents),
                                                attempt->ns, attempt->call->arena, &many->search, &page),
                                   count_found(attempt, many),
                                   fetch_groups(attempt, many, page.found, page.count,
                                                most < SHOWN_MOST ? most : SHOWN_MOST, groups, &count));
    for (size_t i = 0; !fault && i < count; i++) {
        enum many_verdict verdict;
        fault = settle_group(attempt, many, &groups[i], true, &verdict, &changed);
        refused += !fault && verdict == MANY_REFUSED;
        if (fault || verdict != MANY_CHANGED)
            continue;
        builder_add_bytes(body, bytes_of(shown++ ? "," : ""));
        json_add_string(body, groups[i].found->id);
    }
    if (!fault)
        builder_printf(body, "],\"refused\":%" PRId64 "}", refused);
    return fault;
}

/* --- as a task ----------------------------------------------------------------------------------- */

static struct many_walk read_walk(const struct attempt *attempt)
{
    const struct task *task = attempt->call->task;
    struct many_walk walk = {.id = BYTES(""), .key = BYTES("")};
    struct json *root;
    if (!task->checkpoint.data || !json_is_tree(attempt->call->arena, task->checkpoint, 1, 1, &root))
        return walk;
    const struct json *id = json_member(root, "id"), *key = json_member(root, "k");
    (void)json_is_i64(json_member(root, "changed"), &walk.changed);
    (void)json_is_i64(json_member(root, "refused"), &walk.refused);
    (void)json_is_i64(json_member(root, "seen"), &walk.seen);
    if (id && key && id->kind == JSON_STRING && key->kind == JSON_STRING) {
        walk.id = id->value;
        walk.key = key->value;
    }
    return walk;
}

static void keep_walk(struct attempt *attempt, const struct many_walk *walk)
{
    struct arena *arena = attempt->call->arena;
    struct builder text = {0};
    builder_printf(&text, "{\"changed\":%" PRId64 ",\"refused\":%" PRId64 ",\"seen\":%" PRId64 ",\"id\":",
                   walk->changed, walk->refused, walk->seen);
    json_add_string(&text, walk->id);
    json_add_text(&text, ",\"k\":", walk->key);
    builder_add_text(&text, "}");
    transaction_set_checkpoint(attempt->transaction, builder_take(&text, arena));
    attempt->fence->progress = bytes_of(
        arena_printf(arena, "%" PRId64 " changed, %" PRId64 " refused", walk->changed, walk->refused));
}

/* The place behind the walk's in the page that was found last; false: it is elsewhere. */
static bool find_place(const struct many_page *page, const struct many_walk *walk, size_t *place_r)
{
    *place_r = 0;
    if (!page)
        return false;
    if (bytes_equal(page->id, walk->id) && bytes_equal(page->key, walk->key))
        return true;
    while (*place_r < page->page.count) {
        const struct search_found *found = &page->page.found[(*place_r)++];
        if (bytes_equal(found->id, walk->id) && bytes_equal(found->item.key, walk->key))
            return *place_r < page->page.count || !page->page.has_more;
    }
    return false;
}

/* What follows, from memory or from the database. */
static enum fault many_find_next(struct attempt *attempt, struct many *many, const struct many_walk *walk,
                                 const struct many_page **page_r, size_t *place_r)
{
    *page_r = attempt->kept;
    if (find_place(*page_r, walk, place_r))
        return FAULT_NONE;
    struct many_page *page = ARENA_NEW(attempt->call->arena, struct many_page);
    *page = (struct many_page){.id = walk->id, .key = walk->key};
    *place_r = 0;
    many->search.limit = PAGE_MOST;
    many->search.after_id = walk->id.size ? walk->id : NO_BYTES;
    many->search.after_key = walk->id.size ? walk->key : NO_BYTES;
    enum fault fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                                    attempt->call->arena, &many->search, &page->page);
    attempt->kept = fault ? NULL : page;
    *page_r = page;
    return fault;
}

static bool is_at_end(const struct many *many, const struct many_walk *walk)
{
    return (many->most && walk->changed >= many->most) || (many->seen_most && walk->seen >= many->seen_most);
}

/* How many items a commit may change. */
static size_t changes_most(const struct many *many, const struct many_walk *walk)
{
    int64_t left = many->most - walk->changed;
    return many->act != MANY_DELETE && left < CHANGES_MOST ? (size_t)left : CHANGES_MOST;
}

static enum fault visit_groups(struct attempt *attempt, const struct many *many,
                               const struct many_group *groups, size_t count, struct many_walk *walk,
                               size_t *visited_r)
{
    *visited_r = 0;
    for (size_t i = 0; i < count && !is_at_end(many, walk); i++) {
        const struct search_found *last = &groups[i].found[groups[i].count - 1];
        enum many_verdict verdict;
        size_t changed;
        enum fault fault = settle_group(attempt, many, &groups[i], false, &verdict, &changed);
        if (fault)
            return fault;
        if (verdict == MANY_OUTDATED) {
            attempt->kept = NULL;
            return FAULT_NONE;
        }
        walk->changed += verdict == MANY_CHANGED ? (int64_t)changed : 0;
        walk->refused += verdict == MANY_REFUSED ? (int64_t)changed : 0;
        walk->seen += (int64_t)groups[i].count;
        walk->id = last->id;
        walk->key = last->item.key;
        *visited_r += groups[i].count;
    }
    return FAULT_NONE;
}

/* May a document cease to be found while the item that was found in it stays as it is? */
static bool asks_of_others(const struct search *search)
{
    for (size_t b = 0; b < search->branch_count; b++)
        for (size_t i = 0; i < search->branches[b].count; i++)
            if (search->branches[b].conditions[i].item || search->branches[b].conditions[i].header)
                return true;
    return false;
}

/* Searches again what the groups have, now that their documents are fetched: the commit fails if one of these
 * changes from here on.  count_r: of the groups before the first that is not found as it was; less than
 * `count`: the page in memory is out of date. */
static enum fault confirm_groups(struct attempt *attempt, const struct many *many,
                                 const struct many_walk *walk, const struct many_group *groups, size_t count,
                                 size_t *count_r)
{
    struct search search = many->search;
    struct search_page page;
    size_t items = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        items += groups[i].count;
    search.limit = (int32_t)items;
    search.after_id = walk->id.size ? walk->id : NO_BYTES;
    search.after_key = walk->id.size ? walk->key : NO_BYTES;
    enum fault fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                                    attempt->call->arena, &search, &page);
    for (*count_r = 0; !fault && *count_r < count; (*count_r)++)
        for (size_t i = 0; i < groups[*count_r].count; i++, at++) {
            const struct search_found *one = &groups[*count_r].found[i];
            if (at == page.count || !bytes_equal(page.found[at].id, one->id) ||
                !bytes_equal(page.found[at].item.key, one->item.key))
                return FAULT_NONE;
        }
    return fault;
}

/* What one commit changes.  is_over_r: the walk has ended; has_more_r: before the search did. */
static enum fault visit_many(struct attempt *attempt, struct many *many, struct many_walk *walk,
                             bool *is_over_r, bool *has_more_r)
{
    struct many_group groups[DOCUMENTS_MOST];
    const struct many_page *page;
    size_t place, count, sure, visited = 0, most = changes_most(many, walk);
    enum fault fault = many_find_next(attempt, many, walk, &page, &place);
    if (fault)
        return fault;
    size_t left = page->page.count - place;
    fault = fetch_groups(attempt, many, page->page.found + place, left < most ? left : most,
                         documents_most(attempt), groups, &count);
    sure = count;
    if (!fault && asks_of_others(&many->search))
        fault = confirm_groups(attempt, many, walk, groups, count, &sure);
    if (!fault)
        fault = visit_groups(attempt, many, groups, sure, walk, &visited);
    if (!fault && sure < count)
        attempt->kept = NULL;
    bool has_more = visited < left || page->page.has_more;
    *has_more_r = has_more && is_at_end(many, walk);
    *is_over_r = !has_more || is_at_end(many, walk);
    return fault;
}

static enum fault run_task(struct attempt *attempt, struct many *many)
{
    struct many_walk walk = read_walk(attempt);
    bool is_over, has_more;
    enum fault fault = visit_many(attempt, many, &walk, &is_over, &has_more);
    if (fault)
        return fault;
    if (!is_over)
        keep_walk(attempt, &walk);
    builder_printf(attempt->reply->body, "{\"changed\":%" PRId64 ",\"refused\":%" PRId64 "%s}", walk.changed,
                   walk.refused, has_more ? ",\"more\":true" : "");
    return FAULT_NONE;
}

static enum fault changemany_work(struct attempt *attempt)
{
    const struct reader reader = many_reader(attempt);
    struct many *many = ARENA_NEW(attempt->call->arena, struct many);
    memset(many, 0, sizeof *many);
    enum fault fault = FAULT_FIRST(read_act(&reader, many), read_limit(&reader, many),
                                   find_search_read_items(attempt, &reader, PAGE_MOST, &many->search));
    if (fault)
        return classes_confirm(attempt, fault);
    if (many->search.is_undisclosed) {
        builder_add_bytes(attempt->reply->body, attempt->call->task
                                                    ? BYTES("{\"changed\":0,\"refused\":0}")
                                                    : BYTES("{\"count\":0,\"ids\":[],\"refused\":0}"));
        return FAULT_NONE;
    }
    fault = attempt->call->task ? run_task(attempt, many) : show_found(attempt, many);
    if (fault == FAULT_ALIMIT && !attempt->reply->fault)
        fault = find_refuse_looks(&reader);
    return fault;
}

static bool changemany_is_look(const struct call *call)
{
    return !call->task;
}

const struct operation builtin_changemany = {.name = "changemany",
                                             .right = RIGHT_WRITE,
                                             .obeys_rules = true,
                                             .is_look = changemany_is_look,
                                             .work = changemany_work,
                                             .check = changemany_check,
                                             .task = {.may_clients_schedule = true}};
