/* content_value: hashes first, so that unlike values are seldom compared. */
#include "model/content/content_value.h"

#include <stdlib.h>

#include "base/coding/hash.h"
#include "model/content/content_number.h"

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
