/* lost: turns the end of a worker into a fault. */
#include "serve/lost.h"
#include "segment/counts/losses.h"
#include "operation/reply.h"

enum { STATUS_LOST = 502, STATUS_STOPPING = 503, STATUS_LATE = 504 };

static const char *outcome_of(const struct fate *fate)
{
    return fate->is_unchanged ? "Nothing was changed." : "It may or may not have been done.";
}

void lost_explain(struct call *call, struct reply *reply, const struct fate *fate)
{
    const char *detail = outcome_of(fate);
    switch (fate->cause) {
    case LOSS_CRASH:
    case LOSS_EXIT:
    case LOSS_KILLED:
        (void)reply_fault(call, reply, FAULT_XCRASH, detail, fate->in_application ? "application" : "server",
                          NULL);
        reply->fault_status = STATUS_LOST;
        break;
    case LOSS_TIME:
        (void)reply_fault(call, reply, FAULT_XTIME, detail, NULL);
        reply->fault_status = STATUS_LATE;
        break;
    case LOSS_STOP:
        (void)reply_fault(call, reply, FAULT_OSTOPPING, detail, NULL);
        reply->fault_status = STATUS_STOPPING;
        break;
    case LOSS_UNKNOWN:
    case LOSS_OUTCOME:
    case LOSS_UNRECORDED:
    default:
        (void)reply_fault(call, reply, FAULT_XUNKNOWN, detail, NULL);
        reply->fault_status = STATUS_LOST;
    }
    reply->phase = fate->is_unchanged ? PHASE_WORK : PHASE_UNKNOWN;
}
