/* crash: the counters lie in memory that is mapped before the fork, because they must survive the processes
 * that die. */
#include "base/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"

struct counter {
    _Atomic int64_t passages, deaths; /* remaining: passages without death, deaths */
};

struct crash_board {
    struct counter counters[CRASH_POINTS];
};

struct crash_board *crash_board;

static const char *const words[] = {
#define POINT(name, word, what) word,
#include "base/crash_table.h"
#undef POINT
};

static const char blanks[] = " \t";

struct planned_death {
    enum crash_point point;
    int64_t passage, deaths;
};

/* A part of an entry, up to a colon. */
static struct bytes next_part(struct bytes *rest)
{
    const char *colon = rest->size ? memchr(rest->data, ':', rest->size) : NULL;
    struct bytes part = {rest->data, colon ? (size_t)(colon - rest->data) : rest->size};
    size_t taken = colon ? part.size + 1 : part.size;
    rest->data += taken;
    rest->size -= taken;
    return part;
}

static bool read_count(struct bytes *rest, int64_t *count_r)
{
    *count_r = 1;
    return !rest->size || (bytes_to_i64(next_part(rest), count_r) && *count_r > 0);
}

static bool read_entry(struct bytes text, struct planned_death *entry_r)
{
    bool ends_open = text.data[text.size - 1] == ':';
    struct bytes word = next_part(&text);
    for (size_t i = 0; i < CRASH_POINTS; i++)
        if (bytes_equal(word, bytes_of(words[i]))) {
            entry_r->point = (enum crash_point)i;
            return !ends_open && read_count(&text, &entry_r->passage) &&
                   read_count(&text, &entry_r->deaths) && !text.size;
        }
    return false;
}

/* The next entry of a list as text; false at the end. */
static bool next_entry(const char **list, struct bytes *entry_r)
{
    *list += strspn(*list, blanks);
    *entry_r = (struct bytes){*list, strcspn(*list, blanks)};
    *list += entry_r->size;
    return entry_r->size > 0;
}

bool crash_is_list(const char *text, const char **wrong_r, size_t *wrong_size_r)
{
    struct bytes part;
    struct planned_death entry;
    while (next_entry(&text, &part))
        if (!read_entry(part, &entry)) {
            *wrong_r = part.data;
            *wrong_size_r = part.size;
            return false;
        }
    return true;
}

void crash_arm(const char *text, void *(*share)(size_t bytes))
{
    static char *present;
    if (strcmp(text, present ? present : "") == 0)
        return;
    free(present);
    present = strdup(text);
    if (!present)
        log_fatal("out of memory arming debug_die_at");
    if (!crash_board)
        crash_board = share(sizeof *crash_board);
    for (size_t i = 0; i < CRASH_POINTS; i++)
        atomic_store(&crash_board->counters[i].deaths, 0);
    struct bytes part;
    struct planned_death entry;
    while (next_entry(&text, &part))
        if (read_entry(part, &entry)) {
            atomic_store(&crash_board->counters[entry.point].passages, entry.passage - 1);
            atomic_store(&crash_board->counters[entry.point].deaths, entry.deaths);
        }
    if (*present)
        log_warning("debug_die_at = %s: processes will die there", present);
}

void crash_pass(enum crash_point point)
{
    struct counter *counter = &crash_board->counters[point];
    if (atomic_load(&counter->deaths) <= 0 || atomic_fetch_sub(&counter->passages, 1) > 0 ||
        atomic_fetch_sub(&counter->deaths, 1) <= 0)
        return;
    log_error("died at %s, as set in debug_die_at", words[point]);
    kill(getpid(), SIGKILL);
}
