/* reservations: values that are unique in all namespaces, between two databases without a common transaction.
 *
 * The database of a namespace records which of its documents has a value; that of z records which namespace
 * may have it.  A commit that takes or gives up values
 *
 *   1. performs all its writes, but does not end; from then on it holds a lock on each of these values,
 *   2. reserves them in z: each gets the number of this reservation; those of another database are refused,
 *   3. ends,
 *   4. drops from z what it has given up, where the reservation is still its own.
 *
 * So a namespace never has a value without a reservation.  A reservation may exist without a value: its
 * process died before it could end the transaction or drop the reservation.  So a process that needs the
 * value does not trust a reservation: once the lock is free, it queries the database named in it, and drops
 * the reservation if there is no value behind it and it is still the same. */
#ifndef STAMPD_STORE_DOCUMENTS_RESERVATIONS_H
#define STAMPD_STORE_DOCUMENTS_RESERVATIONS_H

#include "base/arena.h"
#include "base/fault.h"
#include "edge/pg/pg.h"

/* The source of sessions; all statements of the server's table are prepared in them. */
struct reservation_sessions {
    /* A session on which proof_begin has been called. */
    MUST_USE enum fault (*use)(void *whose, struct bytes database, struct pg **pg_r);
    /* A statement has failed there: the session may be unusable.  NULL: no callback. */
    void (*failed)(void *whose, struct bytes database);
    void *whose;
    struct bytes z;        /* database of z */
    struct bytes database; /* of the commit */
};

struct reservations;

/* Sent after the first statement of a transaction that is about to write. */
#define RESERVATIONS_BEGIN "set local stampd.reservations = '[]'"

/* What the transaction of `pg` takes and gives up; `reservations_r` NULL: nothing. */
MUST_USE enum fault reservations_collect(struct arena *arena, struct pg *pg,
                                         struct reservations **reservations_r);
/* Before the transaction ends.  FAULT_AUNIQUE: a document of another namespace has a value.  FAULT_STALE:
 * it is undecided whether it has.  After a fault the transaction must not commit. */
MUST_USE enum fault reservations_take(struct reservations *reservations,
                                      const struct reservation_sessions *sessions);
/* After the transaction has ended, also if its outcome is unknown or reservations_take failed.  A
 * reservation that cannot be dropped now is checked by the next process that needs the value. */
enum reservations_end { RESERVATIONS_COMMITTED, RESERVATIONS_UNDONE };
void reservations_settle(struct reservations *reservations, const struct reservation_sessions *sessions,
                         enum reservations_end end);
/* The first value refused, in readable form: "Class name value, in database". */
const char *reservations_refused(const struct reservations *reservations);
/* The arguments of FAULT_AUNIQUE: the property, class and id of the document that would have taken the value.
 */
void reservations_refused_parts(const struct reservations *reservations, struct bytes parts_r[3]);

#endif
