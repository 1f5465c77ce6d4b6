/* administrator: SQL of a superuser in tests, databases made and dropped, backends that are stopped.  What
 * goes wrong fails the test.  The server is that of the environment variable STAMPD_TEST_CONNINFO. */
#ifndef STAMPD_TEST_ADMINISTRATOR_H
#define STAMPD_TEST_ADMINISTRATOR_H

#include "edge/pg/pg.h"

struct pg *connect_admin(const char *database);
void tell(struct pg *pg, const char *format, ...) PRINTF_LIKE(2, 3);
/* The one number that a query gives. */
int64_t ask(struct pg *pg, const char *format, ...) PRINTF_LIKE(2, 3);
bool lives(struct pg *pg, int backend);

void make_database(const char *name); /* empty */
void drop_database(const char *name);
/* The schema as the migrations in sql/ make it. */
void migrate(struct pg *pg);
/* Lets stopped backends of the database run again: one that stays stopped holds up the whole server. */
void wake_backends(struct pg *pg);

#endif
