/* judge: a question for each document; teams are loaded as the newest. */
#include "operation/judge/judge.h"

#include "operation/judge/filters.h"
#include "operation/old_reads.h"
#include "operation/reply.h"

/* What is read in a snapshot may not enter the cache. */
enum fault judge_newest(struct attempt *attempt, const struct document_name *names, size_t count,
                        size_t bytes_most, const struct document **documents_r)
{
    enum fault fault =
        attempt->is_open ? transaction_newest(attempt->transaction, names, count, bytes_most, documents_r)
                         : documents_newest_part(attempt->worker_context->documents, attempt->ns,
                                                 attempt->call->arena, names, count, bytes_most, documents_r);
    return old_reads_settle(attempt->worker_context, attempt->call, attempt->ns, fault, names, count,
                            documents_r);
}

static enum fault load_judge(void *context, struct bytes class, struct bytes id,
                             const struct document **document_r)
{
    struct attempt *attempt = context;
    const struct document_name name = {class, id};
    if (!attempt->is_open)
        return judge_newest(attempt, &name, 1, SIZE_MAX, document_r);
    enum fault fault = transaction_consult(attempt->transaction, name, document_r);
    return old_reads_settle(attempt->worker_context, attempt->call, attempt->ns, fault, &name, 1, document_r);
}

static struct rules_question judge_ask(struct attempt *attempt)
{
    struct call *call = attempt->call;
    return (struct rules_question){.rules = call->rules,
                                   .caller = &call->caller,
                                   .load = load_judge,
                                   .context = attempt,
                                   .arena = call->arena};
}

static enum fault may_read(struct attempt *attempt, const struct document *document, bool *may_r,
                           struct rules_view *view_r)
{
    *view_r = (struct rules_view){0};
    *may_r = true;
    if (!attempt->call->rules)
        return FAULT_NONE;
    struct rules_question question = judge_ask(attempt);
    *may_r = rules_may_read(&question, document, view_r);
    return question.fault;
}

static enum fault may_list(struct attempt *attempt, const struct document *document, bool *may_r,
                           struct rules_view *view_r)
{
    *view_r = (struct rules_view){0};
    *may_r = true;
    if (!attempt->call->rules)
        return FAULT_NONE;
    struct rules_question question = judge_ask(attempt);
    *may_r = rules_may_list(&question, document, view_r);
    return question.fault;
}

/* --- what is shown --- */

static struct filter_question ask_filters(const struct attempt *attempt)
{
    const struct call *call = attempt->call;
    return (struct filter_question){.settings = attempt->worker_context->settings,
                                    .segment = attempt->worker_context->segment,
                                    .ns = call->ns,
                                    .caller = &call->caller,
                                    .request_id = call->request_id,
                                    .deadline_ms = call->deadline_ms};
}

static void judge_release(void *document)
{
    document_release(document);
}

static struct document *absence_of(struct attempt *attempt, const struct document *document)
{
    const struct header header = {.class = document->header.class, .id = document->header.id};
    struct document *absent = document_build(&header, NULL, 0);
    arena_defer(attempt->call->arena, judge_release, absent);
    return absent;
}

static enum fault show_judge(struct attempt *attempt,
                             enum fault (*decide)(struct attempt *, const struct document *, bool *,
                                                  struct rules_view *),
                             const struct document **document, struct view *view_r)
{
    bool may;
    *view_r = (struct view){0};
    if (!call_is_judged(attempt->call) || !document_exists(*document))
        return FAULT_NONE;
    enum fault fault = decide(attempt, *document, &may, &view_r->rules);
    if (fault)
        return fault;
    if (may && attempt->call->filters) {
        const struct filter_question question = ask_filters(attempt);
        may = filters_show(attempt->call->filters, &question, attempt->call->arena, document, view_r);
    }
    if (may)
        view_take(view_r, *document, attempt->call->arena);
    else
        *document = absence_of(attempt, *document);
    return FAULT_NONE;
}

enum fault judge_show(struct attempt *attempt, const struct document **document, struct view *view_r)
{
    return show_judge(attempt, may_read, document, view_r);
}

enum fault judge_show_listed(struct attempt *attempt, const struct document **document, struct view *view_r)
{
    return show_judge(attempt, may_list, document, view_r);
}

enum fault judge_see(struct attempt *attempt, const struct document *document, struct bytes item_class,
                     bool *may_r)
{
    const struct call *call = attempt->call;
    struct rules_view view;
    enum fault fault = may_read(attempt, document, may_r, &view);
    *may_r &= !fault && rules_view_shows(&view, item_class);
    if (*may_r && call->filters) {
        const struct filter_question question = ask_filters(attempt);
        *may_r = !filters_hide(call->filters, &question, document, item_class);
    }
    return fault;
}

/* The version that is seen, if it is not older. */
static int64_t version_since(const struct view *view, const struct document *document, int64_t since)
{
    int64_t version = view_version(view, document);
    return version >= since ? version : 0;
}

enum fault judge_news(struct attempt *attempt, const struct document *document, int64_t since, bool is_listed,
                      int64_t *version_r)
{
    struct view view;
    enum fault fault = show_judge(attempt, is_listed ? may_list : may_read, &document, &view);
    *version_r = fault ? 0 : version_since(&view, document, since);
    return fault;
}

enum fault judge_news_in(struct attempt *attempt, const struct document *document,
                         const struct schema_collection *collection, int64_t since, int64_t *version_r)
{
    struct view view;
    enum fault fault = show_judge(attempt, may_list, &document, &view);
    bool may = !fault && document_exists(document);
    for (size_t i = 0; may && i < collection->key_count; i++)
        may = view_shows_plainly(&view, collection->keys[i].item->name);
    *version_r = may ? version_since(&view, document, since) : 0;
    return fault;
}

/* What is hidden takes no room, so that the answer does not depend on it; but memory is bounded. */
enum { LOADS_MOST = 8 };

enum fault judge_load(struct attempt *attempt, const struct document_name *names, size_t count,
                      size_t bytes_most, const struct document **documents_r, struct view *views_r)
{
    size_t done = 0, shown = 0;
    for (int load = 0; load < LOADS_MOST && done < count && (shown < bytes_most || !load); load++) {
        enum fault fault = judge_newest(attempt, names + done, count - done, bytes_most, documents_r + done);
        for (; !fault && done < count && documents_r[done]; done++) {
            fault = judge_show(attempt, &documents_r[done], &views_r[done]);
            shown += fault ? 0 : view_size(&views_r[done], documents_r[done]);
        }
        if (fault)
            return fault;
    }
    for (; done < count; done++)
        documents_r[done] = NULL;
    return FAULT_NONE;
}

/* --- what is changed --- */

/* What the filter of its class leaves of the base of a draft. */
struct filtered_base {
    const struct filtered_base *next;
    const struct document *base, *shown; /* NULL: it is hidden */
};

const struct document *judge_find_shown(struct attempt *attempt, const struct document *base)
{
    const struct call *call = attempt->call;
    if (!document_exists(base) || !filters_cover(call->filters, base->header.class))
        return base;
    for (const struct filtered_base *one = attempt->filtered_bases; one; one = one->next)
        if (one->base == base)
            return one->shown;
    struct view view = {0};
    struct filtered_base *filtered = ARENA_NEW(call->arena, struct filtered_base);
    *filtered = (struct filtered_base){attempt->filtered_bases, base, base};
    const struct filter_question question = ask_filters(attempt);
    if (!filters_show(call->filters, &question, call->arena, &filtered->shown, &view))
        filtered->shown = NULL;
    attempt->filtered_bases = filtered;
    return filtered->shown;
}

/* Is the item of the base hidden from the caller, or shown with another content? */
static bool is_covered(const struct document *base, const struct document *shown, struct bytes item_class,
                       struct bytes key)
{
    const struct item *item = document_find_item(base, item_class, key), *seen;
    if (shown == base || !item || item_is_tombstone(item))
        return false;
    seen = shown ? document_find_item(shown, item_class, key) : NULL;
    return !seen || !bytes_equal(seen->content, item->content);
}

enum fault judge_name(struct attempt *attempt, const struct draft *draft, struct bytes item_class,
                      struct bytes key, bool *may_r)
{
    const struct call *call = attempt->call;
    const struct document *base = draft_base(draft);
    *may_r = true;
    if (call->rules) {
        struct rules_question question = judge_ask(attempt);
        *may_r = rules_may_name(&question, draft, item_class);
        if (question.fault)
            return question.fault;
    }
    if (!*may_r || !document_exists(base) || !filters_cover(call->filters, base->header.class))
        return FAULT_NONE;
    const struct filter_question question = ask_filters(attempt);
    *may_r = !is_covered(base, judge_find_shown(attempt, base), item_class, key) &&
             !filters_hide(call->filters, &question, base, item_class);
    return FAULT_NONE;
}

struct covered_search {
    const struct document *base, *shown;
};

static bool is_covered_item(void *whose, const struct item *item)
{
    const struct covered_search *search = whose;
    return is_covered(search->base, search->shown, item->iclass, item->key);
}

/* A document that a filter hides cannot be changed, nor what it hides of one, but with the whole. */
static bool filters_allow(struct attempt *attempt, const struct draft *draft)
{
    const struct document *base = draft_base(draft);
    struct covered_search search = {base, judge_find_shown(attempt, base)};
    if (search.shown == base || !draft_is_changed(draft))
        return true;
    return search.shown && !draft_find_written(draft, is_covered_item, &search);
}

/* NULL: the caller may read the document. */
static const struct stand_in *judge_find_stand_in(const struct attempt *attempt, struct document_name name)
{
    for (const struct stand_in *one = attempt->stand_ins; one; one = one->next) {
        const struct header *header = &draft_base(one->draft)->header;
        if (bytes_equal(header->id, name.id) && bytes_equal(header->class, name.class))
            return one;
    }
    return NULL;
}

enum fault judge_draft(struct attempt *attempt, struct draft **draft, struct view *view_r)
{
    const struct document *base = draft_base(*draft), *shown = base;
    const struct document_name name = {base->header.class, base->header.id};
    *view_r = (struct view){0};
    if (!call_is_judged(attempt->call) || !document_exists(base))
        return FAULT_NONE;
    const struct stand_in *known = judge_find_stand_in(attempt, name);
    if (known) {
        *draft = known->shown;
        return FAULT_NONE;
    }
    enum fault fault = judge_show(attempt, &shown, view_r);
    if (fault || document_exists(shown))
        return fault;
    struct stand_in *stand_in = ARENA_NEW(attempt->call->arena, struct stand_in);
    *stand_in = (struct stand_in){attempt->stand_ins, *draft,
                                  draft_open(attempt->call->arena, (struct document *)shown)};
    attempt->stand_ins = stand_in;
    *draft = stand_in->shown;
    return FAULT_NONE;
}

static bool rules_allow(struct rules_question *question, const struct draft *draft)
{
    return !question->rules || rules_may_change(question, draft);
}

/* A change of what the caller may not read is judged as that of a document that does not exist, and never
 * allowed. */
static bool may_change(struct attempt *attempt, struct rules_question *question, const struct draft *draft)
{
    const struct header *header = &draft_base(draft)->header;
    const struct stand_in *stand_in =
        judge_find_stand_in(attempt, (struct document_name){header->class, header->id});
    if (!stand_in)
        return rules_allow(question, draft) && filters_allow(attempt, draft);
    return rules_allow(question, stand_in->shown) && !draft_is_changed(stand_in->shown) &&
           !draft_is_changed(draft);
}

enum fault judge_refuse(struct attempt *attempt, const struct draft *draft)
{
    struct call *call = attempt->call;
    const struct header *header = &draft_base(draft)->header;
    return reply_fault(call, attempt->reply, FAULT_SRULE, NULL,
                       arena_copy(call->arena, header->class.data, header->class.size),
                       arena_copy(call->arena, header->id.data, header->id.size), NULL);
}

enum fault judge_change(struct attempt *attempt, const struct draft *draft, bool *may_r)
{
    *may_r = true;
    if (!call_is_judged(attempt->call))
        return FAULT_NONE;
    struct rules_question question = judge_ask(attempt);
    *may_r = rules_allow(&question, draft) && filters_allow(attempt, draft);
    return question.fault;
}

enum fault judge_changes(struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct draft *draft;
    if (!call_is_judged(call) || !attempt->operation->obeys_rules)
        return FAULT_NONE;
    for (size_t position = 0; (draft = transaction_next_draft(attempt->transaction, &position));) {
        struct rules_question question = judge_ask(attempt);
        if (may_change(attempt, &question, draft))
            continue;
        if (question.fault)
            return question.fault;
        return judge_refuse(attempt, draft);
    }
    return FAULT_NONE;
}
