/* agenda: a manager's known tasks: which runs next, and when the next is due.
 *
 * It holds the results of scans and wake-ups for a short while ahead; the databases hold the rest.  A task is
 * due at its start.  In a queue, the namespace that occupies the fewest places is next; ties are served round
 * robin, one request each.  In a namespace, the due task with the smallest priority goes first, then the
 * earliest start.  A queue runs as many tasks at once as it has places, a domain one.  The last free place of
 * a queue is withheld from a namespace that occupies all others, unless its task is quick or no other
 * namespace ever had tasks here: so the long tasks of one namespace never block the others.  Pure: the time
 * is an argument. */
#ifndef STAMPD_QUEUE_AGENDA_H
#define STAMPD_QUEUE_AGENDA_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/heap.h"

enum { AGENDA_QUEUES = 16, AGENDA_ID_MAX = 64, AGENDA_RESERVE = 1000 };

struct agenda;

/* A task as received; texts are copied. */
struct agenda_entry {
    int ns;
    struct bytes id, operation, domain; /* operation: empty if unknown; domain: empty if none */
    int64_t start_ms;                   /* since 1970 */
    int queue, priority, retry, batch;
};

struct agenda_task {
    struct heap_link link; /* in its heap while it waits */
    int ns, queue, priority, retry, batch;
    int64_t start_ms;
    bool is_running, is_due; /* is_due: it waits in the heap of its queue */
    bool is_received_again;  /* received again while it ran: it waits again, from `again_ms` on */
    bool has_followers;      /* while it ran, tasks of its domain were dropped, or may have been made */
    int64_t again_ms;
    int again_retry;
    uint64_t sequence;        /* its sequence number: the order of equal starts */
    uint32_t round;           /* of its namespace when it was last received */
    struct agenda_task *next; /* with the same hash */
    char *operation, *domain;
    char id[AGENDA_ID_MAX + 1];
};

struct agenda_counts {
    size_t later, due, running;
};

/* `most` bounds the waiting tasks, but each namespace may always have AGENDA_RESERVE.  `concurrency` is the
 * number of slots of each queue; 0: its tasks go to the queue before it; the first queue has at least 1. */
struct agenda *agenda_create(const int concurrency[AGENDA_QUEUES], size_t most);
void agenda_destroy(struct agenda *agenda);
/* Sets the function that decides which tasks are quick; until then, none is. */
void agenda_judge(struct agenda *agenda, bool (*is_quick)(void *context, const struct agenda_task *task),
                  void *context);

/* Tasks of the namespace were made that only a scan can find.  It will leave out the domains whose tasks run,
 * so these have followers: their commits may have looked for the next before. */
void agenda_doubt(struct agenda *agenda, int ns);
/* A row of a scan: has nobody started the task, although it was due long ago, its queue has a free place, and
 * no other task of its domain runs?  Then neither a wake-up nor an answer has brought it. */
bool agenda_is_overlooked(const struct agenda *agenda, const struct agenda_entry *entry, int64_t now_ms);
/* Adds or updates a task; false: there is no room, a scan will find it later. */
bool agenda_put(struct agenda *agenda, const struct agenda_entry *entry);
/* Moves tasks that are due by now to their queues; agenda_take does so too. */
void agenda_pass(struct agenda *agenda, int64_t now_ms);
/* The next task to run, marked as running; NULL: no task is due, or none that is due has a free place.  A due
 * task whose domain runs another one is dropped, however many there are, since only the server knows which of
 * them is next: it says so with the end of the running task, which has_followers.  If it does not, a scan
 * must find the next, or the domain stands still. */
struct agenda_task *agenda_take(struct agenda *agenda, int64_t now_ms);
/* The number of due tasks of the task's queue and namespace for each place of the queue, at least one. */
size_t agenda_share(const struct agenda *agenda, const struct agenda_task *task);
/* The queue's next due task if it may share the request of `first`: same namespace, neither in a domain, and
 * either both of one operation whose tasks share commits, or both of operations whose tasks do not, and never
 * tried before. */
struct agenda_task *agenda_see_along(struct agenda *agenda, const struct agenda_task *first, int64_t now_ms);
/* Starts that task; it takes no place of its own. */
void agenda_take_along(struct agenda *agenda, struct agenda_task *task);
/* The task's request has ended.  `has_slot`: it was not taken along; `is_over`: this start is known to be
 * finished.  The task is dropped unless it was received again meanwhile; if this start is over, only with a
 * later start, since a scan may return a task that started after the scan's snapshot. */
void agenda_end(struct agenda *agenda, struct agenda_task *task, bool has_slot, bool is_over);

/* A scan of a namespace.  A task that waits there and was due until `until_ms`, but is not received before
 * the end of the scan, has gone or was moved, and is dropped. */
void agenda_begin_scan(struct agenda *agenda, int ns);
void agenda_end_scan(struct agenda *agenda, int ns, int64_t until_ms);
/* Drops the waiting tasks of a namespace. */
void agenda_drop_ns(struct agenda *agenda, int ns);

/* When the next waiting task is due; INT64_MAX: none is known. */
int64_t agenda_next_ms(const struct agenda *agenda);
struct agenda_counts agenda_count(const struct agenda *agenda);
int agenda_running(const struct agenda *agenda);
/* The number of slots of a queue, and of those taken. */
int agenda_slots(const struct agenda *agenda, int queue, int *taken_r);
/* The number of waiting tasks of a namespace. */
size_t agenda_waiting(const struct agenda *agenda, int ns);
/* Calls `visit` with each known task, in no particular order. */
void agenda_each(const struct agenda *agenda, void (*visit)(void *context, const struct agenda_task *task),
                 void *context);

#endif
