/* hex: hexadecimal digits. */
#ifndef STAMPD_BASE_HEX_H
#define STAMPD_BASE_HEX_H

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

/* Writes two digits for each byte, without a NUL. */
void hex_write(const unsigned char *data, size_t size, char *text_r);

#endif
