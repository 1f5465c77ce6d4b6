/* rules_caller: the roles of a caller. */
#include "model/rules/rules_private.h"

#include <stdlib.h>

static int rules_caller_compare(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

void rules_caller_set_roles(struct arena *arena, struct rules_caller *caller, const struct bytes *roles,
                            size_t count)
{
    struct bytes *sorted = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = roles[i];
    qsort(sorted, count, sizeof *sorted, rules_caller_compare);
    caller->roles = sorted;
    caller->role_count = count;
}

bool rules_caller_has_role(const struct rules_caller *caller, struct bytes role)
{
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], role))
            return true;
    return false;
}
