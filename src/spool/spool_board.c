/* spool_board: a small file that is written in place.  A reader that meets a writer reads again.
 *
 * It is not synchronised: it is right while the machine runs.  It names the start of the machine and the file
 * that it is itself, so that it is not used after a failure of power, nor in a copy. */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/spool_crc.h"

enum { BOOT_BYTES = SPOOL_PLACE_BYTES - 16, BOARD_BYTES = 96 };

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
    return !spool_shared_copy(spool->shared_board, bytes, sizeof bytes) && !read_place(spool, place) &&
           *place && !memcmp(bytes, place, sizeof place);
}

int spool_board_read(const struct stampd_spool *spool, struct spool_board *board_r)
{
    unsigned char bytes[BOARD_BYTES];
    int error = spool_shared_copy(spool->shared_board, bytes, sizeof bytes);
    const unsigned char *numbers = bytes + BOOT_BYTES + 16;
    if (error)
        return error;
    memcpy(board_r->place, bytes, sizeof board_r->place);
    board_r->base = spool_record_read_u64(numbers);
    board_r->end = spool_record_read_u64(numbers + 8);
    board_r->written = spool_record_read_u64(numbers + 16);
    board_r->arrived = spool_record_read_u64(numbers + 24);
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
    spool_record_write_u64(numbers + 24, board->arrived);
    spool_record_write_u32(bytes + sizeof bytes - 4, spool_crc(0, bytes, sizeof bytes - 4));
    return error ? error : spool_files_write(spool->board, bytes, sizeof bytes, 0);
}
