/* spool_record: a request as bytes, and a record in a segment.
 *
 * A record is a head of 32 bytes, a body, zeros, and a byte 0xff at its end, which is at a multiple of 8;
 * numbers are little-endian:
 *   0 u32 "SPR1", 4 u32 bytes of the body, 8 u64 number, 16 i64 time in ms, 24 u32 CRC-32C of the body,
 *   28 u32 CRC-32C of the series and the 28 bytes before.
 * A body is a list of fields: u8 tag, u32 size, the bytes, a NUL. */
#ifndef STAMPD_SPOOL_SPOOL_RECORD_H
#define STAMPD_SPOOL_SPOOL_RECORD_H

#include "spool/stampd_spool.h"

enum { SPOOL_HEAD_BYTES = 32, SPOOL_ALIGN = 8 };

struct spool_head {
    uint32_t size; /* of the body */
    uint64_t sequence;
    int64_t time_ms;
    uint32_t body_crc;
};

/* Bytes of a record with this body. */
static inline size_t spool_record_bytes(size_t body)
{
    return SPOOL_HEAD_BYTES + (body + SPOOL_ALIGN) / SPOOL_ALIGN * SPOOL_ALIGN;
}

void spool_record_write_u32(unsigned char *at, uint32_t value);
void spool_record_write_u64(unsigned char *at, uint64_t value);
uint32_t spool_record_read_u32(const unsigned char *at);
uint64_t spool_record_read_u64(const unsigned char *at);

/* EINVAL, EMSGSIZE: see stampd_spool_put. */
int spool_record_check(const struct stampd_spool_request *request);
/* Bytes of its body. */
size_t spool_record_measure(const struct stampd_spool_request *request);
/* The texts point into the body.  Non-zero: it is none. */
int spool_record_read_body(const unsigned char *body, size_t size, struct stampd_spool_request *request_r);

/* Writes a record with a body of `size` bytes, except for what depends on its place: spool_record_place adds
 * that.  The last byte is not zero, so that a record whose end was not written differs from a whole one in a
 * file that was full of zeros before. */
void spool_record_write(const struct stampd_spool_request *request, unsigned char *record, size_t size);
void spool_record_place(unsigned char *record, const unsigned char series[STAMPD_SPOOL_ID_BYTES],
                        uint64_t sequence, int64_t time_ms);
/* Bytes of a record that is written. */
size_t spool_record_length(const unsigned char *record);
/* Non-zero: these bytes are no head of the series. */
int spool_record_read_head(const unsigned char *bytes, const unsigned char series[STAMPD_SPOOL_ID_BYTES],
                           struct spool_head *head_r);

#endif
