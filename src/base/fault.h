/* fault: the result of everything that can fail for outside reasons.  The layer that knows the cause logs
 * it once; layers above pass the fault on; serve/response.c alone turns it into an HTTP answer. */
#ifndef STAMPD_BASE_FAULT_H
#define STAMPD_BASE_FAULT_H

#include "base/base.h"

enum fault {
    FAULT_NONE,
#define FAULT(name, words, status, resource, again, arguments) FAULT_##name,
#include "base/fault_table.h"
#undef FAULT
    FAULT_STALE,     /* inside the server only: verification failed, the operation is to be run again */
    FAULT_RAISED,    /* by a module: the reply has the code */
    FAULT_ELSEWHERE, /* inside the server only: another worker has the database session for this, see
                        serve/home.h */
    FAULT_FENCED,    /* inside the server only: a task is not this attempt's any more */
    FAULT_COUNT
};

/* "AVERSION". */
const char *fault_code(enum fault fault);
/* One English sentence. */
const char *fault_words(enum fault fault);
/* The number of the class, 1 to 7 (seed 000). */
int fault_major(enum fault fault);
int code_major(const char *code);
/* May the server run the operation again by itself?  Of the classes B, X and C those that another try can
 * mend: not XUNKNOWN (it may have happened; but see operation/idempotency.h), XTIME, XAWAY, XFULL, BREADONLY.
 */
bool fault_is_retried(enum fault fault);
/* The status of HTTP, 200 for FAULT_NONE; documents as resources tell more by it than operations do. */
int fault_status(enum fault fault, bool is_resource);
/* The status of an operation's fault as seed 000 has it: 404 for what does not exist, 400 for nearly all
 * else. */
int fault_seed_status(enum fault fault);
/* The status of an exception of an application, by the class of its code. */
int code_status(const char *code);

#endif
