/* spool_crc: by tables for eight bytes at a time, made at the first use; racing threads make the same. */
#include "spool/spool_crc.h"

#include <stdatomic.h>
#include <string.h>

enum { WIDTH = 8 };
#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

static uint32_t table[WIDTH][256];
static _Atomic int is_made;

static void make(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
        table[0][byte] = crc;
    }
    for (int place = 1; place < WIDTH; place++)
        for (int byte = 0; byte < 256; byte++)
            table[place][byte] = (table[place - 1][byte] >> 8) ^ table[0][table[place - 1][byte] & 255];
    atomic_store_explicit(&is_made, 1, memory_order_release);
}

uint32_t spool_crc(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *byte = data;
    if (!atomic_load_explicit(&is_made, memory_order_acquire))
        make();
    crc = ~crc;
    for (; size >= WIDTH; size -= WIDTH, byte += WIDTH) {
        uint32_t mixed = 0;
        for (int place = 0; place < WIDTH; place++)
            mixed ^= table[WIDTH - 1 - place][byte[place] ^ (place < 4 ? crc >> (8 * place) & 255 : 0)];
        crc = mixed;
    }
    for (; size; size--, byte++)
        crc = (crc >> 8) ^ table[0][(crc ^ *byte) & 255];
    return ~crc;
}
