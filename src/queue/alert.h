/* alert: sends mail to administrators about tasks that keep failing. */
#ifndef STAMPD_QUEUE_ALERT_H
#define STAMPD_QUEUE_ALERT_H

#include "base/builder.h"
#include "base/settings.h"
#include "edge/http.h"

struct alert;

struct alert_cause {
    const char *ns, *task;
    struct bytes operation;           /* empty: unknown */
    struct bytes code, words, detail; /* of the exception; words and detail may be NO_BYTES */
    int64_t failures;
    int64_t startat; /* of the next try; STAMP_MAX: parked; 0: unknown */
};

/* NULL with one line in `problem`: the settings cannot be applied (the password's file). */
struct alert *alert_create(const struct settings *settings, char *problem, size_t problem_size);
void alert_destroy(struct alert *alert);

/* Queues a failure for mail, once: number mail_failures of a task, or the one that parks it. `is_unreported`:
 * the server has recorded that no mail was sent about it.  The failure stays queued until a mail about it is
 * accepted; if this process ends before, the server reports it again. */
void alert_report(struct alert *alert, const struct alert_cause *cause, bool is_unreported);
/* Sends what is due, one mail at a time.  Each operation of a namespace gets one mail within mail_interval_s,
 * which covers all failures since the last.  A mail that was not accepted is retried with backoff. */
void alert_send_due(struct alert *alert, struct http *http);
/* Handles the end of a mail; calls `reported` with each failure that the mail covered. */
void alert_end(struct alert *alert, const struct http_result *result,
               void (*reported)(void *context, const struct alert_cause *cause), void *context);
/* Is a mail being sent? */
bool alert_is_sending(const struct alert *alert);

struct alert_counts {
    uint64_t sent, failed; /* mails */
    size_t waiting;        /* failures not mailed yet */
};
struct alert_counts alert_count(const struct alert *alert);

/* Writes the text of a mail, lines ended by CR LF: about `count` tasks of one operation, the first in full,
 * and `more` that are only counted. */
void alert_compose(struct builder *mail, const struct settings *settings, const struct alert_cause *causes,
                   size_t count, size_t more, int64_t now_ms);

#endif
