/* spool_tail: the zeros behind the records of the segment that grows.
 *
 * A sync of a file that has grown, or of blocks that were never written, writes metadata as well, and waits
 * for the journal of the file system.  So the file is made longer in advance, by zeros that are written. */
#include "spool/spool_private.h"

#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

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
