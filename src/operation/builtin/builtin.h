/* builtin: the generic operations (doc/protocol.md), a namespace's first tools. */
#ifndef STAMPD_OPERATION_BUILTIN_BUILTIN_H
#define STAMPD_OPERATION_BUILTIN_BUILTIN_H

#include "operation/registry.h"

extern const struct operation builtin_get, builtin_list, builtin_put, builtin_sync;

#endif
