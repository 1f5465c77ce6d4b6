/* spool_crc: eight bytes at a time, by an instruction of x86-64 or of ARM, or by tables that are made at the
 * first use; racing threads make the same. */
#include "spool/spool_crc.h"

#include <stdatomic.h>
#include <string.h>

#ifdef __ARM_FEATURE_CRC32
#include <arm_acle.h>
#endif

enum { WIDTH = 8 };
#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

static uint32_t table[WIDTH][256];
static _Atomic int is_made;

static void spool_crc_make(void)
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

uint32_t spool_crc_portable(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *byte = data;
    if (!atomic_load_explicit(&is_made, memory_order_acquire))
        spool_crc_make();
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
#define HAS_INSTRUCTION 1
#define WITH_INSTRUCTION
#define ADD_WORD(crc, word) __crc32cd((crc), (word))
#define ADD_BYTE(crc, byte) __crc32cb((crc), (byte))
#endif

#ifdef HAS_INSTRUCTION
WITH_INSTRUCTION static uint32_t by_instruction(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *byte = data;
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

uint32_t spool_crc(uint32_t crc, const void *data, size_t size)
{
#ifdef HAS_INSTRUCTION
    if (HAS_INSTRUCTION)
        return by_instruction(crc, data, size);
#endif
    return spool_crc_portable(crc, data, size);
}
