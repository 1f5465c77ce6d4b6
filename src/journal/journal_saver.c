/* journal_saver: numbers to the child, which takes all that have come, and answers with the last one: so it
 * need not wait for the loop between two syncs. */
#include "journal/journal_saver.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "records/records_save.h"

enum { TRIES_MOST = 2 };

struct journal_saver {
    struct records *records;
    struct watch *watch;
    struct events_timer *refusal; /* of a save for which there is no child */
    pid_t pid;                    /* 0: there is none */
    int fd;
    uint64_t wanted, sent; /* the last one that is not answered, and the last one that the child has got; 0 */
    int tries;             /* children that have got one, and have not answered since */
    void (*saved)(void *context, uint64_t number, bool is_saved);
    void *context;
};

struct saver_answer {
    uint64_t number;
    bool is_saved;
};

/* --- the child --- */

/* Connections of the parent would stay open here after it has closed them. */
static bool close_all_but(int one, int other)
{
    unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);
    const unsigned first = STDERR_FILENO + 1;
    return (low <= first || close_range(first, low - 1, 0) == 0) &&
           (high == low + 1 || close_range(low + 1, high - 1, 0) == 0) && close_range(high + 1, ~0U, 0) == 0;
}

/* All signals are blocked, as in the parent: a signal to the whole service leaves the end to the parent. */
static void NORETURN run_child(struct records *records, int fd, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "journal-saver"); /* for administrators */
    log_close();
    if (getppid() != parent || !close_all_but(fd, records_descriptor(records)))
        _exit(1);
    struct saver_answer answer = {0};
    while (recv(fd, &answer.number, sizeof answer.number, 0) == sizeof answer.number) {
        while (recv(fd, &answer.number, sizeof answer.number, MSG_DONTWAIT) == sizeof answer.number)
            ;
        answer.is_saved = records_save(records, answer.number);
        if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
        log_flush(clock_monotonic_ms());
    }
    _exit(0);
}

/* --- the parent --- */

/* `is_stuck`: it may wait for a disk that does not answer, and is left to init. */
static void end_child(struct journal_saver *saver, bool is_stuck)
{
    if (!saver->pid)
        return;
    events_watch_set(saver->watch, -1, false);
    close(saver->fd);
    (void)kill(saver->pid, SIGKILL);
    while (waitpid(saver->pid, NULL, is_stuck ? WNOHANG : 0) < 0 && errno == EINTR)
        ;
    saver->pid = 0;
    saver->sent = 0;
}

static bool start_child(struct journal_saver *saver)
{
    int ends[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        log_often(LOG_LEVEL_ERROR, "saver", "cannot open sockets for the process that saves records: %m");
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_child(saver->records, ends[1], parent);
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        log_often(LOG_LEVEL_ERROR, "saver", "cannot start the process that saves records: %s",
                  strerror(error));
        close(ends[0]);
        return false;
    }
    saver->pid = pid;
    saver->fd = ends[0];
    events_watch_set(saver->watch, saver->fd, false);
    return true;
}

static void report(struct journal_saver *saver, uint64_t number, bool is_saved)
{
    if (saver->wanted <= number)
        saver->wanted = 0;
    saver->saved(saver->context, number, is_saved);
}

/* When the sockets are full, the next answer comes before there is a need to send more. */
static bool try_to_send(struct journal_saver *saver)
{
    ssize_t size = send(saver->fd, &saver->wanted, sizeof saver->wanted, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size != sizeof saver->wanted)
        return size < 0 && (errno == EAGAIN || errno == EINTR) && saver->sent;
    saver->sent = saver->wanted;
    return true;
}

static void send_wanted(struct journal_saver *saver)
{
    while (saver->pid || (saver->tries < TRIES_MOST && start_child(saver))) {
        saver->tries += !saver->sent;
        if (try_to_send(saver))
            return;
        end_child(saver, false);
    }
    events_timer_start(saver->refusal, 0);
}

static void on_ready(void *context)
{
    struct journal_saver *saver = context;
    struct saver_answer answer;
    ssize_t size = recv(saver->fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size == sizeof answer) {
        saver->tries = 0;
        if (saver->sent <= answer.number)
            saver->sent = 0;
        report(saver, answer.number, answer.is_saved);
        return;
    }
    log_warning("the process that saves records has ended");
    end_child(saver, false);
    if (saver->wanted)
        send_wanted(saver);
}

static void on_refusal(void *context)
{
    struct journal_saver *saver = context;
    saver->tries = 0;
    report(saver, saver->wanted, false);
}

struct journal_saver *journal_saver_create(struct events *events, struct records *records,
                                           void (*saved)(void *context, uint64_t number, bool is_saved),
                                           void *context)
{
    struct journal_saver *saver = calloc(1, sizeof *saver);
    if (!saver)
        log_fatal("out of memory starting the process that saves records");
    *saver = (struct journal_saver){.records = records, .fd = -1, .saved = saved, .context = context};
    saver->watch = events_watch_create(events, on_ready, saver);
    saver->refusal = events_timer_create(events, on_refusal, saver);
    return saver;
}

void journal_saver_destroy(struct journal_saver *saver)
{
    end_child(saver, saver->wanted != 0);
    events_watch_destroy(saver->watch);
    events_timer_destroy(saver->refusal);
    free(saver);
}

bool journal_saver_is_busy(const struct journal_saver *saver)
{
    return saver->wanted != 0;
}

void journal_saver_save(struct journal_saver *saver, uint64_t number)
{
    if (number <= saver->wanted && saver->sent == saver->wanted)
        return;
    saver->wanted = number > saver->wanted ? number : saver->wanted;
    send_wanted(saver);
}
