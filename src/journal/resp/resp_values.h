/* resp_values: values of records as texts, and what commands of one key have in common. */
#ifndef STAMPD_JOURNAL_RESP_RESP_VALUES_H
#define STAMPD_JOURNAL_RESP_RESP_VALUES_H

#include "journal/resp/resp_session.h"

extern const char resp_values_not_integer[];

/* The value of a record as a text; `room`: of one that is none in the store. */
struct bytes resp_values_text(const struct records_found *found, char room[64]);
void resp_values_reply(const struct records_found *found, struct builder *out);
/* False: it is too large, and refused. */
MUST_USE bool resp_values_fits(const struct journal_session *session, struct bytes value,
                               struct builder *out);
/* A SET of this text, which leaves a record on disk that is there. */
struct records_command resp_values_set(struct bytes key, struct bytes value);

/* The part of a command of one key, its first word, that comes first: rights and admission.  False: `next_r`.
 */
MUST_USE bool resp_values_begin(struct journal_session *session, bool is_write, struct builder *out,
                                enum journal_next *next_r);
/* Gets a record.  Unless `is_refused_r`, the outcome is OK or NOT_FOUND. */
enum journal_next resp_values_find(struct journal_session *session, struct bytes key, bool is_probe,
                                   struct builder *out, bool *is_refused_r, enum records_outcome *outcome_r,
                                   struct records_found *found_r);
/* Makes of a SET one in place of what was found, or of nothing: by its stamp. */
void resp_values_follow(struct records_command *command, enum records_outcome outcome,
                        const struct records_found *found);
/* What such a SET ended with: is it to be tried again, as somebody else was quicker? */
bool resp_values_was_late(const struct records_command *command, enum records_outcome outcome);

#endif
