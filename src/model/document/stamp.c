/* stamp: the calendar of 2000 to 2099, where every fourth year is a leap year. */
#include "model/document/stamp.h"

#include "base/clock.h"

#define DAY_MS        INT64_C(86400000)
#define EPOCH_2000_MS INT64_C(946684800000) /* 2000-01-01 */
#define CENTURY_DAYS  36525
#define CENTURY_MS    (CENTURY_DAYS * DAY_MS)

enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MILLI, FIELDS };

/* The weight of each field in the number. */
static const int64_t units[FIELDS] = {
    INT64_C(10000000000000), INT64_C(100000000000), INT64_C(1000000000), 10000000, 100000, 1000, 1};
static const int smallest[FIELDS] = {0, 1, 1, 0, 0, 0, 0};

/* Days of a common year before each month, and before the next year. */
static const int days_before[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};

static bool is_leap(int year)
{
    return year % 4 == 0;
}

/* Days of the year before the month, 1 to 13. */
static int days_before_month(int year, int month)
{
    return days_before[month - 1] + (month > 2 && is_leap(year));
}

/* The largest value of a field, given the year and month before it. */
static int largest(int field, const int values[FIELDS])
{
    static const int most[FIELDS] = {99, 12, 31, 23, 59, 59, 999};
    if (field == DAY)
        return days_before_month(values[YEAR], values[MONTH] + 1) -
               days_before_month(values[YEAR], values[MONTH]);
    return most[field];
}

/* Splits the number; it must be within the century's bounds, its fields need not be. */
static void stamp_split(int64_t stamp, int values[FIELDS])
{
    for (int field = 0; field < FIELDS; field++) {
        values[field] = (int)(stamp / units[field]);
        stamp %= units[field];
    }
}

static int64_t stamp_join(const int values[FIELDS])
{
    int64_t stamp = 0;
    for (int field = 0; field < FIELDS; field++)
        stamp += values[field] * units[field];
    return stamp;
}

/* Sets all fields from `first` on to their smallest or largest value. */
static void stamp_fill(int values[FIELDS], int first, bool with_largest)
{
    for (int field = first; field < FIELDS; field++)
        values[field] = with_largest ? largest(field, values) : smallest[field];
}

/* The first field out of range, FIELDS if none. */
static int first_wrong(const int values[FIELDS])
{
    int field = 0;
    while (field < FIELDS && values[field] >= smallest[field] && values[field] <= largest(field, values))
        field++;
    return field;
}

static int64_t within_century(int64_t stamp)
{
    return stamp < STAMP_MIN ? STAMP_MIN : stamp > STAMP_MAX ? STAMP_MAX : stamp;
}

int64_t stamp_from_epoch_ms(int64_t epoch_ms)
{
    if (epoch_ms < EPOCH_2000_MS)
        return STAMP_MIN;
    if (epoch_ms - EPOCH_2000_MS >= CENTURY_MS)
        return STAMP_MAX;
    int64_t ms = epoch_ms - EPOCH_2000_MS;
    int day = (int)(ms / DAY_MS);
    int64_t rest = ms % DAY_MS;
    int values[FIELDS];
    values[YEAR] = day / 1461 * 4; /* four years, of which the first is the leap year */
    day %= 1461;
    if (day >= 366) {
        values[YEAR] += 1 + (day - 366) / 365;
        day = (day - 366) % 365;
    }
    values[MONTH] = day / 31 + 1; /* correct or one too small */
    if (day >= days_before_month(values[YEAR], values[MONTH] + 1))
        values[MONTH]++;
    values[DAY] = day - days_before_month(values[YEAR], values[MONTH]) + 1;
    values[HOUR] = (int)(rest / 3600000);
    values[MINUTE] = (int)(rest / 60000 % 60);
    values[SECOND] = (int)(rest / 1000 % 60);
    values[MILLI] = (int)(rest % 1000);
    return stamp_join(values);
}

int64_t stamp_to_epoch_ms(int64_t stamp)
{
    int values[FIELDS];
    stamp_split(within_century(stamp), values);
    for (int field = 0; field < FIELDS; field++) {
        int most = largest(field, values);
        values[field] = values[field] < smallest[field] ? smallest[field]
                        : values[field] > most          ? most
                                                        : values[field];
    }
    int year = values[YEAR];
    int64_t days = year * 365 + (year + 3) / 4 + days_before_month(year, values[MONTH]) + values[DAY] - 1;
    int64_t minutes = (days * 24 + values[HOUR]) * 60 + values[MINUTE];
    return EPOCH_2000_MS + (minutes * 60 + values[SECOND]) * 1000 + values[MILLI];
}

bool stamp_is_valid(int64_t stamp)
{
    if (stamp != within_century(stamp))
        return false;
    int values[FIELDS];
    stamp_split(stamp, values);
    return first_wrong(values) == FIELDS;
}

int64_t stamp_add_ms(int64_t stamp, int64_t ms)
{
    int64_t sum;
    if (__builtin_add_overflow(stamp_to_epoch_ms(stamp), ms, &sum))
        return ms < 0 ? STAMP_MIN : STAMP_MAX;
    return stamp_from_epoch_ms(sum);
}

int64_t stamp_next(int64_t stamp)
{
    if (stamp < STAMP_MIN)
        return STAMP_MIN;
    if (stamp >= STAMP_MAX)
        return STAMP_MAX;
    int values[FIELDS];
    stamp_split(stamp, values);
    int wrong = first_wrong(values);
    if (wrong < FIELDS) {
        bool is_small = values[wrong] < smallest[wrong];
        stamp_fill(values, wrong, !is_small);
        if (is_small) /* no valid stamp lies between */
            return stamp_join(values);
    }
    return stamp_add_ms(stamp_join(values), 1);
}

bool stamp_from_text(struct bytes text, int64_t *stamp_r)
{
    if (text.size != STAMP_DIGITS)
        return false;
    int64_t stamp = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        stamp = stamp * 10 + (text.data[i] - '0');
    }
    if (!stamp_is_valid(stamp))
        return false;
    *stamp_r = stamp;
    return true;
}

void stamp_to_text(int64_t stamp, char text[STAMP_DIGITS + 1])
{
    assert(stamp >= 0 && stamp <= INT64_C(999999999999999));
    text[STAMP_DIGITS] = '\0';
    for (int i = STAMP_DIGITS; i-- > 0; stamp /= 10)
        text[i] = (char)('0' + stamp % 10);
}

int64_t stamp_now(void)
{
    return stamp_from_epoch_ms(clock_wall_ms());
}
