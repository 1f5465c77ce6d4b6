/* swar: SIMD within a register, eight bytes per 64-bit word.  Independent of endianness: the first byte is
 * the lowest.
 *
 * A mask has the top bit set of each matching byte.  Only its lowest bit is reliable, which swar_first
 * returns: carries may set others above a match. */
#ifndef STAMPD_BASE_CODING_SWAR_H
#define STAMPD_BASE_CODING_SWAR_H

#include "base/base.h"

#include <endian.h>
#include <string.h>

#define SWAR_ONES UINT64_C(0x0101010101010101)
#define SWAR_TOPS UINT64_C(0x8080808080808080)

/* All eight bytes must be readable. */
static inline uint64_t swar_load(const char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return le64toh(word);
}

/* Masks may be combined with |. */
static inline uint64_t swar_below(uint64_t word, unsigned char limit)
{
    return (word - SWAR_ONES * limit) & ~word & SWAR_TOPS;
}

static inline uint64_t swar_equal(uint64_t word, unsigned char byte)
{
    return swar_below(word ^ (SWAR_ONES * byte), 1);
}

/* Index, 0 to 7, of the first byte of a mask that is not 0. */
static inline size_t swar_first(uint64_t mask)
{
    return (size_t)__builtin_ctzll(mask) / 8;
}

/* Mask of the bytes that are not decimal digits. */
static inline uint64_t swar_no_digits(uint64_t word)
{
    return ((word + SWAR_ONES * (0x7f - '9')) | (word - SWAR_ONES * '0')) & SWAR_TOPS;
}

/* The number that eight digits write: digits are combined into pairs, then fours, then all. */
static inline uint64_t swar_digits(uint64_t word)
{
    word = (word & SWAR_ONES * 0x0f) * (1 + (10 << 8)) >> 8;
    word = (word & UINT64_C(0x00ff00ff00ff00ff)) * (1 + (100 << 16)) >> 16;
    return (word & UINT64_C(0x0000ffff0000ffff)) * (1 + (UINT64_C(10000) << 32)) >> 32;
}

#endif
