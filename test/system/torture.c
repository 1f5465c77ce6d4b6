/* torture: many processes on few documents, through document/store alone, with clocks that step back; and a
 * proof afterwards that all that was committed could have happened one operation after the other.
 *
 *     STAMPD_TEST_CONNINFO="host=… user=postgres" torture [--database NAME] [--clients N] [--seconds S]
 * [--seed N]
 *
 * Two rounds of half the time each.  In the first no row ever goes, so that the absence of a document too has
 * its place in the proof; in the second a process purges zombies without rest.  While they run: a trigger
 * compares each version with the highest ever; no item is above its header, no zombie has items, volumes are
 * exact; what a delta gives is what a whole load gives.  Ends with 1 when anything is violated. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "document/stamp.h"
#include "document/store.h"
#include "ledger.h"
#include "scratch.h"

enum { CLIENTS_MOST = SCRATCH_PROCESSES - 2, KEYS = 4, ENTRIES_A_SECOND = 4000 };

static const struct bytes class = BYTES("Doc");
static const struct bytes ids[LEDGER_DOCUMENTS] = {BYTES("a"), BYTES("b"), BYTES("c"), BYTES("d")};
static const struct bytes keys[KEYS] = {BYTES("k"), BYTES("l"), BYTES("m"), BYTES("n")};

struct counts {
    _Atomic int64_t commits, readings, refusals, comparisons, administrations, purged, checks, violations;
};

struct torture {
    struct scratch scratch;
    struct ledger *ledger;
    struct counts *counts; /* shared */
    int clients;
    int64_t seconds;
    uint64_t seed;
    bool purging;
    int64_t end_ms;
};

/* One process of the torture. */
struct actor {
    struct torture *torture;
    struct counts *counts;
    struct arena *arena;
    struct store *store; /* of clients */
    struct pg *pg;       /* of the administrator and the keeper */
    int process;
    uint64_t random, serial;
    int64_t step_ms; /* how far its clock is behind */
    struct document *copies[LEDGER_DOCUMENTS];
    int64_t known[LEDGER_DOCUMENTS]; /* the highest version or floor seen: nothing less may come */
};

static uint64_t draw(struct actor *actor, uint64_t below)
{
    actor->random ^= actor->random << 13;
    actor->random ^= actor->random >> 7;
    actor->random ^= actor->random << 17;
    return (actor->random >> 11) % below;
}

static void PRINTF_LIKE(2, 3) violation(struct actor *actor, const char *format, ...)
{
    va_list arguments;
    char line[400];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (actor->counts->violations++ < 10)
        printf("  VIOLATION process %d: %s\n", actor->process, line);
    fflush(stdout);
}

/* --- what a client does -------------------------------------------------------------------------- */

static void keep_copy(struct actor *actor, int which, struct document *document)
{
    document_release(actor->copies[which]);
    actor->copies[which] = document;
}

static void check_document(struct actor *actor, int which, const struct document *document)
{
    const struct header *header = &document->header;
    int64_t now = header->version ? header->version : header->floor;
    if (now < actor->known[which])
        violation(actor, "document %d went back from %" PRId64 " to %" PRId64, which, actor->known[which],
                  now);
    else
        actor->known[which] = now;
    for (uint32_t i = 0; i < document->item_count; i++)
        if (document->items[i].version > header->version)
            violation(actor, "document %d is older than its item", which);
}

/* Loads the chosen documents; now and then takes the copy held for the newest, as a stale cache would. */
static bool load_chosen(struct actor *actor, const int *chosen, int count)
{
    struct load loads[LEDGER_DOCUMENTS];
    int places[LEDGER_DOCUMENTS], wanted = 0;
    for (int i = 0; i < count; i++) {
        if (actor->copies[chosen[i]] && draw(actor, 4) == 0)
            continue;
        places[wanted] = chosen[i];
        loads[wanted++] = (struct load){
            .class = class, .id = ids[chosen[i]], .copy = draw(actor, 8) ? actor->copies[chosen[i]] : NULL};
    }
    if (!wanted)
        return true;
    enum fault fault =
        store_load_many(actor->store, actor->torture->scratch.space, actor->arena, loads, (size_t)wanted);
    if (fault) {
        violation(actor, "load: %s", fault_code(fault));
        return false;
    }
    for (int i = 0; i < wanted; i++) {
        check_document(actor, places[i], loads[i].document);
        keep_copy(actor, places[i], loads[i].document);
    }
    return true;
}

/* The singleton Mark is written by each change of a living document, so it bears the document's version. */
static void change_items(struct actor *actor, struct draft *draft)
{
    struct bytes mark = {NULL, 0};
    mark.data = arena_printf(actor->arena, "[%d,%" PRIu64 "]", actor->process, ++actor->serial);
    mark.size = strlen(mark.data);
    draft_set_item(draft, BYTES("Mark"), BYTES(""), false, mark);
    for (int key = 0; key < KEYS; key++) {
        switch (draw(actor, 4)) {
        case 0:
            draft_set_item(draft, BYTES("Item"), keys[key], draw(actor, 2), mark);
            break;
        case 1:
            draft_remove_item(draft, BYTES("Item"), keys[key]);
            break;
        }
    }
}

static void change_document(struct actor *actor, struct draft *draft)
{
    uint64_t dice = draw(actor, 100);
    if (!draft_exists(draft)) {
        if (dice < 50)
            change_items(actor, draft);
        return;
    }
    if (dice < 45)
        return; /* merely read */
    if (dice >= 80)
        draft_delete(draft);
    if (dice < 80 || dice >= 92)
        change_items(actor, draft);
}

/* The rule of versions, under a clock that may have stepped back. */
static int64_t next_version(struct actor *actor, const struct commit *commit)
{
    int64_t highest = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        const struct header *header = &document->base->header;
        if (header->version > highest)
            highest = header->version;
        if (document->act != DRAFT_READ && header->ctime == 0 && header->floor > highest)
            highest = header->floor;
    }
    if (draw(actor, 64) == 0)
        actor->step_ms = draw(actor, 2) ? 0 : 4000 + (int64_t)draw(actor, 12001);
    int64_t now = stamp_from_epoch_ms(clock_wall_ms() - actor->step_ms);
    return now > highest ? now : stamp_next(highest);
}

static void record(struct actor *actor, const int *chosen, const struct commit *commit, int64_t version)
{
    struct ledger_entry entry = {.version = version, .use_count = (int32_t)commit->count};
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        entry.uses[i] = (struct ledger_use){.document = chosen[i],
                                            .act = (int32_t)document->act,
                                            .seen = document->base->header.version,
                                            .floor = document->base->header.floor};
    }
    ledger_add(actor->torture->ledger, actor->process, &entry);
}

static void drop_moved(struct actor *actor, const int *chosen, const struct commit *commit)
{
    size_t moved = 0;
    for (size_t i = 0; i < commit->count; i++)
        if (commit->documents[i].moved) {
            keep_copy(actor, chosen[i], NULL);
            moved++;
        }
    if (!moved)
        violation(actor, "refused, but no document has moved");
    actor->counts->refusals++;
}

static void validate_reading(struct actor *actor, const int *chosen, struct commit *commit)
{
    enum fault fault = store_verify(actor->store, actor->torture->scratch.space, actor->arena, commit);
    if (fault == FAULT_STALE) {
        drop_moved(actor, chosen, commit);
    } else if (fault) {
        violation(actor, "verify: %s", fault_code(fault));
    } else {
        record(actor, chosen, commit, 0);
        actor->counts->readings++;
    }
}

static void commit_changes(struct actor *actor, const int *chosen, struct commit *commit,
                           struct draft *const *drafts)
{
    int space = actor->torture->scratch.space;
    commit->version = next_version(actor, commit);
    int64_t horizon = stamp_add_ms(commit->version, -(int64_t)draw(actor, 4000));
    for (size_t i = 0; i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ)
            draft_seal(drafts[i], commit->version, horizon, &commit->documents[i].rows);
    enum fault fault = store_connect(actor->store, space);
    if (fault) {
        violation(actor, "connect: %s", fault_code(fault));
        return;
    }
    switch (store_commit(actor->store, space, actor->arena, commit, &fault)) {
    case COMMIT_DONE:
        record(actor, chosen, commit, commit->version);
        actor->counts->commits++;
        for (size_t i = 0; i < commit->count; i++)
            if (commit->documents[i].act != DRAFT_READ) {
                keep_copy(actor, chosen[i], draft_snapshot(drafts[i], &commit->documents[i].rows));
                check_document(actor, chosen[i], actor->copies[chosen[i]]);
            }
        break;
    case COMMIT_REFUSED:
        if (fault == FAULT_STALE) {
            drop_moved(actor, chosen, commit);
            break;
        } /* fall through */
    default:
        violation(actor, "commit: %s", fault_code(fault));
    }
}

/* A random half of the documents in random order. */
static int choose(struct actor *actor, int chosen[LEDGER_DOCUMENTS])
{
    int count = 0;
    for (int i = 0; i < LEDGER_DOCUMENTS; i++)
        if (draw(actor, 2))
            chosen[count++] = i;
    if (!count)
        chosen[count++] = (int)draw(actor, LEDGER_DOCUMENTS);
    for (int i = count - 1; i > 0; i--) {
        int k = (int)draw(actor, (uint64_t)i + 1), swap = chosen[i];
        chosen[i] = chosen[k];
        chosen[k] = swap;
    }
    return count;
}

static void run_operation(struct actor *actor)
{
    int chosen[LEDGER_DOCUMENTS], count = choose(actor, chosen);
    if (!load_chosen(actor, chosen, count))
        return;
    struct commit_document documents[LEDGER_DOCUMENTS];
    struct commit commit = {.documents = documents, .count = (size_t)count};
    struct draft *drafts[LEDGER_DOCUMENTS];
    bool changed = false;
    for (int i = 0; i < count; i++) {
        drafts[i] = draft_open(actor->arena, actor->copies[chosen[i]]);
        change_document(actor, drafts[i]);
        documents[i] =
            (struct commit_document){.base = actor->copies[chosen[i]], .act = draft_act(drafts[i])};
        changed |= documents[i].act != DRAFT_READ;
    }
    if (changed)
        commit_changes(actor, chosen, &commit, drafts);
    else
        validate_reading(actor, chosen, &commit);
}

static bool is_known(const struct document *document, const struct item *item)
{
    return !item_is_tombstone(item) || item->version > document->header.dtime;
}

/* Do both hold the same header and items?  Tombstones that need not be remembered may be there or not. */
static bool is_same(const struct document *a, const struct document *b)
{
    if (a->header.version != b->header.version || a->header.ctime != b->header.ctime ||
        a->header.dtime != b->header.dtime || a->header.v1 != b->header.v1)
        return false;
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->item_count && !is_known(a, &a->items[i]))
            i++;
        while (k < b->item_count && !is_known(b, &b->items[k]))
            k++;
        if (i == a->item_count || k == b->item_count)
            return i == a->item_count && k == b->item_count;
        const struct item *one = &a->items[i++], *other = &b->items[k++];
        if (item_compare(one->iclass, one->key, other->iclass, other->key) != 0 ||
            one->version != other->version || one->vop != other->vop || one->raw != other->raw ||
            item_is_tombstone(one) != item_is_tombstone(other) || !bytes_equal(one->content, other->content))
            return false;
    }
}

/* In one snapshot: what the copy becomes by its delta, and the whole. */
static void compare_delta(struct actor *actor)
{
    int space = actor->torture->scratch.space, which = (int)draw(actor, LEDGER_DOCUMENTS);
    struct load delta = {.class = class, .id = ids[which], .copy = actor->copies[which]};
    struct load whole = {.class = class, .id = ids[which]};
    enum fault fault = store_snapshot_begin(actor->store, space);
    if (!fault)
        fault = store_load(actor->store, space, actor->arena, &delta);
    if (!fault)
        fault = store_load(actor->store, space, actor->arena, &whole);
    store_snapshot_end(actor->store, space);
    if (fault)
        violation(actor, "snapshot: %s", fault_code(fault));
    else if (!is_same(delta.document, whole.document))
        violation(actor, "document %d: its delta is not the whole:\n%.*s\n%.*s", which,
                  (int)delta.document->json.size, delta.document->json.data, (int)whole.document->json.size,
                  whole.document->json.data);
    actor->counts->comparisons++;
    document_release(delta.document);
    document_release(whole.document);
}

static bool goes_on(const struct actor *actor)
{
    return clock_monotonic_ms() < actor->torture->end_ms &&
           !ledger_is_full(actor->torture->ledger, actor->process);
}

static void run_client(struct actor *actor)
{
    struct scratch *scratch = &actor->torture->scratch;
    stamps_become(scratch->stamps, scratch->indexes[actor->process]);
    actor->store = store_create(&scratch->settings, scratch->stamps);
    while (goes_on(actor)) {
        if (draw(actor, 32) == 0)
            compare_delta(actor);
        else
            run_operation(actor);
        arena_reset(actor->arena);
    }
    for (int i = 0; i < LEDGER_DOCUMENTS; i++)
        keep_copy(actor, i, NULL);
    store_destroy(actor->store);
}

/* --- the administrator --------------------------------------------------------------------------- */

static const struct pg_statement administration[] = {
    {"put_item", "select stampd.put_item('Doc', $1, 'Mark', '', $2)", 2},
    {"delete_document", "select stampd.delete_document('Doc', $1)", 1},
};

static void run_administrator(struct actor *actor)
{
    actor->pg = scratch_connect(&actor->torture->scratch);
    if (pg_prepare(actor->pg, administration, COUNT_OF(administration)))
        violation(actor, "the administrator's functions cannot be prepared");
    while (goes_on(actor) && pg_is_usable(actor->pg)) {
        int which = (int)draw(actor, LEDGER_DOCUMENTS), deletes = draw(actor, 3) == 0;
        struct pg_params params;
        struct pg_result *result;
        pg_params_start(&params, actor->arena);
        pg_add_text(&params, ids[which]);
        if (!deletes)
            pg_add_text(&params, bytes_of(arena_printf(actor->arena, "[%d,%" PRIu64 "]", actor->process,
                                                       ++actor->serial)));
        enum fault fault = pg_run(actor->pg, &administration[deletes], &params, &result);
        if (fault) {
            violation(actor, "%s: %s", administration[deletes].name, pg_message(actor->pg));
        } else if (!pg_is_null(result, 0, 0)) {
            struct ledger_entry entry = {
                .version = pg_get_i64(result, 0, 0),
                .use_count = 1,
                .uses = {{which, deletes ? DRAFT_DELETE : DRAFT_WRITE, LEDGER_SEEN_UNKNOWN, 0}}};
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

static void run_keeper(struct actor *actor)
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

/* --- rounds -------------------------------------------------------------------------------------- */

static pid_t start(struct torture *torture, int process, void (*run)(struct actor *actor))
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct actor actor = {
        .torture = torture,
        .counts = torture->counts,
        .arena = arena_create("torture"),
        .process = process,
        .random = (torture->seed + (uint64_t)process * 2 + torture->purging) * 0x9E3779B97F4A7C15u | 1,
    };
    run(&actor);
    arena_destroy(actor.arena);
    exit(0);
}

static void prepare_round(struct torture *torture)
{
    scratch_run(torture->scratch.admin, "truncate stampd.doc, stampd.item, stampd.high;"
                                        "update stampd.space set floor = 0");
    ledger_clear(torture->ledger);
    memset(torture->counts, 0, sizeof *torture->counts);
}

static int64_t count_deadlocks(struct torture *torture)
{
    return scratch_number(torture->scratch.admin,
                          "select deadlocks from pg_stat_database where datname = current_database()");
}

static bool run_round(struct torture *torture, bool purging)
{
    struct counts *counts = torture->counts;
    int64_t deadlocks = count_deadlocks(torture);
    prepare_round(torture);
    torture->purging = purging;
    torture->end_ms = clock_monotonic_ms() + torture->seconds * 500;
    printf("%s:\n", purging ? "zombies purged all the time" : "no row ever goes");
    fflush(stdout);
    pid_t pids[SCRATCH_PROCESSES];
    int started = 0;
    for (; started < torture->clients; started++)
        pids[started] = start(torture, started, run_client);
    pids[started] = start(torture, started, run_administrator);
    started++;
    pids[started] = start(torture, started, run_keeper);
    started++;
    for (int i = 0; i < started; i++) {
        int status;
        if (waitpid(pids[i], &status, 0) < 0 || status != 0) {
            printf("  VIOLATION process %d ended with status %d\n", i, status);
            counts->violations++;
        }
    }
    deadlocks = count_deadlocks(torture) - deadlocks;
    if (deadlocks)
        printf("  VIOLATION the order of locks: %" PRId64 " deadlocks\n", deadlocks);
    size_t violations =
        (size_t)counts->violations + (size_t)deadlocks + ledger_judge(torture->ledger, purging);
    printf("  %" PRId64 " commits, %" PRId64 " readings, %" PRId64 " refusals, %" PRId64
           " by functions, %" PRId64 " zombies purged, %" PRId64 " deltas compared, %" PRId64
           " looks at the tables: %zu violations\n",
           counts->commits, counts->readings, counts->refusals, counts->administrations, counts->purged,
           counts->comparisons, counts->checks, violations);
    bool is_idle = counts->commits < torture->clients || !counts->readings || !counts->refusals ||
                   !counts->administrations || !counts->comparisons || (purging && !counts->purged);
    if (is_idle)
        printf("  too little was done to prove anything\n");
    return violations == 0 && !is_idle;
}

/* Compares each version with the highest that its document ever had, whatever became of the row. */
static const char *const watch =
    "create table stampd.high (class text, id text, version bigint, primary key (class, id));"
    "create function stampd.watch() returns trigger language plpgsql as $$ begin"
    "  insert into stampd.high as h values (new.class, new.id, new.version)"
    "    on conflict (class, id) do update set version = excluded.version where h.version < excluded.version;"
    "  if not found then raise exception 'the version of % went back to %', new.id, new.version; end if;"
    "  return new; end $$;"
    "create trigger watch before insert or update on stampd.doc for each row execute function stampd.watch()";

static void usage(void)
{
    fputs("usage: torture [--database NAME] [--clients N] [--seconds S] [--seed N]\n", stderr);
    exit(2);
}

static int64_t number_of(const char *text, int64_t least, int64_t most)
{
    int64_t number;
    if (!text || !bytes_to_i64(bytes_of(text), &number) || number < least || number > most)
        usage();
    return number;
}

int main(int count, char **words)
{
    struct torture torture = {.clients = 8, .seconds = 10, .seed = (uint64_t)clock_wall_ms()};
    const char *database = "stampd_torture";
    for (int i = 1; i < count; i += 2) {
        const char *value = i + 1 < count ? words[i + 1] : NULL;
        if (strcmp(words[i], "--database") == 0 && value)
            database = value;
        else if (strcmp(words[i], "--clients") == 0)
            torture.clients = (int)number_of(value, 2, CLIENTS_MOST);
        else if (strcmp(words[i], "--seconds") == 0)
            torture.seconds = number_of(value, 1, 3600);
        else if (strcmp(words[i], "--seed") == 0)
            torture.seed = (uint64_t)number_of(value, 0, INT64_MAX);
        else
            usage();
    }
    log_open("torture", LOG_LEVEL_WARNING, false);
    printf("%d clients, seed %" PRIu64 "\n", torture.clients, torture.seed);
    fflush(stdout);
    scratch_open(&torture.scratch, database, torture.clients);
    scratch_run(torture.scratch.admin, watch);
    scratch_run(torture.scratch.admin,
                "do $$ begin execute format('alter database %I set synchronous_commit = off',"
                " current_database()); end $$");
    torture.ledger = ledger_create(torture.clients + 2, (size_t)torture.seconds * ENTRIES_A_SECOND);
    torture.counts =
        mmap(NULL, sizeof *torture.counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (torture.counts == MAP_FAILED)
        abort();
    bool all_well = run_round(&torture, false);
    all_well &= run_round(&torture, true);
    ledger_destroy(torture.ledger);
    scratch_close(&torture.scratch);
    printf("%s\n", all_well ? "all well" : "VIOLATED");
    return all_well ? 0 : 1;
}
