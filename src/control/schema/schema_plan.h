/* schema_plan: the steps that bring a namespace's database to a schema, found by comparing the wanted schema
 * with the database.  An interrupted apply resumes by planning again. */
#ifndef STAMPD_CONTROL_SCHEMA_SCHEMA_PLAN_H
#define STAMPD_CONTROL_SCHEMA_SCHEMA_PLAN_H

#include "control/control.h"
#include "control/schema/schema_sql.h"

enum step_kind {
    STEP_LOCKED, /* one transaction that waits only briefly for locks, and is retried */
    STEP_ALONE,  /* one statement outside a transaction */
    STEP_WAIT,   /* until every transaction that began before has ended */
    STEP_FILL,   /* a side table, or a class's collections, from existing documents */
};

struct step {
    enum step_kind kind;
    const char *what;              /* for people */
    const char *sql;               /* of LOCKED and ALONE; without begin and commit */
    struct side_name side;         /* of FILL */
    const struct schema *searches; /* of LOCKED: its functions are made behind it; NULL: none */
};

struct schema_plan {
    const struct schema *applied; /* with its number */
    const struct schema *wanted;
    struct bytes building; /* fields that are not ready: "Class.Item.field …" */
    struct step *steps;
    size_t count;
    bool was_refused; /* a unique property could not be applied, and was withdrawn */
};

/* Reads the applied schema; on failure reports why. */
MUST_USE bool schema_plan_read_applied(struct control *control, struct pg *pg, struct schema_plan *plan_r);
/* Joins what the namespace `code` declares with what the modules of the settings declare; on failure reports
 * why. */
MUST_USE bool schema_plan_join_modules(struct control *control, const char *code,
                                       const struct schema *declared, const struct schema **joined_r);
/* The steps to `wanted`; none: all is applied.  On failure reports why. */
MUST_USE bool schema_plan_make(struct control *control, struct pg *pg, const struct schema *wanted,
                               struct schema_plan *plan_r);
/* Runs the steps; reports each of them, and on failure why. */
MUST_USE bool schema_plan_run(struct control *control, struct pg *pg, struct schema_plan *plan,
                              int64_t batch);

#endif
