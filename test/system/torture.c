/* torture: many processes on few documents, through document/store alone, with clocks that step back; and a
 * proof afterwards that all that was committed could have happened one operation after the other.
 *
 *     STAMPD_TEST_CONNINFO="host=… user=postgres" torture [--clients N] [--seconds S] [--seed N]
 *         [--database NAME]
 *
 * Two rounds of half the time each.  In the first no row ever goes, so that the absence of a document too has
 * its place in the proof; in the second a process purges zombies without rest.  While they run: a trigger
 * compares each version with the highest ever; no item is above its header, no zombie has items, volumes are
 * exact; what a delta gives is what a whole load gives.  Ends with 1 when anything is violated. */
#include "torture.h"

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

#include "base/clock.h"
#include "base/log.h"

enum { CLIENTS_MOST = SCRATCH_PROCESSES - 2, ENTRIES_A_SECOND = 4000, NAMES_MS = 50, LATE_MOST_MS = 60000 };

uint64_t draw(struct actor *actor, uint64_t below)
{
    actor->random ^= actor->random << 13;
    actor->random ^= actor->random >> 7;
    actor->random ^= actor->random << 17;
    return (actor->random >> 11) % below;
}

void violation(struct actor *actor, const char *format, ...)
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

void keep(struct document **copy, struct document *document)
{
    document_release(*copy);
    *copy = document;
}

int32_t number_in_ledger(const struct actor *actor, int which)
{
    return (int32_t)(which < LASTING ? which : which + actor->names * (DOCUMENTS - LASTING));
}

void name_documents(struct actor *actor)
{
    const struct torture *torture = actor->torture;
    int64_t names = torture->purging ? 0 : (clock_monotonic_ms() - torture->start_ms) / NAMES_MS;
    if (names == actor->names)
        return;
    for (int i = actor->names < 0 ? 0 : LASTING; i < DOCUMENTS; i++) {
        int size = snprintf(actor->names_text[i], sizeof actor->names_text[i], "%c%" PRId64, 'a' + i,
                            i < LASTING ? 0 : names);
        actor->ids[i] = (struct bytes){actor->names_text[i], (size_t)size};
        keep(&actor->copies[i], NULL);
        keep(&actor->old_copies[i], NULL);
        actor->known[i] = 0;
    }
    actor->names = names;
}

/* Was enough done of everything to prove something? */
static bool is_enough(const struct torture *torture)
{
    const struct counts *counts = torture->counts;
    return counts->commits >= 10 * torture->clients && counts->readings && counts->refusals &&
           counts->administrations && counts->comparisons && counts->checks > 1 &&
           (torture->purging ? counts->purged : counts->forgotten);
}

/* A slow host gets more time, within reason. */
bool goes_on(const struct actor *actor)
{
    const struct torture *torture = actor->torture;
    int64_t late_ms = clock_monotonic_ms() - torture->end_ms;
    return (late_ms < 0 || (late_ms < LATE_MOST_MS && !is_enough(torture))) &&
           !ledger_is_full(torture->ledger, actor->process);
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
        .names = -1,
        .random = (torture->seed + (uint64_t)process * 2 + torture->purging) * 0x9E3779B97F4A7C15u | 1,
    };
    run(&actor);
    arena_destroy(actor.arena);
    exit(0);
}

static void prepare_round(struct torture *torture)
{
    scratch_run(torture->scratch.admin, "truncate stampd.doc, stampd.item, stampd.high;"
                                        "update stampd.namespace set floor = 0");
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
    torture->start_ms = clock_monotonic_ms();
    torture->end_ms = torture->start_ms + torture->seconds * 500;
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
           " by functions, %" PRId64 " tombstones and %" PRId64 " zombies purged, %" PRId64
           " deltas compared, %" PRId64 " looks at the tables: %zu violations\n",
           counts->commits, counts->readings, counts->refusals, counts->administrations, counts->forgotten,
           counts->purged, counts->comparisons, counts->checks, violations);
    if (!is_enough(torture))
        printf("  too little was done to prove anything\n");
    return violations == 0 && is_enough(torture);
}

/* Compares each version with the highest that its document ever had, whatever became of the row. */
static const char *const watch =
    "create table stampd.high (class text, id text, version bigint, primary key (class, id));"
    "grant select, insert, update on stampd.high to stampd;"
    "create function stampd.watch() returns trigger language plpgsql as $$ begin"
    "  insert into stampd.high as h values (new.class, new.id, new.version)"
    "    on conflict (class, id) do update set version = excluded.version where h.version < excluded.version;"
    "  if not found then raise exception 'the version of % went back to %', new.id, new.version; end if;"
    "  return null; end $$;"
    "create trigger watch after insert or update on stampd.doc for each row execute function stampd.watch()";

static NORETURN void usage(void)
{
    fputs("usage: torture [--database NAME] [--clients N] [--seconds S] [--seed N]\n", stderr);
    exit(2);
}

static int64_t number_of(const char *text, int64_t least, int64_t most)
{
    int64_t number = 0;
    if (!text || !bytes_to_i64(bytes_of(text), &number) || number < least || number > most)
        usage();
    return number;
}

int main(int count, char **words)
{
    struct torture torture = {.clients = 14, .seconds = 10, .seed = (uint64_t)clock_wall_ms()};
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
    log_open("torture", LOG_LEVEL_WARNING, false, LOG_FORMAT_TEXT);
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
