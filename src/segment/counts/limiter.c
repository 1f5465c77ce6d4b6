/* limiter: lines of cells, and the ticket through which subjects enter a line.
 *
 * Why a subject is never in two cells.  A cell changes from free to taken only in `finish`, for the ticket of
 * the line, and a ticket replaces the former one by compare-and-swap.  `limiter_take` reads the ticket, then
 * finds neither the subject nor an unfinished entry, then replaces the ticket it has read: if that succeeds,
 * nobody has entered since, and the free place that it has seen is still free.  Whoever meets an unfinished
 * entry finishes it first, so an entry outlives its process.
 *
 * Why an entry is made once.  `finish` swaps the free cell it has read before it read the ticket again.  A
 * free cell has the time at which it became free, which differs each time: a process that was delayed between
 * the two reads and the swap fails, since the cell was taken in between.  (A ticket repeats after 64 entries,
 * the last of the same subject at the same place; a process would have to sleep exactly that long.  It would
 * count one event less.)
 *
 * Why no event is lost.  An event is admitted by one swap: of a cell, from the debt it was judged by to that
 * debt and its own; or of the ticket, for a subject without a cell, that is, without a debt.  A cell is freed
 * by a swap from a debt that is paid; its owner's event, if it comes first, makes this fail. */
#include "segment/counts/limiter.h"

#include "base/coding/hash.h"
#include "base/coding/siphash.h"

enum { TICKS_PER_MS = LIMITER_RATE_MOST, SLOTS_OF_A_LINE = 8, TAG_BITS = 24 };
enum { TIME_BITS = 40, CHARGE_BITS = 30, TICKET_PLACE = CHARGE_BITS + TAG_BITS, TICKET_NUMBER = 58 };
static const uint64_t TIME_MASK = (UINT64_C(1) << TIME_BITS) - 1;
static const uint64_t CHARGE_MOST = (UINT64_C(1) << CHARGE_BITS) - 1;
static const uint64_t DEBT_MOST = UINT64_C(1) << 32; /* what is further ahead is long past: time wraps */
static const uint64_t UNFINISHED = UINT64_C(1) << 57;

/* An event, in ticks. */
struct event {
    uint64_t tag, charge, most, now;
};

static struct limiter_line *line_of(const struct segment *segment, uint64_t key)
{
    return &segment->limiter->lines[key & (segment->limiter_lines - 1)];
}

static uint64_t tag_of(uint64_t key)
{
    uint64_t tag = key >> (64 - TAG_BITS);
    return tag ? tag : 1;
}

static uint64_t tick_of(int64_t ms)
{
    return (uint64_t)ms * TICKS_PER_MS & TIME_MASK;
}

uint64_t limiter_key(const struct segment *segment, int ns, int kind, struct bytes subject)
{
    uint64_t what = (uint64_t)(uint32_t)ns << 32 | (uint32_t)kind;
    const struct siphash_key key = {{segment_seed(segment), what}};
    return subject.size ? siphash_short(&key, subject)
                        : hash_mix(key.words[0] + what * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct event event_of(uint64_t key, const struct limiter_rate *rate, int64_t cost, int64_t now_ms)
{
    assert(rate->count > 0 && rate->period_ms > 0 && rate->burst > 0 && cost > 0);
    uint64_t each =
        ((uint64_t)rate->period_ms * TICKS_PER_MS + (uint64_t)rate->count - 1) / (uint64_t)rate->count;
    each = least(each, CHARGE_MOST);
    uint64_t most = least(least((uint64_t)rate->burst, DEBT_MOST) * each, DEBT_MOST);
    uint64_t charge =
        cost == 1 ? each : least(least((uint64_t)cost, DEBT_MOST) * each, least(most, CHARGE_MOST));
    return (struct event){.tag = tag_of(key), .charge = charge, .most = most, .now = tick_of(now_ms)};
}

/* --- cells --- */

static uint64_t make_cell(uint64_t tag, uint64_t time)
{
    return tag << TIME_BITS | (time & TIME_MASK);
}

static bool limiter_is_free(uint64_t cell)
{
    return cell >> TIME_BITS == 0;
}

static uint64_t debt_of(uint64_t cell, uint64_t now)
{
    uint64_t ahead = (cell - now) & TIME_MASK;
    return !limiter_is_free(cell) && ahead <= DEBT_MOST ? ahead : 0;
}

/* The place of the subject; LIMITER_CELLS: it has none. */
static int limiter_find(const struct limiter_line *line, uint64_t tag, uint64_t *cell_r)
{
    int place = 0;
    while (place < LIMITER_CELLS && (*cell_r = atomic_load(&line->cells[place])) >> TIME_BITS != tag)
        place++;
    return place;
}

/* 0: within the limit; otherwise milliseconds. */
static int64_t wait_of(const struct event *event, uint64_t debt)
{
    uint64_t after = debt + event->charge;
    return after <= event->most ? 0 : (int64_t)((after - event->most + TICKS_PER_MS - 1) / TICKS_PER_MS);
}

/* --- the ticket --- */

static int limiter_place_of(uint64_t ticket)
{
    return (int)(ticket >> TICKET_PLACE & 7);
}

static uint64_t next_ticket(uint64_t ticket, int place, const struct event *event)
{
    uint64_t number = (ticket >> TICKET_NUMBER) + 1;
    return number << TICKET_NUMBER | UNFINISHED | (uint64_t)place << TICKET_PLACE |
           event->tag << CHARGE_BITS | event->charge;
}

/* Any process may do this, at any time, and several may. */
static void limiter_finish(struct limiter_line *line, uint64_t ticket, uint64_t now)
{
    _Atomic uint64_t *place = &line->cells[limiter_place_of(ticket)];
    uint64_t cell = atomic_load(place), tag = ticket >> CHARGE_BITS & ((UINT64_C(1) << TAG_BITS) - 1);
    if (limiter_is_free(cell) && atomic_load(&line->ticket) == ticket)
        atomic_compare_exchange_strong(place, &cell, make_cell(tag, now + (ticket & CHARGE_MOST)));
    atomic_compare_exchange_strong(&line->ticket, &ticket, ticket & ~UNFINISHED);
}

/* Leaves no unfinished entry; returns the ticket. */
static uint64_t limiter_settle(struct limiter_line *line, uint64_t now)
{
    uint64_t ticket;
    while ((ticket = atomic_load(&line->ticket)) & UNFINISHED)
        limiter_finish(line, ticket, now);
    return ticket;
}

/* A place that is free, if need be made so; false: another process was faster. */
static bool limiter_make_room(struct segment *segment, struct limiter_line *line, uint64_t now, int *place_r)
{
    uint64_t least = 0;
    *place_r = -1;
    for (int place = 0; place < LIMITER_CELLS; place++) {
        uint64_t cell = atomic_load(&line->cells[place]);
        if (limiter_is_free(cell)) {
            *place_r = place;
            return true;
        }
        if (*place_r < 0 || debt_of(cell, now) < debt_of(least, now)) {
            *place_r = place;
            least = cell;
        }
    }
    bool is_eviction = debt_of(least, now) > 0;
    if (!atomic_compare_exchange_strong(&line->cells[*place_r], &least, make_cell(0, now)))
        return false;
    if (is_eviction)
        atomic_fetch_add(&segment->limiter->evicted, 1);
    return true;
}

/* --- for callers --- */

int64_t limiter_take(struct segment *segment, uint64_t key, const struct limiter_rate *rate, int64_t cost,
                     int64_t now_ms)
{
    struct limiter_line *line = line_of(segment, key);
    const struct event event = event_of(key, rate, cost, now_ms);
    for (;;) {
        uint64_t cell, ticket = limiter_settle(line, event.now);
        int place = limiter_find(line, event.tag, &cell);
        if (place < LIMITER_CELLS) {
            uint64_t debt = debt_of(cell, event.now);
            int64_t wait_ms = wait_of(&event, debt);
            if (wait_ms ||
                atomic_compare_exchange_strong(&line->cells[place], &cell,
                                               make_cell(event.tag, event.now + debt + event.charge)))
                return wait_ms;
        } else if (limiter_make_room(segment, line, event.now, &place)) {
            uint64_t next = next_ticket(ticket, place, &event);
            if (atomic_compare_exchange_strong(&line->ticket, &ticket, next)) {
                limiter_finish(line, next, event.now);
                return 0;
            }
        }
    }
}

int64_t limiter_look(struct segment *segment, uint64_t key, const struct limiter_rate *rate, int64_t cost,
                     int64_t now_ms)
{
    struct limiter_line *line = line_of(segment, key);
    const struct event event = event_of(key, rate, cost, now_ms);
    uint64_t cell;
    limiter_settle(line, event.now);
    int place = limiter_find(line, event.tag, &cell);
    return wait_of(&event, place < LIMITER_CELLS ? debt_of(cell, event.now) : 0);
}

void limiter_give_back(struct segment *segment, uint64_t key, const struct limiter_rate *rate, int64_t now_ms)
{
    struct limiter_line *line = line_of(segment, key);
    const struct event event = event_of(key, rate, 1, now_ms);
    uint64_t cell, debt;
    int place;
    do {
        limiter_settle(line, event.now);
        place = limiter_find(line, event.tag, &cell);
        debt = place < LIMITER_CELLS ? debt_of(cell, event.now) : 0;
        debt -= least(debt, event.charge);
    } while (place < LIMITER_CELLS && !atomic_compare_exchange_strong(
                                          &line->cells[place], &cell,
                                          debt ? make_cell(event.tag, event.now + debt) : make_cell(0, 0)));
}

void limiter_forget(struct segment *segment, uint64_t key, int64_t now_ms)
{
    struct limiter_line *line = line_of(segment, key);
    uint64_t cell, now = tick_of(now_ms);
    int place;
    do {
        limiter_settle(line, now);
        place = limiter_find(line, tag_of(key), &cell);
    } while (place < LIMITER_CELLS &&
             !atomic_compare_exchange_strong(&line->cells[place], &cell, make_cell(0, now)));
}

struct limiter_use limiter_use(const struct segment *segment, int64_t now_ms)
{
    struct limiter_use use = {.most = (uint64_t)segment->limiter_lines * LIMITER_CELLS,
                              .evicted = atomic_load(&segment->limiter->evicted)};
    for (uint32_t line = 0; line < segment->limiter_lines; line++)
        for (int place = 0; place < LIMITER_CELLS; place++)
            use.used +=
                debt_of(atomic_load(&segment->limiter->lines[line].cells[place]), tick_of(now_ms)) > 0;
    return use;
}

size_t limiter_size(const struct board_sizes *sizes)
{
    return sizeof(struct limiter_board) + sizes->slots / SLOTS_OF_A_LINE * sizeof(struct limiter_line);
}

void limiter_init(struct segment *segment, void *memory, const struct board_sizes *sizes)
{
    segment->limiter = memory;
    segment->limiter_lines = sizes->slots / SLOTS_OF_A_LINE;
}
