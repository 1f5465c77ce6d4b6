/* crc32c: eight bytes at a time, by an instruction of x86-64 or of ARM, or by tables that are made at the
 * first use (spool_crc.c, which stands alone, has its own). */
#include "base/crc32c.h"

#ifdef __ARM_FEATURE_CRC32
#include <arm_acle.h>
#endif

enum { WIDTH = 8 };
#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

static void make(uint32_t table[WIDTH][256])
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
}

uint32_t crc32c_portable(uint32_t crc, struct bytes text)
{
    static uint32_t table[WIDTH][256];
    const unsigned char *byte = (const unsigned char *)text.data;
    size_t size = text.size;
    if (!table[WIDTH - 1][255])
        make(table);
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

#if defined(__x86_64__)
#define HAS_INSTRUCTION     __builtin_cpu_supports("sse4.2")
#define WITH_INSTRUCTION    __attribute__((target("sse4.2")))
#define ADD_WORD(crc, word) ((uint32_t)__builtin_ia32_crc32di((crc), (word)))
#define ADD_BYTE(crc, byte) __builtin_ia32_crc32qi((crc), (byte))
#elif defined(__ARM_FEATURE_CRC32)
#define HAS_INSTRUCTION true
#define WITH_INSTRUCTION
#define ADD_WORD(crc, word) __crc32cd((crc), (word))
#define ADD_BYTE(crc, byte) __crc32cb((crc), (byte))
#endif

#ifdef HAS_INSTRUCTION
WITH_INSTRUCTION static uint32_t by_instruction(uint32_t crc, struct bytes text)
{
    const unsigned char *byte = (const unsigned char *)text.data;
    size_t size = text.size;
    crc = ~crc;
    for (uint64_t word; size >= WIDTH; size -= WIDTH, byte += WIDTH) {
        memcpy(&word, byte, WIDTH);
        crc = ADD_WORD(crc, word);
    }
    for (; size; size--, byte++)
        crc = ADD_BYTE(crc, *byte);
    return ~crc;
}
#endif

uint32_t crc32c(uint32_t crc, struct bytes text)
{
#ifdef HAS_INSTRUCTION
    if (HAS_INSTRUCTION)
        return by_instruction(crc, text);
#endif
    return crc32c_portable(crc, text);
}
