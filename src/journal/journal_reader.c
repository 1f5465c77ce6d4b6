/* journal_reader: to a child goes what is wanted, and from it comes an answer and the content behind it. */
#include "journal/journal_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "journal/journal_child.h"

enum { DEATHS_MOST = 2, SPARE_BYTES = 65536 };

struct reader_answer {
    uint64_t size; /* of the content behind it */
    bool is_read;
    char problem[RECORDS_FETCH_PROBLEM_MOST];
};

struct reader_child {
    struct journal_reader *reader;
    struct journal_child child;
    struct watch *watch;
    bool is_busy;
    bool is_retired; /* it ends with its answer */
    bool is_overdue; /* it has been busy for so long that the disk does not answer */
    struct events_timer *limit;
    struct journal_contents *reading; /* NULL: nobody waits for what it reads */
    struct reader_answer answer;
    uint64_t received; /* bytes of the answer and the content */
};

struct journal_reader {
    struct records *records;
    int64_t most_ms;           /* for a content */
    struct events_timer *turn; /* to hand on what waits */
    struct journal_contents *first, *last;
    struct reader_child children[JOURNAL_READERS];
};

/* --- the child --- */

static void journal_reader_run_child(struct records *records, int fd)
{
    struct records_wanted wanted;
    bool is_sent = true;
    while (is_sent && recv(fd, &wanted, sizeof wanted, MSG_WAITALL) == sizeof wanted) {
        struct reader_answer answer;
        const char *problem;
        struct bytes content = records_fetch(records, &wanted, &problem);
        memset(&answer, 0, sizeof answer); /* also what lies between the members */
        answer.size = content.size;
        answer.is_read = content.data != NULL;
        snprintf(answer.problem, sizeof answer.problem, "%s", problem ? problem : "");
        is_sent =
            bytes_write(fd, (struct bytes){(const char *)&answer, sizeof answer}) && bytes_write(fd, content);
        log_flush(clock_monotonic_ms());
    }
}

/* --- the queue --- */

static void journal_reader_append(struct journal_reader *reader, struct journal_contents *reading)
{
    reading->next = NULL;
    *(reader->last ? &reader->last->next : &reader->first) = reading;
    reader->last = reading;
    events_timer_start(reader->turn, 0);
}

/* The first content that it waits for. */
static struct records_fetched *present(struct journal_contents *reading)
{
    return &reading->list[reading->ended];
}

/* The present content has ended: the next one waits behind others.  May end its connection. */
static void end_one(struct journal_reader *reader, struct journal_contents *reading)
{
    present(reading)->has_ended = true;
    reading->deaths = 0;
    if (++reading->ended < reading->count) {
        journal_reader_append(reader, reading);
        return;
    }
    reading->reader = NULL;
    reading->done(reading->context);
}

static const char no_answer[] = "the disk does not answer";

static void refuse_one(struct journal_reader *reader, struct journal_contents *reading, const char *problem)
{
    struct records_fetched *fetched = present(reading);
    builder_free(&fetched->content);
    fetched->content = (struct builder){0};
    snprintf(fetched->problem, sizeof fetched->problem, "%s", problem);
    end_one(reader, reading);
}

static void on_ready(void *context);

/* One that is idle, or a new one; NULL: all are busy, or there can be none. */
static struct reader_child *find_child(struct journal_reader *reader)
{
    static const struct journal_child_work work = {"journal-reader", SOCK_STREAM, journal_reader_run_child};
    struct reader_child *absent = NULL;
    for (size_t i = 0; i < JOURNAL_READERS; i++) {
        struct reader_child *one = &reader->children[i];
        if (one->child.pid && !one->is_busy)
            return one;
        absent = one->child.pid ? absent : one;
    }
    if (!absent || !journal_child_start(&absent->child, &work, reader->records))
        return NULL;
    events_watch_set(absent->watch, absent->child.fd, false);
    return absent;
}

static bool has_children(const struct journal_reader *reader, bool with_overdue)
{
    for (size_t i = 0; i < JOURNAL_READERS; i++)
        if (reader->children[i].child.pid && (with_overdue || !reader->children[i].is_overdue))
            return true;
    return false;
}

static void end_busy(struct reader_child *child)
{
    events_timer_stop(child->limit);
    child->is_busy = child->is_overdue = false;
}

static void end_child(struct reader_child *child)
{
    if (child->child.pid)
        events_watch_set(child->watch, -1, false);
    journal_child_end(&child->child);
    end_busy(child);
    child->is_retired = false;
}

/* It has died, or does not say what a child says. */
static void replace_child(struct reader_child *child)
{
    struct journal_contents *reading = child->reading;
    log_warning("a process that reads records has ended");
    end_child(child);
    child->reading = NULL;
    if (reading)
        present(reading)->content.size = 0;
    if (reading && ++reading->deaths == DEATHS_MOST)
        refuse_one(child->reader, reading, "the processes that read it have ended");
    else if (reading)
        journal_reader_append(child->reader, reading);
    events_timer_start(child->reader->turn, 0);
}

/* The sockets have room for it: the child has taken what came before. */
static void hand_on(struct reader_child *child, struct journal_contents *reading)
{
    const struct records_wanted *wanted = &present(reading)->wanted;
    child->is_busy = true;
    child->reading = reading;
    child->received = 0;
    events_timer_start(child->limit, child->reader->most_ms);
    if (send(child->child.fd, wanted, sizeof *wanted, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof *wanted)
        replace_child(child);
}

static void on_turn(void *context)
{
    struct journal_reader *reader = context;
    while (reader->first) {
        struct reader_child *child = find_child(reader);
        if (!child && has_children(reader, false))
            return; /* until one is idle */
        struct journal_contents *reading = reader->first;
        reader->first = reading->next;
        reader->last = reader->first ? reader->last : NULL;
        if (child)
            hand_on(child, reading);
        else
            refuse_one(reader, reading,
                       has_children(reader, true) ? no_answer : "there is no process to read it");
    }
}

/* What it reads is refused; when all are overdue, so is what waits, until one of them answers. */
static void on_limit(void *context)
{
    struct reader_child *child = context;
    struct journal_contents *reading = child->reading;
    child->is_overdue = true;
    child->reading = NULL;
    events_timer_start(child->reader->turn, 0);
    if (reading)
        refuse_one(child->reader, reading, no_answer);
}

/* --- answers --- */

/* A part of what the child sends; false: it has ended. */
static bool journal_reader_receive(struct reader_child *child, char *data, size_t most)
{
    ssize_t size = recv(child->child.fd, data, most, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    child->received += size > 0 ? (uint64_t)size : 0;
    return size > 0;
}

static bool receive_content(struct reader_child *child)
{
    static char spare[SPARE_BYTES];
    uint64_t left = sizeof child->answer + child->answer.size - child->received, before = child->received;
    if (!child->reading)
        return journal_reader_receive(child, spare, left < sizeof spare ? (size_t)left : sizeof spare);
    struct builder *content = &present(child->reading)->content;
    char *place = builder_reserve(content, (size_t)left);
    bool is_there = journal_reader_receive(child, place, (size_t)left);
    content->size += (size_t)(child->received - before);
    return is_there;
}

/* All is there. */
static void end_answer(struct reader_child *child)
{
    struct journal_contents *reading = child->reading;
    end_busy(child);
    child->reading = NULL;
    if (child->is_retired)
        end_child(child);
    events_timer_start(child->reader->turn, 0);
    if (!reading)
        return;
    struct records_fetched *fetched = present(reading);
    fetched->is_read = child->answer.is_read;
    memcpy(fetched->problem, child->answer.problem, sizeof fetched->problem);
    end_one(child->reader, reading);
}

static bool fits(const struct reader_child *child)
{
    const struct reader_answer *answer = &child->answer;
    return answer->size <= RECORDS_CONTENT_MOST && !answer->problem[sizeof answer->problem - 1] &&
           (!child->reading || !answer->is_read || answer->size == present(child->reading)->wanted.size) &&
           (answer->is_read || !answer->size);
}

static void on_ready(void *context)
{
    struct reader_child *child = context;
    size_t head = sizeof child->answer;
    bool is_sound = child->is_busy; /* else nothing but its end is to come */
    if (is_sound && child->received < head)
        is_sound = journal_reader_receive(child, (char *)&child->answer + child->received,
                                          head - (size_t)child->received) &&
                   (child->received < head || fits(child));
    else if (is_sound)
        is_sound = receive_content(child);
    if (!is_sound)
        replace_child(child);
    else if (child->received >= head && child->received == head + child->answer.size)
        end_answer(child);
}

/* It is in the queue, or with a child. */
void journal_reader_leave(struct journal_contents *reading)
{
    struct journal_reader *reader = reading->reader;
    if (!reader)
        return;
    reading->reader = NULL;
    struct journal_contents *last = NULL;
    for (struct journal_contents **link = &reader->first; *link;)
        if (*link == reading) {
            *link = reading->next;
        } else {
            last = *link;
            link = &last->next;
        }
    reader->last = last;
    for (size_t i = 0; i < JOURNAL_READERS; i++)
        if (reader->children[i].reading == reading)
            reader->children[i].reading = NULL;
}

/* --- life --- */

struct journal_reader *journal_reader_create(struct events *events, struct records *records, int64_t most_ms)
{
    struct journal_reader *reader =
        memory_zeroed(1, sizeof *reader, "starting the processes that read records");
    reader->records = records;
    reader->most_ms = most_ms;
    reader->turn = events_timer_create(events, on_turn, reader);
    for (size_t i = 0; i < JOURNAL_READERS; i++) {
        struct reader_child *child = &reader->children[i];
        child->reader = reader;
        child->watch = events_watch_create(events, on_ready, child);
        child->limit = events_timer_create(events, on_limit, child);
    }
    return reader;
}

void journal_reader_destroy(struct journal_reader *reader)
{
    assert(!reader->first);
    for (size_t i = 0; i < JOURNAL_READERS; i++) {
        end_child(&reader->children[i]);
        events_watch_destroy(reader->children[i].watch);
        events_timer_destroy(reader->children[i].limit);
    }
    events_timer_destroy(reader->turn);
    free(reader);
}

void journal_reader_retire(struct journal_reader *reader)
{
    for (size_t i = 0; i < JOURNAL_READERS; i++)
        if (reader->children[i].reading)
            reader->children[i].is_retired = true;
        else
            end_child(&reader->children[i]);
    events_timer_start(reader->turn, 0);
}

void journal_reader_read(struct journal_reader *reader, struct journal_contents *reading)
{
    assert(!reading->reader && reading->ended < reading->count);
    reading->reader = reader;
    reading->tries++;
    journal_reader_append(reader, reading);
}
