/* log: a line is composed in one buffer and written by one write(), so that lines of processes do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/logging/log_json.h"

static const char *program_name = "stampd";
static enum log_level wanted_level = LOG_LEVEL_INFO;
static bool use_syslog, is_json;
static bool is_journal; /* standard error is read by systemd, which takes <N> for the priority */
static const char *request_id, *trace;
enum {
    IDS_MOST = 152, /* bytes that the request and the trace take in a line, with their labels */
    ID_MOST = 64,
    TRACE_STATE_MOST = 512,
    TEXT_MOST = 2048, /* bytes of a line of text */
    TIME_BYTES = 32,
    LINE_ENDS = 8, /* the priority for the journal, and the end */
};
static const char state_label[] = " tracestate=";
static void (*listener)(enum log_level level, const char *text, size_t size);

static const char *const level_words[] = {"error", "warning", "info", "debug"};
static const int syslog_levels[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

/* systemd identifies the journal's stream by device and inode.  Standard error is not that stream if it was
 * redirected since, or if the process only inherited the variable. */
static bool is_read_by_journal(void)
{
    const char *named = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    char more;
    struct stat status;
    return named && sscanf(named, "%ju:%ju%c", &device, &inode, &more) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && device == status.st_dev && inode == status.st_ino;
}

void log_open(const char *program, enum log_level level, bool to_syslog, enum log_format format)
{
    is_journal = !to_syslog && is_read_by_journal();
    is_json = format == LOG_FORMAT_JSON;
    program_name = program;
    wanted_level = level;
    use_syslog = to_syslog;
    if (to_syslog)
        openlog(program, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

void log_set_level(enum log_level level)
{
    wanted_level = level;
}

void log_set_request_id(const char *id)
{
    request_id = id;
}

void log_set_trace(const char *new_trace)
{
    trace = new_trace;
}

void log_set_listener(void (*new_listener)(enum log_level level, const char *text, size_t size))
{
    listener = new_listener;
}

static void write_time(char time_r[TIME_BYTES])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t used = strftime(time_r, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(time_r + used, TIME_BYTES - used, ".%03ldZ", now.tv_nsec / 1000000);
}

/* The request, the trace, and what is behind the first blank of it. */
static void find_ids(struct log_event *event)
{
    const char *blank = trace ? strchr(trace, ' ') : NULL;
    if (request_id)
        event->request = (struct bytes){request_id, strnlen(request_id, ID_MOST)};
    if (trace)
        event->trace = (struct bytes){trace, blank ? (size_t)(blank - trace) : strnlen(trace, ID_MOST)};
    if (blank)
        event->tracestate = (struct bytes){blank + 1, strnlen(blank + 1, TRACE_STATE_MOST)};
}

static struct log_event log_begin(enum log_level level, char time_r[TIME_BYTES], struct bytes message)
{
    write_time(time_r);
    struct log_event event = {.time = time_r,
                              .level = level_words[level],
                              .program = program_name,
                              .pid = (int)getpid(),
                              .message = message};
    find_ids(&event);
    return event;
}

size_t log_compose(char *line_r, const char *message, const struct log_member *more, size_t count)
{
    char time[TIME_BYTES];
    struct log_event event = log_begin(LOG_LEVEL_INFO, time, bytes_of(message));
    event.more = more;
    event.more_count = count;
    return log_json_compose(line_r, &event);
}

/* What stands before the words in a line of text, and before the object of JSON. */
static size_t log_add_head(char *line, enum log_level level, const struct log_event *event)
{
    size_t used = is_journal ? (size_t)snprintf(line, TEXT_MOST, "<%d>", syslog_levels[level]) : 0;
    if (!use_syslog && !is_json)
        used += (size_t)snprintf(line + used, TEXT_MOST - used, "%s %s[%d] %s: ", event->time, event->program,
                                 event->pid, event->level);
    return used;
}

/* Adds the id to what the line has; nothing if there is none, or no room. */
static size_t add_id(char *line, size_t used, const char *label, struct bytes id)
{
    size_t label_size = strlen(label);
    if (!id.data || label_size + id.size >= TEXT_MOST - used)
        return used;
    memcpy(line + used, label, label_size);
    memcpy(line + used + label_size, id.data, id.size);
    return used + label_size + id.size;
}

/* The words, shortened if necessary, and the ids; tracestate, which may have blanks and quotes, is the end of
 * the line. */
static size_t add_words(char *line, size_t used, const struct log_event *event)
{
    size_t state = event->tracestate.data ? sizeof state_label + event->tracestate.size : 0;
    size_t room = TEXT_MOST - used - IDS_MOST - state;
    size_t words = event->message.size < room ? event->message.size : room - 1;
    memcpy(line + used, event->message.data, words);
    used = add_id(line, used + words, " request=", event->request);
    used = add_id(line, used, " trace=", event->trace);
    used = add_id(line, used, state_label, event->tracestate);
    for (size_t i = 0; i < used; i++) /* input from a client must not forge a second line */
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    return used;
}

/* The line has room for its end. */
static void log_write_line(enum log_level level, char *line, size_t size)
{
    if (use_syslog) {
        line[size] = '\0';
        syslog(syslog_levels[level], "%s", line);
        return;
    }
    line[size++] = '\n';
    /* If this fails, there is nowhere left to report it. */
    ssize_t written UNUSED = write(STDERR_FILENO, line, size);
}

static void emit(enum log_level level, const char *format, va_list arguments)
{
    if (level > wanted_level)
        return;
    int saved_errno = errno;
    char words[TEXT_MOST], time[TIME_BYTES], line[LOG_JSON_BYTES + LINE_ENDS];
    int size = vsnprintf(words, sizeof words, format, arguments);
    struct log_event event = log_begin(level, time, (struct bytes){words, size > 0 ? strlen(words) : 0});
    size_t start = log_add_head(line, level, &event), used = add_words(line, start, &event);
    if (listener)
        listener(level, line + start, used - start);
    log_write_line(level, line, is_json ? start + log_json_compose(line + start, &event) : used);
    errno = saved_errno;
}

#define LOG_AT(level)                                                                                        \
    do {                                                                                                     \
        va_list arguments;                                                                                   \
        va_start(arguments, format);                                                                         \
        emit(level, format, arguments);                                                                      \
        va_end(arguments);                                                                                   \
    } while (0)

void log_error(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_ERROR);
}

void log_warning(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_WARNING);
}

void log_info(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_INFO);
}

void log_debug(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_DEBUG);
}

/* --- lines that may be many --- */

enum { KINDS_MOST = 32, OFTEN_MS = 60000 };

/* The last one: all kinds for which there was no room. */
static struct often {
    const char *format; /* NULL: free */
    char kind[80], line[160];
    enum log_level level;
    int64_t until_ms;
    uint64_t more;
} often[KINDS_MOST + 1];

void log_close(void)
{
    if (use_syslog)
        closelog(); /* the next line opens it again */
    memset(often, 0, sizeof often);
}

static struct often *find_often(const char *format, const char *kind)
{
    struct often *found = NULL;
    for (size_t i = 0; i < KINDS_MOST; i++) {
        if (often[i].format == format && strncmp(often[i].kind, kind, sizeof often[i].kind - 1) == 0)
            return &often[i];
        if (!found && !often[i].format)
            found = &often[i];
    }
    return found ? found : &often[KINDS_MOST];
}

static void write_at(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
static void write_at(enum log_level level, const char *format, ...)
{
    LOG_AT(level);
}

void log_flush(int64_t now_ms)
{
    const char *present_id = request_id, *present_trace = trace;
    request_id = trace = NULL; /* the lines were of many requests */
    for (size_t i = 0; i < COUNT_OF(often); i++) {
        if (!often[i].format || now_ms < often[i].until_ms)
            continue;
        if (often[i].more)
            write_at(often[i].level, "repeated times=%llu seconds=%d: %s", (unsigned long long)often[i].more,
                     OFTEN_MS / 1000, i < KINDS_MOST ? often[i].line : "and others");
        often[i].format = NULL;
    }
    request_id = present_id;
    trace = present_trace;
}

void log_often(enum log_level level, const char *kind, const char *format, ...)
{
    int64_t now_ms = clock_monotonic_ms();
    if (level > wanted_level)
        return;
    log_flush(now_ms);
    struct often *place = find_often(format, kind);
    if (place->format) {
        place->more++;
        return;
    }
    va_list arguments, copy;
    va_start(arguments, format);
    va_copy(copy, arguments);
    *place = (struct often){.format = format, .level = level, .until_ms = now_ms + OFTEN_MS};
    snprintf(place->kind, sizeof place->kind, "%s", kind);
    vsnprintf(place->line, sizeof place->line, format, copy);
    emit(level, format, arguments);
    va_end(copy);
    va_end(arguments);
}

void log_fatal(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_ERROR);
    exit(1);
}
