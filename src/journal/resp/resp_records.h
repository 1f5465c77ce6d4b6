/* resp_records: the commands of RESP that are about records, which are named: each is whole or has changed
 * nothing; one of several keys is done key by key, in their order.
 *
 * What takes several commands of the store compares stamps: between them nobody else has changed the record.
 */
#ifndef STAMPD_JOURNAL_RESP_RESP_RECORDS_H
#define STAMPD_JOURNAL_RESP_RESP_RECORDS_H

#include "journal/resp/resp_session.h"

resp_function resp_records_get, resp_records_set, resp_records_getset, resp_records_setnx, resp_records_setex,
    resp_records_mget, resp_records_mset, resp_records_del, resp_records_exists, resp_records_expire,
    resp_records_ttl, resp_records_persist, resp_records_type, resp_records_rename;

#endif
