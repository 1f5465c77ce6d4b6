/* journal_saver: numbers to the child, which takes all that have come, and answers with the last one: so it
 * need not wait for the loop between two syncs. */
#include "journal/journal_saver.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "journal/journal_child.h"
#include "records/records_save.h"

enum { TRIES_MOST = 2 };

struct journal_saver {
    struct records *records;
    struct watch *watch;
    struct events_timer *refusal; /* of a save for which there is no child */
    struct journal_child child;
    uint64_t wanted, sent; /* the last one that is not answered, and the last one that the child has got; 0 */
    int tries;             /* children that have got one, and have not answered since */
    bool is_retired;       /* the child ends with the answer to the last one that it has got */
    void (*saved)(void *context, uint64_t number, bool is_saved);
    void *context;
};

struct saver_answer {
    uint64_t number;
    bool is_saved;
};

/* --- the child --- */

static void journal_saver_run_child(struct records *records, int fd)
{
    struct saver_answer answer = {0};
    while (recv(fd, &answer.number, sizeof answer.number, 0) == sizeof answer.number) {
        while (recv(fd, &answer.number, sizeof answer.number, MSG_DONTWAIT) == sizeof answer.number)
            ;
        answer.is_saved = records_save(records, answer.number);
        if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
        log_flush(clock_monotonic_ms());
    }
}

/* --- the parent --- */

static void end_child(struct journal_saver *saver)
{
    if (!saver->child.pid)
        return;
    events_watch_set(saver->watch, -1, false);
    journal_child_end(&saver->child);
    saver->sent = 0;
    saver->is_retired = false;
}

static bool start_child(struct journal_saver *saver)
{
    static const struct journal_child_work work = {"journal-saver", SOCK_SEQPACKET, journal_saver_run_child};
    if (!journal_child_start(&saver->child, &work, saver->records))
        return false;
    events_watch_set(saver->watch, saver->child.fd, false);
    return true;
}

static void journal_saver_report(struct journal_saver *saver, uint64_t number, bool is_saved)
{
    if (saver->wanted <= number)
        saver->wanted = 0;
    saver->saved(saver->context, number, is_saved);
}

/* When the sockets are full, the next answer comes before there is a need to send more. */
static bool try_to_send(struct journal_saver *saver)
{
    ssize_t size = send(saver->child.fd, &saver->wanted, sizeof saver->wanted, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size != sizeof saver->wanted)
        return size < 0 && (errno == EAGAIN || errno == EINTR) && saver->sent;
    saver->sent = saver->wanted;
    return true;
}

static void send_wanted(struct journal_saver *saver)
{
    if (saver->is_retired)
        return; /* it is for the next child */
    while (saver->child.pid || (saver->tries < TRIES_MOST && start_child(saver))) {
        saver->tries += !saver->sent;
        if (try_to_send(saver))
            return;
        end_child(saver);
    }
    events_timer_start(saver->refusal, 0);
}

static void on_ready(void *context)
{
    struct journal_saver *saver = context;
    struct saver_answer answer;
    ssize_t size = recv(saver->child.fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size == sizeof answer) {
        saver->tries = 0;
        if (saver->sent <= answer.number)
            saver->sent = 0;
        bool is_over = saver->is_retired && !saver->sent;
        if (is_over)
            end_child(saver);
        journal_saver_report(saver, answer.number, answer.is_saved);
        if (is_over && saver->wanted)
            send_wanted(saver);
        return;
    }
    log_warning("the process that saves records has ended");
    end_child(saver);
    if (saver->wanted)
        send_wanted(saver);
}

static void on_refusal(void *context)
{
    struct journal_saver *saver = context;
    saver->tries = 0;
    journal_saver_report(saver, saver->wanted, false);
}

struct journal_saver *journal_saver_create(struct events *events, struct records *records,
                                           void (*saved)(void *context, uint64_t number, bool is_saved),
                                           void *context)
{
    struct journal_saver *saver = memory_zeroed(1, sizeof *saver, "starting the process that saves records");
    *saver = (struct journal_saver){.records = records, .saved = saved, .context = context};
    saver->watch = events_watch_create(events, on_ready, saver);
    saver->refusal = events_timer_create(events, on_refusal, saver);
    return saver;
}

void journal_saver_destroy(struct journal_saver *saver)
{
    end_child(saver);
    events_watch_destroy(saver->watch);
    events_timer_destroy(saver->refusal);
    free(saver);
}

void journal_saver_retire(struct journal_saver *saver)
{
    if (saver->sent)
        saver->is_retired = true;
    else
        end_child(saver);
}

void journal_saver_save(struct journal_saver *saver, uint64_t number)
{
    if (number <= saver->wanted && saver->sent == saver->wanted)
        return;
    saver->wanted = number > saver->wanted ? number : saver->wanted;
    send_wanted(saver);
}
