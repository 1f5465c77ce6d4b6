/* spool_board: two small files that are written in place.  A reader that meets a writer reads again.
 *
 * Neither is synchronised: they are right while the machine runs.  The board names the start of the machine
 * and the file that it is itself, so that it is not believed after a failure of power, nor in a copy. */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool_crc.h"

enum { BOOT_BYTES = SPOOL_PLACE_BYTES - 16, BOARD_BYTES = 96, SYNCED_BYTES = 28, TRIES = 100 };

/* Empty where /proc does not show it: then no board is believed when a spool is opened. */
static void read_boot(unsigned char boot_r[BOOT_BYTES])
{
    size_t size;
    memset(boot_r, 0, BOOT_BYTES);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (spool_files_read(fd, boot_r, BOOT_BYTES, 0, &size) || size < BOOT_BYTES)
        memset(boot_r, 0, BOOT_BYTES);
    close(fd);
}

/* A file whose last four bytes are the CRC of the others. */
static int read_checked(int fd, unsigned char *bytes, size_t size)
{
    for (int tries = 0; tries < TRIES; tries++) {
        size_t count;
        int error = spool_files_read(fd, bytes, size, 0, &count);
        if (error || count < size)
            return error ? error : EBADMSG;
        if (spool_record_read_u32(bytes + size - 4) == spool_crc(0, bytes, size - 4))
            return 0;
        sched_yield();
    }
    return EBADMSG;
}

static int write_checked(int fd, unsigned char *bytes, size_t size)
{
    spool_record_write_u32(bytes + size - 4, spool_crc(0, bytes, size - 4));
    return spool_files_write(fd, bytes, size, 0);
}

/* Where it is, as the board notes it. */
static int read_place(const struct stampd_spool *spool, unsigned char place_r[BOOT_BYTES + 16])
{
    struct stat stat;
    if (fstat(spool->board, &stat))
        return errno;
    read_boot(place_r);
    spool_record_write_u64(place_r + BOOT_BYTES, stat.st_ino);
    spool_record_write_u64(place_r + BOOT_BYTES + 8, stat.st_dev);
    return 0;
}

int spool_board_is_present(const struct stampd_spool *spool)
{
    unsigned char bytes[BOARD_BYTES], place[BOOT_BYTES + 16];
    return !read_checked(spool->board, bytes, sizeof bytes) && !read_place(spool, place) && *place &&
           !memcmp(bytes, place, sizeof place);
}

int spool_board_read(const struct stampd_spool *spool, struct spool_board *board_r)
{
    unsigned char bytes[BOARD_BYTES];
    int error = read_checked(spool->board, bytes, sizeof bytes);
    const unsigned char *numbers = bytes + BOOT_BYTES + 16;
    if (error)
        return error;
    memcpy(board_r->place, bytes, sizeof board_r->place);
    board_r->base = spool_record_read_u64(numbers);
    board_r->end = spool_record_read_u64(numbers + 8);
    board_r->written = spool_record_read_u64(numbers + 16);
    return 0;
}

int spool_board_write(const struct stampd_spool *spool, struct spool_board *board)
{
    unsigned char bytes[BOARD_BYTES] = {0}, *numbers = bytes + BOOT_BYTES + 16;
    int error = *board->place ? 0 : read_place(spool, board->place);
    memcpy(bytes, board->place, sizeof board->place);
    spool_record_write_u64(numbers, board->base);
    spool_record_write_u64(numbers + 8, board->end);
    spool_record_write_u64(numbers + 16, board->written);
    return error ? error : write_checked(spool->board, bytes, sizeof bytes);
}

int spool_board_read_synced(const struct stampd_spool *spool, struct spool_synced *synced_r)
{
    unsigned char bytes[SYNCED_BYTES];
    int error = read_checked(spool->synced, bytes, sizeof bytes);
    *synced_r = (struct spool_synced){0};
    if (!error)
        *synced_r =
            (struct spool_synced){spool_record_read_u64(bytes),
                                  {spool_record_read_u64(bytes + 8), spool_record_read_u64(bytes + 16)}};
    return error == EBADMSG ? 0 : error;
}

int spool_board_write_synced(const struct stampd_spool *spool, const struct spool_synced *synced)
{
    unsigned char bytes[SYNCED_BYTES];
    spool_record_write_u64(bytes, synced->durable);
    spool_record_write_u64(bytes + 8, synced->broken.first);
    spool_record_write_u64(bytes + 16, synced->broken.last);
    return write_checked(spool->synced, bytes, sizeof bytes);
}
