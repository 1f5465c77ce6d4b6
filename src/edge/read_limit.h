/* read_limit: an end to reads of one descriptor by a library that knows a limit for each read only: who sends
 * a byte now and then would keep it for ever.  One at a time in a process; single-threaded. */
#ifndef STAMPD_EDGE_READ_LIMIT_H
#define STAMPD_EDGE_READ_LIMIT_H

#include "base/base.h"

/* After `limit_ms` nothing more can be read from the socket: a read under way ends as at the end of what was
 * sent.  Costs no system call as a rule: a timer of the process looks every now and then. */
void read_limit_begin(int fd, int64_t limit_ms);
void read_limit_end(void);

#endif
