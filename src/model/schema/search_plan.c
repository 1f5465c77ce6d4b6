/* search_plan: an index serves a search if it begins with the fields of all equalities, and goes on with
 * those of the order; of other conditions it serves those on the first field of the order, as a range of the
 * index. */
#include "model/schema/search_plan.h"

static bool is_equality(const struct search_condition *condition)
{
    return search_is_of_item(condition) && !condition->field->is_list && condition->test == SEARCH_EQ &&
           !condition->is_negated;
}

static bool is_fixed(const struct search_branch *branch, struct bytes name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_equality(&branch->conditions[i]) && bytes_equal(branch->conditions[i].field->name, name))
            return true;
    return false;
}

/* Is there a condition that no index over several fields can serve? */
static bool has_unserved(const struct search *search, const struct search_branch *branch)
{
    for (size_t i = 0; i < branch->count; i++) {
        const struct search_condition *one = &branch->conditions[i];
        bool is_range = search_is_driving(one) && one->test != SEARCH_IN;
        if (!is_equality(one) && !(is_range && one->field == search->orders[0].field))
            return true;
    }
    return false;
}

static bool finds_element(const struct search_branch *branch)
{
    for (size_t i = 0; i < branch->count; i++) {
        const struct search_condition *one = &branch->conditions[i];
        if (search_is_match(one))
            return true;
        if (search_is_of_item(one) && one->field->is_list && one->test == SEARCH_EQ && !one->is_negated)
            return true;
    }
    return false;
}

/* The equalities, in their order, and the other fields of the order; false: these are too many for an index.
 */
static bool make_index(const struct search *search, const struct search_branch *branch,
                       struct schema_index *index_r, size_t *fixed_r)
{
    *index_r = (struct schema_index){.count = 0};
    for (size_t i = 0; i < branch->count; i++) {
        const struct search_condition *one = &branch->conditions[i];
        if (!is_equality(one) || is_fixed(branch, one->field->name, i))
            continue;
        if (index_r->count == SCHEMA_INDEX_FIELDS_MOST)
            return false;
        index_r->fields[index_r->count++] = (struct schema_index_field){one->field->name, false};
    }
    *fixed_r = index_r->count;
    for (size_t i = 0; i < search->order_count; i++) {
        if (is_fixed(branch, search->orders[i].field->name, branch->count))
            continue;
        if (index_r->count == SCHEMA_INDEX_FIELDS_MOST)
            return false;
        index_r->fields[index_r->count++] =
            (struct schema_index_field){search->orders[i].field->name, search->orders[i].is_descending};
    }
    return true;
}

/* Does the declared index serve as the needed one does: the same fields of equalities in any order, then the
 * same order or its reverse? */
static bool serves(const struct search_branch *branch, const struct schema_index *declared,
                   const struct schema_index *needed, size_t fixed)
{
    if (declared->count != needed->count)
        return false;
    for (size_t i = 0; i < fixed; i++)
        if (!is_fixed(branch, declared->fields[i].name, branch->count))
            return false;
    bool is_reversed =
        fixed < needed->count && declared->fields[fixed].is_descending != needed->fields[fixed].is_descending;
    for (size_t i = fixed; i < needed->count; i++)
        if (!bytes_equal(declared->fields[i].name, needed->fields[i].name) ||
            (declared->fields[i].is_descending != needed->fields[i].is_descending) != is_reversed)
            return false;
    return true;
}

static enum search_plan judge_branch(const struct search *search, const struct search_branch *branch,
                                     struct schema_index *index_r)
{
    enum search_plan plan = SEARCH_PLAN_MISSING;
    size_t fixed;
    if (finds_element(branch))
        return SEARCH_PLAN_SERVED;
    if (has_unserved(search, branch) || !make_index(search, branch, index_r, &fixed))
        return SEARCH_PLAN_NONE;
    if (index_r->count == 1)
        return SEARCH_PLAN_SERVED;
    for (size_t i = 0; i < search->item->index_count; i++) {
        const struct schema_index *declared = &search->item->indexes[i];
        if (!serves(branch, declared, index_r, fixed))
            continue;
        if (declared->is_ready)
            return SEARCH_PLAN_SERVED;
        plan = SEARCH_PLAN_BUILDING;
    }
    return plan;
}

enum search_plan search_plan_judge(const struct search *search, struct search_need *need_r)
{
    enum search_plan plan = SEARCH_PLAN_SERVED;
    need_r->item = search->item;
    for (size_t i = 0; i < search->branch_count && search->order_count && plan == SEARCH_PLAN_SERVED; i++)
        plan = judge_branch(search, &search->branches[i], &need_r->index);
    return plan;
}

/* Of one condition. */
static enum search_plan judge_likeness(const struct search *search, const struct search_condition *condition,
                                       struct search_need *need_r)
{
    if (condition->test != SEARCH_LIKE)
        return SEARCH_PLAN_SERVED;
    need_r->item = condition->item ? condition->item : search->item;
    need_r->index =
        (struct schema_index){.fields = {{condition->field->name, false}}, .count = 1, .is_likeness = true};
    for (size_t i = 0; i < need_r->item->index_count; i++)
        if (schema_index_is_same(&need_r->item->indexes[i], &need_r->index))
            return need_r->item->indexes[i].is_ready ? SEARCH_PLAN_SERVED : SEARCH_PLAN_BUILDING;
    return SEARCH_PLAN_MISSING;
}

enum search_plan search_plan_judge_likeness(const struct search *search, struct search_need *need_r)
{
    enum search_plan plan = SEARCH_PLAN_SERVED;
    for (size_t b = 0; b < search->branch_count; b++)
        for (size_t i = 0; i < search->branches[b].count && plan == SEARCH_PLAN_SERVED; i++)
            plan = judge_likeness(search, &search->branches[b].conditions[i], need_r);
    return plan;
}
