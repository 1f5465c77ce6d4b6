/* content_value: values of JSON compared as values: numbers as decimals, members in any order. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_VALUE_H
#define STAMPD_MODEL_CONTENT_CONTENT_VALUE_H

#include "base/arena.h"
#include "base/bytes.h"
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

/* Numbers of JSON compared as decimals, exactly, however they are written.
 *
 * 1, 1.0 and 10e-1 are one number; 9007199254740993 is not 9007199254740992; nothing is rounded to binary.
 * Exponents beyond plus or minus 10^15 are taken as 10^15. */

/* The number is 0.DIGITS times 10 to the power `magnitude`, where DIGITS are the `count` digits that stand in
 * `text`, without its decimal point; the first and the last of them are not 0. */
struct content_number {
    struct bytes text; /* from the first to the last of its digits, a decimal point may be among them */
    size_t count;      /* 0: the number is 0 */
    int64_t magnitude;
    bool is_negative; /* never of 0 */
};

/* A divisor that fits multipleOf: at most 18 digits. */
struct content_divisor {
    uint64_t digits;
    int64_t exponent; /* the number is `digits` times 10 to this power */
};

/* `text` is a number as JSON allows it. */
struct content_number content_number_read(struct bytes text);
/* Below 0, 0 or above 0, as the first is less, equal or greater. */
int content_number_compare(const struct content_number *a, const struct content_number *b);
bool content_number_is_integer(const struct content_number *number);
/* Equal for equal numbers. */
uint64_t content_number_hash(const struct content_number *number);

/* False: not above 0, or more than 18 digits. */
bool content_number_to_divisor(const struct content_number *number, struct content_divisor *divisor_r);
bool content_number_is_multiple(const struct content_number *number, const struct content_divisor *divisor);

/* A bound as the schema has it, and all of a schema that concerns numbers. */
struct content_bound {
    const struct json *source; /* NULL: none */
    struct content_number number;
};

struct content_number_rules {
    struct content_bound minimum, maximum, above, below;
    const struct json *multiple; /* NULL: none */
    struct content_divisor divisor;
};

#endif
