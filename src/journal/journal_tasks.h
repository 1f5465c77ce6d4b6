/* journal_tasks: the functions NEXT, KEEP, DONE and FAIL of the journal protocol: operations of external
 * workers (doc/reference/workers.md), which the server at queue_url runs.
 *
 * stamp-journal passes them on with the caller's own key and decides nothing: what a key may do is declared
 * in the namespace.  Requests are not waited for; their number is limited, of all and of one key.  What may
 * wait for a task, a NEXT and a DONE or FAIL from its end on, leaves places to the functions that end one. An
 * end for whose wait there is no place is answered without it (journal_ends.h). */
#ifndef STAMPD_JOURNAL_JOURNAL_TASKS_H
#define STAMPD_JOURNAL_JOURNAL_TASKS_H

#include "base/bytes.h"
#include "base/settings.h"
#include "edge/events.h"
#include "journal/journal_keys.h"

enum {
    JOURNAL_TASKS_MOST = 64,        /* under way */
    JOURNAL_TASKS_OF_KEY = 16,      /* of these, of one key */
    JOURNAL_TASKS_NEXT = 48,        /* of all, that may wait for a task */
    JOURNAL_TASKS_NEXT_OF_KEY = 12, /* of one key, that may wait for a task */
    JOURNAL_TASKS_TAKEN = 100,      /* by one NEXT, or one DONE or FAIL with `take`, at most */
};

struct journal_tasks;
struct journal_tasks *journal_tasks_create(struct events *events, const struct settings *settings)
    __attribute__((returns_nonnull));
void journal_tasks_destroy(struct journal_tasks *tasks); /* NULL is allowed */

/* What came of it: `error` "": `text` is the server's answer, JSON. */
typedef void journal_tasks_done(void *context, const char *error, struct bytes text);

/* Room for the tasks that one NEXT, or one DONE or FAIL with `take`, may take.  What it returns is claimed: a
 * longer answer, which is cut off, would lose tasks until their claims end, so only what fits may be taken.
 */
struct journal_tasks_room {
    size_t answer, task; /* bytes, at most */
};
struct journal_tasks_room journal_tasks_room(const struct settings *settings);

struct journal_pending; /* a request that is under way */
/* `param`: the JSON object of the operation.  `done` is called once, later, unless journal_tasks_forget is
 * called before.  NULL: the word in `error_r`. */
struct journal_pending *journal_tasks_send(struct journal_tasks *tasks, const struct journal_caller *caller,
                                           const char *key, const char *operation, struct bytes param,
                                           journal_tasks_done *done, void *context, const char **error_r);
/* The server may run it all the same.  A wait is given up; what ends a task reaches the server. */
void journal_tasks_forget(struct journal_pending *pending); /* NULL is allowed */

#endif
