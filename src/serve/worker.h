/* worker: one worker's life: answers requests until it is told to stop. */
#ifndef STAMPD_SERVE_WORKER_H
#define STAMPD_SERVE_WORKER_H

#include "serve/heritage.h"

/* Returns the status to exit with.  Everything that belongs to one process (signals, database, randomness) is
 * opened here, after fork. */
int worker_run(const struct heritage *heritage);

/* A recovery process's life: repairs the entry, and ends. */
int worker_recover(const struct heritage *heritage);

#endif
