/* crc32c: CRC-32C (Castagnoli) of a text, by spool_crc. */
#ifndef STAMPD_BASE_CODING_CRC32C_H
#define STAMPD_BASE_CODING_CRC32C_H

#include "base/bytes.h"
#include "spool/spool_crc.h"

/* Continues `crc`, 0 at the beginning. */
static inline uint32_t crc32c(uint32_t crc, struct bytes text)
{
    return spool_crc(crc, text.data, text.size);
}

/* The same without the instruction, for processors that lack it. */
static inline uint32_t crc32c_portable(uint32_t crc, struct bytes text)
{
    return spool_crc_portable(crc, text.data, text.size);
}

#endif
