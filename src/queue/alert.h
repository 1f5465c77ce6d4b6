/* alert: mails to the administrators about tasks that keep failing. */
#ifndef STAMPD_QUEUE_ALERT_H
#define STAMPD_QUEUE_ALERT_H

#include "base/bytes.h"
#include "base/settings.h"
#include "edge/http.h"

struct alert;

struct alert_cause {
    const char *ns, *task;
    struct bytes operation;           /* empty: not known */
    struct bytes code, words, detail; /* of the exception; words and detail may be NO_BYTES */
    int64_t failures;
    int64_t startat; /* of the next try; STAMP_MAX: parked; 0: not known */
};

/* NULL with one line in `problem`: the settings cannot be followed (the password's file). */
struct alert *alert_create(const struct settings *settings, char *problem, size_t problem_size);
void alert_destroy(struct alert *alert);

/* Notes a failure to be told of, once: number mail_failures of a task, or the one that parks it; `is_untold`:
 * the server says that nobody was told of it.  It is forgotten only when a mail about it was taken; should
 * this process end before, the server says so again. */
void alert_tell(struct alert *alert, const struct alert_cause *cause, bool is_untold);
/* Sends what is due, one mail at a time: of each operation of a namespace one within mail_interval_s, which
 * tells of all that has failed meanwhile; after a mail that was not taken, again, later and later. */
void alert_send_due(struct alert *alert, struct http *http);
/* The end of a mail; `told` is called with each failure that it has told of. */
void alert_end(struct alert *alert, const struct http_result *result,
               void (*told)(void *context, const struct alert_cause *cause), void *context);
/* Is a mail under way? */
bool alert_is_sending(const struct alert *alert);

struct alert_counts {
    uint64_t sent, failed; /* mails */
    size_t waiting;        /* failures to be told of */
};
struct alert_counts alert_count(const struct alert *alert);

/* The text of a mail, lines ended by CR LF: about `count` tasks of one operation, the first one in full, and
 * `more` that are not named. */
void alert_compose(struct builder *mail, const struct settings *settings, const struct alert_cause *causes,
                   size_t count, size_t more, int64_t now_ms);

#endif
