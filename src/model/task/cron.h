/* cron: computes when a periodic task is due next, from a short text (tasks.md, "Periodic tasks").
 *
 * - Ymmddhhmm  once a year   Y11100425  10 November, 4:25; a day that every year has: not 29 February
 * - Mddhhmm    once a month  M100425    the 10th, 4:25; 29 to 31: the last day of a shorter month
 * - Wdhhmm     once a week   W30425     Wednesday, 4:25; 1 is Monday, 7 Sunday
 * - Dhhmm      once a day    D0425      4:25
 * - Hmm        once an hour  H25        25 past
 * - five fields of crontab(5)           "25 4 * * 1-5" (cron_fields.h)
 *
 * Times are in one zone for the whole process, UTC until cron_set_zone.  At clock changes: a time that the
 * clock skips is due at the change; a time of day that occurs twice is due the first time.  An hourly text is
 * not a time of day: it is due each time the clock shows that minute, about once in each elapsed hour.  So
 * are five fields whose hour begins with *. */
#ifndef STAMPD_MODEL_TASK_CRON_H
#define STAMPD_MODEL_TASK_CRON_H

#include "base/base.h"
#include "base/bytes.h"
#include "model/task/cron_fields.h"

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
