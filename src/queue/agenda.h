/* agenda: the tasks that a manager knows: which is to be run next, and when something will be due.
 *
 * It knows what scans and wake-ups have told, for a short while ahead; the databases have the rest.  A task
 * is due at its start.  In a queue the namespace that has the fewest places is next, of several in turns, a
 * request each; of those due in a namespace the one with the smallest priority goes first, then the earliest
 * start.  A queue runs as many at once as it may, a domain one.  The last free place of a queue is kept from
 * a namespace that has all the others, unless its task is quick or no other namespace ever had tasks here: so
 * a long task of one never makes the others wait for its end.  Pure: the time is an argument. */
#ifndef STAMPD_QUEUE_AGENDA_H
#define STAMPD_QUEUE_AGENDA_H

#include "base/base.h"
#include "base/bytes.h"
#include "queue/heap.h"

enum { AGENDA_QUEUES = 16, AGENDA_ID_MAX = 64, AGENDA_RESERVE = 1000 };

struct agenda;

/* What is told of a task; texts are copied. */
struct agenda_entry {
    int ns;
    struct bytes id, operation, domain; /* operation: empty when it is not known; domain: empty when none */
    int64_t start_ms;                   /* since 1970 */
    int queue, priority, retry, batch;
};

struct agenda_task {
    struct heap_link link; /* of its heap while it waits */
    int ns, queue, priority, retry, batch;
    int64_t start_ms;
    bool is_running, is_due; /* is_due: it waits in the heap of its queue */
    bool is_told_again;      /* while it ran: it waits again, from `again_ms` on */
    int64_t again_ms;
    int again_retry;
    uint64_t told;            /* its place among all that was told: the order of equal starts */
    uint32_t round;           /* of its namespace when it was last told of */
    struct agenda_task *next; /* with the same hash */
    char *operation, *domain;
    char id[AGENDA_ID_MAX + 1];
};

struct agenda_counts {
    size_t later, due, running;
};

/* `most` bounds the tasks that wait, though each namespace may always note AGENDA_RESERVE; `concurrency` has
 * a number for each queue, 0: its tasks go to the queue before it, the first queue has at least 1. */
struct agenda *agenda_create(const int concurrency[AGENDA_QUEUES], size_t most);
void agenda_destroy(struct agenda *agenda);
/* Which tasks are quick; none until then. */
void agenda_judge(struct agenda *agenda, bool (*is_quick)(void *context, const struct agenda_task *task),
                  void *context);

/* Notes a task, or the news of one; false: there is no room, a scan will find it later. */
bool agenda_put(struct agenda *agenda, const struct agenda_entry *entry);
/* Notes which tasks are due now; agenda_take does it too. */
void agenda_pass(struct agenda *agenda, int64_t now_ms);
/* The next to be run, marked as running; NULL: nothing is due, or no place is free for what is. */
struct agenda_task *agenda_take(struct agenda *agenda, int64_t now_ms);
/* How many of the due tasks of the task's queue and namespace each place of the queue has to do, one at
 * least. */
size_t agenda_share(const struct agenda *agenda, const struct agenda_task *task);
/* The next one due of the queue when it may share the request of `first`: of its namespace, each in no
 * domain, and both of one operation whose tasks share commits, or both of such as do not and never tried
 * before. */
struct agenda_task *agenda_see_along(struct agenda *agenda, const struct agenda_task *first, int64_t now_ms);
/* Starts that one.  It takes no place of its own. */
void agenda_take_along(struct agenda *agenda, struct agenda_task *task);
/* Its request has ended; `has_place`: it was not taken along; `is_over`: this start of it is known to be done
 * with.  It is forgotten, unless it was told of meanwhile, and with a later start when this one is over: a
 * scan may tell of what began after it had looked. */
void agenda_end(struct agenda *agenda, struct agenda_task *task, bool has_place, bool is_over);

/* A scan of a namespace: what waits there and was due until `until_ms` but is not told of before the end of
 * the scan has gone or was moved, and is forgotten. */
void agenda_begin_scan(struct agenda *agenda, int ns);
void agenda_end_scan(struct agenda *agenda, int ns, int64_t until_ms);
/* Forgets what waits in a namespace. */
void agenda_drop_ns(struct agenda *agenda, int ns);

/* When the next task that waits will be due; INT64_MAX: none is known. */
int64_t agenda_next_ms(const struct agenda *agenda);
struct agenda_counts agenda_count(const struct agenda *agenda);
int agenda_running(const struct agenda *agenda);
/* How many places a queue has; how many are taken. */
int agenda_places(const struct agenda *agenda, int queue, int *taken_r);
/* How many wait of a namespace. */
size_t agenda_waiting(const struct agenda *agenda, int ns);
/* Calls `visit` with each task known, in no order. */
void agenda_each(const struct agenda *agenda, void (*visit)(void *context, const struct agenda_task *task),
                 void *context);

#endif
