/* alert: mails to the administrators about tasks that keep failing. */
#ifndef STAMPD_QUEUE_ALERT_H
#define STAMPD_QUEUE_ALERT_H

#include "base/bytes.h"
#include "base/settings.h"
#include "edge/http.h"

struct alert;

struct alert_cause {
    const char *space, *task;
    struct bytes operation;           /* empty: not known */
    struct bytes code, words, detail; /* of the exception; words and detail may be NO_BYTES */
    int64_t failures;
    int64_t startat; /* of the next try; STAMP_MAX: parked */
};

/* NULL with one line in `problem`: the settings cannot be followed (the password's file). */
struct alert *alert_create(const struct settings *settings, char *problem, size_t problem_size);
void alert_destroy(struct alert *alert);

/* Sends a mail when this failure is one to be told of: number mail_failures of a task, or the one that parks
 * it; of each operation one within mail_interval_s, the others are counted in the next. */
void alert_tell(struct alert *alert, struct http *http, const struct alert_cause *cause);
/* The end of a mail. */
void alert_end(struct alert *alert, const struct http_result *result);
/* Mails under way. */
int alert_pending(const struct alert *alert);

/* The text of a mail, lines ended by CR LF. */
void alert_compose(struct builder *mail, const struct settings *settings, const struct alert_cause *cause,
                   int64_t untold, int64_t now_ms);

#endif
