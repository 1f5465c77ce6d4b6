/* resp_session: one command after the other. */
#include "journal/resp/resp_session.h"

#include <stdio.h>

enum journal_next resp_session_refuse(struct builder *out, const char *text)
{
    resp_add_error(out, text);
    return JOURNAL_GO_ON;
}

enum journal_next resp_session_refuse_outcome(struct builder *out, enum records_outcome outcome)
{
    static const char *const reasons[RECORDS_OUTCOMES] = {
        [RECORDS_LOCKED] = "another owner has locked the record",
        [RECORDS_NO_DISK] = "this host keeps no records of the namespace on disk",
        [RECORDS_BUSY] = "the records are busy, or this record changes all the time; send it again",
        [RECORDS_NOT_READ] = "the disk does not give the value",
        [RECORDS_UNKNOWN] = "no host that answers can know; a change may have happened, or happen later",
        [RECORDS_NO_PARTICIPANTS] = "no host takes part in the records of this namespace",
        [RECORDS_UNSUPPORTED] = "several hosts hold the records of this namespace: they do not do this",
        [RECORDS_OUT_OF_SHARE] = "the share of this key is used up",
    };
    char text[RESP_REFUSAL_MOST];
    if (outcome == RECORDS_OUT_OF_MEMORY)
        return resp_session_refuse(out, "OOM the memory or the quota of the namespace is used up");
    snprintf(text, sizeof text, "%s %s", records_outcome_word(outcome),
             reasons[outcome] ? reasons[outcome] : "the record does not take this command");
    return resp_session_refuse(out, text);
}

enum journal_next resp_session_reply_null(const struct journal_session *session, struct builder *out)
{
    resp_add_null(out, session->resp->version);
    return JOURNAL_GO_ON;
}

bool resp_session_may(const struct journal_session *session, struct bytes key, bool is_write,
                      struct builder *out)
{
    bool is_key = records_is_key(key),
         is_allowed = is_key && journal_keys_allow(&session->caller, key, is_write);
    if (!is_key)
        resp_session_refuse(out, "KEY_FORM a key has 1 to 1024 bytes of UTF-8 without NUL");
    else if (!is_allowed)
        resp_session_refuse(out,
                            "NOPERM the file of keys does not allow this key to do that with this record");
    return is_allowed;
}

bool resp_session_admit(struct journal_session *session, bool is_write, struct builder *out,
                        enum journal_next *next_r)
{
    char refusal[JOURNAL_REFUSAL_MOST];
    struct records_command command = {0};
    bool is_admitted = journal_session_admit(session, is_write, &command, next_r, refusal);
    session->resp->is_encrypted = command.is_encrypted;
    if (!is_admitted && *next_r == JOURNAL_GO_ON)
        resp_session_refuse(out, refusal);
    return is_admitted;
}

bool resp_session_run(struct journal_session *session, struct records_command *command, struct builder *out,
                      enum journal_next *next_r, enum records_outcome *outcome_r,
                      struct records_found *found_r)
{
    bool is_write = journal_session_is_write(command);
    command->owner = bytes_of(session->owner);
    command->is_encrypted = session->resp->is_encrypted;
    command->records_most = (uint64_t)session->settings->limit_namespace_records;
    *next_r = JOURNAL_GO_ON;
    bool is_held = !is_write || journal_keys_hold(&session->caller, command);
    bool is_endless = command->deed == RECORDS_EXPIRE && !command->expires_ms && command->ends_by_ms;
    if (!is_held || is_endless) {
        resp_session_refuse(out, "TIMEOUT the file of keys gives this record an earlier end");
        return false;
    }
    *next_r = journal_session_run(session, command, outcome_r, found_r);
    if (*next_r == JOURNAL_READ)
        journal_session_read_again(session);
    return true;
}

/* --- databases --- */

/* The codes of journal_databases, one after the other. */
static struct bytes next_code(struct bytes *rest)
{
    return bytes_trim(bytes_cut(rest, ','));
}

int resp_session_database(const struct journal_session *session)
{
    const char *databases = session->settings->journal_databases;
    struct bytes rest = bytes_of(databases ? databases : "");
    if (!rest.size)
        return 0;
    for (int number = 0; rest.size; number++)
        if (bytes_equal(next_code(&rest), session->caller.ns))
            return number;
    return -1;
}

struct bytes resp_session_namespace(const struct journal_session *session, struct bytes name)
{
    const char *databases = session->settings->journal_databases;
    struct bytes rest = bytes_of(databases ? databases : "");
    int64_t wanted;
    if (!resp_to_integer(name, &wanted))
        return name;
    if (!rest.size)
        return wanted == 0 ? session->caller.ns : NO_BYTES;
    for (int64_t number = 0; rest.size; number++) {
        struct bytes code = next_code(&rest);
        if (number == wanted && code.size)
            return code;
    }
    return NO_BYTES;
}
