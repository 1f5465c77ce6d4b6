/* scratch: a database, a segment and settings of a test's own, for programs that test on a real PostgreSQL.
 * The environment variable STAMPD_TEST_CONNINFO is a superuser's connection string (words, no URI) without
 * dbname; the settings name the workers' role. */
#ifndef STAMPD_TEST_SCRATCH_H
#define STAMPD_TEST_SCRATCH_H

#include "base/settings.h"
#include "edge/pg/pg.h"
#include "segment/segment.h"

enum { SCRATCH_PROCESSES = 64 };

struct scratch {
    struct settings settings;
    struct segment *segment;
    const char *conninfo;
    char database[64];
    int ns;
    int indexes[SCRATCH_PROCESSES]; /* of stamps' entries, taken */
    char folder[64];
    struct pg *admin; /* a session of the process that opened; not for its children */
};

/* Makes the database anew with all migrations, and the segment with entries for `processes`.  Ends the
 * process with a line on standard error when it cannot. */
void scratch_open(struct scratch *scratch, const char *database, int processes);
/* Removes all of it. */
void scratch_close(struct scratch *scratch);

/* A session of an administrator with the scratch database. */
struct pg *scratch_connect(const struct scratch *scratch);
/* Runs SQL as the administrator; ends the process when it fails. */
void scratch_run(struct pg *pg, const char *sql);
/* The number that a query gives in its first column; 0: null, or no row. */
int64_t scratch_number(struct pg *pg, const char *sql);

#endif
