/* journal_run: does what a message requests. */
#ifndef STAMPD_JOURNAL_JOURNAL_RUN_H
#define STAMPD_JOURNAL_JOURNAL_RUN_H

#include "journal/journal_message.h"
#include "journal/journal_session.h"

/* Appends the answer, if the function has one, and adds to the cost of the session.  `reading` belongs to the
 * message until another one is run: then the caller forgets it. */
enum journal_next journal_run(struct journal_session *session, const struct journal_request *request,
                              struct builder *out);

/* Reports changes to the listener, if its namespace is served now.  False: to be called again soon, whether
 * or not anything changes. */
bool journal_run_report(struct journal_session *session, size_t most, struct builder *out);

/* The operation of external workers that a function is; NULL: none. */
const char *journal_run_operation(uint16_t function);
/* The answer to such a message, by the outcome of journal_tasks_send. */
void journal_run_answer(struct builder *out, const struct journal_request *request, const char *error,
                        struct bytes text);

#endif
