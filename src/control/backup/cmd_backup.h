/* cmd_backup: the subcommands of `stampctl backup`, and what `stampctl restore` shares with them. */
#ifndef STAMPD_CONTROL_BACKUP_CMD_BACKUP_H
#define STAMPD_CONTROL_BACKUP_CMD_BACKUP_H

#include "control/backup/backup_folder.h"

int cmd_backup_init(struct control *control, int argc, char **argv);
int cmd_backup_check(struct control *control, int argc, char **argv);
int cmd_backup_return(struct control *control, int argc, char **argv);

/* "2026-11-23 03:15:00Z", for people. */
const char *cmd_backup_time(struct control *control, int64_t time_ms);

#endif
