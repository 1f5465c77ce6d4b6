/* refusal: a linear search; there are few, and a refusal is rare. */
#include "store/refusal.h"

#include "base/base.h"

#include <string.h>

enum refusal refusal_of(const char *sqlstate)
{
    static const struct {
        enum refusal refusal;
        const char *state;
    } refusals[] = {
#define REFUSAL(name, state, raised_by, meaning) {REFUSAL_##name, state},
#include "store/refusal_table.h"
#undef REFUSAL
    };
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        if (strcmp(sqlstate, refusals[i].state) == 0)
            return refusals[i].refusal;
    return REFUSAL_NONE;
}
