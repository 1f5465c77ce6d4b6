/* commit_part: one part of a commit (commit_table.h); for the files of src/store that have such parts.
 *
 * A commit is planned, sent and taken, each part in the order of the table:
 *   plan  decides what the commit needs, and builds its statements with all parameters;
 *   send  gives them to the connection; it is the same for all parts, and begins when all are built, since
 *         locks are held from the first statement to the end of the pipeline;
 *   take  reads the results of the part, once the commit is certain. */
#ifndef STAMPD_STORE_DOCUMENTS_COMMIT_PART_H
#define STAMPD_STORE_DOCUMENTS_COMMIT_PART_H

#include "store/statements.h"
#include "store/documents/store_commit.h"

struct commit_documents; /* of the parts absences to purge: store_commit_documents.c */

/* A statement to be sent. */
struct planned {
    struct planned *next;
    const struct pg_statement *statement;
    struct pg_params params;
};

struct commit_run {
    struct store *store;
    int ns;
    struct arena *arena;
    struct commit *commit;
    const struct schema *schema;        /* of the namespace; NULL: neither documents nor copies are written */
    struct commit_documents *documents; /* NULL: not yet read */
    struct planned **end;               /* of the statements of the part that is being planned */
};

struct commit_part {
    /* FAULT_STALE: the schema has changed. */
    enum fault (*plan)(struct commit_run *run);
    /* `results` begins with that of its first statement.  Not called if it has none; NULL: no results. */
    void (*take)(struct commit_run *run, struct pg_result *const *results);
};

#define PART(name, statements) extern const struct commit_part commit_part_##name;
#include "store/commit_table.h"
#undef PART

/* Adds a statement to the part that is being planned; the caller adds its parameters. */
struct pg_params *commit_part_add(struct commit_run *run, const struct pg_statement *statement);

#endif
