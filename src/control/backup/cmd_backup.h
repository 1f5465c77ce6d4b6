/* cmd_backup: the subcommands of `stampctl backup` that have files of their own. */
#ifndef STAMPD_CONTROL_BACKUP_CMD_BACKUP_H
#define STAMPD_CONTROL_BACKUP_CMD_BACKUP_H

#include "control/control.h"

int cmd_backup_check(struct control *control, int argc, char **argv);
int cmd_backup_return(struct control *control, int argc, char **argv);

#endif
