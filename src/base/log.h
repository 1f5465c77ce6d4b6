/* log: one line per event on standard error or to syslog: time, level, pid, message with key=value, as text
 * or as an object of JSON (log_json.h).  Verbs rank severity.  Never log a secret: keys, bodies, contents of
 * documents. */
#ifndef STAMPD_BASE_LOG_H
#define STAMPD_BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* `program` is kept, not copied.  Lines for systemd's journal (JOURNAL_STREAM) begin with their priority, <3>
 * to <7>.  Before this call lines go to standard error at level info, as text. */
void log_open(const char *program, enum log_level level, bool to_syslog, enum log_format format);
/* In a child, before it closes its descriptors: the next line opens the log again.  What the parent has
 * counted (log_often) is the parent's. */
void log_close(void);
void log_set_level(enum log_level level);
/* Calls this with each line that is written, as text without the time and the program; it is valid during the
 * call only.  NULL: nobody.  The listener must not log. */
void log_set_listener(void (*listener)(enum log_level level, const char *text, size_t size));
/* Adds this id to every log line until it is set to NULL; kept, not copied. */
void log_set_request_id(const char *id);
/* What the lines that follow have as trace=, and, from its first blank on, as tracestate=: the trace of the
 * task that is run (model/trace.h); NULL: nothing. */
void log_set_trace(const char *trace);

void log_error(const char *format, ...) PRINTF_LIKE(1, 2);
void log_warning(const char *format, ...) PRINTF_LIKE(1, 2);
void log_info(const char *format, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *format, ...) PRINTF_LIKE(1, 2);
/* For lines that clients can cause as often as they like.  Of one `kind` (with the format) the process writes
 * one line a minute; log_flush then writes how many more there were.  Too many kinds at once are one kind. */
void log_often(enum log_level level, const char *kind, const char *format, ...) PRINTF_LIKE(3, 4);
/* Called by processes that log so, now and then: writes the counts of the minutes that are over at `now_ms`
 * (monotonic); INT64_MAX: of all. */
void log_flush(int64_t now_ms);
/* Composes an event of level info, with more members, as a line of JSON of at most LOG_JSON_BYTES
 * (logging/log_json.h), without its end; nothing is written.  Returns its size. */
struct log_member;
size_t log_compose(char *line_r, const char *message, const struct log_member *more, size_t count);
/* Logs an error and ends the process with status 1. */
void log_fatal(const char *format, ...) PRINTF_LIKE(1, 2) NORETURN;

#endif
