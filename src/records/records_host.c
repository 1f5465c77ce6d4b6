/* records_host: words in the head of the memory, outside of its lock: an odd number before them says that
 * they are being written. */
#include "records/records_host.h"

#include <string.h>

#include "base/clock.h"
#include "records/records_private.h"
#include "records/records_use.h"

enum { TRIES = 100 };

void records_host_write(struct records *records, const struct records_hosts *hosts)
{
    struct hosts_board *board = &records->head->hosts;
    uint64_t words[COUNT_OF(board->words)];
    memcpy(words, hosts, sizeof words);
    uint64_t before = atomic_load(&board->changes) | 1;
    atomic_store(&board->changes, before);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        atomic_store(&board->words[i], words[i]);
    atomic_store(&board->changes, before + 1);
}

static bool copy_whole(const struct hosts_board *board, struct records_hosts *hosts_r)
{
    uint64_t words[COUNT_OF(board->words)];
    uint64_t before = atomic_load(&board->changes);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = atomic_load(&board->words[i]);
    memcpy(hosts_r, words, sizeof *hosts_r);
    return !(before & 1) && atomic_load(&board->changes) == before;
}

static bool is_shown(struct records_hosts *hosts)
{
    if (!hosts->at_ms || clock_monotonic_ms() - hosts->at_ms > RECORDS_HOST_FRESH_MS ||
        hosts->count > RECORDS_HOSTS_MOST)
        return false;
    for (uint64_t i = 0; i < hosts->count; i++)
        hosts->list[i].address[RECORDS_HOST_ADDRESS - 1] = 0;
    return true;
}

bool records_host_read(const struct records *records, struct records_hosts *hosts_r)
{
    for (int i = 0; i < TRIES; i++)
        if (copy_whole(&records->head->hosts, hosts_r))
            return is_shown(hosts_r);
    return false; /* its writer has died, and the next one goes on */
}

bool records_host_peek(const char *path, struct records_hosts *hosts_r)
{
    static struct records_head head; /* too large for a stack */
    for (int i = 0; i < TRIES && records_use_peek(path, &head) && head.is_ready; i++)
        if (copy_whole(&head.hosts, hosts_r))
            return is_shown(hosts_r);
    return false;
}

const char *records_host_word(uint64_t state)
{
    return state == RECORDS_HOST_MEMBER ? "member" : state == RECORDS_HOST_LEAVING ? "leaving" : "away";
}
