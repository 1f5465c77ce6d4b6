/* task_thumbnails: creates the task that finds images without thumbnails (attachments/thumbnailsweep.c): once
 * a day, after each change of the applied schema, after an import, and as long as a sweep is not over. */
#ifndef STAMPD_OPERATION_TASKS_TASK_THUMBNAILS_H
#define STAMPD_OPERATION_TASKS_TASK_THUMBNAILS_H

#include "operation/call.h"
#include "operation/worker_context.h"

/* For a scan. */
MUST_USE enum fault task_thumbnails(struct worker_context *worker_context, struct call *call, int ns);

#endif
