/* read_limit: a total time limit on reads of one descriptor by a library that limits each single read only:
 * otherwise a peer that sends a byte now and then would hold it forever.  One at a time in a process;
 * single-threaded. */
#ifndef STAMPD_EDGE_READ_LIMIT_H
#define STAMPD_EDGE_READ_LIMIT_H

#include "base/base.h"

/* After `limit_ms` nothing more can be read from the socket: a read in progress returns end of file.  Usually
 * costs no system call: a timer of the process checks periodically. */
void read_limit_begin(int fd, int64_t limit_ms);
void read_limit_end(void);

#endif
