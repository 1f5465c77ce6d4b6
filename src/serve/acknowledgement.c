/* acknowledgement: a row for each server, named by its host and master, since relays overlap when one
 * succeeds another.  Written in explicit transactions, which also work in a database that `stampctl ns move`
 * has frozen. */
#include "serve/acknowledgement.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

enum { NAME_BYTES = 128 };

struct acknowledgement {
    char name[NAME_BYTES];
    struct arena *arena; /* of one statement */
};

enum { NEWEST, JOIN, ANSWER, LEAVE };
static const struct pg_statement statements[] = {
    [NEWEST] = {"newest", "select case when is_called then last_value else 0 end from stampd.question_number",
                0},
    [JOIN] = {"join",
              "insert into stampd.server as s (name, pid, started, obeys)"
              " select $1::text, a.pid, a.backend_start, $2::bigint from pg_stat_activity a"
              " where a.pid = pg_backend_pid()"
              " on conflict (name) do update set pid = excluded.pid, started = excluded.started,"
              " obeys = greatest(s.obeys, excluded.obeys)",
              2},
    [ANSWER] = {"answer",
                "update stampd.server set obeys = greatest(obeys, $2::bigint) where name = $1::text", 2},
    /* Not if its successor has made the row its own. */
    [LEAVE] = {"leave", "delete from stampd.server where name = $1::text and pid = pg_backend_pid()", 1},
};

struct acknowledgement *acknowledgement_create(void)
{
    char host[NAME_BYTES / 2] = "";
    struct acknowledgement *acknowledgement = memory_zeroed(1, sizeof *acknowledgement, "acknowledgement");
    if (gethostname(host, sizeof host - 1) != 0 || !bytes_is_utf8(bytes_of(host)))
        snprintf(host, sizeof host, "unknown");
    snprintf(acknowledgement->name, sizeof acknowledgement->name, "%s, process %ld", host, (long)getppid());
    acknowledgement->arena = arena_create("acknowledgement");
    return acknowledgement;
}

void acknowledgement_destroy(struct acknowledgement *acknowledgement)
{
    arena_destroy(acknowledgement->arena);
    free(acknowledgement);
}

int64_t acknowledgement_prepare(const struct acknowledgement *acknowledgement, struct pg *pg)
{
    struct pg_params none;
    struct pg_result *row;
    pg_params_start(&none, acknowledgement->arena);
    pg_prepare_on_use(pg, statements, COUNT_OF(statements));
    bool is_read = !pg_run(pg, &statements[NEWEST], &none, &row);
    int64_t question = is_read ? pg_get_i64(row, 0, 0) : -1;
    arena_reset(acknowledgement->arena);
    return question;
}

static bool write_row(const struct acknowledgement *acknowledgement, struct pg *pg,
                      const struct pg_statement *statement, int64_t question)
{
    struct pg_params params;
    pg_params_start(&params, acknowledgement->arena);
    pg_params_add_text(&params, bytes_of(acknowledgement->name));
    if (statement->parameters > 1)
        pg_params_add_i64(&params, question);
    if (pg_execute(pg, "begin read write") != FAULT_NONE)
        return false; /* the connection is lost: logged */
    bool is_written = !pg_run(pg, statement, &params, NULL);
    is_written = pg_execute(pg, is_written ? "commit" : "rollback") == FAULT_NONE && is_written;
    arena_reset(acknowledgement->arena);
    return is_written;
}

void acknowledgement_join(const struct acknowledgement *acknowledgement, struct pg *pg, int64_t question)
{
    if (question < 0 || !write_row(acknowledgement, pg, &statements[JOIN], question))
        log_warning("cannot write the row of this server: no command of stampctl waits until it obeys");
}

void acknowledgement_answer(const struct acknowledgement *acknowledgement, struct pg *pg,
                            struct bytes question)
{
    int64_t number;
    if (bytes_to_i64(question, &number) && !write_row(acknowledgement, pg, &statements[ANSWER], number))
        log_warning("cannot write the row of this server: commands of stampctl wait for it");
}

bool acknowledgement_leave(const struct acknowledgement *acknowledgement, struct pg *pg)
{
    return write_row(acknowledgement, pg, &statements[LEAVE], 0);
}
