/* servers: a question to all of them, whose answers stand in the table `server` (serve/relay.c). */
#include "control/servers.h"

#include "base/clock.h"
#include "control/message.h"

enum {
    PAUSE_LEAST_MS = 2,
    PAUSE_MOST_MS = 50,
    CONNECT_MOST_MS = 5000, /* more than the longest pause of a relay between two attempts */
    ANSWER_MOST_MS = 30000,
};

static bool ask_servers(struct control *control, struct pg *pg, int64_t *question_r)
{
    struct pg_result *row;
    if (!control_query(control, pg, "asking the servers", "select stampd.servers_ask()", NULL, &row))
        return false;
    *question_r = pg_get_i64(row, 0, 0);
    return true;
}

/* Those that have not answered. */
static bool find_missing(struct control *control, struct pg *pg, int64_t question, struct pg_result **rows_r,
                         bool *is_connected_r)
{
    if (!control_query(control, pg, "waiting for the servers",
                       "select name, is_connected from stampd.servers_missing($1::bigint)",
                       PG_PARAMS(control->arena, PG_I64(question)), rows_r))
        return false;
    *is_connected_r = false;
    for (int row = 0; row < pg_rows(*rows_r); row++)
        *is_connected_r = *is_connected_r || pg_get_bool(*rows_r, row, 1);
    return true;
}

static void servers_report(const struct pg_result *rows)
{
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes name = pg_get_text(rows, row, 0);
        message_print(pg_get_bool(rows, row, 1)
                          ? "the server on %.*s does not acknowledge the change: it may serve what was before"
                          : "the server on %.*s is not connected: it is taken to be dead",
                      (int)name.size, name.data);
    }
}

bool servers_await(struct control *control, struct pg *pg)
{
    int64_t question, begun_ms = clock_monotonic_ms(), pause_ms = PAUSE_LEAST_MS;
    if (!ask_servers(control, pg, &question))
        return false;
    for (;;) {
        struct pg_result *rows;
        bool is_connected;
        if (!find_missing(control, pg, question, &rows, &is_connected))
            return false;
        if (!pg_rows(rows))
            return true;
        if (clock_monotonic_ms() - begun_ms >= (is_connected ? ANSWER_MOST_MS : CONNECT_MOST_MS)) {
            servers_report(rows);
            return !is_connected &&
                   control_execute(pg, "forgetting servers", "select stampd.servers_forget()");
        }
        clock_sleep_ms(pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MOST_MS ? pause_ms * 2 : PAUSE_MOST_MS;
    }
}
