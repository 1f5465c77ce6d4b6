/* archive_transform: lines of an archive passed through a command of the administrator. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_TRANSFORM_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_TRANSFORM_H

#include "base/builder.h"

/* Runs the command with /bin/sh, the lines on its standard input; what it prints replaces `lines_r`.  It may
 * return them in any order, and more or fewer.  False: it ended with another status than 0, or its output is
 * not lines, which is reported. */
MUST_USE bool archive_transform_run(const char *command, struct bytes lines, struct builder *lines_r);

#endif
