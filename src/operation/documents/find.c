/* find: documents by what their items contain (schema.md).
 * param {"c","i","where":[{"i":other,"f":field,"t":test,"v1","v2"}…],"id":{"t","v1","v2"},"v","ct",
 * "order":[field…],
 * "want":"ids"|"items"|"docs"|"count"|[member…]|{"sum","min","max","avg","by"},"marks":field,"limit","cursor"}
 * → out
 * {"ids":[id…],"cursor"}, {"items":[{"id","k","v","j","marks"}…],"cursor"}, {"docs":[document…],"cursor"},
 * {"count","more"}, {"count","sum":{field}…,"more"} or {"groups":[{"by","count","sum"…}…],"more"}.  One item
 * satisfies all conditions.  In the order of the fields, then of ids, then keys; each page is consistent at
 * its own instant.  A cursor is valid only for the search that returned it. */
#include "operation/documents/find.h"

#include "operation/builtin.h"
#include "model/schema/search_test.h"
#include "operation/documents/find_marks.h"
#include "operation/documents/find_search.h"
#include "operation/documents/find_totals.h"
#include "operation/classes.h"
#include "operation/judge/judged_page.h"
#include "operation/reply.h"
#include "store/collections/store_search.h"

enum { DEPTH_MOST = 128 }; /* of a content */

/* Members that are wanted: each has a name, or names that lead to it from object to object. */
struct wanted_members {
    const struct json *list[FIND_MEMBERS_MOST]; /* a string, or an array of strings */
    size_t count;
};

static size_t length_of(const struct json *path)
{
    return path->kind == JSON_ARRAY ? path->count : 1;
}

/* The name at this level of the path. */
static struct bytes name_at(const struct json *path, size_t level)
{
    const struct json *name = path->kind == JSON_ARRAY ? path->first : path;
    while (level-- > 0)
        name = name->next;
    return name->value;
}

/* Sets those that are within the member of this name; true: it is wanted itself. */
static bool choose_within(const struct wanted_members *wanted, size_t level, struct bytes name,
                          struct wanted_members *within_r)
{
    within_r->count = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        if (!bytes_equal(name_at(wanted->list[i], level), name))
            continue;
        if (length_of(wanted->list[i]) == level + 1)
            return true;
        within_r->list[within_r->count++] = wanted->list[i];
    }
    return false;
}

/* Appends those of an object, in its order; false: there are none, and nothing is appended. */
static bool write_wanted(struct builder *body, const struct json *object, const struct wanted_members *wanted,
                         size_t level)
{
    const char *before = "{";
    for (const struct json *one = object->first; one; one = one->next) {
        struct wanted_members within;
        size_t size = body->size;
        bool is_whole = choose_within(wanted, level, one->name, &within);
        if (!is_whole && (!within.count || one->kind != JSON_OBJECT))
            continue;
        builder_add_bytes(body, bytes_of(before));
        json_add_string(body, one->name);
        builder_add_text(body, ":");
        if (is_whole) {
            builder_add_bytes(body, one->text);
        } else if (!write_wanted(body, one, &within, level + 1)) {
            body->size = size;
            continue;
        }
        before = ",";
    }
    builder_add_bytes(body, bytes_of(*before == ',' ? "}" : ""));
    return *before == ',';
}

static void write_members(struct arena *arena, struct builder *body, const struct json *members,
                          struct bytes content)
{
    struct wanted_members wanted = {.count = 0};
    struct json *root;
    size_t levels = 1;
    for (const struct json *one = members->first; one; one = one->next) {
        wanted.list[wanted.count++] = one;
        levels = length_of(one) > levels ? length_of(one) : levels;
    }
    if (!json_is_tree(arena, content, DEPTH_MOST, (int)levels, &root) || root->kind != JSON_OBJECT ||
        !write_wanted(body, root, &wanted, 0))
        builder_add_text(body, "{}");
}

static void write_item(struct arena *arena, struct builder *body, const struct search *search,
                       const struct search_found *found, struct bytes marks)
{
    json_add_text(body, "{\"id\":", found->id);
    if (found->item.key.size)
        json_add_text(body, ",\"k\":", found->item.key);
    builder_printf(body, ",\"v\":%lld,\"j\":", (long long)found->item.version);
    if (search->members)
        write_members(arena, body, search->members, found->item.content);
    else
        builder_add_bytes(body, found->item.content);
    if (marks.data) {
        builder_add_text(body, ",\"marks\":");
        builder_add_bytes(body, marks);
    }
    builder_add_text(body, "}");
}

static void write_found(struct arena *arena, const struct search *search, const struct search_found *found,
                        bool is_first, struct builder *body)
{
    if (!is_first)
        builder_add_text(body, ",");
    if (search->wants_items)
        write_item(arena, body, search, found, NO_BYTES);
    else
        json_add_string(body, found->id);
}

/* Items that the caller may read, with excerpts. */
static enum fault write_marked(struct attempt *attempt, const struct search *search,
                               const struct search_found *const *found, size_t count)
{
    struct builder *body = attempt->reply->body;
    struct bytes *marks = ARENA_ARRAY(attempt->call->arena, struct bytes, count);
    enum fault fault = find_marks_make(attempt, search, found, count, marks);
    for (size_t i = 0; i < count && !fault; i++) {
        builder_add_bytes(body, bytes_of(i ? "," : ""));
        write_item(attempt->call->arena, body, search, found[i], marks[i]);
    }
    return fault;
}

/* The search goes on after what was found. */
static void move_behind(struct search *search, const struct search_found *found)
{
    search->after_id = found->id;
    search->after_key = search->wants_items ? found->item.key : BYTES("");
    for (size_t i = 0; i < search->order_count; i++)
        search->orders[i].after = found->order[i];
}

static enum fault write_cursor(struct attempt *attempt, const struct search *search)
{
    struct builder *body = attempt->reply->body;
    const struct cursor_row row = find_search_row(search);
    struct bytes cursor;
    enum fault fault = cursor_make(attempt, find_search_question(attempt->call, search), &row, &cursor);
    if (fault)
        return fault;
    json_add_text(body, ",\"cursor\":", cursor);
    return FAULT_NONE;
}

static const char *name_list(const struct search *search)
{
    return search->wants_items ? "items" : search->wants_docs ? "docs" : "ids";
}

/* --- where rules decide, and for whole documents --- */

/* Items that totals are of. */
struct approved {
    struct bytes *ids, *keys;
    int64_t *versions;
    size_t count;
};

/* A page under way. */
struct judged_search {
    struct search search;
    struct judged_page page;
    size_t limit, count;                /* wanted, and written */
    size_t bytes_most;                  /* of the body */
    bool is_full;                       /* there is another one */
    const struct search_found **marked; /* room for `limit`: they are written at the end; NULL: at once */
    struct approved *approved;          /* of totals; NULL: what is found is written, or counted */
    bool is_outdated; /* an item has changed since it was found: the search is to be made again from there */
};

/* Are all items shown that the conditions are about? */
static bool shows_conditions(const struct search *search, const struct view *view)
{
    for (size_t b = 0; b < search->branch_count; b++)
        for (size_t i = 0; i < search->branches[b].count; i++) {
            const struct schema_item *item = search->branches[b].conditions[i].item;
            if (item && !view_shows_plainly(view, item->name))
                return false;
        }
    return view_shows_plainly(view, search->item->name);
}

bool find_is_shown(const struct search *search, const struct document *document, const struct view *view)
{
    if (!document_exists(document) || !shows_conditions(search, view))
        return false;
    return !search->seen_version.header ||
           search_test_holds(&search->seen_version, view_version(view, document));
}

/* What was found may be older than the document that is judged: an item that is gone is left out, one that
 * has changed since may still be what is searched for. */
static bool is_found(struct judged_search *judged, const struct search_found *found,
                     const struct document *document, const struct view *view)
{
    const struct search *search = &judged->search;
    if (!find_is_shown(search, document, view))
        return false;
    if (!search->wants_items)
        return true;
    const struct item *item = document_find_item(document, search->item->name, found->item.key);
    bool is_there = item && !item_is_tombstone(item);
    judged->is_outdated = is_there && item->version != found->item.version;
    return is_there;
}

/* There is room for JUDGED_PAGE_ROWS. */
static void approve(struct approved *approved, const struct search_found *found)
{
    approved->ids[approved->count] = found->id;
    approved->keys[approved->count] = found->item.key;
    approved->versions[approved->count++] = found->item.version;
}

static void write_document(const struct view *view, const struct document *document, bool is_first,
                           struct builder *body)
{
    if (!is_first)
        builder_add_text(body, ",");
    view_write_json(view, document, body);
}

static enum fault write_judged(struct attempt *attempt, struct judged_search *judged,
                               const struct search_page *page, bool *is_cut_r)
{
    struct arena *arena = attempt->call->arena;
    struct builder *body = attempt->reply->body;
    struct search *search = &judged->search;
    struct document_name *names = ARENA_ROOM(arena, struct document_name, page->count);
    const struct document **documents = ARENA_ROOM(arena, const struct document *, page->count);
    struct view *views = ARENA_ROOM(arena, struct view, page->count);
    size_t count;
    judged->is_outdated = false;
    for (size_t i = 0; i < page->count; i++)
        names[i] = (struct document_name){search->class->name, page->found[i].id};
    enum fault fault = judged_page_load(&judged->page, attempt, names, page->count, documents, views, &count);
    for (size_t i = 0; !fault && i < count; i++) {
        const struct search_found *found = &page->found[i];
        bool is_wanted = is_found(judged, found, documents[i], &views[i]);
        size_t size = body->size;
        if (is_wanted && search->wants_docs && judged->count)
            size += view_size(&views[i], documents[i]);
        judged->is_full = is_wanted && (judged->count == judged->limit || size > judged->bytes_most);
        if (judged->is_full || judged->is_outdated)
            break;
        move_behind(search, found);
        if (is_wanted && judged->approved)
            approve(judged->approved, found);
        else if (is_wanted && search->wants_docs)
            write_document(&views[i], documents[i], !judged->count, body);
        else if (is_wanted && judged->marked)
            judged->marked[judged->count] = found;
        else if (is_wanted && !search->wants_count)
            write_found(arena, search, found, !judged->count, body);
        judged->count += is_wanted;
    }
    *is_cut_r = count < page->count;
    return fault;
}

/* Reads on until all that is wanted is written, or this has cost enough. */
static enum fault read_judged(struct attempt *attempt, struct judged_search *judged, bool *has_more_r)
{
    struct search_page page;
    bool is_cut = false;
    enum fault fault;
    do {
        fault = FAULT_FIRST(store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                                         attempt->call->arena, &judged->search, &page),
                            write_judged(attempt, judged, &page, &is_cut));
    } while (!fault && !judged->is_full && !is_cut && (page.has_more || judged->is_outdated) &&
             judged_page_goes_on(&judged->page));
    *has_more_r = !fault && (judged->is_full || is_cut || page.has_more || judged->is_outdated);
    return fault;
}

static enum fault find_judged(struct attempt *attempt, const struct search *search)
{
    struct builder *body = attempt->reply->body;
    struct judged_search judged = {.search = *search, .limit = (size_t)search->limit};
    bool has_more;
    judged.bytes_most = body->size + (size_t)search->bytes_most;
    if (judged.search.limit < JUDGED_PAGE_LEAST)
        judged.search.limit = JUDGED_PAGE_LEAST;
    if (search->marks)
        judged.marked = ARENA_ARRAY(attempt->call->arena, const struct search_found *, judged.limit);
    builder_printf(body, "{\"%s\":[", name_list(search));
    enum fault fault = read_judged(attempt, &judged, &has_more);
    if (!fault && judged.marked)
        fault = write_marked(attempt, search, judged.marked, judged.count);
    if (fault)
        return fault;
    builder_add_text(body, "]");
    if (has_more)
        fault = write_cursor(attempt, &judged.search);
    builder_add_text(body, "}");
    return fault;
}

/* --- counting --- */

/* What may be read of what is found: at least so many, if the page has ended before the search. */
static enum fault count_judged(struct attempt *attempt, const struct search *search, int64_t *count_r,
                               bool *has_more_r)
{
    struct judged_search judged = {.search = *search, .limit = (size_t)search->limit, .bytes_most = SIZE_MAX};
    judged.search.limit = JUDGED_PAGE_ROWS / JUDGED_PAGE_READS;
    enum fault fault = read_judged(attempt, &judged, has_more_r);
    *count_r = (int64_t)judged.count;
    return fault;
}

enum fault find_count(struct attempt *attempt, const struct search *search, int64_t *count_r,
                      bool *has_more_r)
{
    if (call_is_judged(attempt->call))
        return count_judged(attempt, search, count_r, has_more_r);
    enum fault fault = store_search_count(documents_store(attempt->worker_context->documents), attempt->ns,
                                          attempt->call->arena, search, count_r);
    *has_more_r = *count_r > search->limit;
    *count_r -= *has_more_r;
    return fault;
}

static enum fault write_count(struct attempt *attempt, const struct search *search)
{
    int64_t count;
    bool has_more;
    enum fault fault = find_count(attempt, search, &count, &has_more);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"count\":%lld%s}", (long long)count,
                       has_more ? ",\"more\":true" : "");
    return fault;
}

/* --- totals --- */

/* The database adds up what was judged, if it is still at the versions that were judged. */
static enum fault find_totals_judged(struct attempt *attempt, const struct search *search,
                                     const struct search_totals *totals)
{
    struct arena *arena = attempt->call->arena;
    struct judged_search judged = {.search = *search, .limit = (size_t)search->limit, .bytes_most = SIZE_MAX};
    struct approved approved = {ARENA_ARRAY(arena, struct bytes, JUDGED_PAGE_ROWS),
                                ARENA_ARRAY(arena, struct bytes, JUDGED_PAGE_ROWS),
                                ARENA_ARRAY(arena, int64_t, JUDGED_PAGE_ROWS), 0};
    bool has_more;
    judged.approved = &approved;
    judged.search.wants_items = true;
    judged.search.limit = JUDGED_PAGE_ROWS / JUDGED_PAGE_READS;
    enum fault fault = read_judged(attempt, &judged, &has_more);
    const struct search_approved list = {approved.ids, approved.keys, approved.versions, approved.count};
    return fault ? fault : find_totals_write(attempt, search, totals, &list, has_more);
}

static enum fault find_totals(struct attempt *attempt, const struct reader *reader,
                              const struct search *search)
{
    struct search_totals totals;
    enum fault fault = find_totals_read(reader, search, &totals);
    if (fault)
        return fault;
    fault = call_is_judged(attempt->call) ? find_totals_judged(attempt, search, &totals)
                                          : find_totals_write(attempt, search, &totals, NULL, false);
    if (fault == FAULT_AARG)
        return reader_wrong(reader, reader->call->param, "want",
                            "Sums and averages within the range of a double are expected.");
    return fault;
}

/* --- the operation --- */

/* A page or a count would cost too much. */
enum fault find_refuse_looks(const struct reader *reader)
{
    enum fault fault = reply_fault(
        reader->call, reader->reply, FAULT_ALIMIT,
        "This search would look at more items: begin with an eq that fewer satisfy, or order by the "
        "field of a range.",
        "limit_find_items",
        arena_printf(reader->call->arena, "%lld", (long long)reader->settings->limit_find_items), NULL);
    reader_place(reader, reader->call->param, "where");
    return fault;
}

static enum fault write_page(struct attempt *attempt, struct search *search)
{
    struct builder *body = attempt->reply->body;
    struct search_page page;
    enum fault fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                                    attempt->call->arena, search, &page);
    if (fault)
        return fault;
    builder_printf(body, "{\"%s\":[", name_list(search));
    const struct search_found **marked =
        ARENA_ARRAY(attempt->call->arena, const struct search_found *, page.count);
    for (size_t i = 0; i < page.count; i++) {
        marked[i] = &page.found[i];
        if (!search->marks)
            write_found(attempt->call->arena, search, &page.found[i], !i, body);
    }
    if (search->marks && (fault = write_marked(attempt, search, marked, page.count)))
        return fault;
    builder_add_text(body, "]");
    if (page.has_more) {
        move_behind(search, &page.found[page.count - 1]);
        fault = write_cursor(attempt, search);
    }
    builder_add_text(body, "}");
    return fault;
}

/* The answer is that of a class without documents; the conditions are not read. */
static enum fault write_nothing(struct attempt *attempt, const struct reader *reader,
                                const struct search *search)
{
    struct builder *body = attempt->reply->body;
    if (search->wants_totals)
        return find_totals_write_none(reader, body);
    builder_printf(body, search->wants_count ? "{\"%s\":0}" : "{\"%s\":[]}",
                   search->wants_count ? "count" : name_list(search));
    return FAULT_NONE;
}

static enum fault find_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct search search = {0};
    enum fault fault = find_search_read(attempt, &reader, &search);
    if (fault)
        return classes_confirm(attempt, fault);
    if (search.is_undisclosed)
        return write_nothing(attempt, &reader, &search);
    if (search.wants_totals)
        fault = find_totals(attempt, &reader, &search);
    else if (search.wants_count)
        fault = write_count(attempt, &search);
    else if (call_is_judged(attempt->call) || search.wants_docs)
        fault = find_judged(attempt, &search);
    else
        fault = write_page(attempt, &search);
    if (fault == FAULT_ALIMIT && !attempt->reply->fault)
        fault = find_refuse_looks(&reader);
    return fault;
}

const struct operation builtin_find = {
    .name = "find", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = find_work};
