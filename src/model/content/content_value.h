/* content_value: values of JSON compared as values: numbers as decimals, members in any order. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_VALUE_H
#define STAMPD_MODEL_CONTENT_CONTENT_VALUE_H

#include "base/arena.h"
#include "edge/json/json.h"

/* What is still allowed of the work on one content; below 0: the limit is exceeded. */
struct content_budget {
    int64_t steps;
};

/* Takes the cost of a value's own text, or of that many steps; false: there are too few left. */
static inline bool content_spend(struct content_budget *budget, size_t steps)
{
    if ((uint64_t)steps > (uint64_t)INT32_MAX)
        steps = INT32_MAX;
    budget->steps -= 1 + (int64_t)steps;
    return budget->steps >= 0;
}

/* Equal for equal values, whatever is left of the budget; meaningless once it is spent. */
uint64_t content_value_hash(const struct json *value, struct content_budget *budget);
/* False once the budget is spent. */
bool content_value_equals(const struct json *a, const struct json *b, struct content_budget *budget);

/* Two equal elements of an array; false: all differ, or the budget is spent. */
bool content_value_find_twin(struct arena *arena, const struct json *array, struct content_budget *budget,
                             const struct json **twin_r);

#endif
