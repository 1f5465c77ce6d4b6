/* fault: names, words, classes and statuses, all from one table. */
#include "base/fault.h"

#include <string.h>

struct row {
    const char *code, *words;
    int status, resource_status;
    bool is_retried;
    enum fault_remedy remedy;
};

static const struct row rows[] = {
    [FAULT_NONE] = {"NONE", "No fault.", 200, 200, false, REMEDY_AGAIN},
#define FAULT(name, words, status, resource, again, remedy, arguments)                                       \
    [FAULT_##name] = {#name, words, status, resource, again, REMEDY_##remedy},
#define CLASS(letter, remedy)
#include "base/fault_table.h"
#undef CLASS
#undef FAULT
    [FAULT_STALE] = {"CONTENTION", "Other operations kept changing the same documents.", 409, 409, true,
                     REMEDY_AGAIN},
    [FAULT_RAISED] = {"XRAISED", "The application raised an exception.", 500, 500, false, REMEDY_AGAIN},
    [FAULT_ELSEWHERE] = {"XELSEWHERE", "Another worker serves the namespace.", 500, 500, false, REMEDY_AGAIN},
    [FAULT_FENCED] = {"XFENCED", "The task has been given to another attempt.", 500, 500, false,
                      REMEDY_AGAIN},
};

static_assert(COUNT_OF(rows) == FAULT_COUNT, "every fault has a row");

static const struct row *row_of(enum fault fault)
{
    assert(fault < FAULT_COUNT);
    return &rows[fault];
}

const char *fault_code(enum fault fault)
{
    return row_of(fault)->code;
}

const char *fault_words(enum fault fault)
{
    return row_of(fault)->words;
}

int fault_major(enum fault fault)
{
    return fault_major_of_code(fault_code(fault));
}

int fault_major_of_code(const char *code)
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

enum fault_remedy fault_remedy_of_code(const char *code)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].code, code) == 0)
            return rows[i].remedy;
#define CLASS(letter, remedy)                                                                                \
    if (code[0] == #letter[0])                                                                               \
        return REMEDY_##remedy;
#define FAULT(name, words, status, resource, again, remedy, arguments)
#include "base/fault_table.h"
#undef CLASS
#undef FAULT
    return REMEDY_FINAL;
}

bool fault_is_retried(enum fault fault)
{
    return row_of(fault)->is_retried;
}

int fault_status(enum fault fault, bool is_resource)
{
    return is_resource ? row_of(fault)->resource_status : row_of(fault)->status;
}

int fault_few_status(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
    case FAULT_AMETHOD:
    case FAULT_ATYPE:
    case FAULT_XBUSY:
    case FAULT_XCROWDED:
    case FAULT_XINTERNAL:
    case FAULT_SORIGIN:
        return row_of(fault)->status;
    default:
        return fault_code(fault)[0] == 'N' ? 404 : 400;
    }
}

int fault_status_of_code(const char *code)
{
    switch (code[0]) {
    case 'N':
        return 404;
    case 'B':
    case 'X':
        return 500;
    case 'C':
        return 409;
    case 'O':
        return 503;
    case 'S':
        return 403;
    default:
        return 400;
    }
}
