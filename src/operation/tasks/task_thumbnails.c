/* task_thumbnails: the database decides, since the schema that this process has cached may be an older one.
 */
#include "operation/tasks/task_thumbnails.h"

#include "model/document/thumbnails.h"
#include "operation/tasks/task_request.h"
#include "store/blobs/store_thumbnails.h"

enum { WAITING_MOST = 100 /* while so many documents wait for thumbnails, no more are looked for */ };

enum fault task_thumbnails(struct worker_context *worker_context, struct call *call, int ns)
{
    bool is_due = false;
    enum fault fault = store_thumbnails_due(documents_store(worker_context->documents), ns, call->arena,
                                            WAITING_MOST, &is_due);
    return fault || !is_due ? fault : task_request_own(worker_context, call, ns, BYTES(THUMBNAILS_SWEEP));
}
