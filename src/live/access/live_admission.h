/* live_admission: decides who listens: by the access of the namespace, then, under rules, by the account of
 * the listener.  Both are decided anew with each change. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_ADMISSION_H
#define STAMPD_LIVE_ACCESS_LIVE_ADMISSION_H

#include "live/live_audience.h"

struct live_listener;

/* --- the access --- */
/* It is known: admits the listener, or answers and frees it; ends an open stream that it forbids, or whose
 * events were judged by rules and no longer are, or the reverse. */
void live_admission_judge(struct live_listener *listener);
void live_admission_judge_all(struct live_audience *audience);
/* It cannot be read: refuses those that wait for it. */
void live_admission_refuse_unjudged(struct live_audience *audience);

/* --- the account --- */
/* It admits the listener.  If it did before, it has changed: the client reads everything. */
void live_admission_trust(struct live_listener *listener);
/* It does not, or no longer. */
void live_admission_distrust(struct live_listener *listener);

#endif
