/* tasks_queues: administrators pause and limit queues and operations; each answers one member of tasks.  What
 * they set is in the database of the namespace: every manager and every external worker obeys. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_TASKS_QUEUES_H
#define STAMPD_OPERATION_ADMINISTRATION_TASKS_QUEUES_H

#include "operation/administration/tasks_inquiry.h"

MUST_USE enum fault tasks_queues_pause(const struct tasks_inquiry *inquiry);
MUST_USE enum fault tasks_queues_resume(const struct tasks_inquiry *inquiry);
MUST_USE enum fault tasks_queues_limit(const struct tasks_inquiry *inquiry);

#endif
