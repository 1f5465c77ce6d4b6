/* cron: the local clock as a sequence of pieces, each with a constant offset from UTC.
 *
 * Only localtime_r is needed: a piece ends where the offset changes, which is found by bisection.  A time of
 * day is then the first moment at which the clock shows it or more: inside a piece, or at the start of a
 * piece when the clock jumped over the time. */
#include "model/task/cron.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"

/* --- cron fields --- */

enum { MINUTE_S = 60, DAY_MINUTES = 1440 };

struct field {
    int least, most;
    const char *names; /* of three letters each, from `least` on; NULL: none */
};
static const struct field fields_of_text[] = {
    {0, 59, NULL},
    {0, 23, NULL},
    {1, 31, NULL},
    {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {0, 7, "sunmontuewedthufrisat"},
};

static bool cron_fields_take(struct bytes *text, char wanted)
{
    if (!text->size || *text->data != wanted)
        return false;
    text->data++;
    text->size--;
    return true;
}

static bool cron_fields_read_name(struct bytes *text, const struct field *field, int *number_r)
{
    enum { LETTERS = 3 };
    for (int i = 0; field->names && field->names[i * LETTERS] && text->size >= LETTERS; i++)
        if (strncasecmp(text->data, field->names + i * LETTERS, LETTERS) == 0) {
            *number_r = field->least + i;
            text->data += LETTERS;
            text->size -= LETTERS;
            return true;
        }
    return false;
}

static bool cron_fields_read_number(struct bytes *text, const struct field *field, int *number_r)
{
    size_t digits = 0;
    *number_r = 0;
    while (digits < text->size && digits < 2 && text->data[digits] >= '0' && text->data[digits] <= '9')
        *number_r = *number_r * 10 + (text->data[digits++] - '0');
    if (!digits)
        return cron_fields_read_name(text, field, number_r);
    text->data += digits;
    text->size -= digits;
    return *number_r >= field->least && *number_r <= field->most;
}

/* A part of a list: *, a number, or a range; a step. */
static bool cron_fields_read_part(struct bytes *text, const struct field *field, uint64_t *set)
{
    int first = field->least, last = field->most, step = 1;
    const struct field steps = {1, field->most, NULL};
    bool is_range = cron_fields_take(text, '*');
    if (!is_range) {
        if (!cron_fields_read_number(text, field, &first))
            return false;
        last = first;
        is_range = cron_fields_take(text, '-');
        if (is_range && (!cron_fields_read_number(text, field, &last) || last < first))
            return false;
    }
    if (cron_fields_take(text, '/') && (!is_range || !cron_fields_read_number(text, &steps, &step)))
        return false;
    for (int number = first; number <= last; number += step)
        *set |= UINT64_C(1) << number;
    return true;
}

static bool cron_fields_read_field(struct bytes text, const struct field *field, uint64_t *set_r)
{
    *set_r = 0;
    do {
        if (!cron_fields_read_part(&text, field, set_r))
            return false;
    } while (cron_fields_take(&text, ','));
    return !text.size;
}

/* February has a 29th in some year. */
static bool has_day(const struct cron_fields *fields)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (int month = 1; month <= (int)COUNT_OF(days); month++)
        if (fields->months >> month & 1 && fields->days & ((UINT64_C(2) << days[month - 1]) - 2))
            return true;
    return false;
}

bool cron_fields_parse(struct bytes text, struct cron_fields *fields_r)
{
    uint64_t sets[COUNT_OF(fields_of_text)];
    bool is_any[COUNT_OF(fields_of_text)];
    if (!text.data || text.size > CRON_FIELDS_TEXT_MOST)
        return false;
    for (size_t i = 0; i < COUNT_OF(fields_of_text); i++) {
        const char *blank = memchr(text.data, ' ', text.size);
        bool is_last = i + 1 == COUNT_OF(fields_of_text);
        if (is_last == (blank != NULL))
            return false;
        struct bytes field = {text.data, blank ? (size_t)(blank - text.data) : text.size};
        is_any[i] = field.size && *field.data == '*';
        if (!cron_fields_read_field(field, &fields_of_text[i], &sets[i]))
            return false;
        text.data += field.size + !is_last;
        text.size -= field.size + !is_last;
    }
    *fields_r = (struct cron_fields){.minutes = sets[0],
                                     .hours = sets[1],
                                     .days = sets[2],
                                     .months = sets[3],
                                     .weekdays = (sets[4] | sets[4] >> 7) & 0x7f,
                                     .has_any_hour = is_any[1],
                                     .is_any_day = is_any[2] || is_any[4]};
    return !fields_r->is_any_day || has_day(fields_r);
}

static bool is_day(const struct cron_fields *fields, int64_t day)
{
    time_t seconds = (time_t)(day * DAY_MINUTES * MINUTE_S);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts))
        return true; /* outside the range of years */
    bool in_month = fields->days >> parts.tm_mday & 1, in_week = fields->weekdays >> parts.tm_wday & 1;
    return fields->months >> (parts.tm_mon + 1) & 1 &&
           (fields->is_any_day ? in_month && in_week : in_month || in_week);
}

int64_t cron_fields_next(const struct cron_fields *fields, int64_t local)
{
    int64_t minute = local / MINUTE_S + (local % MINUTE_S > 0), day = minute / DAY_MINUTES;
    if (minute % DAY_MINUTES < 0)
        day--;
    int of_day = (int)(minute - day * DAY_MINUTES);
    for (;; day++, of_day = 0) {
        if (!is_day(fields, day))
            continue;
        for (; of_day < DAY_MINUTES; of_day++)
            if (fields->hours >> (of_day / 60) & 1 && fields->minutes >> (of_day % 60) & 1)
                return (day * DAY_MINUTES + of_day) * MINUTE_S;
    }
}

enum {
    HOUR_S = 3600,
    DAY_S = 86400,
    STEP_S = HOUR_S,        /* two changes are never closer */
    WIDEST_S = 26 * HOUR_S, /* no zone is off, or jumps, by more */
    ZONE_MOST = 63,         /* bytes of its name */
};

/* --- the text --- */

static const struct {
    char period;
    size_t size;
} shapes[] = {{'Y', 9}, {'M', 7}, {'W', 6}, {'D', 5}, {'H', 3}};

static const int days_of_month[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

/* Reads the next `digits` of the text. */
static int cron_take(const char **at, int digits)
{
    int number = 0;
    while (digits--)
        number = number * 10 + (*(*at)++ - '0');
    return number;
}

static bool has_shape(struct bytes text)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        if (text.size == shapes[i].size && text.data[0] == shapes[i].period) {
            for (size_t k = 1; k < text.size; k++)
                if (text.data[k] < '0' || text.data[k] > '9')
                    return false;
            return true;
        }
    return false;
}

static bool cron_is_within(int number, int least, int most)
{
    return number >= least && number <= most;
}

bool cron_parse(struct bytes text, struct cron *cron_r)
{
    if (memchr(text.data ? text.data : "", ' ', text.size)) {
        *cron_r = (struct cron){.period = 'F'};
        return cron_fields_parse(text, &cron_r->fields);
    }
    if (!has_shape(text))
        return false;
    const char *at = text.data;
    struct cron cron = {.period = *at++};
    if (cron.period == 'Y')
        cron.month = cron_take(&at, 2);
    if (cron.period == 'Y' || cron.period == 'M')
        cron.day = cron_take(&at, 2);
    if (cron.period == 'W')
        cron.weekday = cron_take(&at, 1);
    if (cron.period != 'H')
        cron.hour = cron_take(&at, 2);
    cron.minute = cron_take(&at, 2);
    *cron_r = cron;
    if (cron.period == 'Y' &&
        (!cron_is_within(cron.month, 1, 12) || !cron_is_within(cron.day, 1, days_of_month[cron.month - 1])))
        return false;
    if (cron.period == 'M' && !cron_is_within(cron.day, 1, 31))
        return false;
    return (cron.period != 'W' || cron_is_within(cron.weekday, 1, 7)) && cron.hour < 24 && cron.minute < 60;
}

/* --- the zone --- */

/* Accepts only a name below the folder of zones: glibc would read any other text as a rule, or as UTC. */
static bool is_known_zone(const char *zone)
{
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";
    const char *folder = getenv("TZDIR");
    struct stat status;
    char path[256];
    if (zone[strspn(zone, others)] || *zone == '/')
        return false;
    int size = snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "/usr/share/zoneinfo", zone);
    return size > 0 && (size_t)size < sizeof path && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static char zone_name[ZONE_MOST + 1] = "UTC";

const char *cron_zone(void)
{
    return zone_name;
}

bool cron_set_zone(const char *zone)
{
    bool is_utc = !*zone || strcmp(zone, "UTC") == 0;
    if (!is_utc && (strlen(zone) > ZONE_MOST || !is_known_zone(zone)))
        return false;
    snprintf(zone_name, sizeof zone_name, "%s", is_utc ? "UTC" : zone);
    if (setenv("TZ", is_utc ? "UTC0" : zone, 1))
        log_fatal("out of memory setting the time zone");
    tzset();
    return true;
}

/* --- the clock --- */

/* Offset of the local clock from UTC; positive when ahead. */
static int64_t distance(int64_t moment)
{
    time_t seconds = (time_t)moment;
    struct tm parts;
    if (!localtime_r(&seconds, &parts))
        return 0; /* outside the range of years */
    return parts.tm_gmtoff;
}

/* From `start`, where the clock is at `ahead`, to `end`, at a constant offset. */
struct piece {
    int64_t start, end, ahead;
};

/* The first moment in (from, to] whose offset is not `ahead`; that of `to` must differ. */
static int64_t find_change(int64_t from, int64_t to, int64_t ahead)
{
    while (to - from > 1) {
        int64_t middle = from + (to - from) / 2;
        if (distance(middle) == ahead)
            from = middle;
        else
            to = middle;
    }
    return to;
}

/* The piece that begins at `start`, up to `limit`. */
static struct piece next_piece(int64_t start, int64_t limit)
{
    struct piece piece = {.start = start, .end = start, .ahead = distance(start)};
    while (piece.end < limit) {
        int64_t to = piece.end + STEP_S;
        if (distance(to) != piece.ahead) {
            piece.end = find_change(piece.end, to, piece.ahead);
            return piece;
        }
        piece.end = to;
    }
    return piece;
}

/* The first moment at which the local clock shows `local` (seconds since 1970 as if it were UTC) or more. */
static int64_t moment_of(int64_t local)
{
    int64_t limit = local + WIDEST_S;
    for (struct piece piece = {.end = local - WIDEST_S}; piece.end < limit;) {
        piece = next_piece(piece.end, limit);
        int64_t moment = local - piece.ahead;
        if (moment < piece.end)
            return moment > piece.start ? moment : piece.start;
    }
    return limit; /* impossible: no clock is that far behind */
}

/* --- the next time --- */

static int64_t round_up(int64_t number, int64_t unit)
{
    int64_t rest = ((number % unit) + unit) % unit;
    return rest ? number + unit - rest : number;
}

/* Seconds since 1970 at the start of a day, as if the clock were in UTC. */
static int64_t start_of_day(int year, int month, int day)
{
    struct tm parts = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return timegm(&parts);
}

static int last_day(int year, int month)
{
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days_of_month[month - 1] + (month == 2 && is_leap);
}

/* The day in the period that is `index` periods after that of `here`. */
static int64_t choose_day(const struct cron *cron, const struct tm *here, int index)
{
    int year = here->tm_year + 1900, month = here->tm_mon + 1;
    switch (cron->period) {
    case 'Y':
        return start_of_day(year + index, cron->month, cron->day);
    case 'M': {
        int months = year * 12 + month - 1 + index, day = last_day(months / 12, months % 12 + 1);
        return start_of_day(months / 12, months % 12 + 1, cron->day < day ? cron->day : day);
    }
    case 'W': {
        int today = here->tm_wday ? here->tm_wday : 7;
        return start_of_day(year, month, here->tm_mday + cron->weekday - today + 7 * index);
    }
    default:
        return start_of_day(year, month, here->tm_mday + index);
    }
}

/* For years, months, weeks, days: checks the periods from the previous one on. */
static int64_t next_of_calendar(const struct cron *cron, int64_t after)
{
    time_t seconds = (time_t)after;
    struct tm here;
    if (!localtime_r(&seconds, &here))
        return after;
    for (int index = -1;; index++) {
        int64_t local = choose_day(cron, &here, index) + cron->hour * HOUR_S + cron->minute * MINUTE_S;
        int64_t moment = moment_of(local);
        if (moment > after)
            return moment;
    }
}

/* Each time the clock shows the minute, and each change at which it skips the minute within an hour. */
static int64_t next_of_hour(const struct cron *cron, int64_t after)
{
    int64_t shown = cron->minute * MINUTE_S, limit = after + WIDEST_S;
    for (struct piece piece = {.end = after}; piece.end < limit;) {
        piece = next_piece(piece.end, limit);
        int64_t start = piece.start > after ? piece.start : after + 1;
        int64_t moment = round_up(start + piece.ahead - shown, HOUR_S) + shown - piece.ahead;
        if (moment < piece.end)
            return moment;
        int64_t from = piece.end + piece.ahead, jump = distance(piece.end) - piece.ahead;
        if (jump > 0 && jump < HOUR_S && round_up(from - shown, HOUR_S) + shown < from + jump)
            return piece.end;
    }
    return limit; /* impossible: each hour has the minute */
}

/* In each piece, the first time that matches: the clock may change before it.  `shown`: what a clock that was
 * set back has shown already.  What it skips is due at the change. */
static int64_t next_of_fields(const struct cron_fields *fields, int64_t after)
{
    int64_t shown = INT64_MIN;
    for (struct piece piece = {.end = after - WIDEST_S};;) {
        int64_t ahead = distance(piece.end), first = piece.end > after ? piece.end : after + 1;
        int64_t from = first + ahead > shown || fields->has_any_hour ? first + ahead : shown;
        int64_t moment = cron_fields_next(fields, from) - ahead;
        piece = next_piece(piece.end, moment + 1);
        if (moment < piece.end)
            return moment;
        int64_t end = piece.end + ahead, jump = distance(piece.end) - ahead;
        shown = end > shown ? end : shown;
        bool is_skip = piece.end > after && jump > 0 && (!fields->has_any_hour || jump < HOUR_S);
        if (is_skip && cron_fields_next(fields, end) < end + jump)
            return piece.end;
    }
}

int64_t cron_next_ms(const struct cron *cron, int64_t after_ms)
{
    int64_t after = after_ms / 1000 - (after_ms % 1000 < 0);
    int64_t next = cron->period == 'F'   ? next_of_fields(&cron->fields, after)
                   : cron->period == 'H' ? next_of_hour(cron, after)
                                         : next_of_calendar(cron, after);
    return next * 1000;
}
