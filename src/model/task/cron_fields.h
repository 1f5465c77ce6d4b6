/* cron_fields: the five fields of crontab(5): minute, hour, day of the month, month, day of the week.
 *
 * Each is *, a number, a range a-b, or a list of these separated by commas; * and ranges take a step, as
 * "*" "/5" or 8-18/2.  Months and days of the week may be names of three letters; 0 and 7 are Sunday.  When
 * both days are restricted (none begins with *), either is enough.  Pure; knows no time zone. */
#ifndef STAMPD_MODEL_TASK_CRON_FIELDS_H
#define STAMPD_MODEL_TASK_CRON_FIELDS_H

#include "base/base.h"
#include "base/bytes.h"

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

#endif
