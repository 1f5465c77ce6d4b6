/* siphash: SipHash-2-4 with 128 bits (Aumasson and Bernstein): a keyed digest for short texts, about forty
 * nanoseconds.  Without the key the digests cannot be distinguished from random numbers. */
#ifndef STAMPD_BASE_CODING_SIPHASH_H
#define STAMPD_BASE_CODING_SIPHASH_H

#include "base/base.h"
#include "base/bytes.h"

struct siphash_key {
    uint64_t words[2]; /* little-endian halves of the key */
};

/* The first half of the digest, for less. */
uint64_t siphash_short(const struct siphash_key *key, struct bytes text);
void siphash(const struct siphash_key *key, struct bytes text, uint64_t digest_r[2]);

#endif
