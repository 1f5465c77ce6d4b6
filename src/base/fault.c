/* fault: names, words and classes, all from the one table. */
#include "base/fault.h"

static const char *const codes[] = {
    [FAULT_NONE] = "NONE",
#define FAULT(name, words) [FAULT_##name] = #name,
#include "base/fault_table.h"
#undef FAULT
    [FAULT_STALE] = "CONTENTION",
    [FAULT_RAISED] = "XRAISED",
};

static const char *const sentences[] = {
    [FAULT_NONE] = "No fault.",
#define FAULT(name, words) [FAULT_##name] = words,
#include "base/fault_table.h"
#undef FAULT
    [FAULT_STALE] = "Other operations kept changing the same documents.",
    [FAULT_RAISED] = "The application raised an exception.",
};

const char *fault_code(enum fault fault)
{
    assert(fault < FAULT_COUNT);
    return codes[fault];
}

const char *fault_words(enum fault fault)
{
    assert(fault < FAULT_COUNT);
    return sentences[fault];
}

int fault_major(enum fault fault)
{
    return code_major(fault_code(fault));
}

int code_major(const char *code)
{
    switch (code[0]) {
    case 'A':
    case 'N':
        return 1;
    case 'B':
        return 2;
    case 'D':
        return 4;
    case 'C':
        return 5;
    case 'O':
        return 6;
    case 'S':
        return 7;
    default:
        return 3;
    }
}

bool fault_is_retried(enum fault fault)
{
    switch (fault) {
    case FAULT_STALE:
    case FAULT_CONTENTION:
    case FAULT_BINTERNAL:
    case FAULT_BMODULE:
    case FAULT_BCONTENT:
    case FAULT_XDATABASE:
        return true;
    default:
        return false;
    }
}
