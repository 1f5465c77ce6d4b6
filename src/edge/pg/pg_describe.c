/* pg_describe: prepares the unnamed statement, and asks for its description. */
#include "edge/pg/pg_describe.h"

#include <string.h>

#include "edge/pg/pg_private.h"

static void read_description(struct arena *arena, const PGresult *result, struct pg_description *description)
{
    description->parameters = PQnparams(result);
    description->columns = PQnfields(result);
    description->column = ARENA_ARRAY(arena, struct pg_column, (size_t)description->columns);
    for (int i = 0; i < description->columns; i++) {
        const char *name = PQfname(result, i);
        description->column[i] =
            (struct pg_column){bytes_of(arena_copy(arena, name, strlen(name))), PQftype(result, i)};
    }
}

enum fault pg_describe(struct pg *pg, struct arena *arena, const char *sql, const uint32_t *types, int count,
                       struct pg_description *description_r)
{
    Oid oids[PG_PARAMETERS_MAX];
    assert(!pg_is_busy(pg) && count <= PG_PARAMETERS_MAX);
    *description_r = (struct pg_description){0};
    pg_clear_error(pg);
    for (int i = 0; i < count; i++)
        oids[i] = types[i];
    if (!pg_is_connected(pg) || !PQsendPrepare(pg_connection(pg), "", sql, count, oids))
        return pg_note_loss(pg, "prepare");
    enum fault fault = pg_finish(pg, PGRES_COMMAND_OK, "prepare");
    if (fault)
        return fault;
    PGresult *result;
    if (!PQsendDescribePrepared(pg_connection(pg), ""))
        return pg_note_loss(pg, "describe");
    fault = pg_collect(pg, PGRES_COMMAND_OK, "describe", &result);
    if (!fault && !result)
        fault = pg_note_loss(pg, "describe");
    if (!fault)
        read_description(arena, result, description_r);
    PQclear(result);
    return fault;
}
