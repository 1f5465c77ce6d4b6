/* spool_segment: a head, twice, then records. */
#include "spool/spool_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool_crc.h"

static const char magic[] = "stampd spool 2\n";
enum {
    HEAD_COPY = SPOOL_SEGMENT_HEAD / 2,
    MAGIC_BYTES = 16,
    WINDOW_BYTES = 64 << 10,
    DIGITS = 20,
};

void spool_segment_name(uint64_t base, char name_r[SPOOL_NAME_BYTES])
{
    snprintf(name_r, SPOOL_NAME_BYTES, "%0*" PRIu64 SPOOL_SEGMENT_SUFFIX, DIGITS, base);
}

static int is_less(const void *one, const void *other)
{
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return left < right ? -1 : left > right;
}

static int spool_segment_read_name(const char *name, uint64_t *base_r)
{
    char *end;
    errno = 0;
    *base_r = strtoull(name, &end, 10);
    return !errno && end == name + DIGITS && !strcmp(end, SPOOL_SEGMENT_SUFFIX);
}

int spool_segment_list(int folder, const struct spool_board *board, uint64_t **bases_r, size_t *count_r,
                       uint64_t *bytes_r)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    size_t capacity = 0;
    *bases_r = NULL;
    *count_r = 0;
    *bytes_r = 0;
    if (!entries)
        return errno;
    for (const struct dirent *entry; !error && (entry = readdir(entries));) {
        uint64_t base;
        struct stat stat;
        if (!spool_segment_read_name(entry->d_name, &base))
            continue;
        if (!fstatat(folder, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW))
            *bytes_r += board && base == board->base ? board->end : (uint64_t)stat.st_size;
        if (*count_r == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            uint64_t *grown = realloc(*bases_r, capacity * sizeof *grown);
            error = grown ? 0 : ENOMEM;
            *bases_r = grown ? grown : *bases_r;
        }
        if (!error)
            (*bases_r)[(*count_r)++] = base;
    }
    closedir(entries);
    if (*count_r)
        qsort(*bases_r, *count_r, sizeof **bases_r, is_less);
    return error;
}

int spool_segment_create(const struct stampd_spool *spool, uint64_t base,
                         const unsigned char series[STAMPD_SPOOL_ID_BYTES])
{
    unsigned char head[SPOOL_SEGMENT_HEAD] = {0};
    char name[SPOOL_NAME_BYTES];
    memcpy(head, magic, MAGIC_BYTES);
    memcpy(head + MAGIC_BYTES, series, STAMPD_SPOOL_ID_BYTES);
    spool_record_write_u64(head + MAGIC_BYTES + STAMPD_SPOOL_ID_BYTES, base);
    spool_record_write_u32(head + HEAD_COPY - 4, spool_crc(0, head, HEAD_COPY - 4));
    memcpy(head + HEAD_COPY, head, HEAD_COPY);
    spool_segment_name(base, name);
    return spool_files_replace(spool->folder, name, spool->file_mode, head, sizeof head);
}

void spool_segment_close(struct spool_segment *segment)
{
    int fd = segment->fd;
    *segment = (struct spool_segment){.fd = -1}; /* first: a child closes what is here */
    if (fd >= 0)
        close(fd);
}

int spool_segment_open(const struct stampd_spool *spool, uint64_t base, struct spool_segment *segment_r)
{
    unsigned char head[SPOOL_SEGMENT_HEAD] = {0};
    char name[SPOOL_NAME_BYTES];
    size_t size;
    spool_segment_close(segment_r);
    spool_segment_name(base, name);
    int fd = openat(spool->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    int error = spool_files_read(fd, head, sizeof head, 0, &size);
    if (error) {
        close(fd);
        return error;
    }
    *segment_r = (struct spool_segment){
        .fd = fd, .base = base, .expected = base, .offset = SPOOL_SEGMENT_HEAD, .is_damaged = 1};
    for (const unsigned char *copy = head; segment_r->is_damaged && copy < head + sizeof head;
         copy += HEAD_COPY)
        if (!memcmp(copy, magic, MAGIC_BYTES) &&
            spool_record_read_u32(copy + HEAD_COPY - 4) == spool_crc(0, copy, HEAD_COPY - 4)) {
            memcpy(segment_r->series, copy + MAGIC_BYTES, STAMPD_SPOOL_ID_BYTES);
            segment_r->is_damaged = 0;
        }
    return 0;
}

/* --- reading --- */

/* The next place from `segment->offset` on with the head of a record behind the expected one.  Content cannot
 * imitate one: the CRC of a head contains the series, which is random. */
static int find_head(struct spool_segment *segment, uint64_t end, uint64_t last, uint64_t *offset_r,
                     uint64_t *sequence_r)
{
    static const size_t step = WINDOW_BYTES - SPOOL_HEAD_BYTES;
    unsigned char *window = malloc(WINDOW_BYTES);
    int error = window ? ENODATA : ENOMEM;
    for (uint64_t at = segment->offset; error == ENODATA && at + SPOOL_HEAD_BYTES <= end; at += step) {
        size_t size, wanted = end - at < WINDOW_BYTES ? (size_t)(end - at) : WINDOW_BYTES;
        int failure = spool_files_read(segment->fd, window, wanted, at, &size);
        if (failure) {
            error = failure;
            break;
        }
        for (size_t place = 0; error == ENODATA && place + SPOOL_HEAD_BYTES <= size; place += SPOOL_ALIGN) {
            struct spool_head head;
            if (!spool_record_read_head(window + place, segment->series, &head) &&
                head.sequence > segment->expected && head.sequence <= last) {
                *offset_r = at + place;
                *sequence_r = head.sequence;
                error = 0;
            }
        }
    }
    free(window);
    return error;
}

/* From the present place to `to`, which is a record behind the damaged ones, or the end. */
static int report_damage(struct stampd_spool *spool, struct spool_segment *segment, uint64_t to,
                         uint64_t last, struct stampd_spool_record *record_r)
{
    uint64_t bytes = to - segment->offset;
    size_t size = bytes < STAMPD_SPOOL_RECORD_MOST ? (size_t)bytes : STAMPD_SPOOL_RECORD_MOST;
    int error = spool_files_reserve(&spool->read_buffer, &spool->read_bytes, size + 1);
    if (!error)
        error = spool_files_read(segment->fd, spool->read_buffer, size, segment->offset, &size);
    if (error)
        return error;
    *record_r = (struct stampd_spool_record){
        .first = segment->expected, .sequence = last, .body = spool->read_buffer, .body_size = size};
    memcpy(record_r->series, segment->series, sizeof record_r->series);
    segment->offset = to;
    segment->expected = last + 1;
    return EBADMSG;
}

static int skip_damage(struct stampd_spool *spool, struct spool_segment *segment, uint64_t end, uint64_t last,
                       struct stampd_spool_record *record_r)
{
    uint64_t to, sequence;
    int error = segment->is_damaged ? ENODATA : find_head(segment, end, last, &to, &sequence);
    if (!error)
        return report_damage(spool, segment, to, sequence - 1, record_r);
    if (error != ENODATA)
        return error;
    if (segment->expected <= last)
        return report_damage(spool, segment, end > segment->offset ? end : segment->offset, last, record_r);
    return EAGAIN;
}

static int spool_segment_read_body(struct stampd_spool *spool, struct spool_segment *segment,
                                   const struct spool_head *head, struct stampd_spool_record *record_r)
{
    size_t size;
    int error = spool_files_reserve(&spool->read_buffer, &spool->read_bytes, head->size + 1);
    if (!error)
        error = spool_files_read(segment->fd, spool->read_buffer, head->size,
                                 segment->offset + SPOOL_HEAD_BYTES, &size);
    if (error)
        return error;
    segment->offset += spool_record_bytes(head->size);
    segment->expected = head->sequence + 1;
    *record_r = (struct stampd_spool_record){.sequence = head->sequence,
                                             .first = head->sequence,
                                             .time_ms = head->time_ms,
                                             .body = spool->read_buffer,
                                             .body_size = size};
    memcpy(record_r->series, segment->series, sizeof record_r->series);
    if (size < head->size || spool_crc(0, spool->read_buffer, size) != head->body_crc)
        return EBADMSG;
    return spool_record_read_body(spool->read_buffer, size, &record_r->request);
}

int spool_segment_read(struct stampd_spool *spool, struct spool_segment *segment, uint64_t end, uint64_t last,
                       struct stampd_spool_record *record_r)
{
    unsigned char bytes[SPOOL_HEAD_BYTES];
    struct spool_head head;
    size_t size = 0;
    if (segment->expected > last)
        return EAGAIN;
    int error = spool_files_read(segment->fd, bytes, sizeof bytes, segment->offset, &size);
    if (error)
        return error;
    if (size < sizeof bytes || segment->is_damaged || spool_record_read_head(bytes, segment->series, &head) ||
        head.sequence < segment->expected || head.sequence > last ||
        segment->offset + spool_record_bytes(head.size) > end)
        return skip_damage(spool, segment, end, last, record_r);
    if (head.sequence > segment->expected)
        return report_damage(spool, segment, segment->offset, head.sequence - 1, record_r);
    return spool_segment_read_body(spool, segment, &head, record_r);
}
