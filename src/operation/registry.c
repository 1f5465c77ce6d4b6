/* registry: a table of the operations that are built in. */
#include "operation/registry.h"

#include "operation/builtin/builtin.h"

static const struct operation *const operations[] = {&builtin_get, &builtin_list, &builtin_put,
                                                     &builtin_sync};

const struct operation *registry_find(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(operations); i++)
        if (bytes_equal(name, bytes_of(operations[i]->name)))
            return operations[i];
    return NULL;
}
