/* module_run: calls the functions of an application and judges what they leave. */
#include "operation/module/module_run.h"

#include "operation/module/module_document.h"
#include "operation/module/module_try.h"

static void module_run_run(struct stampd_call *call, enum stampd_outcome (*function)(struct stampd_call *))
{
    module_try_watch(call);
    enum stampd_outcome outcome = function(call);
    module_try_unwatch(call);
    if (outcome != STAMPD_DONE)
        module_try_fail(call, FAULT_BMODULE, "A fault was returned, but none was raised.", NULL);
}

static void check_sizes(struct stampd_call *call)
{
    int64_t most = module_try_settings(call)->limit_document_bytes,
            items = module_try_settings(call)->limit_items;
    for (const struct stampd_document *document = module_try_documents(call); document;
         document = document->next) {
        const struct draft *draft = document->draft;
        if (!draft || !draft_is_changed(draft))
            continue;
        const struct document *base = draft_base(draft); /* what is above a limit already may shrink */
        if (draft_cost(draft) > most && draft_cost(draft) > document_cost(base))
            module_try_fail_limit(call, "limit_document_bytes", most, draft_cost(draft));
        if (draft_items(draft) > items &&
            draft_items(draft) > (int64_t)base->item_count - (int64_t)base->tombstone_count)
            module_try_fail_limit(call, "limit_items", items, draft_items(draft));
    }
}

enum fault module_run_work(struct attempt *attempt)
{
    struct stampd_call *call = module_try_begin(attempt, false);
    attempt->reply->mime = MIME_JSON; /* an earlier try may have had another */
    module_run_run(call, module_try_operation(call)->work);
    check_sizes(call);
    if (!module_try_fault(call))
        module_try_write_result(call);
    return module_try_fault(call);
}

enum fault module_run_afterwork(struct attempt *attempt)
{
    struct stampd_call *call = module_try_begin(attempt, true);
    module_run_run(call, module_try_operation(call)->afterwork);
    if (!module_try_fault(call))
        module_try_write_result(call);
    return module_try_fault(call);
}
