/* warnings: a ring of lines, each with a checksum. */
#include "segment/warnings.h"

#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/coding/hash.h"

enum { LEVEL_BITS = 8 };

/* An entry without its checksum. */
struct line {
    uint64_t number, at_ms, who;
    uint64_t text[WARNINGS_WORDS];
};

static struct warnings_board *board; /* of warnings_start */

/* Never 0. */
static uint64_t sum_of(const struct line *line)
{
    uint64_t sum = hash_more(HASH_START, (struct bytes){(const char *)line, sizeof *line});
    return sum ? sum : 1;
}

static void warnings_keep(enum log_level level, const char *text, size_t size)
{
    if (level > LOG_LEVEL_WARNING)
        return;
    struct line line = {.number = atomic_fetch_add(&board->next, 1),
                        .at_ms = (uint64_t)clock_wall_ms(),
                        .who = (uint64_t)getpid() << LEVEL_BITS | (uint64_t)level};
    memcpy(line.text, text, size < WARNING_BYTES ? size : WARNING_BYTES);
    struct warning_entry *entry = &board->entries[line.number % WARNINGS_KEPT];
    atomic_store(&entry->sum, 0);
    atomic_store(&entry->number, line.number);
    atomic_store(&entry->at_ms, line.at_ms);
    atomic_store(&entry->who, line.who);
    for (size_t i = 0; i < WARNINGS_WORDS; i++)
        atomic_store(&entry->text[i], line.text[i]);
    atomic_store(&entry->sum, sum_of(&line));
}

void warnings_start(struct segment *segment)
{
    board = segment->warnings;
    log_set_listener(warnings_keep);
}

void warnings_stop(void)
{
    log_set_listener(NULL);
}

/* A text that was cut within a character, or that is not UTF-8, is made ASCII. */
static void make_valid(char *text)
{
    if (bytes_is_utf8(bytes_of(text)))
        return;
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            *text = '?';
}

/* False: the entry has another line, or none. */
static bool read_entry(const struct warning_entry *entry, uint64_t number, struct warning *warning)
{
    uint64_t sum = atomic_load(&entry->sum);
    struct line line = {
        atomic_load(&entry->number), atomic_load(&entry->at_ms), atomic_load(&entry->who), {0}};
    for (size_t i = 0; i < WARNINGS_WORDS; i++)
        line.text[i] = atomic_load(&entry->text[i]);
    if (line.number != number || sum != sum_of(&line))
        return false;
    warning->at_ms = (int64_t)line.at_ms;
    warning->level =
        (line.who & ((1 << LEVEL_BITS) - 1)) == LOG_LEVEL_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING;
    warning->pid = (int)(line.who >> LEVEL_BITS);
    memcpy(warning->text, line.text, WARNING_BYTES);
    warning->text[WARNING_BYTES] = '\0';
    make_valid(warning->text);
    return true;
}

size_t warnings_read(const struct segment *segment, struct warning *warnings, size_t most)
{
    const struct warnings_board *all = segment->warnings;
    uint64_t next = atomic_load(&all->next);
    size_t count = 0;
    for (uint64_t i = 1; i <= next && i <= WARNINGS_KEPT && count < most; i++)
        count += read_entry(&all->entries[(next - i) % WARNINGS_KEPT], next - i, &warnings[count]);
    return count;
}

size_t warnings_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct warnings_board);
}

void warnings_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->warnings = memory;
}
