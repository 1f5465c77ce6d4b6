/* in_flight: a token for each worker, and the last few that were never answered.
 *
 * A reader reads the current token of a worker's slot first, then its retired ones, then the time of the last
 * one dropped; the writer writes in the opposite order.  So a token that moves is found in one of them. */
#include "serve/in_flight.h"

#include <stdatomic.h>
#include <string.h>

#include "edge/mapping.h"
#include "http/request_id.h"

enum {
    TOKEN_BYTES = 64, /* shorter ones are padded with zeros */
    TOKEN_WORDS = TOKEN_BYTES / 8,
    RETIRED = 8,     /* kept for each slot */
    SLACK_MS = 1000, /* nginx's cached time may lag while it is busy */
    AGE_DIGITS = 12,
};

struct token {
    _Atomic uint64_t words[TOKEN_WORDS]; /* 0: none */
};

struct in_flight_slot {
    _Alignas(64) struct token present;
    struct token given; /* the client's id of the present request */
    struct token retired[RETIRED];
    _Atomic uint32_t fates[RETIRED];
    struct token left[RETIRED];  /* whose clients went before the answer */
    int64_t retired_ms[RETIRED]; /* used only by the writer */
    uint32_t next, next_left;
    _Atomic int64_t forgotten_ms; /* this slot proves nothing about earlier requests */
};

enum { LAYOUT = 3 };

struct in_flight {
    _Atomic uint32_t layout; /* 0: not initialised yet */
    int count;
    struct in_flight_slot slots[];
};

static size_t size_of(int slots)
{
    return sizeof(struct in_flight) + (size_t)slots * sizeof(struct in_flight_slot);
}

static struct in_flight *in_flight_make(struct in_flight *in_flight, int slots, int64_t now_ms)
{
    in_flight->count = slots;
    for (int i = 0; i < slots; i++)
        in_flight->slots[i].forgotten_ms = now_ms;
    atomic_store(&in_flight->layout, LAYOUT);
    return in_flight;
}

struct in_flight *in_flight_create(int slots, int64_t now_ms)
{
    return in_flight_make(mapping_share(size_of(slots)), slots, now_ms);
}

struct in_flight *in_flight_open(int slots, int64_t now_ms, int *descriptor, bool is_alone)
{
    bool is_new = *descriptor < 0;
    struct in_flight *in_flight = mapping_share_passed(size_of(slots), descriptor);
    if (is_new)
        return in_flight_make(in_flight, slots, now_ms);
    if (!in_flight || atomic_load(&in_flight->layout) != LAYOUT || in_flight->count != slots)
        return NULL;
    for (int i = 0; is_alone && i < slots; i++)
        in_flight_retire(in_flight, i, &(struct fate){.cause = LOSS_UNKNOWN}, now_ms);
    return in_flight;
}

static struct in_flight_slot *slot_at(struct in_flight *in_flight, int slot)
{
    assert(slot >= 0 && slot < in_flight->count);
    return &in_flight->slots[slot];
}

static void write_token(struct token *token, const uint64_t words[TOKEN_WORDS])
{
    for (int i = 0; i < TOKEN_WORDS; i++)
        atomic_store_explicit(&token->words[i], words[i], memory_order_release);
}

static void read_token(const struct token *token, uint64_t words_r[TOKEN_WORDS])
{
    for (int i = 0; i < TOKEN_WORDS; i++)
        words_r[i] = atomic_load(&token->words[i]);
}

static bool in_flight_is_token(const struct token *token, const uint64_t words[TOKEN_WORDS])
{
    uint64_t present[TOKEN_WORDS];
    read_token(token, present);
    return memcmp(present, words, sizeof present) == 0;
}

static bool in_flight_is_known(const struct in_flight_slot *slot, const uint64_t words[TOKEN_WORDS])
{
    if (in_flight_is_token(&slot->present, words))
        return true;
    for (int i = 0; i < RETIRED; i++)
        if (in_flight_is_token(&slot->retired[i], words) || in_flight_is_token(&slot->left[i], words))
            return true;
    return false;
}

/* Reads seconds with a fraction of three digits, as nginx writes them. */
static bool read_seconds(struct bytes text, int64_t *ms_r)
{
    int64_t seconds, fraction = 0;
    const char *dot = text.size && text.size <= AGE_DIGITS ? memchr(text.data, '.', text.size) : NULL;
    if (!dot || text.data + text.size - dot != 4)
        return false;
    for (const char *digit = text.data; digit < text.data + text.size; digit++)
        if (digit != dot && (*digit < '0' || *digit > '9'))
            return false;
    if (!bytes_to_i64((struct bytes){text.data, (size_t)(dot - text.data)}, &seconds) ||
        !bytes_to_i64((struct bytes){dot + 1, 3}, &fraction))
        return false;
    *ms_r = seconds * 1000 + fraction;
    return true;
}

bool in_flight_is_again(const struct redelivery *redelivery)
{
    return redelivery->answered.size || redelivery->age.size;
}

/* What follows the first colon in "118 : 0"; empty when there is none. */
static struct bytes after_first(struct bytes text)
{
    const char *colon = text.size ? memchr(text.data, ':', text.size) : NULL;
    if (!colon)
        return NO_BYTES;
    struct bytes rest = {colon + 1, (size_t)(text.data + text.size - colon - 1)};
    while (rest.size && *rest.data == ' ')
        rest = (struct bytes){rest.data + 1, rest.size - 1};
    return rest;
}

void in_flight_forget_first(struct redelivery *redelivery)
{
    redelivery->answered = after_first(redelivery->answered);
    redelivery->age = after_first(redelivery->age);
}

/* Is it certain that no byte was answered and no worker had begun the request? */
static bool is_untouched(const struct in_flight *in_flight, const uint64_t words[TOKEN_WORDS],
                         const struct redelivery *redelivery, int64_t now_ms)
{
    int64_t age_ms;
    if (!bytes_equal(redelivery->answered, BYTES("0")) || !read_seconds(redelivery->age, &age_ms))
        return false;
    int64_t came_ms = now_ms - age_ms - SLACK_MS;
    for (int i = 0; i < in_flight->count; i++)
        if (in_flight_is_known(&in_flight->slots[i], words) ||
            atomic_load(&in_flight->slots[i].forgotten_ms) >= came_ms)
            return false;
    return true;
}

static bool read_words(struct bytes token, uint64_t words_r[TOKEN_WORDS])
{
    memset(words_r, 0, TOKEN_BYTES);
    if (!token.size || token.size > TOKEN_BYTES)
        return false;
    memcpy(words_r, token.data, token.size);
    return true;
}

bool in_flight_start(struct in_flight *in_flight, int slot, const struct redelivery *redelivery,
                     int64_t now_ms)
{
    static const uint64_t none[TOKEN_WORDS];
    uint64_t words[TOKEN_WORDS];
    struct token *present = &slot_at(in_flight, slot)->present;
    bool has_token = read_words(redelivery->token, words);
    if (in_flight_is_again(redelivery) && (!has_token || !is_untouched(in_flight, words, redelivery, now_ms)))
        return false;
    write_token(present, has_token ? words : none);
    return true;
}

void in_flight_name(struct in_flight *in_flight, int slot, struct bytes given)
{
    struct token *name = &slot_at(in_flight, slot)->given;
    uint64_t words[TOKEN_WORDS];
    if (read_words(given, words))
        write_token(name, words);
    else /* in most requests: no more than one store */
        atomic_store_explicit(&name->words[0], 0, memory_order_release);
}

static const char *in_flight_text_of(struct arena *arena, const struct token *token)
{
    uint64_t words[TOKEN_WORDS + 1] = {0};
    read_token(token, words);
    return arena_copy(arena, (const char *)words, strnlen((const char *)words, TOKEN_BYTES));
}

const char *in_flight_request_id(const struct in_flight *in_flight, int slot, struct arena *arena)
{
    assert(slot >= 0 && slot < in_flight->count);
    const char *token = in_flight_text_of(arena, &in_flight->slots[slot].present);
    const char *given = in_flight_text_of(arena, &in_flight->slots[slot].given);
    if (!*token)
        return NULL;
    return *given ? given : request_id_make(arena, bytes_of(token));
}

void in_flight_end(struct in_flight *in_flight, int slot)
{
    static const uint64_t none[TOKEN_WORDS];
    write_token(&slot_at(in_flight, slot)->present, none);
}

void in_flight_leave(struct in_flight *in_flight, int slot)
{
    struct in_flight_slot *whose = slot_at(in_flight, slot);
    uint64_t words[TOKEN_WORDS];
    read_token(&whose->present, words);
    write_token(&whose->left[whose->next_left++ % RETIRED], words);
    in_flight_end(in_flight, slot);
}

enum { CAUSE_BITS = 8, BIT_APPLICATION = 1 << CAUSE_BITS, BIT_UNCHANGED = 2 << CAUSE_BITS };

/* The fate in a retired entry changes only while the entry has no token. */
static void write_retired(struct in_flight_slot *slot, uint32_t retired, const uint64_t words[TOKEN_WORDS],
                          const struct fate *fate)
{
    static const uint64_t none[TOKEN_WORDS];
    uint32_t bits = (uint32_t)fate->cause;
    if (fate->in_application)
        bits |= BIT_APPLICATION;
    if (fate->is_unchanged)
        bits |= BIT_UNCHANGED;
    write_token(&slot->retired[retired], none);
    atomic_store(&slot->fates[retired], bits);
    write_token(&slot->retired[retired], words);
}

void in_flight_retire(struct in_flight *in_flight, int slot, const struct fate *fate, int64_t now_ms)
{
    static const uint64_t none[TOKEN_WORDS];
    struct in_flight_slot *whose = slot_at(in_flight, slot);
    uint64_t words[TOKEN_WORDS];
    read_token(&whose->present, words);
    if (memcmp(words, none, sizeof words) == 0)
        return;
    uint32_t retired = whose->next++ % RETIRED;
    if (whose->retired_ms[retired])
        atomic_store(&whose->forgotten_ms, whose->retired_ms[retired]);
    write_retired(whose, retired, words, fate);
    whose->retired_ms[retired] = now_ms;
    write_token(&whose->present, none);
}

/* False: it is not retired, or was dropped just now. */
static bool find_retired(const struct in_flight *in_flight, const uint64_t words[TOKEN_WORDS],
                         struct fate *fate_r)
{
    for (int i = 0; i < in_flight->count; i++) {
        const struct in_flight_slot *slot = &in_flight->slots[i];
        for (int retired = 0; retired < RETIRED; retired++) {
            if (!in_flight_is_token(&slot->retired[retired], words))
                continue;
            uint32_t bits = atomic_load(&slot->fates[retired]);
            if (!in_flight_is_token(&slot->retired[retired], words))
                return false;
            *fate_r = (struct fate){.cause = (enum loss_cause)(bits & ((1U << CAUSE_BITS) - 1)),
                                    .in_application = (bits & BIT_APPLICATION) != 0,
                                    .is_unchanged = (bits & BIT_UNCHANGED) != 0};
            return true;
        }
    }
    return false;
}

static bool is_present(const struct in_flight *in_flight, const uint64_t words[TOKEN_WORDS])
{
    for (int i = 0; i < in_flight->count; i++)
        if (in_flight_is_token(&in_flight->slots[i].present, words))
            return true;
    return false;
}

enum found_fate in_flight_find(const struct in_flight *in_flight, struct bytes token, struct fate *fate_r)
{
    uint64_t words[TOKEN_WORDS];
    *fate_r = (struct fate){0};
    if (!read_words(token, words))
        return FATE_NONE;
    /* In this order: in_flight_retire() writes the retired entry before it clears the slot. */
    bool was_present = is_present(in_flight, words);
    if (find_retired(in_flight, words, fate_r))
        return FATE_FOUND;
    return was_present ? FATE_LATER : FATE_NONE;
}
