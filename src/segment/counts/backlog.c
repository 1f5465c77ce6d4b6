/* backlog: numbers as atomic words; the time of the snapshot is written last. */
#include "segment/counts/backlog.h"

#include <stddef.h>

#include "model/document/stamp.h"
#include "segment/namespaces.h"

enum { NUMBERS = sizeof(struct backlog_numbers) / sizeof(int64_t), CODE_WORDS = BACKLOG_CODE_BYTES / 8 };
_Static_assert(NUMBERS == 6, "nothing but numbers");
enum {
    DUE = offsetof(struct backlog_numbers, due) / sizeof(int64_t),
    OLDEST = offsetof(struct backlog_numbers, oldest) / sizeof(int64_t)
};

int64_t backlog_age_ms(const struct backlog *backlog, int64_t now_ms)
{
    int64_t looked_ms = atomic_load(&backlog->looked_ms);
    if (!looked_ms)
        return -1;
    return now_ms > looked_ms ? now_ms - looked_ms : 0;
}

static bool has_any(const int64_t words[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++)
        if (words[i])
            return true;
    return false;
}

/* The interval of scans from the beginning: no error in these words, and no step of the clock, outlives it.
 */
enum { WHOLE_MS = 600000 };

struct backlog_scan backlog_begin_scan(struct backlog *backlog, int64_t now_ms)
{
    uint64_t before = atomic_fetch_add(&backlog->scans, 1);
    int64_t whole_ms = atomic_load(&backlog->whole_ms);
    const struct backlog_known *known = &backlog->found[before % BACKLOG_SCANS];
    if (before && atomic_load(&backlog->known) == before && whole_ms && now_ms - whole_ms < WHOLE_MS)
        return (struct backlog_scan){.number = before + 1,
                                     .since = atomic_load(&known->low),
                                     .mark = atomic_load(&known->mark),
                                     .base = atomic_load(&known->base),
                                     .next_base = atomic_load(&known->next_base),
                                     .next_transaction = atomic_load(&known->next_transaction)};
    atomic_store(&backlog->whole_ms, now_ms > 0 ? now_ms : 1);
    return (struct backlog_scan){.number = before + 1};
}

/* Transactions that the snapshot did not see are later than that of an earlier scan once that one, and all
 * before it, have ended: their starts are not before the time of that scan. */
static void advance(struct backlog_scan *scan, const struct backlog_bound *bound)
{
    if (scan->next_transaction && bound->start < scan->next_base) /* a clock was set back */
        scan->base = 0;
    else if (scan->next_transaction && bound->running > scan->next_transaction)
        scan->base = scan->next_base;
    else if (scan->next_transaction)
        return;
    scan->next_base = bound->start;
    scan->next_transaction = bound->transaction;
}

void backlog_end_scan(struct backlog *backlog, const struct backlog_scan *scan,
                      const struct backlog_bound *bound)
{
    struct backlog_known *known = &backlog->found[scan->number % BACKLOG_SCANS];
    struct backlog_scan next = *scan;
    if (atomic_load(&backlog->scans) != scan->number)
        return;
    advance(&next, bound);
    atomic_store(&known->low, bound->oldest < next.base ? bound->oldest : next.base);
    atomic_store(&known->mark, bound->mark);
    atomic_store(&known->base, next.base);
    atomic_store(&known->next_base, next.next_base);
    atomic_store(&known->next_transaction, next.next_transaction);
    atomic_store(&backlog->known, scan->number);
}

static void write_code(struct backlog *backlog, struct bytes code)
{
    char text[BACKLOG_CODE_BYTES] = {0};
    uint64_t words[CODE_WORDS];
    assert(code.size <= sizeof text);
    memcpy(text, code.data, code.size);
    memcpy(words, text, sizeof words);
    for (int i = 0; i < CODE_WORDS; i++)
        atomic_store(&backlog->code[i], words[i]);
}

void backlog_want(struct backlog *backlog, struct bytes code, enum backlog_whom whom)
{
    if (code.size > BACKLOG_CODE_BYTES)
        return;
    if (code.size)
        write_code(backlog, code);
    if (whom == BACKLOG_LOCAL)
        atomic_fetch_add(&backlog->lost, 1);
    atomic_fetch_or(&backlog->wanted, whom);
}

bool backlog_take(struct backlog *backlog, enum backlog_whom whom, char code_r[BACKLOG_CODE_BYTES + 1])
{
    if (!(atomic_load(&backlog->wanted) & whom))
        return false;
    backlog_read_code(backlog, code_r);
    if (!*code_r)
        return false;
    atomic_fetch_and(&backlog->wanted, ~(uint32_t)whom);
    return true;
}

void backlog_offer(struct backlog *backlog)
{
    atomic_fetch_add(&backlog->offers, 1);
}

uint64_t backlog_offers(const struct backlog *backlog)
{
    return atomic_load(&backlog->offers);
}

void backlog_write(struct backlog *backlog, struct bytes code,
                   const struct backlog_numbers numbers[BACKLOG_QUEUES], int64_t now_ms)
{
    write_code(backlog, code);
    for (int queue = 0; queue < BACKLOG_QUEUES; queue++) {
        int64_t values[NUMBERS];
        memcpy(values, &numbers[queue], sizeof values);
        for (int i = 0; i < NUMBERS; i++)
            atomic_store(&backlog->numbers[queue][i], values[i]);
        if (has_any(values))
            atomic_fetch_or(&backlog->queues_seen, UINT32_C(1) << queue);
    }
    atomic_store(&backlog->looked_ms, now_ms > 0 ? now_ms : 1);
}

void backlog_begin_task(struct backlog *backlog, int queue, int64_t start, int64_t created, int64_t now_ms)
{
    int64_t age_ms = backlog_age_ms(backlog, now_ms);
    if (age_ms < 0 || queue < 0 || queue >= BACKLOG_QUEUES)
        return;
    int64_t looked = stamp_add_ms(stamp_now(), -age_ms);
    _Atomic int64_t *numbers = backlog->numbers[queue];
    int64_t due = atomic_load(&numbers[DUE]);
    if (start > looked || created > looked)
        return;
    while (due > 0 && !atomic_compare_exchange_weak(&numbers[DUE], &due, due - 1))
        ;
    if (due == 1) /* it was the last one */
        atomic_store(&numbers[OLDEST], 0);
}

void backlog_read_code(const struct backlog *backlog, char code_r[BACKLOG_CODE_BYTES + 1])
{
    uint64_t words[CODE_WORDS];
    for (int i = 0; i < CODE_WORDS; i++)
        words[i] = atomic_load(&backlog->code[i]);
    memcpy(code_r, words, sizeof words);
    code_r[BACKLOG_CODE_BYTES] = '\0';
}

bool backlog_read(const struct backlog *backlog, int queue, struct backlog_numbers *numbers_r)
{
    int64_t values[NUMBERS];
    assert(queue >= 0 && queue < BACKLOG_QUEUES);
    for (int i = 0; i < NUMBERS; i++)
        values[i] = atomic_load(&backlog->numbers[queue][i]);
    memcpy(numbers_r, values, sizeof values);
    return atomic_load(&backlog->queues_seen) >> queue & 1;
}

size_t backlog_size(const struct board_sizes *sizes UNUSED)
{
    return NAMESPACES_MOST * sizeof(struct backlog);
}

void backlog_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->backlogs = memory;
}

struct backlog *backlog_of(const struct segment *segment, int ns)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    return &segment->backlogs[ns];
}
