/* torture_keeper: the administrator, who changes documents by the SQL functions, and the keeper, who purges
 * zombies and looks at the tables. */
#include "torture.h"

#include <inttypes.h>

#include "base/clock.h"
#include "model/document/draft.h"

/* --- the administrator --------------------------------------------------------------------------- */

static const struct pg_statement administration[] = {
    {"put_item", "select stampd.put_item('Doc', $1, 'Mark', '', $2)", 2},
    {"delete_document", "select stampd.delete_document('Doc', $1)", 1},
};

void run_administrator(struct actor *actor)
{
    actor->pg = scratch_connect(&actor->torture->scratch);
    if (pg_prepare(actor->pg, administration, COUNT_OF(administration)))
        violation(actor, "the administrator's functions cannot be prepared");
    while (goes_on(actor) && pg_is_usable(actor->pg)) {
        name_documents(actor);
        int which = (int)draw(actor, DOCUMENTS);
        int deletes = (which >= LASTING || actor->torture->purging) && draw(actor, 3) == 0;
        struct pg_params params;
        struct pg_result *result;
        pg_params_start(&params, actor->arena);
        pg_params_add_text(&params, actor->ids[which]);
        if (!deletes)
            pg_params_add_text(&params, bytes_of(arena_printf(actor->arena, "[%d,%" PRIu64 "]",
                                                              actor->process, ++actor->serial)));
        enum fault fault = pg_run(actor->pg, &administration[deletes], &params, &result);
        if (fault) {
            violation(actor, "%s: %s", administration[deletes].name, pg_message(actor->pg));
        } else if (!pg_is_null(result, 0, 0)) {
            struct ledger_entry entry = {
                .version = pg_get_i64(result, 0, 0),
                .use_count = 1,
                .uses = {{number_in_ledger(actor, which), deletes ? DRAFT_DELETE : DRAFT_WRITE,
                          LEDGER_SEEN_UNKNOWN, 0}}};
            ledger_add(actor->torture->ledger, actor->process, &entry);
            actor->counts->administrations++;
        }
        arena_reset(actor->arena);
        clock_sleep_ms((int64_t)draw(actor, 10));
    }
    pg_close(actor->pg);
}

/* --- the keeper: purges, and looks whether all is well --------------------------------------------- */

static const struct {
    const char *what, *sql;
} invariants[] = {
    {"items above their header, or of a zombie",
     "select count(*) from stampd.item i left join stampd.doc d using (class, id)"
     " where d.class is null or d.ctime = 0 or i.version > d.version"},
    {"living documents whose mark is not theirs",
     "select count(*) from stampd.doc d left join stampd.item i on i.class = d.class and i.id = d.id"
     " and i.iclass = 'Mark' and i.key = '' where d.ctime <> 0 and i.version is distinct from d.version"},
    {"volumes that are not exact",
     "select count(*) from stampd.doc d where v1 <> (select coalesce(sum(octet_length(key)"
     " + octet_length(content)), 0) from stampd.item i where i.class = d.class and i.id = d.id"
     " and content is not null)"},
    {"tombstones that should be purged, or that are none",
     "select count(*) from stampd.item i join stampd.doc d using (class, id)"
     " where content is null and (i.version <= d.dtime or vop <> 0 or raw)"},
    {"headers out of bounds", "select count(*) from stampd.doc where version < ctime or dtime > version or "
                              "(ctime = 0 and dtime + v1 + v2 <> 0)"
                              " or (ctime <> 0 and dtime < ctime)"},
};

static void check_invariants(struct actor *actor)
{
    for (size_t i = 0; i < COUNT_OF(invariants); i++) {
        int64_t wrong = scratch_number(actor->pg, invariants[i].sql);
        if (wrong)
            violation(actor, "%" PRId64 " %s", wrong, invariants[i].what);
    }
    actor->counts->checks++;
}

void run_keeper(struct actor *actor)
{
    actor->pg = scratch_connect(&actor->torture->scratch);
    for (int64_t next_ms = 0; goes_on(actor);) {
        if (actor->torture->purging)
            actor->counts->purged +=
                scratch_number(actor->pg, "select stampd.purge_zombies(stampd.stamp_now(), 3)");
        if (clock_monotonic_ms() >= next_ms) {
            check_invariants(actor);
            next_ms = clock_monotonic_ms() + 50;
        }
        clock_sleep_ms(1 + (int64_t)draw(actor, 5));
    }
    check_invariants(actor);
    pg_close(actor->pg);
}
