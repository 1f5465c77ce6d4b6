/* commit_part: the statements of a part of a commit. */
#include "store/documents/commit_part.h"

struct pg_params *commit_part_add(struct commit_run *run, const struct pg_statement *statement)
{
    struct planned *planned = ARENA_ROOM(run->arena, struct planned, 1);
    planned->next = NULL;
    planned->statement = statement;
    pg_params_start(&planned->params, run->arena);
    *run->end = planned;
    run->end = &planned->next;
    return &planned->params;
}
