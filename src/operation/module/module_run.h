/* module_run: an operation of an application, as the engine runs it (struct operation). */
#ifndef STAMPD_OPERATION_MODULE_MODULE_RUN_H
#define STAMPD_OPERATION_MODULE_MODULE_RUN_H

#include "operation/attempt.h"

enum fault module_run_work(struct attempt *attempt);
enum fault module_run_afterwork(struct attempt *attempt);

#endif
