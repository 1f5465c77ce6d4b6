/* cmd_audit: the commands of stampctl in the record of administration (base/logging/audit.h). */
#ifndef STAMPD_CONTROL_CMD_AUDIT_H
#define STAMPD_CONTROL_CMD_AUDIT_H

#include "control/control.h"

/* After a command, with its exit status: records it, unless it only looks, or has not read the settings of
 * the server. */
void cmd_audit_note(const struct control *control, int status);

#endif
