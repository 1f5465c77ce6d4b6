/* reservations: values that are unique in all namespaces, between two databases without a common transaction.
 *
 * The database of a namespace knows which of its documents has a value; that of z knows which namespace may
 * have it.  A commit that takes or gives up values
 *
 *   1. writes all that it writes, but does not end; from then on it holds a lock on each of these values,
 *   2. claims them in z: each gets the number of this claim; those that another database has are refused,
 *   3. ends,
 *   4. drops from z what it has given up, where the claim is still its own.
 *
 * So a namespace never has a value without a claim.  A claim may be there without a value: whoever was to end
 * or to drop died.  So a claim is believed by nobody who wants the value: he asks the database that it names,
 * once the lock is free, and drops the claim that has nothing behind it, if it is still the same. */
#ifndef STAMPD_STORE_RESERVATIONS_H
#define STAMPD_STORE_RESERVATIONS_H

#include "base/arena.h"
#include "base/fault.h"
#include "edge/pg.h"

/* Where sessions come from; all statements of the server's table are prepared in them. */
struct reservation_sessions {
    MUST_USE enum fault (*use)(void *whose, struct bytes database, struct pg **pg_r);
    /* A statement has failed there: the session may be of no more use.  NULL: nobody wants to know. */
    void (*failed)(void *whose, struct bytes database);
    void *whose;
    struct bytes z;        /* database of z */
    struct bytes database; /* of the commit */
};

struct reservations;

/* Behind the first statement of a transaction that is about to write. */
#define RESERVATIONS_BEGIN "set local stampd.claims = '[]'"

/* What the transaction of `pg` takes and gives up; `reservations_r` NULL: nothing. */
MUST_USE enum fault reservations_collect(struct arena *arena, struct pg *pg,
                                         struct reservations **reservations_r);
/* Before the transaction ends.  FAULT_AUNIQUE: a document of another namespace has a value.  FAULT_STALE: it
 * may have it in a moment, or not.  After a fault the transaction must not commit. */
MUST_USE enum fault reservations_take(struct reservations *reservations,
                                      const struct reservation_sessions *sessions);
/* After the transaction has ended, also when its end is not known or reservations_take failed.  What cannot
 * be dropped now is found out by who wants it. */
enum reservations_end { RESERVATIONS_COMMITTED, RESERVATIONS_UNDONE };
void reservations_settle(struct reservations *reservations, const struct reservation_sessions *sessions,
                         enum reservations_end end);
/* The first value that was refused, for people: "Class name value, in database". */
const char *reservations_refused(const struct reservations *reservations);
void reservations_refused_property(const struct reservations *reservations, struct bytes *class_r,
                                   struct bytes *name_r);

#endif
