/* hex: a table. */
#include "base/coding/hex.h"

const unsigned char hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

void hex_write(const unsigned char *data, size_t size, char *text_r)
{
    for (size_t i = 0; i < size; i++) {
        text_r[2 * i] = HEX_DIGITS[data[i] >> 4];
        text_r[2 * i + 1] = HEX_DIGITS[data[i] & 15];
    }
}
