/* hex: hexadecimal digits. */
#ifndef STAMPD_BASE_CODING_HEX_H
#define STAMPD_BASE_CODING_HEX_H

#include <endian.h>

#include "base/bytes.h"

/* The digits of 0 to 15. */
#define HEX_DIGITS "0123456789abcdef"

/* Of each byte: the value of the digit plus one, of either case; 0: it is no digit. */
extern const unsigned char hex_values[256];

/* The value of a digit; -1: it is none. */
static inline int hex_value(char digit)
{
    return hex_values[(unsigned char)digit] - 1;
}

/* The byte of two digits; -1: they are not digits. */
static inline int hex_byte(const char *digits)
{
    int high = hex_value(digits[0]), low = hex_value(digits[1]);
    return high >= 0 && low >= 0 ? high << 4 | low : -1;
}

/* The digits of a number, its lowest first, without a NUL. */
static inline void hex_write_u64(uint64_t number, char text_r[16])
{
    for (int half = 0; half < 2; half++, number >>= 32) {
        uint64_t digits = (uint32_t)number; /* each in a byte of its own, in three steps */
        digits = (digits | digits << 16) & UINT64_C(0x0000ffff0000ffff);
        digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
        digits = (digits | digits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        uint64_t letters = (digits + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
        digits = htole64(digits + UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10));
        memcpy(text_r + 8 * half, &digits, sizeof digits);
    }
}

/* Writes two digits for each byte, without a NUL. */
void hex_write(const unsigned char *data, size_t size, char *text_r);

#endif
