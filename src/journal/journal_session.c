/* journal_session: the same for both protocols. */
#include "journal/journal_session.h"

#include <stdio.h>
#include <string.h>

bool journal_session_enter(struct journal_session *session, struct bytes ns, struct bytes key)
{
    explicit_bzero(session->key, sizeof session->key);
    journal_listener_free(&session->listener); /* another caller's */
    if (!journal_keys_enter(session->keys, ns, key, &session->caller)) {
        session->caller = (struct journal_caller){0};
        return false;
    }
    if (journal_keys_is_sendable(key))
        memcpy(session->key, key.data, key.size);
    return true;
}

/* --- the namespace --- */

static void write_refusal(enum records_verdict verdict, const struct records_answer *answer,
                          char refusal_r[JOURNAL_REFUSAL_MOST])
{
    static const char *const words[] = {
        [RECORDS_IS_READONLY] = "OREADONLY", [RECORDS_IS_OFF] = "OOFF",    [RECORDS_IS_GONE] = "OGONE",
        [RECORDS_IS_ABSENT] = "NNAMESPACE",  [RECORDS_TOO_MANY] = "XBUSY", [RECORDS_IS_MOVED] = "STATE",
        [RECORDS_UNCONFIRMED] = "STATE",
    };
    if (verdict == RECORDS_TOO_MANY)
        snprintf(refusal_r, JOURNAL_REFUSAL_MOST, "%s %lld", words[verdict], (long long)answer->wait_ms);
    else
        snprintf(refusal_r, JOURNAL_REFUSAL_MOST, "%s%s%s", words[verdict], *answer->message ? " " : "",
                 answer->message);
}

bool journal_session_admit(struct journal_session *session, bool is_write, struct records_command *command,
                           enum journal_next *next_r, char refusal_r[JOURNAL_REFUSAL_MOST])
{
    struct records_answer answer;
    enum records_verdict verdict = records_state_admit(session->records, session->caller.ns, is_write,
                                                       !session->reading.count && !session->memo.count,
                                                       session->settings->record_state_s * 1000, &answer);
    bool waits = verdict == RECORDS_IS_MOVED && !session->is_overdue;
    command->is_encrypted = answer.is_encrypted;
    session->is_spread = answer.is_spread;
    session->made = answer.made;
    *next_r = waits ? JOURNAL_WAIT : JOURNAL_GO_ON;
    if (verdict && !waits)
        write_refusal(verdict, &answer, refusal_r);
    return verdict == RECORDS_ADMITTED;
}

bool journal_session_is_served(const struct journal_session *session, bool is_counted,
                               struct records_answer *answer_r)
{
    return records_state_admit(session->records, session->caller.ns, false, is_counted,
                               session->settings->record_state_s * 1000, answer_r) == RECORDS_ADMITTED;
}

/* --- commands --- */

bool journal_session_is_write(const struct records_command *command)
{
    return command->deed != RECORDS_GET || command->lease_ms || command->expires_ms;
}

enum journal_next journal_session_run(struct journal_session *session, struct records_command *command,
                                      enum records_outcome *outcome_r, struct records_found *found_r)
{
    const struct journal_contents *reading = &session->reading;
    const struct hosts_space space = {session->caller.ns, session->made, command->is_encrypted};
    if (session->is_spread)
        return hosts_run(session->hosts, &session->memo, &space, command, outcome_r, found_r) ? JOURNAL_GO_ON
                                                                                              : JOURNAL_ASK;
    size_t quota = (size_t)session->settings->limit_namespace_records_mb << 20;
    command->patience = session->room_tries < JOURNAL_ROOM_TRIES ? RECORDS_REPORTS : RECORDS_REFUSES;
    if (reading->count)
        records_fetch_offer(session->records, reading->list, reading->count);
    *outcome_r = records_run(session->records, session->caller.ns, quota, command, found_r);
    if (reading->count)
        records_fetch_offer(session->records, NULL, 0);
    if (*outcome_r == RECORDS_BUSY && found_r->is_away)
        return reading->tries < JOURNAL_READ_TRIES ? JOURNAL_READ : JOURNAL_GO_ON;
    bool is_done = *outcome_r != RECORDS_OUT_OF_MEMORY || !found_r->saving;
    if (found_r->saving)
        *(is_done ? &session->saving : &session->room) = found_r->saving;
    return is_done ? JOURNAL_GO_ON : JOURNAL_SAVE;
}

enum journal_next journal_session_read_again(struct journal_session *session)
{
    int tries = session->reading.tries;
    journal_contents_forget(&session->reading);
    session->reading.tries = tries;
    journal_contents_want(&session->reading, session->records);
    return JOURNAL_READ;
}
