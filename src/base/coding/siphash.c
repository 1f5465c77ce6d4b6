/* siphash: as in the paper and its reference code: two rounds per word, four at the end. */
#include "base/coding/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t turn(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix(struct state *s, int rounds)
{
    while (rounds--) {
        s->v0 += s->v1;
        s->v1 = turn(s->v1, 13) ^ s->v0;
        s->v0 = turn(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = turn(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = turn(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = turn(s->v1, 17) ^ s->v2;
        s->v2 = turn(s->v2, 32);
    }
}

static void siphash_take(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s, 2);
    s->v0 ^= word;
}

static uint64_t read_word(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return le64toh(word);
}

/* Less than a word. */
static uint64_t read_rest(const char *text, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)(unsigned char)text[i] << (8 * i);
    return word;
}

/* Leaves the state from which the second half is made. */
static inline uint64_t first_half(struct state *s, const struct siphash_key *key, struct bytes text)
{
    *s = (struct state){
        .v0 = key->words[0] ^ UINT64_C(0x736f6d6570736575),
        .v1 = key->words[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
        .v2 = key->words[0] ^ UINT64_C(0x6c7967656e657261),
        .v3 = key->words[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = text.size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        siphash_take(s, read_word(text.data + i));
    siphash_take(s, read_rest(text.data + whole, text.size - whole) | (uint64_t)text.size << 56);
    s->v2 ^= 0xee;
    mix(s, 4);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

uint64_t siphash_short(const struct siphash_key *key, struct bytes text)
{
    struct state s;
    return first_half(&s, key, text);
}

void siphash(const struct siphash_key *key, struct bytes text, uint64_t digest_r[2])
{
    struct state s;
    digest_r[0] = first_half(&s, key, text);
    s.v1 ^= 0xdd;
    mix(&s, 4);
    digest_r[1] = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
