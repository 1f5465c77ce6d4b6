/* backup_tool: runs PostgreSQL's tools, as the system user of a backup.
 *
 * PostgreSQL identifies local callers by their system user, and the folder of a backup belongs to one user.
 * So root becomes that user for each tool; any other caller must be that user. */
#ifndef STAMPD_CONTROL_BACKUP_BACKUP_TOOL_H
#define STAMPD_CONTROL_BACKUP_BACKUP_TOOL_H

#include "control/backup/backup_folder.h"

/* Runs a program and waits for it; its messages go to standard error.  A name without slash is searched in
 * the folder of PostgreSQL's tools first, then as a shell does.  `words` begin with the name and end with
 * NULL; a folder without user runs it as the caller.  False: it has failed, and that is reported. */
MUST_USE bool backup_tool_run(struct control *control, const struct backup_folder *folder,
                              const char *const *words);
/* The same; each line of its standard output goes to `take`.  `ok_r` NULL: a failure is reported; else the
 * exit status 0 or not goes there, the messages of the program are dropped, and true is returned if it ran.
 */
MUST_USE bool backup_tool_read(struct control *control, const struct backup_folder *folder,
                               const char *const *words, void (*take)(void *context, struct bytes line),
                               void *context, bool *ok_r);
/* Can the caller run tools as this user?  Reports why not. */
MUST_USE bool backup_tool_check_user(const char *user);
/* Gives a file to the user, when root runs; on failure reports why. */
MUST_USE bool backup_tool_give(const char *user, const char *path);
/* The connection string of a tool: that of the setting `database`, with the role of the backup. */
const char *backup_tool_conninfo(struct control *control, const struct backup_folder *folder);

#endif
