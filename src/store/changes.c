/* changes: the table, by statement. */
#include "store/changes.h"

enum change_kind { KIND_READ, KIND_ONCE, KIND_AGAIN, KIND_UPKEEP, KIND_COMMIT };

static const enum change_kind kinds[STATEMENT_COUNT] = {
#define CHANGE(word, kind) [STATEMENT_##word] = KIND_##kind,
#include "store/changes_table.h"
#undef CHANGE
};

bool changes_are_repeated(enum statement statement)
{
    return kinds[statement] == KIND_READ || kinds[statement] == KIND_UPKEEP;
}
