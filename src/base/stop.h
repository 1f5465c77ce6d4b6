/* stop: signals come when they are asked for, never in the middle of work.
 *
 * All signals stay blocked for the whole life of a process and are taken from a descriptor that its loop
 * waits on: none interrupts a system call, none is lost between a check and a wait.  Each process calls
 * stop_open for itself, children too: an inherited descriptor would speak of another process's signals. */
#ifndef STAMPD_BASE_STOP_H
#define STAMPD_BASE_STOP_H

#include "base/base.h"

/* Blocks the signals, gives them back their default action (SIGPIPE is ignored), and forgets what came
 * before.  Returns a descriptor that is readable when a signal has come; it stays the module's. */
int stop_open(void);
/* The next signal that has come, 0 when there is none.  Does not wait. */
int stop_next(void);

/* What this process was asked for so far; only grows.  Takes all that has come: for children, which heed no
 * other signals.  A terminal's SIGINT reaches the whole group and is left to the master. */
enum stop {
    STOP_NOT,
    STOP_DRAIN, /* SIGTERM: take nothing new, end what has begun */
    STOP_NOW,   /* SIGQUIT: leave as soon as the present request is answered */
};
enum stop stop_asked(void);

#endif
