/* journal_child: a child process of stamp-journal that waits for the disk in place of the loop.
 *
 * It shares the memory of the records, and uses the disk as any process of the host does
 * (records/records_save.h): the locks are those of all, and its death is that of any process.  It has no
 * descriptor of the parent's but its end of a pair of sockets, standard error and the memory's. */
#ifndef STAMPD_JOURNAL_JOURNAL_CHILD_H
#define STAMPD_JOURNAL_JOURNAL_CHILD_H

#include <sys/types.h>

#include "records/records.h"

/* While so many that were killed have not ended, no others are started: a disk that does not answer must not
 * take all processes that the service may have. */
enum { JOURNAL_CHILDREN_KILLED_MOST = 6 };

/* Zeroed: there is none. */
struct journal_child {
    pid_t pid;
    int fd; /* the parent's end; only while there is a child */
};

struct journal_child_work {
    const char *name;                             /* of the process, for administrators: at most 15 bytes */
    int sockets;                                  /* SOCK_SEQPACKET or SOCK_STREAM */
    void (*run)(struct records *records, int fd); /* all that the child does */
};

/* False: there is none, the log says why. */
MUST_USE bool journal_child_start(struct journal_child *child, const struct journal_child_work *work,
                                  struct records *records);
/* Kills it, which is safe at any moment, and leaves it to base/process/reaper.h: it may wait for a disk that
 * does not answer. */
void journal_child_end(struct journal_child *child);

#endif
