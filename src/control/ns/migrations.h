/* migrations: the numbered SQL files of the package, and which of them a database has. */
#ifndef STAMPD_CONTROL_NS_MIGRATIONS_H
#define STAMPD_CONTROL_NS_MIGRATIONS_H

#include "base/bytes.h"
#include "control/control.h"

struct migration {
    int number;       /* 1 for 0001_base.sql */
    const char *name; /* "0001_base.sql" */
    const char *path;
};

/* The number of a file NNNN_name.sql; 0 when the name has another form. */
int migrations_number(const char *name);
/* The line, from 1, of the character number `position` (from 1) of a UTF-8 text. */
int migrations_line(struct bytes text, int64_t position);

/* The highest number applied to a database, 0 for one without schema; on failure reports why. */
MUST_USE bool migrations_applied(struct control *control, struct pg *pg, int *number_r);
/* Applies the missing files, each in its own transaction, one stampctl at a time, and grants the workers'
 * role its rights.  Reports what is done, and on failure why. */
MUST_USE bool migrations_apply(struct control *control, struct pg *pg, const char *database);

#endif
