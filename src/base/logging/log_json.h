/* log_json: an event of the log as one line of JSON, of the schema in doc/reference/log-messages.md.
 *
 * The line is valid JSON whatever the texts contain: control characters, quotes and backslashes are escaped,
 * and each byte that is not of well-formed UTF-8 becomes U+FFFD. */
#ifndef STAMPD_BASE_LOGGING_LOG_JSON_H
#define STAMPD_BASE_LOGGING_LOG_JSON_H

#include "base/bytes.h"

/* With its end and the priority for the journal a line has at most PIPE_BUF bytes: those are written to a
 * pipe at once, so that lines of processes do not mix. */
enum { LOG_JSON_BYTES = 4088 };

struct log_member {
    const char *name;
    struct bytes text; /* NO_BYTES: the line has no such member */
};

struct log_event {
    const char *time, *level, *program;
    int pid;
    struct bytes message;
    struct bytes request, trace, tracestate; /* NO_BYTES: the line has no such member */
    const struct log_member *more;
    size_t more_count;
};

/* Writes the line without its end and returns its size.  A message that does not fit is cut between two
 * characters; the other members are written whole, or left out when there is no room. */
size_t log_json_compose(char line_r[LOG_JSON_BYTES], const struct log_event *event);

#endif
