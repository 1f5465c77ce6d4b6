/* module_filter: a call of its own for each decision, with the caller for `view` alone.  What the functions
 * return is checked: a filter that fails hides. */
#include "operation/module/module_filter.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "operation/judge/filters.h"
#include "operation/module/module_convert.h"
#include "operation/module/module_document.h"
#include "operation/module/module_try.h"

struct filter_run {
    const struct stampd_filter *filter;
    const struct filter_question *question;
    const char *view;
    enum stampd_sight sight; /* of the class of the item that is judged */
    struct stampd_call *call;
    /* Of the call: */
    struct attempt attempt;
    struct call request;
    struct reply reply;
    struct builder body;
    struct worker_context context;
    struct stampd_operation operation;
};

static void watch(const struct filter_run *run)
{
    struct segment *segment = run->question->segment;
    int64_t now_ms = clock_monotonic_ms(), deadline_ms = run->question->deadline_ms;
    if (segment)
        module_watch(metrics_pulse(segment, segment_index(segment)), run->operation.name,
                     deadline_ms > now_ms ? deadline_ms : now_ms);
}

static void unwatch(const struct filter_run *run)
{
    struct segment *segment = run->question->segment;
    if (segment)
        module_watch_end(metrics_pulse(segment, segment_index(segment)));
}

static struct filter_run *open(const struct stampd_filter *filter, const struct filter_question *question,
                               struct arena *arena)
{
    struct filter_run *run = ARENA_NEW(arena, struct filter_run);
    run->filter = filter;
    run->question = question;
    run->operation = (struct stampd_operation){
        .name = arena_printf(arena, "filter of %s", filter->document_class), .is_read_only = true};
    run->context = (struct worker_context){.settings = question->settings};
    run->request = (struct call){.arena = arena,
                                 .ns = question->ns,
                                 .caller = *question->caller,
                                 .request_id = question->request_id,
                                 .deadline_ms = question->deadline_ms};
    run->reply.body = &run->body;
    run->attempt =
        (struct attempt){.worker_context = &run->context, .call = &run->request, .reply = &run->reply};
    run->call = module_try_begin_filter(&run->attempt, &run->operation);
    return run;
}

static bool is_view(const struct filter_run *run)
{
    struct bytes view = bytes_of(run->view);
    return view.size <= STAMPD_VIEW_MOST && bytes_is_utf8(view);
}

static struct filter_run *module_filter_begin(const struct filter *filter,
                                              const struct filter_question *question, struct arena *arena,
                                              const struct document *document, struct bytes *view_r)
{
    struct filter_run *run = open(filter->application, question, arena);
    struct stampd_document shown = {
        .call = run->call,
        .document_class = run->filter->document_class,
        .id = arena_copy(arena, document->header.id.data, document->header.id.size),
        .draft = draft_open(arena, (struct document *)document)}; /* is never changed */
    watch(run);
    run->view = run->filter->view ? run->filter->view(run->call, &shown) : "all";
    run->request.caller = (struct rules_caller){0};
    if (run->view && !is_view(run))
        module_try_fail(run->call, FAULT_BMODULE, "A view is not UTF-8 of up to 255 bytes.", NULL);
    if (module_try_fault(run->call))
        run->view = NULL;
    *view_r = run->view ? bytes_of(run->view) : NO_BYTES;
    return run;
}

static enum filter_sight see(struct filter_run *run, struct bytes item_class)
{
    const struct stampd_filter *filter = run->filter;
    enum stampd_sight sight = filter->judge ? STAMPD_SELECT : STAMPD_SHOW;
    if (module_try_fault(run->call))
        return FILTER_HIDES;
    if (filter->see)
        sight = filter->see(run->call, run->view,
                            arena_copy(run->request.arena, item_class.data, item_class.size));
    run->sight = sight;
    switch (sight) {
    case STAMPD_SHOW:
        return FILTER_SHOWS;
    case STAMPD_HIDE:
        return FILTER_HIDES;
    case STAMPD_REWRITE:
    case STAMPD_SELECT:
        if (filter->judge)
            return sight == STAMPD_REWRITE ? FILTER_REWRITES : FILTER_SELECTS;
        break;
    }
    module_try_fail(run->call, FAULT_BMODULE, "What `see` returns cannot be done.", NULL);
    return FILTER_HIDES;
}

/* Of the same kind, and as a content may be. */
static bool is_content(const struct filter_run *run, const struct item *item, struct bytes content)
{
    const char *what;
    if (!content.data || (int64_t)content.size > run->question->settings->limit_content_bytes)
        return false;
    if (item->raw)
        return bytes_is_utf8(content) && !memchr(content.data, '\0', content.size);
    const struct json *json = module_try_read_json(run->call, content, &what);
    return json && json->kind != JSON_NULL;
}

static enum filter_verdict module_filter_judge(struct filter_run *run, const struct item *item,
                                               struct bytes *content_r)
{
    struct arena *arena = run->request.arena;
    struct stampd_bytes content = {0};
    if (module_try_fault(run->call))
        return FILTER_EXCLUDES;
    const struct stampd_item shown = item_to(arena, item);
    switch (run->filter->judge(run->call, run->view, &shown, &content)) {
    case STAMPD_ACCEPT:
        return FILTER_ACCEPTS;
    case STAMPD_EXCLUDE:
        if (run->sight == STAMPD_REWRITE)
            break;
        return FILTER_EXCLUDES;
    case STAMPD_REPLACE:
        *content_r = bytes_from(content);
        if (is_content(run, item, *content_r))
            return FILTER_REPLACES;
        module_try_fail(run->call, FAULT_BMODULE, "A replaced content is not valid.", NULL);
        return FILTER_EXCLUDES;
    }
    module_try_fail(run->call, FAULT_BMODULE, "What `judge` returns cannot be done.", NULL);
    return FILTER_EXCLUDES;
}

static void log_failure(const struct filter_run *run, enum fault fault)
{
    if (fault != FAULT_BMODULE) /* which was logged with its cause */
        log_often(LOG_LEVEL_WARNING, run->operation.name, "%s: %s: the document is hidden",
                  run->operation.name, reply_code(&run->reply));
}

static bool module_filter_end(struct filter_run *run)
{
    enum fault fault = module_try_fault(run->call);
    unwatch(run);
    if (fault)
        log_failure(run, fault);
    return !fault;
}

static bool applies(const struct filter *filter, const char *ns)
{
    const struct stampd_filter *own = filter->application;
    return !own->applies || own->applies(ns);
}

const char *module_filter_add(const struct stampd_filter *from, const char *version)
{
    if (!item_is_class_name(bytes_of(from->document_class)))
        return "its class is no name of a class of documents";
    if (rules_is_reserved(bytes_of(from->document_class)))
        return "its class is reserved";
    if (!from->view && !from->see && !from->judge)
        return "it has no function";
    for (size_t i = 0; i < COUNT_OF(from->reserved); i++)
        if (from->reserved[i])
            return "a reserved member is set";
    struct filter *filter = memory_zeroed(1, sizeof *filter, "adding a filter");
    *filter = (struct filter){.class = bytes_of(from->document_class),
                              .version = bytes_of(version ? version : ""),
                              .application = from,
                              .applies = applies,
                              .begin = module_filter_begin,
                              .see = see,
                              .judge = module_filter_judge,
                              .end = module_filter_end};
    if (filters_add(filter))
        return NULL;
    free(filter);
    return "the class has a filter already";
}
