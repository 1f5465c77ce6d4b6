/* resp_values: the types of the store as texts, and what commands of one key begin with. */
#include "journal/resp/resp_values.h"

#include <stdio.h>
#include <stdlib.h>

const char resp_values_not_integer[] = "ERR value is not an integer or out of range";

/* The shortest text that is read as this number again. */
static size_t write_float(char text_r[64], double number)
{
    int size = 0;
    for (int digits = 15; digits <= 17; digits++) {
        size = snprintf(text_r, 64, "%.*g", digits, number);
        if (strtod(text_r, NULL) == number)
            break;
    }
    return (size_t)size;
}

/* The value of a record as a text; `room`: of one that is none in the store. */
struct bytes resp_values_text(const struct records_found *found, char room[64])
{
    switch (found->type) {
    case RECORDS_INTEGER:
        return (struct bytes){
            room, (size_t)snprintf(room, 64, "%lld", (long long)records_read_integer(found->content))};
    case RECORDS_FLOAT:
        return (struct bytes){room, write_float(room, records_read_float(found->content))};
    case RECORDS_BOOLEAN:
        return found->content.data[0] ? BYTES("1") : BYTES("0");
    default:
        return found->content;
    }
}

void resp_values_reply(const struct records_found *found, struct builder *out)
{
    char room[64];
    resp_add_bulk(out, resp_values_text(found, room));
}

static enum records_type type_of(struct bytes value)
{
    return bytes_is_utf8(value) ? RECORDS_STRING : RECORDS_BUFFER;
}

bool resp_values_fits(const struct journal_session *session, struct bytes value, struct builder *out)
{
    bool fits =
        value.size <= (size_t)session->settings->limit_content_bytes && value.size <= RECORDS_CONTENT_MOST;
    if (!fits)
        resp_session_refuse(out, "OUT_OF_RANGE the value is larger than limit_content_bytes");
    return fits;
}

enum journal_next resp_values_find(struct journal_session *session, struct bytes key, bool is_probe,
                                   struct builder *out, bool *is_refused_r, enum records_outcome *outcome_r,
                                   struct records_found *found_r)
{
    struct records_command command = {.deed = RECORDS_GET, .key = key, .is_probe = is_probe};
    enum journal_next next;
    *is_refused_r = !resp_session_run(session, &command, out, &next, outcome_r, found_r);
    if (!*is_refused_r && next == JOURNAL_GO_ON && *outcome_r != RECORDS_OK &&
        *outcome_r != RECORDS_NOT_FOUND) {
        *is_refused_r = true;
        resp_session_refuse_outcome(out, *outcome_r);
    }
    return next;
}

/* The part of a command of one key that comes first.  False: `next_r`. */
bool resp_values_begin(struct journal_session *session, bool is_write, struct builder *out,
                       enum journal_next *next_r)
{
    *next_r = JOURNAL_GO_ON;
    return resp_session_may(session, resp_session_word(session, 1), is_write, out) &&
           resp_session_admit(session, is_write, out, next_r);
}

/* What a change by a stamp ended with: is it to be tried again, as somebody else was quicker? */
bool resp_values_was_late(const struct records_command *command, enum records_outcome outcome)
{
    return outcome == RECORDS_OTHER_STAMP || (command->stamp && outcome == RECORDS_NOT_FOUND) ||
           (!command->stamp && outcome == RECORDS_NOT_FREE);
}

/* A SET in place of what was found, or of nothing. */
void resp_values_follow(struct records_command *command, enum records_outcome outcome,
                        const struct records_found *found)
{
    command->stamp = outcome == RECORDS_OK ? found->stamp : 0;
    command->may_overwrite = outcome == RECORDS_OK;
}

struct records_command resp_values_set(struct bytes key, struct bytes value)
{
    return (struct records_command){.deed = RECORDS_SET,
                                    .key = key,
                                    .type = type_of(value),
                                    .content = value,
                                    .keeps_disk = true,
                                    .may_overwrite = true};
}
