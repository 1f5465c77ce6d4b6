/* search_plan: whether an index returns the pages of a search in the order of fields, so that each costs what
 * it holds.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_PLAN_H
#define STAMPD_MODEL_SCHEMA_SEARCH_PLAN_H

#include "model/schema/search.h"

enum search_plan {
    SEARCH_PLAN_SERVED,   /* by an index, or all that is found by words or an element of a list is sorted
                           * (looked_most)
                           */
    SEARCH_PLAN_BUILDING, /* the index is declared, and not complete */
    SEARCH_PLAN_MISSING,  /* an index would serve it */
    SEARCH_PLAN_NONE      /* a condition is one that no index serves in this order */
};

/* The index that a search needs. */
struct search_need {
    const struct schema_item *item; /* which would declare it */
    struct schema_index index;
};

/* Of the first branch that no index serves.  MISSING, BUILDING: `need_r` is its index.  A search without an
 * order is served. */
enum search_plan search_plan_judge(const struct search *search, struct search_need *need_r);
/* The same of the first condition of likeness whose field has no index for it. */
enum search_plan search_plan_judge_likeness(const struct search *search, struct search_need *need_r);

#endif
