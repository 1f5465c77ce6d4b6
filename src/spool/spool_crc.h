/* spool_crc: CRC-32C (Castagnoli), by the instruction of the processor where it has one.  It stands alone:
 * both libstampd-spool and the server (base/coding/crc32c.h) have it. */
#ifndef STAMPD_SPOOL_SPOOL_CRC_H
#define STAMPD_SPOOL_SPOOL_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc`, 0 at the beginning. */
uint32_t spool_crc(uint32_t crc, const void *data, size_t size);
/* The same without the instruction, for processors that lack it. */
uint32_t spool_crc_portable(uint32_t crc, const void *data, size_t size);

#endif
