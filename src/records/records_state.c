/* records_state: a table beside the records, under their lock; the counters of changes are outside of it. */
#include "records/records_state.h"

#include <string.h>

#include "base/clock.h"
#include "records/records_private.h"

enum { US = 1000 };

static const struct siphash_key hash_key; /* only spreads codes, which the administrator selects */

static size_t records_state_place_of(struct bytes ns)
{
    return siphash_short(&hash_key, ns) % RECORDS_STATE_MOVES;
}

void records_state_move(struct records *records, struct bytes ns)
{
    bool is_all = !ns.data || bytes_equal(ns, BYTES("z"));
    atomic_fetch_add(is_all ? &records->head->moved_all : &records->head->moved[records_state_place_of(ns)],
                     1);
}

void records_state_begin(const struct records *records, struct records_reading *reading_r)
{
    reading_r->began_ms = clock_monotonic_ms();
    reading_r->moved_all = atomic_load(&records->head->moved_all);
    for (size_t i = 0; i < RECORDS_STATE_MOVES; i++)
        reading_r->moved[i] = atomic_load(&records->head->moved[i]);
}

/* Had the reading seen fewer changes than this one?  Counters wrap around. */
static bool is_before(uint32_t moved, uint32_t seen)
{
    return (int32_t)(moved - seen) < 0;
}

bool records_state_is_due(const struct records *records)
{
    const struct records_head *head = records->head;
    struct records_reading now;
    records_state_begin(records, &now);
    bool is_moved = now.moved_all != head->seen_all || memcmp(now.moved, head->seen, sizeof now.moved) != 0;
    return is_moved || now.began_ms >= (int64_t)undo_long(head->confirmed) + RECORDS_STATE_READ_MS;
}

/* --- the table --- */

static bool records_state_is_of(const struct state_entry *entry, const char code[RECORDS_CODE_MOST])
{
    return memcmp(entry->code, code, RECORDS_CODE_MOST) == 0;
}

static void code_of(struct bytes ns, char code_r[RECORDS_CODE_MOST])
{
    assert(ns.size <= RECORDS_CODE_MOST);
    memset(code_r, 0, RECORDS_CODE_MOST);
    memcpy(code_r, ns.data, ns.size);
}

static struct state_entry *records_state_find_entry(struct records_head *head, struct bytes ns)
{
    char code[RECORDS_CODE_MOST];
    code_of(ns, code);
    for (size_t i = 0; i < head->states; i++)
        if (records_state_is_of(&head->state[i], code))
            return &head->state[i];
    return NULL;
}

static void write_words(struct records *records, uint32_t *words, size_t size, struct bytes text)
{
    uint32_t value[RECORDS_STATE_MESSAGE_MOST / sizeof(uint32_t)] = {0};
    assert(size <= sizeof value && text.size <= size);
    memcpy(value, text.data, text.size);
    for (size_t i = 0; i < size / sizeof(uint32_t); i++)
        undo_set(&records->memory, &words[i], value[i]);
}

static struct bytes records_state_cut(struct bytes message)
{
    while (message.size > RECORDS_STATE_MESSAGE_MOST || (message.size && !bytes_is_utf8(message)))
        message.size--;
    return message;
}

/* The debts stay: they are what was counted. */
static void write_entry(struct records *records, struct state_entry *entry, const struct records_state *state)
{
    struct bytes message = state->message.data ? records_state_cut(state->message) : BYTES("");
    char code[RECORDS_CODE_MOST];
    code_of(state->ns, code);
    if (!records_state_is_of(entry, code))
        for (size_t i = 0; i < RECORDS_RATES; i++)
            undo_set_long(&records->memory, entry->paid_us[i], 0);
    write_words(records, entry->code, sizeof entry->code, (struct bytes){code, sizeof code});
    write_words(records, entry->message, sizeof entry->message, message);
    undo_set(&records->memory, &entry->message_size, (uint32_t)message.size);
    undo_set(&records->memory, &entry->state, (uint32_t)state->state);
    undo_set(&records->memory, &entry->is_encrypted, state->is_encrypted);
    undo_set(&records->memory, &entry->is_spread, state->is_spread);
    undo_set_long(&records->memory, entry->made, state->made);
    for (size_t i = 0; i < RECORDS_RATES; i++) {
        const struct quota_rate *rate = &state->rates[i];
        uint64_t step_us = rate->count ? (uint64_t)(rate->period_ms * US / rate->count) : 0;
        step_us += rate->count && !step_us;
        undo_set_long(&records->memory, entry->step_us[i], step_us);
        undo_set_long(&records->memory, entry->burst_us[i], step_us * (uint64_t)rate->burst);
    }
    records_commit(records);
}

static bool records_state_is_listed(const struct records_state *states, size_t count,
                                    const struct state_entry *entry)
{
    char code[RECORDS_CODE_MOST];
    for (size_t i = 0; i < count; i++) {
        code_of(states[i].ns, code);
        if (records_state_is_of(entry, code))
            return true;
    }
    return false;
}

static struct bytes code_in(const struct state_entry *entry)
{
    const char *code = (const char *)entry->code;
    return (struct bytes){code, strnlen(code, RECORDS_CODE_MOST)};
}

/* Records of a namespace that was dropped are none of another one with its code that is encrypted, or not,
 * and was made while nothing was read. */
static void settle_spaces(struct records *records)
{
    for (int i = 0; i < (int)records->head->spaces; i++) {
        const struct state_entry *entry =
            records->head->space[i].kind
                ? records_state_find_entry(records->head, records_space_code(records, i))
                : NULL;
        if (entry)
            records_settle_space(records, i, entry->is_encrypted);
    }
}

static void records_state_write_all(struct records *records, const struct records_state *states, size_t count)
{
    struct records_head *head = records->head;
    bool is_moved = false;
    for (uint32_t i = 0; i < head->states;) {
        struct state_entry *entry = &head->state[i], *last = &head->state[head->states - 1];
        if (records_state_is_listed(states, count, entry)) {
            i++;
            continue;
        }
        records_empty_spaces(records, code_in(entry)); /* another one of its code has none of them */
        for (size_t word = 0; entry != last && word < sizeof *entry / sizeof(uint32_t); word++)
            undo_set(&records->memory, (uint32_t *)entry + word, ((uint32_t *)last)[word]);
        undo_set(&records->memory, &head->states, head->states - 1);
        records_commit(records);
    }
    for (size_t i = 0; i < count; i++) {
        struct state_entry *entry = records_state_find_entry(head, states[i].ns);
        if (!entry) {
            assert(head->states < RECORDS_STATES_MOST);
            entry = &head->state[head->states];
            undo_set(&records->memory, &head->states, head->states + 1);
        }
        is_moved |= entry->is_spread != states[i].is_spread;
        write_entry(records, entry, &states[i]);
    }
    uint32_t spread = 0;
    for (uint32_t i = 0; i < head->states; i++)
        spread += head->state[i].is_spread;
    undo_set(&records->memory, &head->spread, spread);
    settle_spaces(records);
    if (is_moved) /* listeners look */
        atomic_fetch_add(&head->changes, 1);
}

bool records_state_some_spread(const struct records *records)
{
    return records->head->spread > 0;
}

bool records_are_spread(const struct records *records, struct bytes ns)
{
    const struct state_entry *entry =
        records->head->spread ? records_state_find_entry(records->head, ns) : NULL;
    return entry && entry->is_spread;
}

static bool is_outdated(const struct records_head *head, const struct records_reading *reading)
{
    bool is_older = is_before(reading->moved_all, head->seen_all) ||
                    reading->began_ms < (int64_t)undo_long(head->confirmed);
    for (size_t i = 0; i < RECORDS_STATE_MOVES; i++)
        is_older = is_older || is_before(reading->moved[i], head->seen[i]);
    return is_older;
}

void records_state_apply(struct records *records, const struct records_reading *reading,
                         const struct records_state *states, size_t count)
{
    struct records_head *head = records->head;
    assert(count <= RECORDS_STATES_MOST);
    if (!records_enter(records))
        return;
    if (!is_outdated(head, reading)) {
        records_state_write_all(records, states, count);
        undo_set(&records->memory, &head->seen_all, reading->moved_all);
        for (size_t i = 0; i < RECORDS_STATE_MOVES; i++)
            undo_set(&records->memory, &head->seen[i], reading->moved[i]);
        undo_set_long(&records->memory, head->confirmed, (uint64_t)reading->began_ms);
        records_commit(records);
    }
    records_leave(records);
}

/* --- admission --- */

/* When the debt will be paid that one more request makes (GCRA, as in segment/counts/limiter.h); 0: the
 * request is too much, and `wait_ms_r` says for how long. */
static uint64_t charge(const struct state_entry *entry, enum records_rate rate, uint64_t now_us,
                       int64_t *wait_ms_r)
{
    uint64_t step = undo_long(entry->step_us[rate]), most = now_us + undo_long(entry->burst_us[rate]);
    uint64_t paid = undo_long(entry->paid_us[rate]);
    paid = paid < now_us ? now_us : paid > most ? most : paid; /* the burst may have become smaller */
    if (paid + step <= most)
        return paid + step;
    *wait_ms_r = (int64_t)((paid + step - most + US - 1) / US);
    return 0;
}

static enum records_verdict count_request(struct records *records, struct state_entry *entry, bool is_write,
                                          uint64_t now_us, struct records_answer *answer)
{
    uint64_t paid[RECORDS_RATES] = {0};
    size_t rates = is_write ? RECORDS_RATES : RECORDS_WRITES;
    for (size_t i = 0; i < rates; i++)
        if (undo_long(entry->step_us[i]) &&
            !(paid[i] = charge(entry, (enum records_rate)i, now_us, &answer->wait_ms)))
            return RECORDS_TOO_MANY;
    for (size_t i = 0; i < rates; i++)
        if (paid[i])
            undo_set_long(&records->memory, entry->paid_us[i], paid[i]);
    records_commit(records);
    return RECORDS_ADMITTED;
}

static enum records_verdict records_state_judge(struct records *records, struct bytes ns, bool is_write,
                                                int64_t oldest_ms, bool is_counted,
                                                struct records_answer *answer)
{
    struct records_head *head = records->head;
    int64_t confirmed_ms = (int64_t)undo_long(head->confirmed);
    int64_t now_ms = clock_monotonic_ms();
    size_t place = records_state_place_of(ns);
    if (!confirmed_ms || now_ms - confirmed_ms > oldest_ms)
        return RECORDS_UNCONFIRMED;
    if (atomic_load(&head->moved_all) != head->seen_all ||
        atomic_load(&head->moved[place]) != head->seen[place])
        return RECORDS_IS_MOVED;
    struct state_entry *entry = records_state_find_entry(head, ns);
    if (!entry)
        return RECORDS_IS_ABSENT;
    memcpy(answer->message, entry->message, entry->message_size);
    answer->message[entry->message_size] = 0;
    answer->is_encrypted = entry->is_encrypted;
    answer->is_spread = entry->is_spread;
    answer->made = undo_long(entry->made);
    if (entry->state >= NS_OFF)
        return entry->state == NS_OFF ? RECORDS_IS_OFF : RECORDS_IS_GONE;
    if (entry->state == NS_READONLY && is_write)
        return RECORDS_IS_READONLY;
    return is_counted ? count_request(records, entry, is_write, (uint64_t)now_ms * US, answer)
                      : RECORDS_ADMITTED;
}

enum records_verdict records_state_admit(struct records *records, struct bytes ns, bool is_write,
                                         bool is_counted, int64_t oldest_ms, struct records_answer *answer_r)
{
    answer_r->wait_ms = 0;
    *answer_r->message = 0;
    answer_r->is_encrypted = answer_r->is_spread = false;
    answer_r->made = 0;
    if (!records_enter_untimed(records))
        return RECORDS_UNCONFIRMED;
    enum records_verdict verdict =
        records_state_judge(records, ns, is_write, oldest_ms, is_counted, answer_r);
    records_leave(records);
    return verdict;
}
