/* write_parts: writes pieces of memory to a connection, all of them. */
#ifndef STAMPD_EDGE_WRITE_PARTS_H
#define STAMPD_EDGE_WRITE_PARTS_H

#include <sys/uio.h>

#include "base/base.h"

enum write_result {
    WRITE_DONE,
    WRITE_CLOSED, /* the peer has closed the connection */
    WRITE_STUCK,  /* it accepts no data for longer than the timeout of the connection */
};

/* Changes `parts`. */
MUST_USE enum write_result write_parts(int fd, struct iovec *parts, int count);

#endif
