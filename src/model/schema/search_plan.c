/* search_plan: an index serves a search if it begins with the fields of all equalities, and goes on with
 * those of the order; of other conditions it serves those on the first field of the order, as a range of the
 * index. */
#include "model/schema/search_plan.h"

static bool is_equality(const struct search_condition *condition)
{
    return condition->field && !condition->field->is_list && condition->test == SEARCH_EQ;
}

static bool is_fixed(const struct search *search, struct bytes name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_equality(&search->conditions[i]) && bytes_equal(search->conditions[i].field->name, name))
            return true;
    return false;
}

/* The first condition that no index over several fields can serve; NULL: there is none. */
static const struct search_condition *find_unserved(const struct search *search)
{
    for (size_t i = 0; i < search->count; i++) {
        const struct search_condition *one = &search->conditions[i];
        bool is_range = search_is_driving(one->test) && one->test != SEARCH_IN;
        if (!is_equality(one) && !(is_range && one->field == search->orders[0].field))
            return one;
    }
    return NULL;
}

static bool finds_element(const struct search *search)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->conditions[i].field && search->conditions[i].field->is_list &&
            search->conditions[i].test == SEARCH_EQ)
            return true;
    return false;
}

/* The equalities, in their order, and the fields of the order; false: these are too many for an index. */
static bool make_index(const struct search *search, struct schema_index *index_r)
{
    *index_r = (struct schema_index){.count = 0};
    for (size_t i = 0; i < search->count; i++) {
        const struct search_condition *one = &search->conditions[i];
        if (!is_equality(one) || is_fixed(search, one->field->name, i))
            continue;
        if (index_r->count == SCHEMA_INDEX_FIELDS_MOST)
            return false;
        index_r->fields[index_r->count++] = (struct schema_index_field){one->field->name, false};
    }
    for (size_t i = 0; i < search->order_count; i++) {
        if (index_r->count == SCHEMA_INDEX_FIELDS_MOST)
            return false;
        index_r->fields[index_r->count++] =
            (struct schema_index_field){search->orders[i].field->name, search->orders[i].is_descending};
    }
    return true;
}

/* Does the declared index serve as the needed one does: the same fields of equalities in any order, then the
 * same order or its reverse? */
static bool serves(const struct search *search, const struct schema_index *declared,
                   const struct schema_index *needed)
{
    size_t fixed = needed->count - search->order_count;
    if (declared->count != needed->count)
        return false;
    for (size_t i = 0; i < fixed; i++)
        if (!is_fixed(search, declared->fields[i].name, search->count))
            return false;
    bool is_reversed = declared->fields[fixed].is_descending != needed->fields[fixed].is_descending;
    for (size_t i = fixed; i < needed->count; i++)
        if (!bytes_equal(declared->fields[i].name, needed->fields[i].name) ||
            (declared->fields[i].is_descending != needed->fields[i].is_descending) != is_reversed)
            return false;
    return true;
}

enum search_plan search_plan_judge(const struct search *search, struct schema_index *index_r,
                                   const struct search_condition **condition_r)
{
    enum search_plan plan = SEARCH_PLAN_MISSING;
    *condition_r = search->order_count ? find_unserved(search) : NULL;
    if (!search->order_count || finds_element(search))
        return SEARCH_PLAN_SERVED;
    if (!*condition_r && !make_index(search, index_r))
        *condition_r = &search->conditions[0];
    if (*condition_r)
        return SEARCH_PLAN_NONE;
    if (index_r->count == 1)
        return SEARCH_PLAN_SERVED;
    for (size_t i = 0; i < search->item->index_count; i++) {
        const struct schema_index *declared = &search->item->indexes[i];
        if (!serves(search, declared, index_r))
            continue;
        if (declared->is_ready)
            return SEARCH_PLAN_SERVED;
        plan = SEARCH_PLAN_BUILDING;
    }
    return plan;
}
