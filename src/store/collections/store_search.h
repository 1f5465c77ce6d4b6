/* store_search: searches of exported fields, and selects of applications. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_SEARCH_H
#define STAMPD_STORE_COLLECTIONS_STORE_SEARCH_H

#include "model/document/document.h"
#include "model/schema/named_search.h"
#include "model/schema/search.h"
#include "store/store.h"

/* A page of search results, decrypted, true at one instant.  FAULT_STALE: the schema has changed since the
 * search was prepared.  FAULT_ALIMIT: a branch would look at more than `looked_most` items. */
struct search_found {
    struct bytes id;
    struct item item;                       /* with wants_items */
    struct bytes order[SEARCH_ORDERS_MOST]; /* values of the fields of the order, as texts */
};
struct search_page {
    struct search_found *found;
    size_t count;
    bool has_more;
};
MUST_USE enum fault store_search(struct store *store, int ns, struct arena *arena,
                                 const struct search *search, struct search_page *page_r);

/* How many documents are found, at one instant: `limit` + 1 at most. */
MUST_USE enum fault store_search_count(struct store *store, int ns, struct arena *arena,
                                       const struct search *search, int64_t *count_r);

/* Totals, of one instant: a row for each group, in their order. */
struct search_total {
    int64_t count;              /* of items */
    const struct bytes *values; /* of the groups, then of the wishes, as texts; data NULL: there is none */
};
struct search_sums {
    const struct search_total *list;
    size_t count;
    bool has_more; /* groups */
    int64_t found; /* items, `limit` + 1 at most */
};
/* `approved` NULL: of all that is found.  FAULT_ALIMIT: as store_search.  FAULT_AARG: a sum of doubles is
 * none.
 */
MUST_USE enum fault store_search_totals(struct store *store, int ns, struct arena *arena,
                                        const struct search *search, const struct search_totals *totals,
                                        const struct search_approved *approved, struct search_sums *sums_r);

/* The excerpts of `count` texts, a JSON array of them, with the secret in their marks
 * (model/schema/search.h). */
MUST_USE enum fault store_search_marks(struct store *store, int ns, struct arena *arena,
                                       const struct search_condition *match, struct bytes texts,
                                       struct bytes secret, size_t count, struct bytes *rows_r);

/* A read-only select of an application. */
struct selection {
    const char *sql;            /* its parameters, $1…, have type text */
    const struct bytes *values; /* of the parameters; data NULL: null */
    size_t count;
    size_t bytes;       /* of the answer, at most */
    int32_t rows;       /* at most; more are left out */
    int64_t timeout_ms; /* at most statement_timeout_ms; 0 or less: FAULT_XTIME at once */
};
/* Its rows: a JSON array of objects; NO_BYTES: they are too large.  FAULT_AARG: a value does not have the
 * type to which the select converts it. */
MUST_USE enum fault store_search_select(struct store *store, int ns, struct arena *arena,
                                        const struct selection *selection, struct bytes *rows_r);

/* --- named searches (model/schema/named_search.h) --- */
/* Rows of a search, JSON objects, of one instant. */
struct named_rows {
    struct bytes *rows;
    size_t count;
    bool has_more; /* than the limits */
};
/* `values`: of the parameters of the search, from 0 on.  FAULT_STALE: the schema has another number.
 * FAULT_OBUILDING: it is not ready in the database.  FAULT_AARG: PostgreSQL cannot compute with these values.
 * FAULT_ALIMIT: it needs more space on disk than a session may use. */
MUST_USE enum fault store_search_named(struct store *store, int ns, struct arena *arena,
                                       const struct named_search *search, int64_t schema_number,
                                       const struct pg_params *values, struct named_rows *rows_r);

#endif
