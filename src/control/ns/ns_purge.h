/* ns_purge: deletes what is too old in the database of a namespace, as the keeper does, or counts it. */
#ifndef STAMPD_CONTROL_NS_NS_PURGE_H
#define STAMPD_CONTROL_NS_NS_PURGE_H

#include "control/control.h"

/* Expired documents; departures and deletions older than `days` where the class has no zombieDays; expired
 * subscriptions.  Each on failure reports why. */
MUST_USE bool ns_purge_run(struct control *control, struct pg *pg, const char *code, int64_t days);
/* Prints how many there are, by class, and changes nothing. */
MUST_USE bool ns_purge_count(struct control *control, struct pg *pg, const char *code, int64_t days);

#endif
