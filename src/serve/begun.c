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
    int64_t buried_ms[GRAVES]; /* for the writer alone */
    uint32_t next;
    _Atomic int64_t forgotten_ms; /* nothing that came before may be proven by this place */
};

enum { LAYOUT = 1 };

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
        begun_bury(begun, i, now_ms);
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

bool begun_start(struct begun *begun, int place, const struct handing *handing, int64_t now_ms)
{
    static const uint64_t none[TOKEN_WORDS];
    uint64_t words[TOKEN_WORDS] = {0};
    struct token *present = &place_of(begun, place)->present;
    bool has_token = handing->token.size && handing->token.size <= TOKEN_BYTES;
    if (has_token)
        memcpy(words, handing->token.data, handing->token.size);
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

void begun_bury(struct begun *begun, int place, int64_t now_ms)
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
    write_token(&whose->graves[grave], words);
    whose->buried_ms[grave] = now_ms;
    write_token(&whose->present, none);
}
