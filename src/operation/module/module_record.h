/* module_record: what the functions of stampd_record.h have in common. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_RECORD_H
#define STAMPD_OPERATION_MODULE_MODULE_RECORD_H

#include "operation/module/module_try.h"

/* May the call use records, and change them?  False: the try has failed. */
bool module_record_is_open(struct stampd_call *call, bool is_change);
/* Is the namespace of the call encrypted?  False: the try has failed. */
bool module_record_is_encrypted(struct stampd_call *call, bool *is_encrypted_r);

#endif
