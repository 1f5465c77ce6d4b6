/* fault: the result of every function that can fail for outside reasons.  The layer that knows the cause logs
 * it once; layers above pass the fault on; only http/response.c turns it into an HTTP answer. */
#ifndef STAMPD_BASE_FAULT_H
#define STAMPD_BASE_FAULT_H

#include "base/base.h"

enum fault {
    FAULT_NONE,
#define FAULT(name, words, status, resource, again, remedy, arguments) FAULT_##name,
#define CLASS(letter, remedy)
#include "base/fault_table.h"
#undef CLASS
#undef FAULT
    FAULT_STALE,     /* inside the server only: verification failed, the operation must run again */
    FAULT_RAISED,    /* raised by a module: the reply has the code */
    FAULT_ELSEWHERE, /* inside the server only: another worker has the database session for this, see
                        serve/home.h */
    FAULT_FENCED,    /* inside the server only: the task no longer belongs to this attempt */
    FAULT_COUNT
};

/* The first fault of two to eight calls, which are made in their order; none is made behind one that fails.
 */
#define FAULT_FIRST(...)                                                                                     \
    FAULT_FIRST_PICK(__VA_ARGS__, FAULT_FIRST_8, FAULT_FIRST_7, FAULT_FIRST_6, FAULT_FIRST_5, FAULT_FIRST_4, \
                     FAULT_FIRST_3, FAULT_FIRST_2, )                                                         \
    (__VA_ARGS__)
#define FAULT_FIRST_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define FAULT_FIRST_2(a, b)                                 ((a) ?: (b))
#define FAULT_FIRST_3(a, ...)                               ((a) ?: FAULT_FIRST_2(__VA_ARGS__))
#define FAULT_FIRST_4(a, ...)                               ((a) ?: FAULT_FIRST_3(__VA_ARGS__))
#define FAULT_FIRST_5(a, ...)                               ((a) ?: FAULT_FIRST_4(__VA_ARGS__))
#define FAULT_FIRST_6(a, ...)                               ((a) ?: FAULT_FIRST_5(__VA_ARGS__))
#define FAULT_FIRST_7(a, ...)                               ((a) ?: FAULT_FIRST_6(__VA_ARGS__))
#define FAULT_FIRST_8(a, ...)                               ((a) ?: FAULT_FIRST_7(__VA_ARGS__))

/* What a client does with a request that was refused (fault_table.h). */
enum fault_remedy { REMEDY_FINAL, REMEDY_AGAIN, REMEDY_HELD, REMEDY_SETUP, REMEDY_SIGN, REMEDY_OVER };

/* "AVERSION". */
const char *fault_code(enum fault fault);
/* One English sentence. */
const char *fault_words(enum fault fault);
/* The number of the fault's class, 1 to 7 (protocol.md, "Faults"). */
int fault_major(enum fault fault);
int fault_major_of_code(const char *code);
/* May the server retry the operation itself?  True for the faults of the classes B, X and C that a retry can
 * fix: not XUNKNOWN (the commit may have happened; but see operation/idempotency.h), XTIME, XAWAY, XFULL,
 * BREADONLY. */
bool fault_is_retried(enum fault fault);
/* By the row of the code, else by its class, of which the first letter decides; another letter: final. */
enum fault_remedy fault_remedy_of_code(const char *code);
/* The HTTP status, 200 for FAULT_NONE.  Documents as resources use more of the statuses than operations
 * do. */
int fault_status(enum fault fault, bool is_resource);
/* The HTTP status of an operation's fault with the setting fault_status = few: 404 for what does not exist,
 * 400 for nearly all else. */
int fault_few_status(enum fault fault);
/* The HTTP status of an application's exception, by the class of its code. */
int fault_status_of_code(const char *code);

#endif
