/* cmd_task_limit: `stampctl task limit`: tasks.md, "Limits of queues, operations and keys". */
#ifndef STAMPD_CONTROL_TASK_CMD_TASK_LIMIT_H
#define STAMPD_CONTROL_TASK_CMD_TASK_LIMIT_H

#include "control/task/task_session.h"

int cmd_task_limit(struct control *control, int argc, char **argv);
/* The limits, a line each. */
MUST_USE bool cmd_task_limit_print(const struct task_session *session);

#endif
