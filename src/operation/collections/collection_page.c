/* collection_page: one statement; a second one if the client must start over. */
#include "operation/collections/collection_page.h"

#include "base/clock.h"

/* Is the client's state recent enough to send only the changes since? */
static bool collection_page_is_known(const struct collection_position *position,
                                     const struct collection_page *page)
{
    bool is_same = position->life == page->life && position->number == page->number;
    return is_same && (position->is_complete || (page->floor < position->from && !page->has_ended_more));
}

enum fault collection_page_read(struct attempt *attempt, const struct reader *reader,
                                struct collection_request *request, struct collection_page *page)
{
    struct collection_position *position = &request->position;
    /* Where rules decide, a document that has expired leaves when it is deleted, a moment later. */
    const int64_t minute = request->is_judged ? 0 : clock_present_minute();
    for (;;) {
        const struct collection_query query = {
            .arena = attempt->call->arena,
            .class = request->class,
            .name = request->name,
            .value = request->value,
            .value_count = request->value_count,
            .transaction = position->transaction,
            .id = position->id,
            .with_departures = !position->is_complete,
            .since = position->is_complete || request->is_judged ? INT64_MAX : position->since,
            .minute = minute,
            .limit = (int32_t)request->limit,
        };
        enum fault fault =
            store_collection(documents_store(attempt->worker_context->documents), attempt->ns, &query, page);
        if (!fault)
            fault = collection_request_judge(reader, request, page);
        if (fault)
            return fault;
        bool is_start = position->is_complete && position->is_first;
        if (is_start || collection_page_is_known(position, page))
            break;
        collection_request_start_over(request);
    }
    if (position->from > page->next)
        return reader_wrong(reader, NULL, "token", "A token of an earlier answer is expected.");
    if (position->is_first)
        collection_request_begin(position, page, minute);
    return FAULT_NONE;
}
