/* cmd_task_pause: `stampctl task pause, resume`: tasks.md, "Pauses". */
#ifndef STAMPD_CONTROL_TASK_CMD_TASK_PAUSE_H
#define STAMPD_CONTROL_TASK_CMD_TASK_PAUSE_H

#include "control/task/task_session.h"

int cmd_task_pause_set(struct control *control, int argc, char **argv);
int cmd_task_pause_end(struct control *control, int argc, char **argv);
/* What is paused, a line each. */
MUST_USE bool cmd_task_pause_print(const struct task_session *session);

#endif
