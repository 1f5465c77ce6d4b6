/* resp_listener: keyspace notifications: SUBSCRIBE to `__keyspace@0__:KEY` and `__keyevent@0__:EVENT`,
 * PSUBSCRIBE to patterns of these.
 *
 * What is reported is read from the ring of changes (records/records_changes.h), which has keys and not what
 * was done: the event is `set` when the key has a record at the time of the report, else `del`.  A listener
 * that was overtaken by the changes ends with its connection, as one of Redis that reads too slowly. */
#ifndef STAMPD_JOURNAL_RESP_RESP_LISTENER_H
#define STAMPD_JOURNAL_RESP_RESP_LISTENER_H

#include "journal/resp/resp_session.h"

resp_function resp_listener_subscribe, resp_listener_unsubscribe;

/* Another caller, or another namespace. */
void resp_listener_free(struct resp_session *resp);

enum resp_report { RESP_REPORTED, RESP_HAS_MORE, RESP_OVERTAKEN };
/* Reports changes, if the namespace is served now, while `out` has less than `most` bytes and the cost of the
 * session is below `steps`. */
enum resp_report resp_listener_report(struct journal_session *session, size_t most, int64_t steps,
                                      struct builder *out);

#endif
