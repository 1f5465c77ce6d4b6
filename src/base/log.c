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

static const char *program_name = "stampd";
static enum log_level wanted_level = LOG_LEVEL_INFO;
static bool use_syslog;
static bool is_journal; /* standard error is read by systemd, which takes <N> for the priority */
static const char *request_id, *trace;
enum {
    IDS_MOST = 152, /* bytes that the request and the trace take in a line, with their labels */
    ID_MOST = 64,
    TRACE_STATE_MOST = 512,
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

void log_open(const char *program, enum log_level level, bool to_syslog)
{
    is_journal = !to_syslog && is_read_by_journal();
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

/* Adds so many bytes of it to what the line has; nothing if there is no room. */
static size_t add_id(char *line, size_t used, size_t size, const char *label, const char *id, size_t id_size)
{
    size_t label_size = strlen(label);
    if (!id || label_size + id_size >= size - used)
        return used;
    memcpy(line + used, label, label_size);
    memcpy(line + used + label_size, id, id_size);
    return used + label_size + id_size;
}

/* Of the trace, behind its first blank; NULL: none. */
static const char *find_state(void)
{
    const char *blank = trace ? strchr(trace, ' ') : NULL;
    return blank ? blank + 1 : NULL;
}

/* Bytes of a line that are kept for both, behind its words. */
static size_t reserved_bytes(void)
{
    const char *state = find_state();
    return IDS_MOST + (state ? sizeof state_label + strnlen(state, TRACE_STATE_MOST) : 0);
}

/* tracestate, which may have blanks and quotes, is the end of its line. */
static size_t add_trace(char *line, size_t used, size_t size)
{
    const char *state = find_state();
    size_t parent = state ? (size_t)(state - 1 - trace) : trace ? strnlen(trace, ID_MOST) : 0;
    used = add_id(line, used, size, " trace=", trace, parent);
    return add_id(line, used, size, state_label, state, state ? strnlen(state, TRACE_STATE_MOST) : 0);
}

static void emit(enum log_level level, const char *format, va_list arguments)
{
    if (level > wanted_level)
        return;
    int saved_errno = errno;
    char line[2048];
    size_t used = 0;
    if (!use_syslog) {
        struct timespec now;
        struct tm parts;
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &parts);
        if (is_journal)
            used = (size_t)snprintf(line, sizeof line, "<%d>", syslog_levels[level]);
        used += strftime(line + used, sizeof line - used, "%Y-%m-%dT%H:%M:%S", &parts);
        used +=
            (size_t)snprintf(line + used, sizeof line - used, ".%03ldZ %s[%d] %s: ", now.tv_nsec / 1000000,
                             program_name, (int)getpid(), level_words[level]);
    }
    const size_t start = used;
    const size_t room = sizeof line - used - reserved_bytes();
    int wrote = vsnprintf(line + used, room, format, arguments);
    if (wrote > 0)
        used += (size_t)wrote < room ? (size_t)wrote : room - 1;
    used = add_id(line, used, sizeof line, " request=", request_id,
                  request_id ? strnlen(request_id, ID_MOST) : 0);
    used = add_trace(line, used, sizeof line);
    for (size_t i = 0; i < used; i++) /* input from a client must not forge a second line */
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    if (listener)
        listener(level, line + start, used - start);
    if (use_syslog) {
        line[used] = '\0';
        syslog(syslog_levels[level], "%s", line);
    } else {
        line[used++] = '\n';
        /* If this fails, there is nowhere left to report it. */
        ssize_t written UNUSED = write(STDERR_FILENO, line, used);
    }
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
