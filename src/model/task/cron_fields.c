/* cron_fields: a set of bits for each field. */
#include "model/task/cron_fields.h"

#include <strings.h>
#include <time.h>

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
