/* crc32c: CRC-32C (Castagnoli), by the instruction of the processor where it has one. */
#ifndef STAMPD_BASE_CRC32C_H
#define STAMPD_BASE_CRC32C_H

#include "base/bytes.h"

/* Continues `crc`, 0 at the beginning. */
uint32_t crc32c(uint32_t crc, struct bytes text);
/* The same without the instruction, for processors that lack it. */
uint32_t crc32c_portable(uint32_t crc, struct bytes text);

#endif
