/* registry: the operations by name: those that are built in, and those that modules bring. */
#ifndef STAMPD_OPERATION_REGISTRY_H
#define STAMPD_OPERATION_REGISTRY_H

#include "operation/call.h"
#include "operation/operation.h"

/* Sets the operations that are built in, and those of resources, indexed by enum resource_act; borrowed
 * permanently.  Called before everything else here: builtin_register. */
void registry_begin(const struct operation *const *operations, size_t count,
                    const struct operation *operations_of_resources);
const struct operation *registry_find(struct bytes name);
const struct operation *registry_get_resource(enum resource_act act);
/* Adds a module's operation, borrowed permanently; false when the name is taken. */
MUST_USE bool registry_add(const struct operation *operation);
/* Built-in operation number `place`, NULL past the last. */
const struct operation *registry_get_builtin(size_t place);
/* The same for all operations, including those of modules. */
const struct operation *registry_get(size_t place);
const struct operation *registry_get_added(size_t place);

#endif
