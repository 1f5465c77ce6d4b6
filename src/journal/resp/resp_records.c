/* resp_records: records as texts. */
#include "journal/resp/resp_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "journal/resp/resp_values.h"

/* --- GET --- */

enum journal_next resp_records_get(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    enum records_outcome outcome;
    struct records_found found;
    bool is_refused;
    if (!resp_values_begin(session, false, out, &next))
        return next;
    next =
        resp_values_find(session, resp_session_word(session, 1), false, out, &is_refused, &outcome, &found);
    if (next != JOURNAL_GO_ON || is_refused)
        return next;
    if (outcome == RECORDS_NOT_FOUND)
        return resp_session_reply_null(session, out);
    resp_values_reply(&found, out);
    return JOURNAL_GO_ON;
}

/* Of a record that may be there: TTL, PTTL, TYPE. */
static bool probe(struct journal_session *session, struct builder *out, enum journal_next *next_r,
                  bool *is_there_r, struct records_found *found_r)
{
    enum records_outcome outcome;
    bool is_refused;
    if (!resp_values_begin(session, false, out, next_r))
        return false;
    *next_r =
        resp_values_find(session, resp_session_word(session, 1), true, out, &is_refused, &outcome, found_r);
    *is_there_r = outcome == RECORDS_OK;
    return *next_r == JOURNAL_GO_ON && !is_refused;
}

enum journal_next resp_records_ttl(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct records_found found;
    bool is_there, is_ms = resp_is(resp_session_word(session, 0), "pttl");
    if (!probe(session, out, &next, &is_there, &found))
        return next;
    int64_t left_ms = found.expires_ms - clock_present_ms();
    left_ms = left_ms < 0 ? 0 : left_ms;
    resp_add_integer(out, !is_there ? -2 : !found.expires_ms ? -1 : is_ms ? left_ms : (left_ms + 500) / 1000);
    return JOURNAL_GO_ON;
}

enum journal_next resp_records_type(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct records_found found;
    bool is_there;
    if (!probe(session, out, &next, &is_there, &found))
        return next;
    resp_add_simple(out, is_there ? "string" : "none");
    return JOURNAL_GO_ON;
}

/* --- changes that compare --- */

/* SET with GET: the reply is the former value.  `is_absent`, `is_present`: only if there is none, or one. */
static enum journal_next exchange(struct journal_session *session, struct records_command *command,
                                  bool only_absent, bool only_present, struct builder *out)
{
    const size_t start = out->size;
    const struct records_command first = *command;
    for (int tries = 0; tries < RESP_TRIES; tries++) {
        enum journal_next next;
        enum records_outcome outcome;
        struct records_found found;
        bool is_refused;
        *command = first;
        out->size = start;
        next = resp_values_find(session, command->key, false, out, &is_refused, &outcome, &found);
        if (next != JOURNAL_GO_ON || is_refused)
            return next;
        bool is_there = outcome == RECORDS_OK;
        if (is_there)
            resp_values_reply(&found, out);
        else
            resp_add_null(out, session->resp->version);
        if (is_there ? only_absent : only_present)
            return JOURNAL_GO_ON;
        resp_values_follow(command, outcome, &found);
        size_t end = out->size;
        if (!resp_session_run(session, command, out, &next, &outcome, &found)) {
            memmove(out->data + start, out->data + end, out->size - end);
            out->size -= end - start;
            return JOURNAL_GO_ON;
        }
        if (next == JOURNAL_GO_ON && outcome == RECORDS_OK)
            return JOURNAL_GO_ON;
        out->size = start;
        if (next != JOURNAL_GO_ON)
            return next;
        if (!resp_values_was_late(command, outcome))
            return resp_session_refuse_outcome(out, outcome);
    }
    return resp_session_refuse_outcome(out, RECORDS_BUSY);
}

/* --- SET --- */

struct resp_set {
    struct records_command command;
    bool only_absent, only_present, returns, has_end;
};

/* A time as an end.  `is_s`: in seconds; `is_at`: since 1970.  One that has passed is 1, since 0 is none.
 * False: it does not fit. */
static bool read_end(int64_t number, bool is_s, bool is_at, int64_t *end_ms_r)
{
    int64_t end_ms;
    if (__builtin_mul_overflow(number, is_s ? 1000 : 1, &end_ms) ||
        __builtin_add_overflow(end_ms, is_at ? 0 : clock_present_ms(), &end_ms) || end_ms > RECORDS_MS_MOST)
        return false;
    *end_ms_r = end_ms < 1 ? 1 : end_ms;
    return true;
}

static enum journal_next refuse_end(const struct journal_session *session, struct builder *out)
{
    char text[RESP_REFUSAL_MOST], name[32] = "";
    struct bytes word = resp_session_word(session, 0);
    for (size_t i = 0; i < word.size && i < sizeof name - 1; i++)
        name[i] = (char)(word.data[i] | 0x20);
    snprintf(text, sizeof text, "ERR invalid expire time in '%s' command", name);
    return resp_session_refuse(out, text);
}

/* EX, PX, EXAT, PXAT and their number.  False: refused. */
static bool read_set_end(const struct journal_session *session, size_t place, struct resp_set *set,
                         struct builder *out)
{
    struct bytes word = resp_session_word(session, place);
    bool is_s = resp_is(word, "ex") || resp_is(word, "exat"), is_at = word.size == 4;
    int64_t number;
    bool is_number = resp_to_integer(resp_session_word(session, place + 1), &number);
    bool is_end = is_number && number > 0 && read_end(number, is_s, is_at, &set->command.expires_ms);
    if (!is_number)
        resp_session_refuse(out, resp_values_not_integer);
    else if (!is_end)
        refuse_end(session, out);
    return is_end;
}

static bool is_end_option(struct bytes word)
{
    return resp_is(word, "ex") || resp_is(word, "px") || resp_is(word, "exat") || resp_is(word, "pxat");
}

/* One of them twice is as its last. */
static bool is_same_end(const struct journal_session *session, size_t place, struct bytes word)
{
    struct bytes other = place ? resp_session_word(session, place) : word;
    return word.size == other.size && strncasecmp(word.data, other.data, word.size) == 0;
}

/* False: refused. */
static bool read_set(const struct journal_session *session, struct resp_set *set, struct builder *out)
{
    size_t count = resp_session_count(session), end_at = 0;
    for (size_t i = 3; i < count; i++) {
        struct bytes word = resp_session_word(session, i);
        bool is_sound = true;
        if (resp_is(word, "nx") && !set->only_present)
            set->only_absent = true;
        else if (resp_is(word, "xx") && !set->only_absent)
            set->only_present = true;
        else if (resp_is(word, "get"))
            set->returns = true;
        else if (resp_is(word, "keepttl") && !end_at)
            set->command.keeps_end = true;
        else if (is_end_option(word) && is_same_end(session, end_at, word) && !set->command.keeps_end &&
                 i + 1 < count)
            end_at = i++;
        else
            is_sound = false;
        if (!is_sound) {
            resp_session_refuse(out, "ERR syntax error");
            return false;
        }
    }
    return !end_at || read_set_end(session, end_at, set, out);
}

static enum journal_next run_set(struct journal_session *session, struct resp_set *set, struct builder *out)
{
    enum journal_next next = JOURNAL_GO_ON;
    enum records_outcome outcome;
    struct records_found found;
    struct records_command *command = &set->command;
    if (!resp_session_may(session, command->key, true, out) ||
        !resp_values_fits(session, command->content, out) || !resp_session_admit(session, true, out, &next))
        return next;
    if (set->returns)
        return exchange(session, command, set->only_absent, set->only_present, out);
    command->may_overwrite = !set->only_absent;
    command->is_only_present = set->only_present;
    if (!resp_session_run(session, command, out, &next, &outcome, &found) || next != JOURNAL_GO_ON)
        return next;
    if (outcome == (set->only_absent ? RECORDS_NOT_FREE : RECORDS_NOT_FOUND))
        return resp_session_reply_null(session, out);
    if (outcome != RECORDS_OK)
        return resp_session_refuse_outcome(out, outcome);
    resp_add_simple(out, "OK");
    return JOURNAL_GO_ON;
}

enum journal_next resp_records_set(struct journal_session *session, struct builder *out)
{
    struct resp_set set = {.command =
                               resp_values_set(resp_session_word(session, 1), resp_session_word(session, 2))};
    return read_set(session, &set, out) ? run_set(session, &set, out) : JOURNAL_GO_ON;
}

enum journal_next resp_records_getset(struct journal_session *session, struct builder *out)
{
    struct resp_set set = {.command =
                               resp_values_set(resp_session_word(session, 1), resp_session_word(session, 2)),
                           .returns = true};
    return run_set(session, &set, out);
}

enum journal_next resp_records_setex(struct journal_session *session, struct builder *out)
{
    struct resp_set set = {.command =
                               resp_values_set(resp_session_word(session, 1), resp_session_word(session, 3))};
    int64_t number;
    if (!resp_to_integer(resp_session_word(session, 2), &number))
        return resp_session_refuse(out, resp_values_not_integer);
    if (number <= 0 ||
        !read_end(number, resp_is(resp_session_word(session, 0), "setex"), false, &set.command.expires_ms))
        return refuse_end(session, out);
    return run_set(session, &set, out);
}

enum journal_next resp_records_setnx(struct journal_session *session, struct builder *out)
{
    struct resp_set set = {.command =
                               resp_values_set(resp_session_word(session, 1), resp_session_word(session, 2)),
                           .only_absent = true};
    size_t start = out->size;
    enum journal_next next = run_set(session, &set, out);
    if (next != JOURNAL_GO_ON || out->data[start] == '-')
        return next;
    bool is_set = out->data[start] == '+';
    out->size = start;
    resp_add_integer(out, is_set);
    return JOURNAL_GO_ON;
}

/* --- ends, names --- */

static enum journal_next run_change(struct journal_session *session, struct records_command *command,
                                    struct builder *out)
{
    enum journal_next next;
    enum records_outcome outcome;
    struct records_found found;
    if (!resp_values_begin(session, true, out, &next) ||
        !resp_session_run(session, command, out, &next, &outcome, &found) || next != JOURNAL_GO_ON)
        return next;
    if (outcome != RECORDS_OK && outcome != RECORDS_NOT_FOUND)
        return resp_session_refuse_outcome(out, outcome);
    if (command->deed == RECORDS_EXPIRE)
        resp_add_integer(out, outcome == RECORDS_OK);
    else if (outcome == RECORDS_OK)
        resp_add_simple(out, "OK");
    else
        resp_add_error(out, "ERR no such key");
    return JOURNAL_GO_ON;
}

/* The word of a refusal; NULL: none. */
static const char *read_conditions(const struct journal_session *session, unsigned *end_if_r,
                                   char text[RESP_REFUSAL_MOST])
{
    static const char *const words[] = {"nx", "xx", "gt", "lt"};
    unsigned end_if = 0;
    for (size_t i = 3; i < resp_session_count(session); i++) {
        struct bytes word = resp_session_word(session, i);
        size_t number = 0;
        while (number < COUNT_OF(words) && !resp_is(word, words[number]))
            number++;
        if (number == COUNT_OF(words)) {
            snprintf(text, RESP_REFUSAL_MOST, "ERR Unsupported option %.*s",
                     (int)(word.size < 100 ? word.size : 100), word.data);
            return text;
        }
        end_if |= 1u << number;
    }
    *end_if_r = end_if;
    if (end_if & RECORDS_END_ABSENT && end_if != RECORDS_END_ABSENT)
        return "ERR NX and XX, GT or LT options at the same time are not compatible";
    if (end_if & RECORDS_END_EARLIER && end_if & RECORDS_END_LATER)
        return "ERR GT and LT options at the same time are not compatible";
    return NULL;
}

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT. */
enum journal_next resp_records_expire(struct journal_session *session, struct builder *out)
{
    char text[RESP_REFUSAL_MOST];
    struct bytes word = resp_session_word(session, 0);
    bool is_s = (word.data[0] | 0x20) == 'e', is_at = (word.data[word.size - 1] | 0x20) == 't';
    struct records_command command = {.deed = RECORDS_EXPIRE, .key = resp_session_word(session, 1)};
    int64_t number;
    const char *refusal = read_conditions(session, &command.end_if, text);
    if (refusal)
        return resp_session_refuse(out, refusal);
    if (!resp_to_integer(resp_session_word(session, 2), &number))
        return resp_session_refuse(out, resp_values_not_integer);
    if (!read_end(number, is_s, is_at, &command.expires_ms))
        return refuse_end(session, out);
    return run_change(session, &command, out);
}

enum journal_next resp_records_persist(struct journal_session *session, struct builder *out)
{
    struct records_command command = {
        .deed = RECORDS_EXPIRE, .key = resp_session_word(session, 1), .end_if = RECORDS_END_PRESENT};
    return run_change(session, &command, out);
}

enum journal_next resp_records_rename(struct journal_session *session, struct builder *out)
{
    struct records_command command = {.deed = RECORDS_RENAME,
                                      .key = resp_session_word(session, 1),
                                      .to = resp_session_word(session, 2),
                                      .may_overwrite = true};
    if (!resp_session_may(session, command.to, true, out))
        return JOURNAL_GO_ON;
    return run_change(session, &command, out);
}

/* --- several keys --- */

/* The form and the rights of all keys come first: what is refused then has done nothing. */
static bool may_all(const struct journal_session *session, size_t step, bool is_write, struct builder *out)
{
    if ((resp_session_count(session) - 1) / step > RESP_KEYS_MOST) {
        resp_session_refuse(out, "ERR a command has at most 1000 keys");
        return false;
    }
    for (size_t i = 1; i < resp_session_count(session); i += step)
        if (!resp_session_may(session, resp_session_word(session, i), is_write, out) ||
            (step == 2 && !resp_values_fits(session, resp_session_word(session, i + 1), out)))
            return false;
    return true;
}

/* The key whose turn it is, each `step` words.  False: `next_r`. */
static bool begin_part(struct journal_session *session, size_t step, bool is_write, struct builder *out,
                       enum journal_next *next_r, struct bytes *key_r)
{
    struct resp_session *resp = session->resp;
    *next_r = JOURNAL_GO_ON;
    if (!resp->has_begun &&
        (!may_all(session, step, is_write, out) || !resp_session_admit(session, is_write, out, next_r)))
        return false;
    if (!resp->has_begun)
        resp->done = 0, resp->count = 0;
    *key_r = resp_session_word(session, 1 + resp->done * step);
    return true;
}

/* The part is done.  JOURNAL_GO_ON: it was the last one. */
static enum journal_next end_part(struct journal_session *session, size_t step)
{
    struct resp_session *resp = session->resp;
    resp->done++;
    resp->has_begun = 1 + resp->done * step < resp_session_count(session);
    return resp->has_begun ? JOURNAL_PART : JOURNAL_GO_ON;
}

/* What stands in the array is an error, of a value that is not to be had: it must not look like none. */
enum journal_next resp_records_mget(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct bytes key;
    enum records_outcome outcome;
    struct records_found found;
    bool is_refused, is_first = !session->resp->has_begun;
    if (!begin_part(session, 1, false, out, &next, &key))
        return next;
    size_t start = out->size;
    if (is_first)
        resp_add_array(out, resp_session_count(session) - 1);
    next = resp_values_find(session, key, false, out, &is_refused, &outcome, &found);
    if (next != JOURNAL_GO_ON) {
        out->size = start;
        return next;
    }
    if (!is_refused && outcome == RECORDS_OK)
        resp_values_reply(&found, out);
    else if (!is_refused)
        resp_add_null(out, session->resp->version);
    return end_part(session, 1);
}

/* One more of the keys of MSET, DEL, EXISTS; an error ends the command. */
static enum journal_next run_part(struct journal_session *session, struct records_command *command,
                                  size_t step, struct builder *out)
{
    enum journal_next next;
    enum records_outcome outcome;
    struct records_found found;
    bool is_run = resp_session_run(session, command, out, &next, &outcome, &found);
    if (is_run && next != JOURNAL_GO_ON)
        return next;
    bool is_done = is_run && (outcome == RECORDS_OK || outcome == RECORDS_NOT_FOUND);
    if (is_run && !is_done)
        resp_session_refuse_outcome(out, outcome);
    if (!is_done) {
        session->resp->has_begun = false;
        return JOURNAL_GO_ON;
    }
    session->resp->count += outcome == RECORDS_OK;
    next = end_part(session, step);
    if (next == JOURNAL_GO_ON && command->deed == RECORDS_SET)
        resp_add_simple(out, "OK");
    else if (next == JOURNAL_GO_ON)
        resp_add_integer(out, session->resp->count);
    return next;
}

enum journal_next resp_records_mset(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct bytes key;
    if (resp_session_count(session) % 2 == 0)
        return resp_session_refuse(out, "ERR wrong number of arguments for 'mset' command");
    if (!begin_part(session, 2, true, out, &next, &key))
        return next;
    struct records_command command =
        resp_values_set(key, resp_session_word(session, 2 + session->resp->done * 2));
    return run_part(session, &command, 2, out);
}

enum journal_next resp_records_del(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct records_command command = {.deed = RECORDS_DELETE};
    if (!begin_part(session, 1, true, out, &next, &command.key))
        return next;
    return run_part(session, &command, 1, out);
}

enum journal_next resp_records_exists(struct journal_session *session, struct builder *out)
{
    enum journal_next next;
    struct records_command command = {.deed = RECORDS_GET, .is_probe = true};
    if (!begin_part(session, 1, false, out, &next, &command.key))
        return next;
    return run_part(session, &command, 1, out);
}
