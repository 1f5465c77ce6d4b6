/* hash: FNV-1a, for tables of short names in memory, and a mixer of numbers.  The names come from the
 * administrator or from this server; a table that a stranger fills uses siphash, documents in the segment use
 * XXH3 (segment/slots.c). */
#ifndef STAMPD_BASE_CODING_HASH_H
#define STAMPD_BASE_CODING_HASH_H

#include "base/bytes.h"

#define HASH_START UINT64_C(14695981039346656037)

/* The hash of what `hash` stands for (HASH_START: nothing), followed by the text. */
static inline uint64_t hash_more(uint64_t hash, struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Each bit of the number changes each bit of the result (the end of MurmurHash3); for numbers that no
 * stranger chooses. */
static inline uint64_t hash_mix(uint64_t number)
{
    number = (number ^ number >> 33) * UINT64_C(0xff51afd7ed558ccd);
    number = (number ^ number >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return number ^ number >> 33;
}

#endif
