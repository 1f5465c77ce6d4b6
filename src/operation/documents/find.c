/* find: documents by what their items contain (schema.md).
 * param {"c","i","where":[{"f":field,"t":test,"v1","v2"}…],"id":{"t","v1","v2"},"order":[field…],
 * "want":"ids"|"items"|"count","limit","cursor"} → out {"ids":[id…],"cursor"},
 * {"items":[{"id","k","v","j"}…],"cursor"} or {"count","more"}.  One item satisfies all conditions.  In the
 * order of the fields, then of ids, then keys; each page is consistent at its own instant.  A cursor is valid
 * only for the search that returned it. */
#include "operation/builtin.h"

#include "operation/documents/find_search.h"
#include "operation/classes.h"
#include "operation/judge/judged_page.h"
#include "operation/reply.h"
#include "store/collections/store_search.h"

static void write_item(struct builder *body, const struct search_found *found)
{
    builder_add_text(body, "{\"id\":");
    json_add_string(body, found->id);
    if (found->item.key.size) {
        builder_add_text(body, ",\"k\":");
        json_add_string(body, found->item.key);
    }
    builder_printf(body, ",\"v\":%lld,\"j\":", (long long)found->item.version);
    builder_add_bytes(body, found->item.content);
    builder_add_text(body, "}");
}

static void write_found(const struct search *search, const struct search_found *found, bool is_first,
                        struct builder *body)
{
    if (!is_first)
        builder_add_text(body, ",");
    if (search->wants_items)
        write_item(body, found);
    else
        json_add_string(body, found->id);
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
    builder_add_text(body, ",\"cursor\":");
    json_add_string(body, cursor);
    return FAULT_NONE;
}

/* --- where rules decide --- */

/* A page under way. */
struct judged_search {
    struct search search;
    struct judged_page page;
    size_t limit, count; /* wanted, and written */
    size_t bytes_most;   /* of the body */
    bool is_full;        /* there is another one */
    bool is_outdated; /* an item has changed since it was found: the search is to be made again from there */
};

/* What was found may be older than the document that is judged: an item that is gone is left out, one that
 * has changed since may still be what is searched for. */
static bool is_found(struct judged_search *judged, const struct search_found *found,
                     const struct document *document, const struct view *view)
{
    const struct search *search = &judged->search;
    if (!document_exists(document) || !view_shows_plainly(view, search->item->name))
        return false;
    if (!search->wants_items)
        return true;
    const struct item *item = document_find_item(document, search->item->name, found->item.key);
    bool is_there = item && !item_is_tombstone(item);
    judged->is_outdated = is_there && item->version != found->item.version;
    return is_there;
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
        judged->is_full = is_wanted && (judged->count == judged->limit || body->size > judged->bytes_most);
        if (judged->is_full || judged->is_outdated)
            break;
        move_behind(search, found);
        if (is_wanted && !search->wants_count)
            write_found(search, found, !judged->count, body);
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
        fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                             attempt->call->arena, &judged->search, &page);
        if (!fault)
            fault = write_judged(attempt, judged, &page, &is_cut);
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
    builder_printf(body, "{\"%s\":[", search->wants_items ? "items" : "ids");
    enum fault fault = read_judged(attempt, &judged, &has_more);
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

static enum fault find_count(struct attempt *attempt, const struct search *search)
{
    int64_t count;
    bool has_more;
    enum fault fault;
    if (call_is_judged(attempt->call)) {
        fault = count_judged(attempt, search, &count, &has_more);
    } else {
        fault = store_search_count(documents_store(attempt->worker_context->documents), attempt->ns,
                                   attempt->call->arena, search, &count);
        has_more = count > search->limit;
        count -= has_more;
    }
    if (!fault)
        builder_printf(attempt->reply->body, "{\"count\":%lld%s}", (long long)count,
                       has_more ? ",\"more\":true" : "");
    return fault;
}

/* --- the operation --- */

static enum fault find_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct search search = {0};
    struct search_page page;
    enum fault fault = find_search_read(attempt, &reader, &search);
    if (fault)
        return classes_confirm(attempt, fault);
    if (search.wants_count)
        return find_count(attempt, &search);
    if (call_is_judged(attempt->call))
        return find_judged(attempt, &search);
    fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                         attempt->call->arena, &search, &page);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_printf(body, "{\"%s\":[", search.wants_items ? "items" : "ids");
    for (size_t i = 0; i < page.count; i++)
        write_found(&search, &page.found[i], !i, body);
    builder_add_text(body, "]");
    if (page.has_more) {
        move_behind(&search, &page.found[page.count - 1]);
        fault = write_cursor(attempt, &search);
    }
    builder_add_text(body, "}");
    return fault;
}

const struct operation builtin_find = {
    .name = "find", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = find_work};
