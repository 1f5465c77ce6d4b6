/* take: gives tasks of a queue to an external worker (workers.md).
 * param {"qn","domain","n","wait":seconds,"claim":seconds,"worker":name} → out {"t","tasks":[{"id","op",
 * "param","starttime","retry","until",…}],"next":stamp,"pause":milliseconds}.  When nothing is due the
 * request waits (taking_wait.h). */
#include "operation/builtin/builtin.h"

#include <inttypes.h>

#include "operation/builtin/taking_wait.h"

static enum fault take_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct builder *out = attempt->reply->body;
    struct task_taking taking;
    int64_t pause;
    enum fault fault = taking_read(attempt, &reader, attempt->call->param, NULL, &taking);
    if (!fault)
        fault = taking_wait(attempt, &taking, &pause);
    if (fault)
        return fault;
    builder_printf(out, "{\"t\":%" PRId64 ",", stamp_now());
    taking_write(attempt, &taking.taken);
    taking_wait_write(attempt, &taking, pause);
    builder_add_text(out, "}");
    return FAULT_NONE;
}

const struct operation builtin_take = {.name = "take",
                                       .right = RIGHT_PUBLIC,
                                       .only_reads = true, /* no documents */
                                       .obeys_rules = true,
                                       .is_secret = true, /* a claim is not given twice */
                                       .is_for_workers = true,
                                       .work = take_work};
