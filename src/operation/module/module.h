/* module: applications as shared objects (stampd.h, doc/modules.md): loaded once by the master, before it
 * forks and after it has given up root; workers inherit them.  A shared object is never loaded again nor
 * unloaded while the master lives. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_H
#define STAMPD_OPERATION_MODULE_MODULE_H

#include "base/settings.h"
#include "segment/segment.h"
#include "stampd.h"

/* Longest time that application code may go on after its limit; then the master kills the worker. */
enum { MODULE_GRACE_MS = 1000 };

/* Loads what the setting `modules` names, and adds its classes and operations.  On failure returns false with
 * one line in `problem`. */
MUST_USE bool module_load_all(const struct settings *settings, char *problem, size_t problem_size);
/* Adds one that is in memory already; it and all it points at are borrowed for good.  `path` is for words. */
MUST_USE bool module_add(const struct stampd_module *module, const char *path, char *problem,
                         size_t problem_size);

/* The search of that name; NULL: no module has one. */
const struct stampd_search *module_find_search(const char *name);

/* In a worker: the hooks of all modules.  False: one of them failed, which has been logged. */
MUST_USE bool module_start_worker(const struct settings *settings, struct segment *segment);
void module_stop_worker(void);

#endif
