/* hints: the datagram socket on which workers tell of tasks that start soon. */
#ifndef STAMPD_QUEUE_HINTS_H
#define STAMPD_QUEUE_HINTS_H

#include "base/bytes.h"

struct hints;

/* Makes the socket.  What a dead process left at the path is replaced; when a living one has it, or it cannot
 * be made, NULL with one line in `problem`. */
struct hints *hints_open(const char *path, char *problem, size_t problem_size);
void hints_close(struct hints *hints); /* NULL is allowed */
int hints_descriptor(const struct hints *hints);
/* The next that has come, until the next call; false: none. */
bool hints_next(struct hints *hints, struct bytes *hint_r);

#endif
