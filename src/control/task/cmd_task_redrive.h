/* cmd_task_redrive: `stampctl task redrive`: tasks.md, "Past tasks". */
#ifndef STAMPD_CONTROL_TASK_CMD_TASK_REDRIVE_H
#define STAMPD_CONTROL_TASK_CMD_TASK_REDRIVE_H

#include "control/control.h"

int cmd_task_redrive(struct control *control, int argc, char **argv);

#endif
