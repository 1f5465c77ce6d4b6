/* firestore_log: a block is read as a whole, then its fragments, one after the other. */
#include "control/foreign/firestore/firestore_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/coding/crc32c.h"

enum { RECORD_MOST = 16 << 20, KEEP = 1 << 20 };
#define MASK_DELTA UINT32_C(0xa282ead8)

static const char truncated[] = "the file ends inside a record: it is truncated";

/* --- fragments --- */

static bool is_zero(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i])
            return false;
    return true;
}

static bool has_checksum(const unsigned char *head, size_t size)
{
    uint32_t wanted =
        (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
    uint32_t crc = crc32c(0, (struct bytes){(const char *)head + 6, 1 + size});
    return (crc >> 15 | crc << 17) + MASK_DELTA == wanted;
}

/* What is no fragment: zeros up to the end of a block that has something before them. */
static bool is_padding(struct bytes block, size_t at, const char **problem_r)
{
    if (!is_zero((struct bytes){block.data + at, block.size - at}))
        *problem_r = "expected zeros up to the end of the block: the file is damaged";
    else if (!at)
        *problem_r = "a block of zeros: the file is damaged";
    else if (block.size < FIRESTORE_BLOCK)
        *problem_r = "the file ends inside a block: it is truncated";
    else
        return true;
    return false;
}

bool firestore_log_fragment(struct bytes block, size_t at, struct firestore_fragment *fragment_r,
                            const char **problem_r)
{
    const unsigned char *head = (const unsigned char *)block.data + at;
    size_t left = block.size - at;
    *fragment_r = (struct firestore_fragment){.type = FIRESTORE_PADDING};
    if (left < FIRESTORE_HEAD && FIRESTORE_BLOCK - at >= FIRESTORE_HEAD) {
        *problem_r = truncated;
        return false;
    }
    if (left < FIRESTORE_HEAD || !head[6])
        return is_padding(block, at, problem_r);
    size_t size = (size_t)head[4] | (size_t)head[5] << 8;
    if (head[6] > FIRESTORE_LAST)
        *problem_r = "a record of an unknown type: this is no file of an export, or it is damaged";
    else if (size > FIRESTORE_BLOCK - at - FIRESTORE_HEAD)
        *problem_r = "a record that goes beyond its block: the file is damaged";
    else if (size > left - FIRESTORE_HEAD)
        *problem_r = truncated;
    else if (!has_checksum(head, size))
        *problem_r = "a wrong checksum: the file is damaged";
    else {
        fragment_r->type = (enum firestore_type)head[6];
        fragment_r->text = (struct bytes){block.data + at + FIRESTORE_HEAD, size};
        return true;
    }
    return false;
}

/* --- files --- */

bool firestore_log_open(struct firestore_log *log, const char *path, char *block, struct digest *digest)
{
    *log = (struct firestore_log){.fd = open(path, O_RDONLY | O_CLOEXEC), .digest = digest, .block = block};
    return log->fd >= 0;
}

void firestore_log_close(struct firestore_log *log)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
    builder_free(&log->text);
}

/* Reads the next block; its size is 0 at the end of the file. */
static bool read_block(struct firestore_log *log, const char **problem_r)
{
    log->start += (int64_t)log->size;
    log->size = log->at = 0;
    while (log->size < FIRESTORE_BLOCK) {
        ssize_t got = read(log->fd, log->block + log->size, FIRESTORE_BLOCK - log->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            *problem_r = strerror(errno);
            return false;
        }
        if (!got)
            break;
        log->size += (size_t)got;
    }
    digest_add(log->digest, (struct bytes){log->block, log->size});
    return true;
}

/* Adds a fragment to the record; `is_whole_r`: it was the last one. */
static bool add_fragment(struct firestore_log *log, const struct firestore_fragment *fragment, bool *is_begun,
                         bool *is_whole_r, struct bytes *record_r, const char **problem_r)
{
    bool begins = fragment->type == FIRESTORE_FULL || fragment->type == FIRESTORE_FIRST;
    *is_whole_r = fragment->type == FIRESTORE_FULL || fragment->type == FIRESTORE_LAST;
    if (begins == *is_begun) {
        *problem_r = begins ? "a record begins inside another one: the file is damaged"
                            : "a record without its beginning: the file is damaged";
        return false;
    }
    *is_begun = true;
    *record_r = fragment->text;
    if (fragment->type == FIRESTORE_FULL)
        return true;
    if (log->text.size + fragment->text.size > RECORD_MOST) {
        *problem_r = "a record of more than 16 MB";
        return false;
    }
    builder_add_bytes(&log->text, fragment->text);
    *record_r = builder_bytes(&log->text);
    return true;
}

enum firestore_log_event firestore_log_next(struct firestore_log *log, struct bytes *record_r,
                                            const char **problem_r)
{
    bool is_begun = false, is_whole = false;
    builder_clear(&log->text, KEEP);
    while (!is_whole) {
        struct firestore_fragment fragment;
        if (log->at == log->size && !read_block(log, problem_r))
            return FIRESTORE_LOG_FAILED;
        if (!log->size) {
            *problem_r = truncated;
            return is_begun ? FIRESTORE_LOG_FAILED : FIRESTORE_LOG_END;
        }
        int64_t place = log->start + (int64_t)log->at;
        bool is_read =
            firestore_log_fragment((struct bytes){log->block, log->size}, log->at, &fragment, problem_r);
        if (!is_read || !is_begun)
            log->record = place;
        if (!is_read)
            return FIRESTORE_LOG_FAILED;
        if (fragment.type == FIRESTORE_PADDING) {
            log->at = log->size;
            continue;
        }
        log->at += FIRESTORE_HEAD + fragment.text.size;
        if (!add_fragment(log, &fragment, &is_begun, &is_whole, record_r, problem_r)) {
            log->record = place;
            return FIRESTORE_LOG_FAILED;
        }
    }
    return FIRESTORE_LOG_RECORD;
}
