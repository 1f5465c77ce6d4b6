/* judged_page: bounds of rows, statements and memory. */
#include "operation/judge/judged_page.h"

/* Documents stay in memory until the end of the request. */
static size_t bytes_most(const struct attempt *attempt)
{
    return 2 * (size_t)attempt->worker_context->settings->limit_answer_bytes;
}

enum fault judged_page_load(struct judged_page *page, struct attempt *attempt,
                            const struct document_name *names, size_t count,
                            const struct document **documents_r, struct view *views_r, size_t *count_r)
{
    const size_t most = bytes_most(attempt), rows_left = JUDGED_PAGE_ROWS - page->rows;
    *count_r = 0;
    page->reads++;
    if (count > rows_left)
        count = rows_left;
    if (!count || page->bytes >= most)
        return FAULT_NONE;
    enum fault fault = judge_newest(attempt, names, count, most - page->bytes, documents_r);
    for (size_t i = 0; !fault && i < count && documents_r[i] && page->bytes < most; i++) {
        page->bytes += documents_r[i]->block_bytes;
        if (page->versions && documents_r[i]->header.version < page->versions[i])
            return FAULT_STALE;
        fault = judge_show_listed(attempt, &documents_r[i], &views_r[i]);
        if (views_r[i].filtered) /* another snapshot */
            page->bytes += documents_r[i]->block_bytes;
        page->rows++;
        *count_r = i + 1;
    }
    return fault;
}

bool judged_page_goes_on(const struct judged_page *page)
{
    return page->reads < JUDGED_PAGE_READS && page->rows < JUDGED_PAGE_ROWS;
}
