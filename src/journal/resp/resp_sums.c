/* resp_sums: the store adds integers by itself; of what else is a number it has a text, which is compared by
 * its stamp.
 */
#include "journal/resp/resp_sums.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "journal/resp/resp_values.h"

/* A long double has 4,933 digits before its point at most. */
enum { FLOAT_TEXT_MOST = 5120 };

/* Puts an integer in the place of a text that is one.  True: try the sum again. */
static bool convert(struct journal_session *session, struct bytes key, struct builder *out,
                    enum journal_next *next_r)
{
    enum records_outcome outcome;
    struct records_found found;
    bool is_refused;
    int64_t number;
    char content[8];
    *next_r = resp_values_find(session, key, false, out, &is_refused, &outcome, &found);
    if (*next_r != JOURNAL_GO_ON || is_refused)
        return false;
    if (outcome == RECORDS_NOT_FOUND || found.type == RECORDS_INTEGER)
        return true;
    if ((found.type != RECORDS_STRING && found.type != RECORDS_BUFFER) ||
        !resp_to_integer(found.content, &number)) {
        resp_session_refuse(out, resp_values_not_integer);
        return false;
    }
    records_write_integer(content, number);
    struct records_command command = resp_values_set(key, (struct bytes){content, sizeof content});
    command.type = RECORDS_INTEGER;
    command.keeps_end = true;
    resp_values_follow(&command, outcome, &found);
    if (!resp_session_run(session, &command, out, next_r, &outcome, &found) || *next_r != JOURNAL_GO_ON)
        return false;
    if (outcome == RECORDS_OK || resp_values_was_late(&command, outcome))
        return true;
    resp_session_refuse_outcome(out, outcome);
    return false;
}

static enum journal_next add_integer(struct journal_session *session, struct bytes key, int64_t by,
                                     struct builder *out)
{
    char content[8];
    records_write_integer(content, by);
    for (int tries = 0; tries < RESP_TRIES; tries++) {
        enum journal_next next;
        enum records_outcome outcome;
        struct records_found found;
        struct records_command command = {.deed = RECORDS_ADD,
                                          .key = key,
                                          .type = RECORDS_INTEGER,
                                          .content = {content, sizeof content},
                                          .may_overwrite = true};
        if (!resp_session_run(session, &command, out, &next, &outcome, &found) || next != JOURNAL_GO_ON)
            return next;
        if (outcome == RECORDS_OK) {
            resp_add_integer(out, records_read_integer(found.content));
            return JOURNAL_GO_ON;
        }
        if (outcome == RECORDS_OUT_OF_RANGE)
            return resp_session_refuse(out, "ERR increment or decrement would overflow");
        if (outcome != RECORDS_WRONG_TYPE)
            return resp_session_refuse_outcome(out, outcome);
        if (!convert(session, key, out, &next))
            return next;
    }
    return resp_session_refuse_outcome(out, RECORDS_BUSY);
}

enum journal_next resp_sums_add(struct journal_session *session, struct builder *out)
{
    struct bytes word = resp_session_word(session, 0);
    bool is_less = (word.data[0] | 0x20) == 'd';
    int64_t by = 1;
    enum journal_next next;
    if (resp_session_count(session) == 3 && !resp_to_integer(resp_session_word(session, 2), &by))
        return resp_session_refuse(out, resp_values_not_integer);
    if (is_less && by == INT64_MIN)
        return resp_session_refuse(out, "ERR decrement would overflow");
    if (!resp_values_begin(session, true, out, &next))
        return next;
    return add_integer(session, resp_session_word(session, 1), is_less ? -by : by, out);
}

/* A number as Redis takes it, in decimal or hexadecimal. */
static bool read_number(struct bytes text, long double *number_r)
{
    char room[FLOAT_TEXT_MOST + 1], *end;
    if (!text.size || text.size > FLOAT_TEXT_MOST || strchr(" \t\n\v\f\r", text.data[0]))
        return false;
    memcpy(room, text.data, text.size);
    room[text.size] = 0;
    errno = 0;
    *number_r = strtold(room, &end);
    return end == room + text.size && !isnan(*number_r) &&
           !(errno == ERANGE && (isinf(*number_r) || *number_r == 0));
}

/* Without an exponent, and without zeros at the end. */
static struct bytes write_number(char room[FLOAT_TEXT_MOST + 1], long double number)
{
    int size = snprintf(room, FLOAT_TEXT_MOST + 1, "%.17Lf", number);
    while (size > 1 && room[size - 1] == '0')
        size--;
    size -= size > 1 && room[size - 1] == '.';
    return size == 2 && memcmp(room, "-0", 2) == 0 ? BYTES("0") : (struct bytes){room, (size_t)size};
}

/* The sum with what was found, as the content of a SET.  The word of a refusal, or NULL. */
static const char *sum_up(enum records_outcome outcome, const struct records_found *found, long double by,
                          char room[FLOAT_TEXT_MOST + 1], struct bytes *sum_r)
{
    char text[64];
    long double present = 0;
    if (outcome == RECORDS_OK && !read_number(resp_values_text(found, text), &present))
        return "ERR value is not a valid float";
    if (!isfinite(present + by))
        return "ERR increment would produce NaN or Infinity";
    *sum_r = write_number(room, present + by);
    return NULL;
}

enum journal_next resp_sums_add_float(struct journal_session *session, struct builder *out)
{
    char room[FLOAT_TEXT_MOST + 1];
    struct bytes key = resp_session_word(session, 1), sum;
    long double by;
    enum journal_next next;
    if (!read_number(resp_session_word(session, 2), &by))
        return resp_session_refuse(out, "ERR value is not a valid float");
    if (!resp_values_begin(session, true, out, &next))
        return next;
    for (int tries = 0; tries < RESP_TRIES; tries++) {
        enum records_outcome outcome;
        struct records_found found;
        bool is_refused;
        next = resp_values_find(session, key, false, out, &is_refused, &outcome, &found);
        if (next != JOURNAL_GO_ON || is_refused)
            return next;
        const char *refusal = sum_up(outcome, &found, by, room, &sum);
        if (refusal)
            return resp_session_refuse(out, refusal);
        struct records_command command = resp_values_set(key, sum);
        command.keeps_end = true;
        resp_values_follow(&command, outcome, &found);
        if (!resp_values_fits(session, sum, out) ||
            !resp_session_run(session, &command, out, &next, &outcome, &found) || next != JOURNAL_GO_ON)
            return next;
        if (outcome == RECORDS_OK) {
            resp_add_bulk(out, sum);
            return JOURNAL_GO_ON;
        }
        if (!resp_values_was_late(&command, outcome))
            return resp_session_refuse_outcome(out, outcome);
    }
    return resp_session_refuse_outcome(out, RECORDS_BUSY);
}
