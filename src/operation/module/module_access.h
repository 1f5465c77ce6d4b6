/* module_access: what the caller of an operation may do where no rules decide. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_ACCESS_H
#define STAMPD_OPERATION_MODULE_MODULE_ACCESS_H

#include "operation/access/access.h"
#include "stampd.h"

/* By the access of the namespace, or as a task of the server's own; always where rules decide. */
bool module_access_allows(const struct stampd_call *call, enum access_level level);

#endif
