/* pg_tag: names sessions after the request that is traced. */
#include "edge/pg/pg.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/logging/spans.h"
#include "edge/pg/pg_private.h"

enum { TAGGED_MOST = 8 };

struct tag {
    struct pg *pg; /* NULL: it has its usual name */
};

static struct tag *tagged[TAGGED_MOST]; /* of this request; NULL: a free place */

/* The connection is closed. */
static void end_tag(void *data)
{
    for (size_t i = 0; i < TAGGED_MOST; i++)
        if (tagged[i] == data)
            tagged[i] = NULL;
    free(data);
}

/* A failure is that of the statement that follows. */
static void run_text(struct pg *pg, const char *sql)
{
    int64_t deadline_ms = pg_answer_deadline_ms(pg);
    if (!PQsendQuery(pg_connection(pg), sql)) {
        (void)pg_note_loss(pg, "trace");
        return;
    }
    while (!pg_await_result(pg, deadline_ms, "trace")) {
        PGresult *result = PQgetResult(pg_connection(pg));
        if (!result)
            return;
        PQclear(result);
    }
}

/* Without a free place, or within a transaction, which may be rolled back, the session keeps its name. */
void pg_tag(struct pg *pg)
{
    const char *context = spans_get()->context;
    struct tag *tag = pg_state(pg, PG_USE_TAG, sizeof *tag, end_tag);
    size_t place = 0;
    char sql[128];
    while (place < TAGGED_MOST && tagged[place])
        place++;
    if (tag->pg || !*context || place == TAGGED_MOST || !pg_is_usable(pg))
        return;
    tag->pg = pg;
    tagged[place] = tag;
    snprintf(sql, sizeof sql, "set application_name = 'stampd %s'", context);
    run_text(pg, sql);
}

void pg_untag_all(void)
{
    for (size_t i = 0; i < TAGGED_MOST; i++) {
        struct pg *pg = tagged[i] ? tagged[i]->pg : NULL;
        if (!pg)
            continue;
        tagged[i]->pg = NULL;
        tagged[i] = NULL;
        if (pg_is_usable(pg))
            run_text(pg, "reset application_name");
    }
}
