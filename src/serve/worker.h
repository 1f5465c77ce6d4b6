/* worker: answers requests until it is signalled to stop. */
#ifndef STAMPD_SERVE_WORKER_H
#define STAMPD_SERVE_WORKER_H

#include "serve/heritage.h"

/* Returns the exit status.  All per-process state (signals, database, randomness) is opened here, after
 * fork. */
int worker_run(const struct heritage *heritage);

/* The recovery process: repairs the entry, and ends. */
int worker_recover(const struct heritage *heritage);

#endif
