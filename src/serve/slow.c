/* slow: the sums of a request, in a line. */
#include "serve/slow.h"

#include <stdio.h>

#include "base/log.h"
#include "edge/pg/pg.h"

static int64_t ms_of(int64_t us)
{
    return us / 1000;
}

void slow_begin(void)
{
    *pg_get_waits() = (struct pg_waits){.is_on = true};
}

/* A client can send as many of them as it likes: a kind is an operation of a namespace. */
void slow_note(const struct settings *settings, const struct pulse *pulse, const struct call *call,
               struct reply *reply)
{
    const struct timing *timing = reply->timing;
    const struct pg_waits *waits = pg_get_waits();
    char ns[PULSE_NS_BYTES + 1], what[PULSE_WHAT_BYTES + 1], kind[PULSE_NS_BYTES + PULSE_WHAT_BYTES + 2];
    int64_t total_us = -timing->idle_us;
    if (call->route != CALL_OPERATION && call->route != CALL_DOCUMENT)
        return;
    reply_enter(reply, reply->phase); /* ends the last one */
    for (size_t i = 0; i < COUNT_OF(timing->us); i++)
        total_us += timing->us[i];
    if (total_us < settings->slow_ms * 1000)
        return;
    metrics_read_work(pulse, ns, what);
    snprintf(kind, sizeof kind, "%s/%s", ns, what);
    log_often(LOG_LEVEL_INFO, kind,
              "slow namespace=%s operation=%s ms=%lld before=%lld work=%lld validation=%lld afterwork=%lld "
              "sync=%lld database=%lld longest=%lld statement=%s code=%s",
              ns, what, (long long)ms_of(total_us), (long long)ms_of(timing->us[PHASE_BEFORE]),
              (long long)ms_of(timing->us[PHASE_WORK] - timing->idle_us),
              (long long)ms_of(timing->us[PHASE_VALIDATION]), (long long)ms_of(timing->us[PHASE_AFTERWORK]),
              (long long)ms_of(timing->us[PHASE_SYNC]), (long long)ms_of(waits->us),
              (long long)ms_of(waits->longest_us), *waits->longest ? waits->longest : "-",
              reply->fault ? reply_code(reply) : "done");
}
