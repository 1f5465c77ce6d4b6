/* pg_translation: kept with the connection; none costs a comparison. */
#include "edge/pg/pg_translation.h"

#include <stdlib.h>

#include "base/log.h"
#include "edge/pg/pg_private.h"

struct translating {
    const struct pg_translation *translation; /* NULL: none */
};

static struct translating *translating_of(struct pg *pg)
{
    return pg_state(pg, PG_USE_TRANSLATION, sizeof(struct translating), free);
}

void pg_translation_use(struct pg *pg, const struct pg_translation *translation)
{
    translating_of(pg)->translation = translation;
}

bool pg_is_translated(struct pg *pg)
{
    return translating_of(pg)->translation != NULL;
}

const struct pg_params *pg_translate_params(struct pg *pg, const struct pg_statement *statement,
                                            const struct pg_params *params)
{
    const struct pg_translation *translation = translating_of(pg)->translation;
    return translation ? translation->send(translation->context, statement, params) : params;
}

enum fault pg_translate_rows(struct pg *pg, const struct pg_statement *statement,
                             const struct pg_params *params, struct pg_result *rows)
{
    const struct pg_translation *translation = translating_of(pg)->translation;
    return translation && rows ? translation->receive(translation->context, statement, params, rows)
                               : FAULT_NONE;
}

void pg_translation_set(struct pg_result *rows, int row, int column, struct bytes text)
{
    char *value = (char *)(uintptr_t)text.data; /* libpq copies it */
    if (!PQsetvalue((PGresult *)rows, row, column, value, (int)text.size))
        log_fatal("out of memory rows");
}
