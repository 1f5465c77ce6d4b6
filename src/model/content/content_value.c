/* content_value: hashes first, so that unlike values are seldom compared. */
#include "model/content/content_value.h"

#include <stdlib.h>

#include "base/coding/hash.h"

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* The members' hashes are added, as their order means nothing. */
uint64_t content_value_hash(const struct json *value, struct content_budget *budget)
{
    uint64_t hash = HASH_START + (uint64_t)value->kind;
    if (!content_spend(budget, value->value.size / 8))
        return 0;
    if (value->kind == JSON_NUMBER) {
        struct content_number number = content_number_read(value->value);
        return mix(content_number_hash(&number));
    }
    if (value->kind == JSON_STRING)
        return mix(hash_more(hash, value->value));
    for (const struct json *child = value->first; child && budget->steps >= 0; child = child->next) {
        uint64_t own = content_value_hash(child, budget);
        if (value->kind == JSON_OBJECT)
            hash += mix(own ^ hash_more(HASH_START, child->name));
        else
            hash = mix(hash + own);
    }
    return mix(hash);
}

/* The member of that name, searched from `start` on, as most objects name their members in one order. */
static const struct json *content_value_find_member(const struct json *object, const struct json *start,
                                                    struct bytes name, struct content_budget *budget)
{
    const struct json *member = start ? start : object->first;
    for (uint32_t i = 0; i < object->count && content_spend(budget, 0); i++) {
        if (bytes_equal(member->name, name))
            return member;
        member = member->next ? member->next : object->first;
    }
    return NULL;
}

static bool equal_members(const struct json *a, const struct json *b, struct content_budget *budget)
{
    const struct json *next = b->first;
    for (const struct json *member = a->first; member; member = member->next) {
        const struct json *other = content_value_find_member(b, next, member->name, budget);
        if (!other || !content_value_equals(member, other, budget))
            return false;
        next = other->next;
    }
    return true;
}

static bool equal_elements(const struct json *a, const struct json *b, struct content_budget *budget)
{
    const struct json *other = b->first;
    for (const struct json *one = a->first; one; one = one->next, other = other->next)
        if (!content_value_equals(one, other, budget))
            return false;
    return true;
}

bool content_value_equals(const struct json *a, const struct json *b, struct content_budget *budget)
{
    if (!content_spend(budget, a->value.size / 16) || a->kind != b->kind)
        return false;
    if (a->kind == JSON_NUMBER) {
        struct content_number one = content_number_read(a->value), other = content_number_read(b->value);
        return content_number_compare(&one, &other) == 0;
    }
    if (a->kind == JSON_STRING)
        return bytes_equal(a->value, b->value);
    if (a->count != b->count)
        return false;
    return a->kind == JSON_OBJECT ? equal_members(a, b, budget) : equal_elements(a, b, budget);
}

struct element {
    uint64_t hash;
    size_t place; /* of the element; equal hashes stay in the order of the array */
    const struct json *value;
};

static int compare_elements(const void *a, const void *b)
{
    const struct element *one = a, *other = b;
    if (one->hash != other->hash)
        return one->hash < other->hash ? -1 : 1;
    return one->place < other->place ? -1 : 1;
}

bool content_value_find_twin(struct arena *arena, const struct json *array, struct content_budget *budget,
                             const struct json **twin_r)
{
    if (array->count < 2)
        return false;
    struct element *elements = ARENA_ROOM(arena, struct element, array->count);
    size_t count = 0;
    for (const struct json *one = array->first; one; one = one->next, count++)
        elements[count] = (struct element){content_value_hash(one, budget), count, one};
    if (!content_spend(budget, count) || budget->steps < 0)
        return false;
    qsort(elements, count, sizeof *elements, compare_elements);
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k-- && elements[k].hash == elements[i].hash && budget->steps >= 0;)
            if (content_value_equals(elements[k].value, elements[i].value, budget)) {
                *twin_r = elements[i].value;
                return true;
            }
    return false;
}

/* Works on the digits as written. */

/* Products of two 60-bit numbers. */
__extension__ typedef unsigned __int128 wide;

static const int64_t exponent_most = INT64_C(1000000000000000);

static bool content_number_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_exponent(struct bytes text)
{
    int64_t exponent = 0;
    bool is_negative = text.size && text.data[0] == '-';
    size_t i = text.size && !content_number_is_digit(text.data[0]);
    for (; i < text.size && exponent < exponent_most; i++)
        exponent = exponent * 10 + (text.data[i] - '0');
    if (exponent > exponent_most)
        exponent = exponent_most;
    return is_negative ? -exponent : exponent;
}

/* Takes zeros, and the point, from both ends of the digits; `magnitude` is the count of digits before the
 * point. */
static void strip(struct content_number *number, struct bytes digits)
{
    size_t before = 0;
    while (before < digits.size && content_number_is_digit(digits.data[before]))
        before++;
    bool has_point = before < digits.size;
    size_t first = 0, end = digits.size;
    while (first < end && (digits.data[first] == '0' || digits.data[first] == '.'))
        first++;
    while (end > first && (digits.data[end - 1] == '0' || digits.data[end - 1] == '.'))
        end--;
    number->text = (struct bytes){digits.data + first, end - first};
    number->count = end - first - (has_point && first < before && end > before);
    number->magnitude = (int64_t)before - (int64_t)first + (first > before);
}

struct content_number content_number_read(struct bytes text)
{
    struct content_number number = {.is_negative = text.size && text.data[0] == '-'};
    struct bytes digits = {text.data + number.is_negative, text.size - number.is_negative};
    int64_t exponent = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] != 'e' && digits.data[i] != 'E')
            continue;
        exponent = read_exponent((struct bytes){digits.data + i + 1, digits.size - i - 1});
        digits.size = i;
    }
    strip(&number, digits);
    if (!number.count)
        return (struct content_number){0};
    number.magnitude += exponent;
    return number;
}

/* The digit at *at, which moves behind it; 0 behind the last. */
static int next_digit(struct bytes text, size_t *at)
{
    if (*at < text.size && text.data[*at] == '.')
        ++*at;
    return *at < text.size ? text.data[(*at)++] - '0' : 0;
}

static int compare_sizes(const struct content_number *a, const struct content_number *b)
{
    if (a->magnitude != b->magnitude)
        return a->magnitude < b->magnitude ? -1 : 1;
    size_t at_a = 0, at_b = 0, most = a->count > b->count ? a->count : b->count;
    for (size_t i = 0; i < most; i++) {
        int order = next_digit(a->text, &at_a) - next_digit(b->text, &at_b);
        if (order)
            return order;
    }
    return 0;
}

int content_number_compare(const struct content_number *a, const struct content_number *b)
{
    int sign_a = a->count ? a->is_negative ? -1 : 1 : 0, sign_b = b->count ? b->is_negative ? -1 : 1 : 0;
    if (sign_a != sign_b)
        return sign_a < sign_b ? -1 : 1;
    return sign_a == 0 ? 0 : sign_a * compare_sizes(a, b);
}

/* Of the last digit. */
static int64_t exponent_of(const struct content_number *number)
{
    return number->magnitude - (int64_t)number->count;
}

bool content_number_is_integer(const struct content_number *number)
{
    return !number->count || exponent_of(number) >= 0;
}

uint64_t content_number_hash(const struct content_number *number)
{
    uint64_t hash = HASH_START;
    size_t at = 0;
    for (size_t i = 0; i < number->count; i++)
        hash = (hash ^ (uint64_t)next_digit(number->text, &at)) * UINT64_C(1099511628211);
    return (hash ^ (uint64_t)number->magnitude) * UINT64_C(1099511628211) + number->is_negative;
}

bool content_number_to_divisor(const struct content_number *number, struct content_divisor *divisor_r)
{
    if (!number->count || number->is_negative || number->count > 18)
        return false;
    size_t at = 0;
    *divisor_r = (struct content_divisor){.exponent = exponent_of(number)};
    for (size_t i = 0; i < number->count; i++)
        divisor_r->digits = divisor_r->digits * 10 + (uint64_t)next_digit(number->text, &at);
    return true;
}

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((wide)a * b % modulus);
}

/* The last digit of a number is not 0, so a number with a smaller exponent than the divisor's is no multiple
 * of ten times anything. */
bool content_number_is_multiple(const struct content_number *number, const struct content_divisor *divisor)
{
    if (!number->count)
        return true;
    int64_t more = exponent_of(number) - divisor->exponent;
    if (more < 0)
        return false;
    uint64_t modulus = divisor->digits, rest = 0, power = 10 % modulus;
    size_t at = 0;
    for (size_t i = 0; i < number->count; i++)
        rest = (multiply(rest, 10, modulus) + (uint64_t)next_digit(number->text, &at)) % modulus;
    for (; more; more >>= 1) {
        if (more & 1)
            rest = multiply(rest, power, modulus);
        power = multiply(power, power, modulus);
    }
    return rest == 0;
}
