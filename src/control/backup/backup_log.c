/* backup_log: names of segments, and what pg_waldump prints. */
#include "control/backup/backup_log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/backup/backup_tool.h"
#include "control/message.h"

enum { NAME_SIZE = 24, SECOND_US = 1000000 };

/* --- names --- */

uint64_t backup_log_segment(const struct backup_folder *folder, uint64_t position)
{
    return position / (uint64_t)folder->segment_bytes;
}

/* Segments with the same upper half of their position. */
static uint64_t per_log(const struct backup_folder *folder)
{
    return ((uint64_t)1 << 32) / (uint64_t)folder->segment_bytes;
}

const char *backup_log_name(struct control *control, const struct backup_folder *folder, uint64_t number)
{
    return arena_printf(control->arena, "%08X%08X%08X", (unsigned)folder->timeline,
                        (unsigned)(number / per_log(folder)), (unsigned)(number % per_log(folder)));
}

/* False: it is no name of a segment. */
static bool backup_log_read_name(const struct backup_folder *folder, const char *name, int64_t *timeline_r,
                                 uint64_t *number_r, bool *is_partial_r)
{
    uint32_t timeline, high, low;
    if (strspn(name, "0123456789ABCDEF") != NAME_SIZE ||
        sscanf(name, "%8" SCNx32 "%8" SCNx32 "%8" SCNx32, &timeline, &high, &low) != 3)
        return false;
    *is_partial_r = strcmp(name + NAME_SIZE, ".partial") == 0;
    *timeline_r = timeline;
    *number_r = high * per_log(folder) + low;
    return *is_partial_r || !name[NAME_SIZE];
}

/* --- listing --- */

static void backup_log_add_number(struct control *control, struct backup_log *log, uint64_t number)
{
    if ((log->count & (log->count - 1)) == 0) { /* 0, or a power of two: the room is used up */
        size_t room = log->count ? 2 * log->count : 1;
        uint64_t *more = arena_alloc(control->arena, room * sizeof *more);
        if (log->count)
            memcpy(more, log->numbers, log->count * sizeof *more);
        log->numbers = more;
    }
    log->numbers[log->count++] = number;
}

static void backup_log_take_file(struct control *control, const struct backup_folder *folder,
                                 struct backup_log *log, const char *name)
{
    int64_t timeline;
    uint64_t number;
    bool is_partial;
    struct stat status;
    if (!backup_log_read_name(folder, name, &timeline, &number, &is_partial) ||
        stat(arena_printf(control->arena, "%s/%s", log->path, name), &status) != 0)
        return;
    log->bytes += status.st_size;
    if (status.st_mtime > log->newest_s)
        log->newest_s = status.st_mtime;
    if (timeline != folder->timeline) {
        log->strangers++;
    } else if (is_partial) {
        log->has_partial = true;
        log->partial = number;
    } else if (status.st_size == folder->segment_bytes) { /* a file of another size has been damaged */
        backup_log_add_number(control, log, number);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

bool backup_log_list(struct control *control, const struct backup_folder *folder, const char *path,
                     struct backup_log *log_r)
{
    *log_r = (struct backup_log){.path = path};
    DIR *directory = opendir(path);
    if (!directory)
        return message_refuse("%s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory));)
        backup_log_take_file(control, folder, log_r, entry->d_name);
    closedir(directory);
    if (log_r->count)
        qsort(log_r->numbers, log_r->count, sizeof *log_r->numbers, compare_numbers);
    return true;
}

bool backup_log_is_whole(const struct backup_log *log, uint64_t from, uint64_t *missing_r)
{
    uint64_t next = from;
    for (size_t i = 0; i < log->count; i++) {
        if (log->numbers[i] < from)
            continue;
        if (log->numbers[i] != next)
            break;
        next++;
    }
    bool has_more =
        (log->count && log->numbers[log->count - 1] >= next) || (log->has_partial && log->partial > next);
    bool is_reached = next > from || (log->has_partial && log->partial == from);
    *missing_r = next;
    return is_reached && !has_more;
}

/* --- time --- */

bool backup_log_time(struct bytes text, int64_t *us_r)
{
    char copy[64], blank;
    struct tm parts = {0};
    int used = 0, zone_hours = 0, zone_minutes = 0;
    int64_t us = 0;
    if (text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (sscanf(copy, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &blank,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 7 ||
        (blank != ' ' && blank != 'T') || parts.tm_mon < 1 || parts.tm_mon > 12 || parts.tm_mday < 1 ||
        parts.tm_mday > 31 || parts.tm_hour > 23 || parts.tm_min > 59 || parts.tm_sec > 60)
        return false;
    const char *at = copy + used;
    if (*at == '.')
        for (int unit = SECOND_US / 10; isdigit((unsigned char)*++at); unit /= 10)
            us += (*at - '0') * unit;
    at += *at == ' ';
    if (strcmp(at, "Z") != 0 && strcmp(at, "UTC") != 0) {
        char sign, more;
        int count = sscanf(at, "%c%2d:%2d%c", &sign, &zone_hours, &zone_minutes, &more);
        if (count < 2 || count > 3 || (sign != '+' && sign != '-') ||
            strspn(at + 1, "0123456789:") != strlen(at + 1))
            return false;
        if (sign == '-') {
            zone_hours = -zone_hours;
            zone_minutes = -zone_minutes;
        }
    }
    parts.tm_year -= 1900;
    parts.tm_mon--;
    *us_r = ((int64_t)timegm(&parts) - zone_hours * 3600 - zone_minutes * 60) * SECOND_US + us;
    return true;
}

/* --- records --- */

/* "rmgr: Transaction len … desc: COMMIT 2026-11-23 00:15:00.123456 UTC; …" */
static void take_record(void *context, struct bytes line)
{
    int64_t *newest_us = context, us;
    const char *found = memmem(line.data, line.size, "desc: COMMIT", strlen("desc: COMMIT"));
    if (!found)
        return;
    struct bytes rest = {found, line.size - (size_t)(found - line.data)}, time;
    while (rest.size && !isdigit((unsigned char)*rest.data)) /* COMMIT_PREPARED names its transaction first */
        rest = (struct bytes){rest.data + 1, rest.size - 1};
    time = bytes_cut(&rest, ';');
    if (backup_log_time(time, &us) && us > *newest_us)
        *newest_us = us;
}

static const char *position_text(struct control *control, uint64_t position)
{
    return arena_printf(control->arena, "%X/%X", (unsigned)(position >> 32), (unsigned)position);
}

bool backup_log_examine(struct control *control, const struct backup_folder *folder,
                        const struct backup_log *log, uint64_t start, bool is_prepared,
                        struct backup_log_content *content_r)
{
    *content_r = (struct backup_log_content){.is_sound = true};
    const char *timeline = arena_printf(control->arena, "%lld", (long long)folder->timeline);
    const char *from = position_text(control, start);
    uint64_t end = log->count ? (log->numbers[log->count - 1] + 1) * (uint64_t)folder->segment_bytes : 0;
    if (is_prepared && log->count) /* the last one is the partial one: how far it is written is not known */
        end -= (uint64_t)folder->segment_bytes;
    if (end > start) {
        const char *const words[] = {"pg_waldump", "--path",      log->path,
                                     "--timeline", timeline,      "--start",
                                     from,         "--end",       position_text(control, end),
                                     "--rmgr",     "Transaction", NULL};
        if (!backup_tool_read(control, folder, words, take_record, &content_r->newest_us,
                              &content_r->is_sound))
            return false;
        from = position_text(control, end);
    }
    bool is_ended; /* it fails where the log ends */
    const char *const words[] = {"pg_waldump", "--path", log->path, "--timeline",  timeline,
                                 "--start",    from,     "--rmgr",  "Transaction", NULL};
    return !is_prepared || !content_r->is_sound ||
           backup_tool_read(control, folder, words, take_record, &content_r->newest_us, &is_ended);
}

/* --- pruning --- */

bool backup_log_prune(struct control *control, const struct backup_folder *folder,
                      const struct backup_log *log, uint64_t from, size_t *removed_r)
{
    *removed_r = 0;
    for (size_t i = 0; i < log->count && log->numbers[i] < from; i++) {
        const char *path = arena_printf(control->arena, "%s/%s", log->path,
                                        backup_log_name(control, folder, log->numbers[i]));
        if (unlink(path) != 0)
            return message_refuse("%s: %s", path, strerror(errno));
        (*removed_r)++;
    }
    return true;
}
