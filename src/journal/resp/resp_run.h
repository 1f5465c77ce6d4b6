/* resp_run: a connection that speaks RESP: reads its requests, and runs them by the table of commands. */
#ifndef STAMPD_JOURNAL_RESP_RESP_RUN_H
#define STAMPD_JOURNAL_RESP_RESP_RUN_H

#include "journal/resp/resp_listener.h"
#include "journal/resp/resp_session.h"

struct resp_session *resp_run_open(void) __attribute__((returns_nonnull));
void resp_run_close(struct resp_session *resp); /* NULL is allowed */

/* Reads the first request; `used_r`: its bytes.  RESP_MALFORMED: the reply is an error, and the connection
 * ends. */
MUST_USE enum resp_reading resp_run_read(struct journal_session *session, struct bytes bytes, size_t *used_r,
                                         struct builder *out);
/* Runs it, as journal_run does; also JOURNAL_PART. */
enum journal_next resp_run(struct journal_session *session, struct builder *out);
/* May it have a key of the file? */
bool resp_run_is_secret(const struct journal_session *session);
/* Bytes of what was read. */
size_t resp_run_memory(const struct resp_session *resp);

#endif
