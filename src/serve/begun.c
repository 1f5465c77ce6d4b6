/* begun: a token for each worker, and the last few that were never answered.
 *
 * Who looks reads the place of a worker first and what is buried there after it, and then what was forgotten;
 * who buries writes in the other order.  So a token that moves is seen in one of them. */
#include "serve/begun.h"

#include <stdatomic.h>
#include <string.h>

#include "edge/segment.h"

enum {
    TOKEN_BYTES = 64, /* shorter ones are filled up with zeros */
    TOKEN_WORDS = TOKEN_BYTES / 8,
    GRAVES = 8,      /* of a place */
    SLACK_MS = 1000, /* nginx's clock stands still while it works */
    AGE_DIGITS = 12,
};

struct token {
    _Atomic uint64_t words[TOKEN_WORDS]; /* 0: none */
};

struct place {
    _Alignas(64) struct token present;
    struct token graves[GRAVES];
    _Atomic uint32_t fates[GRAVES];
    int64_t buried_ms[GRAVES]; /* for the writer alone */
    uint32_t next;
    _Atomic int64_t forgotten_ms; /* nothing that came before may be proven by this place */
};

enum { LAYOUT = 2 };

struct begun {
    _Atomic uint32_t layout; /* 0: it is being made */
    int count;
    struct place places[];
};

static size_t size_of(int places)
{
    return sizeof(struct begun) + (size_t)places * sizeof(struct place);
}

static struct begun *make(struct begun *begun, int places, int64_t now_ms)
{
    begun->count = places;
    for (int i = 0; i < places; i++)
        begun->places[i].forgotten_ms = now_ms;
    atomic_store(&begun->layout, LAYOUT);
    return begun;
}

struct begun *begun_create(int places, int64_t now_ms)
{
    return make(segment_share(size_of(places)), places, now_ms);
}

struct begun *begun_open(int places, int64_t now_ms, int *descriptor, bool is_alone)
{
    bool is_new = *descriptor < 0;
    struct begun *begun = segment_share_passed(size_of(places), descriptor);
    if (is_new)
        return make(begun, places, now_ms);
    if (!begun || atomic_load(&begun->layout) != LAYOUT || begun->count != places)
        return NULL;
    for (int i = 0; is_alone && i < places; i++)
        begun_bury(begun, i, &(struct fate){.cause = LOSS_UNKNOWN}, now_ms);
    return begun;
}

static struct place *place_of(struct begun *begun, int place)
{
    assert(place >= 0 && place < begun->count);
    return &begun->places[place];
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

static bool is_token(const struct token *token, const uint64_t words[TOKEN_WORDS])
{
    uint64_t present[TOKEN_WORDS];
    read_token(token, present);
    return memcmp(present, words, sizeof present) == 0;
}

static bool is_known(const struct place *place, const uint64_t words[TOKEN_WORDS])
{
    if (is_token(&place->present, words))
        return true;
    for (int i = 0; i < GRAVES; i++)
        if (is_token(&place->graves[i], words))
            return true;
    return false;
}

/* Seconds with a fraction of three digits, as nginx writes them. */
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

bool handing_is_again(const struct handing *handing)
{
    return handing->answered.size || handing->age.size;
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

void handing_forget_first(struct handing *handing)
{
    handing->answered = after_first(handing->answered);
    handing->age = after_first(handing->age);
}

/* Nobody had answered a byte, and nobody had begun it. */
static bool is_untouched(const struct begun *begun, const uint64_t words[TOKEN_WORDS],
                         const struct handing *handing, int64_t now_ms)
{
    int64_t age_ms;
    if (!bytes_equal(handing->answered, BYTES("0")) || !read_seconds(handing->age, &age_ms))
        return false;
    int64_t came_ms = now_ms - age_ms - SLACK_MS;
    for (int i = 0; i < begun->count; i++)
        if (is_known(&begun->places[i], words) || atomic_load(&begun->places[i].forgotten_ms) >= came_ms)
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

bool begun_start(struct begun *begun, int place, const struct handing *handing, int64_t now_ms)
{
    static const uint64_t none[TOKEN_WORDS];
    uint64_t words[TOKEN_WORDS];
    struct token *present = &place_of(begun, place)->present;
    bool has_token = read_words(handing->token, words);
    if (handing_is_again(handing) && (!has_token || !is_untouched(begun, words, handing, now_ms)))
        return false;
    write_token(present, has_token ? words : none);
    return true;
}

void begun_end(struct begun *begun, int place)
{
    static const uint64_t none[TOKEN_WORDS];
    write_token(&place_of(begun, place)->present, none);
}

enum { CAUSE_BITS = 8, BIT_APPLICATION = 1 << CAUSE_BITS, BIT_UNCHANGED = 2 << CAUSE_BITS };

/* The fate of a grave changes only while no token is in it. */
static void write_grave(struct place *place, uint32_t grave, const uint64_t words[TOKEN_WORDS],
                        const struct fate *fate)
{
    static const uint64_t none[TOKEN_WORDS];
    uint32_t bits = (uint32_t)fate->cause;
    if (fate->in_application)
        bits |= BIT_APPLICATION;
    if (fate->is_unchanged)
        bits |= BIT_UNCHANGED;
    write_token(&place->graves[grave], none);
    atomic_store(&place->fates[grave], bits);
    write_token(&place->graves[grave], words);
}

void begun_bury(struct begun *begun, int place, const struct fate *fate, int64_t now_ms)
{
    static const uint64_t none[TOKEN_WORDS];
    struct place *whose = place_of(begun, place);
    uint64_t words[TOKEN_WORDS];
    read_token(&whose->present, words);
    if (memcmp(words, none, sizeof words) == 0)
        return;
    uint32_t grave = whose->next++ % GRAVES;
    if (whose->buried_ms[grave])
        atomic_store(&whose->forgotten_ms, whose->buried_ms[grave]);
    write_grave(whose, grave, words, fate);
    whose->buried_ms[grave] = now_ms;
    write_token(&whose->present, none);
}

/* false: it is in no grave, or was forgotten just now. */
static bool find_grave(const struct begun *begun, const uint64_t words[TOKEN_WORDS], struct fate *fate_r)
{
    for (int i = 0; i < begun->count; i++) {
        const struct place *place = &begun->places[i];
        for (int grave = 0; grave < GRAVES; grave++) {
            if (!is_token(&place->graves[grave], words))
                continue;
            uint32_t bits = atomic_load(&place->fates[grave]);
            if (!is_token(&place->graves[grave], words))
                return false;
            *fate_r = (struct fate){.cause = (enum loss_cause)(bits & ((1U << CAUSE_BITS) - 1)),
                                    .in_application = (bits & BIT_APPLICATION) != 0,
                                    .is_unchanged = (bits & BIT_UNCHANGED) != 0};
            return true;
        }
    }
    return false;
}

static bool is_present(const struct begun *begun, const uint64_t words[TOKEN_WORDS])
{
    for (int i = 0; i < begun->count; i++)
        if (is_token(&begun->places[i].present, words))
            return true;
    return false;
}

enum found_fate begun_find(const struct begun *begun, struct bytes token, struct fate *fate_r)
{
    uint64_t words[TOKEN_WORDS];
    *fate_r = (struct fate){0};
    if (!read_words(token, words))
        return FATE_NONE;
    /* In this order: begun_bury() digs the grave before it clears the place. */
    bool was_present = is_present(begun, words);
    if (find_grave(begun, words, fate_r))
        return FATE_FOUND;
    return was_present ? FATE_LATER : FATE_NONE;
}
