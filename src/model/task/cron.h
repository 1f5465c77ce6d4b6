/* cron: computes when a periodic task is due next, from a short text (tasks.md, "Periodic tasks").
 *
 * - Ymmddhhmm  once a year   Y11100425  10 November, 4:25; a day that every year has: not 29 February
 * - Mddhhmm    once a month  M100425    the 10th, 4:25; 29 to 31: the last day of a shorter month
 * - Wdhhmm     once a week   W30425     Wednesday, 4:25; 1 is Monday, 7 Sunday
 * - Dhhmm      once a day    D0425      4:25
 * - Hmm        once an hour  H25        25 past
 * - five fields of crontab(5)           "25 4 * * 1-5"
 *
 * Times are in one zone for the whole process, UTC until cron_set_zone.  At clock changes: a time that the
 * clock skips is due at the change; a time of day that occurs twice is due the first time.  An hourly text is
 * not a time of day: it is due each time the clock shows that minute, about once in each elapsed hour.  So
 * are five fields whose hour begins with *. */
#ifndef STAMPD_MODEL_TASK_CRON_H
#define STAMPD_MODEL_TASK_CRON_H

#include "base/base.h"
#include "base/bytes.h"

/* --- cron fields --- */

/* The five fields of crontab(5): minute, hour, day of the month, month, day of the week.
 *
 * Each is *, a number, a range a-b, or a list of these separated by commas; * and ranges take a step, as
 * "*" "/5" or 8-18/2.  Months and days of the week may be names of three letters; 0 and 7 are Sunday.  When
 * both days are restricted (none begins with *), either is enough.  Pure; knows no time zone. */

enum { CRON_FIELDS_TEXT_MOST = 100 };

/* Sets of bits: bit n is the number n. */
struct cron_fields {
    uint64_t minutes, hours, days, months, weekdays; /* weekdays: 0, Sunday, to 6 */
    bool has_any_hour;                               /* the field begins with * */
    bool is_any_day;                                 /* either day field begins with *: both must match */
};

/* Fields are separated by one blank.  False: malformed, or no such day exists. */
MUST_USE bool cron_fields_parse(struct bytes text, struct cron_fields *fields_r);
/* The first full minute from `local` on that matches; seconds since 1970 of a clock in UTC.  It is at most
 * eight years later: a 29 February. */
int64_t cron_fields_next(const struct cron_fields *fields, int64_t local);

struct cron {
    char period;      /* 'Y' 'M' 'W' 'D' 'H'; 'F': the fields */
    int month, day;   /* Y; day also M; from 1 */
    int weekday;      /* W; from 1, Monday */
    int hour, minute; /* hour: not H */
    struct cron_fields fields;
};

/* Exactly 9, 7, 6, 5, 3 characters by period, or five fields; false: not a valid text. */
MUST_USE bool cron_parse(struct bytes text, struct cron *cron_r);

/* Sets the zone of this process, as "Europe/Paris"; "" is UTC.  False: the system has no such zone; the
 * previous one stays.  Also sets the zone of localtime. */
MUST_USE bool cron_set_zone(const char *zone);

/* The name of that zone. */
const char *cron_zone(void);

/* The first due time after that moment; milliseconds since 1970. */
int64_t cron_next_ms(const struct cron *cron, int64_t after_ms);

#endif
