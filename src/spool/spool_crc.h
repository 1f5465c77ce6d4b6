/* spool_crc: CRC-32C (Castagnoli). */
#ifndef STAMPD_SPOOL_SPOOL_CRC_H
#define STAMPD_SPOOL_SPOOL_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc`, 0 at the beginning. */
uint32_t spool_crc(uint32_t crc, const void *data, size_t size);

#endif
