/* account_walk: what the walks over documents (account_change.c, account_end.c) have in common: a page of
 * names, how much a cycle changes, and what is kept between two cycles, a JSON object. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_WALK_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_WALK_H

#include "operation/accounts/account_gate.h"
#include "store/collections/store_list.h"

/* Documents that a cycle may change. */
int64_t account_walk_most(const struct attempt *attempt);

struct account_page {
    struct document_name *names;
    size_t count;
    struct bytes more; /* the cursor of the next page; NO_BYTES: it is the last one */
};
MUST_USE enum fault account_walk_query(struct attempt *attempt, const struct list_query *query,
                                       struct account_page *page_r);
/* Those of the class behind the id `after`; empty: from the first one on. */
MUST_USE enum fault account_walk_list(struct attempt *attempt, struct bytes class, struct bytes after,
                                      struct account_page *page_r);
/* The newest of the page; NULL for those at its end for which there is no memory. */
MUST_USE enum fault account_walk_load(struct attempt *attempt, const struct account_page *page,
                                      const struct document ***documents_r);

/* NULL: there is none, the walk begins. */
const struct json *account_walk_read(const struct attempt *attempt);
/* Absent: empty, 0. */
struct bytes account_walk_text(const struct json *root, const char *name);
int64_t account_walk_number(const struct json *root, const char *name);
/* Frees the builder. */
void account_walk_keep(struct attempt *attempt, struct builder *text);

#endif
