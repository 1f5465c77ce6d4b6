/* acknowledgement: tells stampctl that this server obeys what was committed in a database (table `server` of
 * sql/0001_documents.sql), so that nobody has to guess how long that takes.
 *
 * stampctl commits, asks by a notification with a number, and waits for that number in the rows of all
 * servers.  Notifications arrive in the order of their commits: when the question arrives, the relay has
 * moved the slots of all that was committed before.  A server that was disconnected obeys when it has
 * connected and moved all slots. */
#ifndef STAMPD_SERVE_ACKNOWLEDGEMENT_H
#define STAMPD_SERVE_ACKNOWLEDGEMENT_H

#include "base/bytes.h"
#include "edge/pg/pg.h"

/* The channel of questions. */
#define ACKNOWLEDGEMENT_CHANNEL "stampd_obey"

struct acknowledgement; /* of one server */

/* For a child of the master. */
struct acknowledgement *acknowledgement_create(void) __attribute__((returns_nonnull));
void acknowledgement_destroy(struct acknowledgement *acknowledgement);

/* After LISTEN, before all slots are moved: the last question so far; -1: it cannot be read. */
int64_t acknowledgement_prepare(const struct acknowledgement *acknowledgement, struct pg *pg);
/* After all slots have been moved: from now on stampctl waits for this server. */
void acknowledgement_join(const struct acknowledgement *acknowledgement, struct pg *pg, int64_t question);
/* A question has arrived, and everything before it was obeyed. */
void acknowledgement_answer(const struct acknowledgement *acknowledgement, struct pg *pg,
                            struct bytes question);
/* The server ends: stampctl does not wait for it any more.  False: the connection is of no more use. */
MUST_USE bool acknowledgement_leave(const struct acknowledgement *acknowledgement, struct pg *pg);

#endif
