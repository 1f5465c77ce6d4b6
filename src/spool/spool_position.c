/* spool_position: the acknowledged numbers, in two files that are written in turn.
 *
 * Each has an edition, and the newer one that is valid counts.  So the one that counts is never written to,
 * and is on disk before the other is: a death or a loss of power leaves at least one of them whole. */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "spool/spool_crc.h"

#define TITLE   "stampd spool acknowledged 2\n"
#define FORMER  "stampd spool acknowledged 1\n" /* without an edition */
#define EDITION "edition "
enum { FILES = 2, LINE_BYTES = 48, FILE_MOST = (SPOOL_RANGES_MOST + 4) * LINE_BYTES };
static const char *const names[FILES] = {"acknowledged", "acknowledged.other"};

/* Takes it when it is newer than what the position has. */
static int spool_position_parse(char *text, size_t size, int file, struct spool_position *position)
{
    char *sum = size ? memrchr(text, '\n', size - 1) : NULL, *line = text + strlen(TITLE), *end;
    int has_edition = !strncmp(text, TITLE, strlen(TITLE));
    if (!sum || (!has_edition && strncmp(text, FORMER, strlen(FORMER)) != 0) ||
        strtoul(sum + 1, NULL, 16) != spool_crc(0, text, (size_t)(sum + 1 - text)))
        return EBADMSG;
    uint64_t edition = 1;
    if (has_edition) {
        edition = strncmp(line, EDITION, strlen(EDITION)) ? 0 : strtoull(line + strlen(EDITION), &end, 10);
        line = edition ? end + 1 : line;
    }
    if (edition <= position->edition)
        return edition ? 0 : EBADMSG;
    struct stampd_spool_range *ranges = calloc(SPOOL_RANGES_MOST, sizeof *ranges);
    if (!ranges)
        return ENOMEM;
    size_t count = 0;
    while (line <= sum && count < SPOOL_RANGES_MOST) {
        ranges[count].first = strtoull(line, &end, 10);
        ranges[count++].last = strtoull(end, &end, 10);
        line = end + 1;
    }
    free(position->ranges);
    position->ranges = ranges;
    position->count = count;
    position->edition = edition;
    position->newest = file;
    return 0;
}

/* One that is damaged, or is being written, is as none. */
static int spool_position_read_file(const struct stampd_spool *spool, int file,
                                    struct spool_position *position)
{
    char *text;
    size_t size;
    int error = spool_files_load(spool->folder, names[file], FILE_MOST, &text, &size);
    if (!error)
        error = spool_position_parse(text, size, file, position);
    free(text);
    return error == EBADMSG || error == ENOENT ? 0 : error;
}

static int other_file(const struct spool_position *position)
{
    return FILES - 1 - position->newest;
}

/* The next edition will be in the other file. */
static int is_present(const struct stampd_spool *spool)
{
    const struct spool_position *position = &spool->position;
    struct stat stat;
    return position->inode &&
           !fstatat(spool->folder, names[other_file(position)], &stat, AT_SYMLINK_NOFOLLOW) &&
           position->inode == stat.st_ino && position->changed.tv_sec == stat.st_ctim.tv_sec &&
           position->changed.tv_nsec == stat.st_ctim.tv_nsec;
}

/* When neither is valid, what was read before counts; else the server knows what it has stored. */
int spool_position_read(struct stampd_spool *spool)
{
    struct spool_position *position = &spool->position, read = {0};
    struct stat stats[FILES] = {0};
    int error = 0;
    if (is_present(spool))
        return 0;
    for (int file = 0; !error && file < FILES; file++)
        if (fstatat(spool->folder, names[file], &stats[file], AT_SYMLINK_NOFOLLOW) && errno != ENOENT)
            error = errno;
    for (int file = 0; !error && file < FILES; file++)
        error = spool_position_read_file(spool, file, &read);
    if (error || !read.edition) {
        free(read.ranges);
        return error;
    }
    read.inode = stats[other_file(&read)].st_ino;
    read.changed = stats[other_file(&read)].st_ctim;
    read.synced_edition = position->synced_edition;
    free(position->ranges);
    *position = read;
    return 0;
}

/* A file that has changed within one tick of the clock seems to be the same. */
int spool_position_read_again(struct stampd_spool *spool)
{
    spool->position.inode = 0;
    return spool_position_read(spool);
}

uint64_t spool_position_skip(const struct spool_position *position, uint64_t after)
{
    uint64_t next = after + 1;
    for (size_t i = 0; i < position->count && position->ranges[i].first <= next; i++)
        if (position->ranges[i].last >= next)
            next = position->ranges[i].last + 1;
    return next;
}

uint64_t spool_position_trim(const struct spool_position *position, uint64_t last)
{
    for (size_t i = position->count; i && position->ranges[i - 1].last >= last; i--)
        if (position->ranges[i - 1].first <= last)
            return position->ranges[i - 1].first - 1;
    return last;
}

uint64_t spool_position_count(const struct spool_position *position, uint64_t last)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < position->count && position->ranges[i].first <= last; i++) {
        uint64_t end = position->ranges[i].last < last ? position->ranges[i].last : last;
        sum += end - position->ranges[i].first + 1;
    }
    return sum;
}

/* --- acknowledging --- */

static int is_earlier(const void *one, const void *other)
{
    const struct stampd_spool_range *left = one, *right = other;
    return left->first < right->first ? -1 : left->first > right->first;
}

/* Sorts, and joins what touches. */
static size_t spool_position_join(struct stampd_spool_range *ranges, size_t count)
{
    size_t kept = 0;
    qsort(ranges, count, sizeof *ranges, is_earlier);
    for (size_t i = 0; i < count; i++)
        if (kept && ranges[i].first <= ranges[kept - 1].last + 1) {
            if (ranges[i].last > ranges[kept - 1].last)
                ranges[kept - 1].last = ranges[i].last;
        } else {
            ranges[kept++] = ranges[i];
        }
    return kept;
}

static int spool_position_store(int folder, mode_t mode, int file, uint64_t edition,
                                const struct stampd_spool_range *ranges, size_t count)
{
    char *text = malloc(FILE_MOST);
    if (!text)
        return ENOMEM;
    size_t size = (size_t)snprintf(text, FILE_MOST, TITLE EDITION "%" PRIu64 "\n", edition);
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, FILE_MOST - size, "%" PRIu64 " %" PRIu64 "\n", ranges[i].first,
                                 ranges[i].last);
    size += (size_t)snprintf(text + size, FILE_MOST - size, "%08" PRIx32 "\n", spool_crc(0, text, size));
    int error = spool_files_rewrite(folder, names[file], mode, text, size);
    free(text);
    return error;
}

int spool_position_create(int folder, mode_t mode)
{
    int error = 0;
    for (int file = 0; !error && file < FILES; file++)
        error = spool_position_store(folder, mode, file, (uint64_t)file + 1, NULL, 0);
    return error;
}

/* In the other file.  What counts at present is on disk first: the one that wrote it may have died before. */
static int store_next(struct stampd_spool *spool, const struct stampd_spool_range *ranges, size_t count)
{
    struct spool_position *position = &spool->position;
    int error = 0;
    if (position->edition && position->edition != position->synced_edition)
        error = spool_files_sync_again(spool->folder, names[position->newest]);
    if (!error)
        error = spool_position_store(spool->folder, spool->file_mode, other_file(position),
                                     position->edition + 1, ranges, count);
    if (!error)
        position->synced_edition = position->edition + 1;
    return error;
}

/* The segments of which all records are acknowledged, except the last one; also those behind a record that
 * waits. */
static int remove_segments(const struct stampd_spool *spool, const struct stampd_spool_range *ranges,
                           size_t total)
{
    uint64_t *bases, bytes;
    size_t count, at = 0;
    char name[SPOOL_NAME_BYTES];
    int error = spool_segment_list(spool->folder, NULL, &bases, &count, &bytes);
    for (size_t i = 0; !error && i + 1 < count; i++) {
        while (at < total && ranges[at].last + 1 < bases[i + 1])
            at++;
        if (at == total)
            break;
        if (ranges[at].first > bases[i])
            continue;
        spool_segment_name(bases[i], name);
        if (unlinkat(spool->folder, name, 0) && errno != ENOENT)
            error = errno;
        spool_step();
    }
    free(bases);
    return error;
}

static int acknowledge(struct stampd_spool *spool, const struct stampd_spool_range *done, size_t count)
{
    const struct spool_position *position = &spool->position;
    int error = spool_position_read_again(spool);
    struct stampd_spool_range *ranges = error ? NULL : calloc(position->count + count + 1, sizeof *ranges);
    if (!ranges)
        return error ? error : ENOMEM;
    size_t total = position->count;
    if (total)
        memcpy(ranges, position->ranges, total * sizeof *ranges);
    memcpy(ranges + total, done, count * sizeof *ranges);
    total = spool_position_join(ranges, total + count);
    error = total > SPOOL_RANGES_MOST ? ENOBUFS : store_next(spool, ranges, total);
    if (!error)
        error = remove_segments(spool, ranges, total);
    free(ranges);
    return error ? error : spool_position_read_again(spool);
}

int stampd_spool_acknowledge(struct stampd_spool *spool, const struct stampd_spool_range *done, size_t count)
{
    if (spool->owner != getpid())
        return ECHILD;
    int error = count ? spool_files_lock(spool->position_lock) : 0;
    if (error || !count)
        return error;
    error = acknowledge(spool, done, count);
    spool_files_unlock(spool->position_lock);
    return error;
}

/* --- spool tail --- */

enum { WINDOW_BYTES = 64 << 10, PAGE_BYTES = 4096, ROOM_TIMES = 16 };

/* Many times these bytes. */
static int spool_tail_has_room(int fd, uint64_t bytes)
{
    struct statfs disk;
    return !fstatfs(fd, &disk) && disk.f_bavail * (uint64_t)disk.f_bsize > ROOM_TIMES * bytes;
}

/* Fewer when the disk is full.  A page at a time: of a larger write the kernel makes one large folio, all
 * blocks of which it visits at each later write and sync of a record. */
static void write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const unsigned char zeros[PAGE_BYTES];
    while (from < to) {
        uint64_t left = PAGE_BYTES - from % PAGE_BYTES;
        ssize_t written = pwrite(fd, zeros, left < to - from ? left : to - from, (off_t)from);
        if (written <= 0)
            return;
        from += (uint64_t)written;
    }
}

void spool_tail_allocate(const struct stampd_spool *spool, uint64_t size, uint64_t end, uint64_t bytes)
{
    uint64_t to = size / SPOOL_CHUNK * SPOOL_CHUNK + SPOOL_CHUNK;
    if (to > spool->limits.segment_bytes)
        to = spool->limits.segment_bytes;
    if (end + bytes <= size || end + bytes > to || !spool_tail_has_room(spool->writing.fd, to - size))
        return;
    spool_step();
    write_zeros(spool->writing.fd, size, to);
    spool_step();
}

int spool_tail_cut(int fd, uint64_t size, uint64_t end)
{
    if (size <= end)
        return 0;
    spool_step();
    int error = ftruncate(fd, (off_t)end) ? errno : 0;
    spool_step();
    return error;
}

int spool_tail_measure(int fd, uint64_t size, uint64_t *end_r)
{
    unsigned char *window = malloc(WINDOW_BYTES);
    int error = window ? 0 : ENOMEM;
    while (!error && size > SPOOL_SEGMENT_HEAD) {
        uint64_t from = size > SPOOL_SEGMENT_HEAD + WINDOW_BYTES ? size - WINDOW_BYTES : SPOOL_SEGMENT_HEAD;
        size_t count;
        error = spool_files_read(fd, window, (size_t)(size - from), from, &count);
        while (!error && count && !window[count - 1])
            count--;
        size = error ? size : from + count;
        if (count)
            break;
    }
    free(window);
    *end_r = size;
    return error;
}
