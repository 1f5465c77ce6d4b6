/* refusal: the SQLSTATEs by which the functions and statements of stampd refuse a transaction
 * (refusal_table.h). */
#ifndef STAMPD_STORE_REFUSAL_H
#define STAMPD_STORE_REFUSAL_H

enum refusal {
    REFUSAL_NONE, /* another error of PostgreSQL, or none */
#define REFUSAL(name, state, raised_by, meaning) REFUSAL_##name,
#include "store/refusal_table.h"
#undef REFUSAL
};

enum refusal refusal_of(const char *sqlstate);

#endif
