/* subprocess: starts another program, or a function in a process of its own, with pipes to it and from it. */
#ifndef STAMPD_BASE_PROCESS_SUBPROCESS_H
#define STAMPD_BASE_PROCESS_SUBPROCESS_H

#include <sys/types.h>

#include "base/builder.h"

struct subprocess_work {
    const char *const *words;        /* of the program, NULL behind the last; searched in PATH */
    int (*run)(const void *context); /* instead of a program: its value is the status of the process */
    const void *context;
    const char *const *environment; /* of the program; NULL: ours */
    const char *user;               /* root becomes this system user for it; NULL: it runs as we do */
    bool has_in, has_out;           /* pipes to standard input, from standard output; else these stay ours */
    bool has_no_in, has_no_errors;  /* standard input, standard error are /dev/null */
    bool has_errors_in_out;         /* standard error goes where standard output goes */
    bool has_out_in_errors;         /* the other way round, without a pipe */
    bool is_bound;                  /* it is ended by SIGTERM when the thread that has started it ends */
};

struct subprocess {
    pid_t pid;
    int in, out; /* our ends of the pipes; -1: there is none */
};

/* The status of a program that cannot be executed (126: its user cannot be changed), and what is added to the
 * signal that has ended one. */
enum { SUBPROCESS_NOT_RUN = 127, SUBPROCESS_SIGNAL = 128 };

/* Standard output and error are flushed before.  Its signals are not blocked, and SIGPIPE ends it.  False:
 * it could not be started, see errno, and there is nothing to close. */
MUST_USE bool subprocess_start(const struct subprocess_work *work, struct subprocess *child_r);
/* Closes one of the ends, if it is open. */
void subprocess_close(int *end);
/* All that it still writes, up to `most` bytes; false: there is more, or it could not be read (errno). */
MUST_USE bool subprocess_read(struct subprocess *child, size_t most, struct builder *output);
/* Closes both ends and waits.  Its status as a shell has it: that of its exit, or 128 and the signal. */
int subprocess_end(struct subprocess *child);
/* Starts a program without pipes and waits for it; -1: it could not be started, see errno. */
int subprocess_run(const struct subprocess_work *work);

#endif
