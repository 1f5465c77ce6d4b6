/* resp_sums: INCR, DECR, INCRBY, DECRBY and INCRBYFLOAT. */
#ifndef STAMPD_JOURNAL_RESP_RESP_SUMS_H
#define STAMPD_JOURNAL_RESP_RESP_SUMS_H

#include "journal/resp/resp_session.h"

resp_function resp_sums_add, resp_sums_add_float;

#endif
