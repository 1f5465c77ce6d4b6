/* builtin: the generic operations (protocol.md), a namespace's first tools. */
#ifndef STAMPD_OPERATION_BUILTIN_H
#define STAMPD_OPERATION_BUILTIN_H

#include "operation/attempt.h"

/* Adds them to the registry; module_load_all does so first. */
void builtin_register(void);

/* Indexed by enum resource_act; they cannot be called by name. */
extern const struct operation builtin_resource[];
extern const struct operation builtin_changemany, builtin_collection, builtin_copy, builtin_explain,
    builtin_find, builtin_get, builtin_list, builtin_put, builtin_search, builtin_subs, builtin_sync;
extern const struct operation builtin_files, builtin_ns, builtin_openapi, builtin_push, builtin_pushkey;
extern const struct operation builtin_done, builtin_fail, builtin_keep, builtin_owntask, builtin_take;
extern const struct operation builtin_metrics, builtin_record, builtin_schema, builtin_spool, builtin_task,
    builtin_tasks, builtin_thumbnail, builtin_thumbnailsweep, builtin_volumes, builtin_warnings;

#endif
