/* search_totals: what a search of totals wants, and its statement.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_TOTALS_H
#define STAMPD_MODEL_SCHEMA_SEARCH_TOTALS_H

#include "model/schema/search.h"

enum { TOTALS_MOST = 16, TOTALS_GROUPS_MOST = 2, TOTALS_ROWS_MOST = 1000 /* groups in an answer */ };

enum totals_kind { TOTALS_SUM, TOTALS_MIN, TOTALS_MAX, TOTALS_AVG, TOTALS_KINDS };

struct search_totals {
    struct totals_wish {
        enum totals_kind kind;
        const struct schema_field *field; /* of SUM and AVG a number; neither a list nor a hash */
    } wishes[TOTALS_MOST];
    size_t count;
    const struct schema_field *groups[TOTALS_GROUPS_MOST]; /* the same */
    size_t group_count;
};

/* Items that were found, and judged: the totals are of these alone, as far as they are at these versions. */
struct search_approved {
    const struct bytes *ids, *keys;
    const int64_t *versions;
    size_t count;
};

/* Composes the statement.  `approved` NULL: of all that is found, at most `limit` items. */
void search_totals_compose(const struct search *search, const struct search_totals *totals,
                           const struct search_approved *approved, struct builder *sql,
                           struct pg_params *params);

/* Columns of the result, a row for each group, in their order, up to TOTALS_ROWS_MOST + 1; behind these are
 * the values of the groups, then those of the wishes, as texts (null: there is none); of AVG the sum, a slash
 * and the number of values. */
enum { TOTALS_FOUND /* items in all groups, `limit` + 1 at most */, TOTALS_COUNT, TOTALS_VALUES };

#endif
