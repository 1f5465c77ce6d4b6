/* torture: what the processes of the torture share. */
#ifndef STAMPD_TEST_TORTURE_H
#define STAMPD_TEST_TORTURE_H

#include "base/arena.h"
#include "model/document/document.h"
#include "ledger.h"
#include "scratch.h"

/* Documents from LASTING on get new names all the time while no row ever goes: there births are fought for.
 */
enum { DOCUMENTS = LEDGER_USES, LASTING = 2 };

struct counts {
    _Atomic int64_t commits, readings, refusals, comparisons, administrations, forgotten, purged, checks,
        violations;
};

struct torture {
    struct scratch scratch;
    struct ledger *ledger;
    struct counts *counts; /* shared */
    int clients;
    int64_t seconds;
    uint64_t seed;
    bool purging;
    int64_t start_ms, end_ms;
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
    int64_t behind_ms; /* how far its clock is behind; now and then it is ahead */
    int64_t names;     /* how often they have changed; -1: none were given */
    char names_text[DOCUMENTS][24];
    struct bytes ids[DOCUMENTS];
    struct document *copies[DOCUMENTS], *old_copies[DOCUMENTS];
    int64_t known[DOCUMENTS]; /* the highest version seen: nothing less may come */
};

/* A number below `below`. */
uint64_t draw(struct actor *actor, uint64_t below);
/* Counts and prints what must not be. */
void violation(struct actor *actor, const char *format, ...) PRINTF_LIKE(2, 3);
/* Replaces a copy held; takes the reference of `document`, which may be NULL. */
void keep(struct document **copy, struct document *document);
/* Gives the documents the names of the moment; all processes agree, or nearly. */
void name_documents(struct actor *actor);
int32_t number_in_ledger(const struct actor *actor, int which);
bool goes_on(const struct actor *actor);

/* Reads, writes, creates and deletes through the store. */
void run_client(struct actor *actor);
/* Does so by the SQL functions. */
void run_administrator(struct actor *actor);
/* Purges zombies, and looks whether all is well. */
void run_keeper(struct actor *actor);

#endif
