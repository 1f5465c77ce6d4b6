/* pg_translation: values that the database stores in another form than the program uses.  A connection passes
 * the parameters of its prepared statements, and those of pg_async, through functions of its owner before
 * they are sent, and the rows after they have arrived; so callers see one form only.  Not the rows of a COPY,
 * nor texts of errors. */
#ifndef STAMPD_EDGE_PG_PG_TRANSLATION_H
#define STAMPD_EDGE_PG_PG_TRANSLATION_H

#include "edge/pg/pg.h"

struct pg_translation {
    const void *context; /* outlives the connection */
    /* The parameters to be sent; `params` themselves when there is nothing to change, else others in their
     * arena. */
    const struct pg_params *(*send)(const void *context, const struct pg_statement *statement,
                                    const struct pg_params *params);
    /* Changes rows by pg_translation_set.  `params`: as they were before `send`.  A fault is that of the
     * statement; nothing is undone. */
    enum fault (*receive)(const void *context, const struct pg_statement *statement,
                          const struct pg_params *params, struct pg_result *rows);
};

/* For what is sent from now on; the struct outlives the connection. */
void pg_translation_use(struct pg *pg, const struct pg_translation *translation);
/* Replaces the text in a row; copied. */
void pg_translation_set(struct pg_result *rows, int row, int column, struct bytes text);

#endif
