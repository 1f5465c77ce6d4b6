/* spool_dead: a file for each record that was refused for good: a head, the reason, the body. */
#include "spool/stampd_spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spool/spool_crc.h"
#include "spool/spool_private.h"

static const char magic[] = "stampd dead 1\n";
enum { MAGIC_BYTES = 16, HEAD_BYTES = 72, REASON_MOST = 4096, DIGITS = 20 };
/* Head: 16 bytes magic, series, u64 number, i64 time, u64 first, u32 reason, u32 body, u32 0, u32 CRC of all
 * else. */
enum { SEQUENCE_AT = 32, TIME_AT = 40, FIRST_AT = 48, REASON_AT = 56, BODY_AT = 60, CRC_AT = 68 };

static int open_folder(const struct stampd_spool *spool)
{
    if (spool->owner != getpid()) {
        errno = ECHILD;
        return -1;
    }
    return openat(spool->folder, SPOOL_DEAD, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void spool_dead_name_of(uint64_t sequence, char name_r[SPOOL_NAME_BYTES])
{
    snprintf(name_r, SPOOL_NAME_BYTES, "%0*" PRIu64, DIGITS, sequence);
}

static uint32_t sum(const unsigned char *file, size_t size)
{
    return spool_crc(spool_crc(0, file, CRC_AT), file + HEAD_BYTES, size - HEAD_BYTES);
}

int stampd_spool_bury(struct stampd_spool *spool, const struct stampd_spool_record *record,
                      const char *reason)
{
    char name[SPOOL_NAME_BYTES];
    size_t words = strnlen(reason, REASON_MOST), size = HEAD_BYTES + words + 1 + record->body_size;
    unsigned char *file = calloc(1, size);
    int folder = file ? open_folder(spool) : -1;
    if (folder < 0) {
        int error = file ? errno : ENOMEM;
        free(file);
        return error;
    }
    memcpy(file, magic, MAGIC_BYTES - 1);
    memcpy(file + MAGIC_BYTES, record->series, sizeof record->series);
    spool_record_write_u64(file + SEQUENCE_AT, record->sequence);
    spool_record_write_u64(file + TIME_AT, (uint64_t)record->time_ms);
    spool_record_write_u64(file + FIRST_AT, record->first);
    spool_record_write_u32(file + REASON_AT, (uint32_t)words);
    spool_record_write_u32(file + BODY_AT, (uint32_t)record->body_size);
    memcpy(file + HEAD_BYTES, reason, words);
    if (record->body_size)
        memcpy(file + HEAD_BYTES + words + 1, record->body, record->body_size);
    spool_record_write_u32(file + CRC_AT, sum(file, size));
    spool_dead_name_of(record->sequence, name);
    int error = spool_files_replace(folder, name, spool->file_mode, file, size);
    close(folder);
    free(file);
    return error;
}

/* The smallest number behind `after`; 0: none. */
static int find_next(int folder, uint64_t after, uint64_t *next_r)
{
    DIR *entries = fdopendir(folder);
    *next_r = 0;
    if (!entries) {
        close(folder);
        return errno;
    }
    for (const struct dirent *entry; (entry = readdir(entries));) {
        char *end;
        uint64_t sequence = strtoull(entry->d_name, &end, 10);
        if (!*end && end == entry->d_name + DIGITS && sequence > after && (!*next_r || sequence < *next_r))
            *next_r = sequence;
    }
    closedir(entries);
    return *next_r ? 0 : EAGAIN;
}

static int spool_dead_parse(unsigned char *file, size_t size, struct stampd_spool_record *record,
                            const char **reason_r)
{
    if (size < HEAD_BYTES + 1 || memcmp(file, magic, MAGIC_BYTES - 1) ||
        spool_record_read_u32(file + CRC_AT) != sum(file, size))
        return EBADMSG;
    size_t words = spool_record_read_u32(file + REASON_AT), body = spool_record_read_u32(file + BODY_AT);
    if (words + body + HEAD_BYTES + 1 != size)
        return EBADMSG;
    memcpy(record->series, file + MAGIC_BYTES, sizeof record->series);
    record->sequence = spool_record_read_u64(file + SEQUENCE_AT);
    record->time_ms = (int64_t)spool_record_read_u64(file + TIME_AT);
    record->first = spool_record_read_u64(file + FIRST_AT);
    record->body = file + HEAD_BYTES + words + 1;
    record->body_size = body;
    *reason_r = (const char *)file + HEAD_BYTES;
    return spool_record_read_body(record->body, body, &record->request);
}

int stampd_spool_next_dead(struct stampd_spool *spool, uint64_t after, struct stampd_spool_record *record_r,
                           const char **reason_r)
{
    char name[SPOOL_NAME_BYTES], *file = NULL;
    size_t size;
    int folder = open_folder(spool);
    *record_r = (struct stampd_spool_record){.sequence = after};
    *reason_r = "";
    if (folder < 0)
        return errno == ENOENT ? EAGAIN : errno;
    int error = find_next(folder, after, &record_r->sequence);
    folder = error ? -1 : open_folder(spool);
    if (error || folder < 0)
        return error ? error : errno;
    spool_dead_name_of(record_r->sequence, name);
    error =
        spool_files_load(folder, name, HEAD_BYTES + 1 + REASON_MOST + STAMPD_SPOOL_RECORD_MOST, &file, &size);
    close(folder);
    free(spool->dead_buffer);
    spool->dead_buffer = (unsigned char *)file;
    return error ? error : spool_dead_parse(spool->dead_buffer, size, record_r, reason_r);
}

int stampd_spool_drop_dead(struct stampd_spool *spool, uint64_t sequence)
{
    char name[SPOOL_NAME_BYTES];
    int folder = open_folder(spool);
    if (folder < 0)
        return errno;
    spool_dead_name_of(sequence, name);
    int error = unlinkat(folder, name, 0) ? errno : 0;
    spool_step();
    if (!error)
        error = spool_files_sync(folder);
    close(folder);
    return error;
}
