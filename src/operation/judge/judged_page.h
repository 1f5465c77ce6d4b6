/* judged_page: fills a page of documents for a caller that may learn only of some of those that are found
 * (judge.h): what is found is judged on the newest documents, and the operation reads on until the page is
 * full, or until this has cost enough. */
#ifndef STAMPD_OPERATION_JUDGE_JUDGED_PAGE_H
#define STAMPD_OPERATION_JUDGE_JUDGED_PAGE_H

#include "operation/judge/judge.h"

enum {
    JUDGED_PAGE_ROWS = 4000, /* most that are judged for a page */
    JUDGED_PAGE_READS = 8,   /* most statements for a page */
    JUDGED_PAGE_LEAST = 100  /* rows requested at once, at least */
};

struct judged_page {
    size_t rows;  /* judged so far */
    size_t bytes; /* memory of their documents */
    int reads;
    const int64_t
        *versions; /* of the documents that are loaded next, as the database has them; NULL: unknown */
};

/* FAULT_STALE: a copy is older than the version that is known of it, since another program has changed the
 * document a moment ago.  As judge_show_listed, for as many of the documents as the page may still cost; at
 * least one is judged for the first call of a page. */
MUST_USE enum fault judged_page_load(struct judged_page *page, struct attempt *attempt,
                                     const struct document_name *names, size_t count,
                                     const struct document **documents_r, struct view *views_r,
                                     size_t *count_r);
/* May another statement read for this page? */
bool judged_page_goes_on(const struct judged_page *page);

#endif
