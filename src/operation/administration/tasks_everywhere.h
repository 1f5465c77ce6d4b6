/* tasks_everywhere: the tasks of all namespaces that a filter finds, for administrators in the namespace z.
 */
#ifndef STAMPD_OPERATION_ADMINISTRATION_TASKS_EVERYWHERE_H
#define STAMPD_OPERATION_ADMINISTRATION_TASKS_EVERYWHERE_H

#include "operation/administration/tasks_inquiry.h"
#include "store/tasks/task_rows.h"

/* Writes {"tasks":[{"ns","task"}…],"more":[code…],"faults":[{"ns","code"}…],"cursor":code}: of up to 32
 * namespaces behind the member `cursor` of the wish, in the order of their codes.  Of each there are the
 * first `filter->limit` - 1 tasks; `more` has the codes of those with more, `faults` of those that could not
 * be asked.  `cursor` is there when there are more namespaces: when half of the time of the call is over,
 * too. */
MUST_USE enum fault tasks_everywhere(const struct tasks_inquiry *inquiry, const struct task_filter *filter);

#endif
