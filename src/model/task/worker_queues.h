/* worker_queues: declarations of the queues that external workers serve (workers.md).  They are the
 * member `workers` of a namespace's configuration, an array of objects, one for each queue.
 *
 * | member  | value                                                        | absent              |
 * | ---     | ---                                                          | ---                 |
 * | qn      | number of the queue, 16 to 31; each once                     | malformed           |
 * | ops     | array of names of operations whose tasks belong to the queue | none                |
 * | roles   | array of roles whose accounts may take its tasks             | none                |
 * | key     | SHA-256 of the key of its workers, 64 hexadecimal digits     | no key is accepted  |
 * | request | who may request tasks beside the administrator: nobody,      | nobody              |
 * |         | accounts, anybody                                            |                     |
 * | claim_s | seconds that a claim lasts unless it is extended             | 60                  |
 * | retries | delays before retries (base/schedule.h), at most 200 bytes   | those of the server |
 *
 * Queues below 16 are run by the server, whatever is declared, and never those from 16 on: so a change of the
 * configuration never moves a task from one side to the other.  Pure. */
#ifndef STAMPD_MODEL_TASK_WORKER_QUEUES_H
#define STAMPD_MODEL_TASK_WORKER_QUEUES_H

#include "base/arena.h"
#include "base/bytes.h"
#include "edge/json/json.h"

enum {
    WORKER_QUEUES_FIRST = 16, /* the numbers of queues of external workers */
    WORKER_QUEUES_END = 32,
    WORKER_QUEUES_OPERATIONS = 64, /* of one queue, like the next */
    WORKER_QUEUES_ROLES = 16,
    WORKER_QUEUES_CLAIM_S = 60,
    WORKER_QUEUES_CLAIM_MOST_S = 86400,
    WORKER_QUEUES_RETRIES_BYTES = 200,
};

enum worker_requests { WORKER_REQUESTS_NOBODY, WORKER_REQUESTS_ACCOUNTS, WORKER_REQUESTS_ANYBODY };

struct worker_queue {
    int number;
    const struct json *operations, *roles; /* arrays of texts; NULL: none */
    struct bytes key;                      /* SHA-256, 64 digits in lower case; empty: none */
    enum worker_requests requests;
    int64_t claim_s;
    struct bytes retries; /* policy of base/schedule.h; NO_BYTES: the server's */
};

struct worker_queues {
    struct worker_queue queues[WORKER_QUEUES_END - WORKER_QUEUES_FIRST];
    size_t count;
};

/* Is it a queue of external workers? */
static inline bool worker_queues_is(int number)
{
    return number >= WORKER_QUEUES_FIRST;
}

/* Has it the form of a name of an operation? */
bool worker_queues_is_operation(struct bytes name);

/* False: malformed. */
MUST_USE bool worker_queues_read(struct arena *arena, const struct json *value,
                                 const struct worker_queues **queues_r);
#define WORKER_QUEUES_EXPECTED                                                                               \
    "An array of objects is expected, one for each queue: qn (16 to 31), ops, roles, key (SHA-256), "        \
    "request "                                                                                               \
    "(nobody, accounts, anybody), claim_s, retries; no operation belongs to two."

/* `queues` may be NULL in all of these.  NULL: the queue is not declared; the operation belongs to none. */
const struct worker_queue *worker_queues_find(const struct worker_queues *queues, int number);
const struct worker_queue *worker_queues_of(const struct worker_queues *queues, struct bytes operation);
/* How many operations belong to them, all together. */
size_t worker_queues_operations(const struct worker_queues *queues);
/* A bit for each queue, by its number, that has this digest of a key; that one of the roles may serve. */
uint32_t worker_queues_by_key(const struct worker_queues *queues, struct bytes digest);
uint32_t worker_queues_by_roles(const struct worker_queues *queues, const struct bytes *roles, size_t count);

#endif
