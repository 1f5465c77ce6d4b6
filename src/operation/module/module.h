/* module: applications as shared objects (stampd.h, modules.md): loaded once by the master, before it
 * forks and after it has given up root; workers inherit them.  A shared object is never loaded again nor
 * unloaded while the master lives. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_H
#define STAMPD_OPERATION_MODULE_MODULE_H

#include "base/settings.h"
#include "segment/segment.h"
#include "stampd.h"

/* How long application code may run past its limit before the master kills the worker. */
enum { MODULE_GRACE_MS = 1000 };

/* Registers the operations that are built in, loads the modules of setting `modules`, and registers their
 * classes and operations.  On failure returns
 * false with one line in `problem`. */
MUST_USE bool module_load_all(const struct settings *settings, char *problem, size_t problem_size);
/* Registers one that is already in memory; it and all it points to are borrowed permanently.  `path` is for
 * messages. */
MUST_USE bool module_add(const struct stampd_module *module, const char *path, char *problem,
                         size_t problem_size);

/* The search of that name; NULL: no module has it. */
const struct stampd_search *module_find_search(const char *name);

/* In a worker: runs the hooks of all modules.  False: one of them failed, which has been logged. */
MUST_USE bool module_start_worker(const struct settings *settings, struct segment *segment);
void module_stop_worker(void);

#endif
