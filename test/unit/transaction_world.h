/* transaction_world: a worker and another one over rows in memory and a real shared segment with a shared
 * cache, for the tests of transactions. */
#ifndef STAMPD_TEST_TRANSACTION_WORLD_H
#define STAMPD_TEST_TRANSACTION_WORLD_H

#include "document/transaction.h"
#include "fake_store.h"
#include "segment/slots.h"

#define A ((struct document_name){BYTES("Doc"), BYTES("a")})
#define B ((struct document_name){BYTES("Doc"), BYTES("b")})

extern struct settings settings;
extern struct segment *segment;
extern struct documents *documents, *others; /* of this worker, and of another */
extern struct arena *arena;
extern int ns;
extern int own_index, other_index;

int world_start(void **state);
int world_stop(void **state);

uint32_t slot_of(struct document_name name);
/* Another worker's commit: its mark, the change, the stamp, the mark gone. */
void commit_elsewhere(struct document_name name, int64_t version, const char *content);
/* The same, of a version that grows, to document A; and one that leaves A as it is. */
void change_a_elsewhere(void);
void move_slot_of_a(void);

struct transaction *begin(bool in_snapshot);
struct draft *fetch(struct transaction *transaction, struct document_name name);
int64_t fetched_version(struct transaction *transaction, struct document_name name);
/* Validates and ends. */
enum fault validate(struct transaction *transaction, int64_t *version);
int64_t newest_version(struct document_name name);

#endif
