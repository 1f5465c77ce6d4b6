/* module_watch: the master watches application code, not the database. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_WATCH_H
#define STAMPD_OPERATION_MODULE_MODULE_WATCH_H

#include "segment/counts/metrics.h"

/* Application code runs from now on, until `deadline_ms` (monotonic); `what` names it in the log. */
void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms);
void module_watch_end(struct pulse *pulse);

#endif
