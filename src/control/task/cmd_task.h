/* cmd_task: subcommands of `stampctl task` (tasks.md): limit, pause, resume, redrive. */
#ifndef STAMPD_CONTROL_TASK_CMD_TASK_H
#define STAMPD_CONTROL_TASK_CMD_TASK_H

#include "control/task/task_session.h"

int cmd_task_limit(struct control *control, int argc, char **argv);
/* The limits, a line each. */
MUST_USE bool cmd_task_limit_print(const struct task_session *session);
int cmd_task_pause_set(struct control *control, int argc, char **argv);
int cmd_task_pause_end(struct control *control, int argc, char **argv);
/* What is paused, a line each. */
MUST_USE bool cmd_task_pause_print(const struct task_session *session);
int cmd_task_redrive(struct control *control, int argc, char **argv);

#endif
