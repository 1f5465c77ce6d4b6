/* journal_run: does what a message requests. */
#ifndef STAMPD_JOURNAL_JOURNAL_RUN_H
#define STAMPD_JOURNAL_JOURNAL_RUN_H

#include "base/settings.h"
#include "journal/journal_contents.h"
#include "journal/journal_keys.h"
#include "journal/journal_listener.h"
#include "journal/journal_message.h"
#include "records/records.h"

enum { JOURNAL_OWNER_BYTES = 32, JOURNAL_ROOM_TRIES = 100 };

struct journal_tasks;

struct journal_session {
    const struct settings *settings;
    struct records *records;
    const struct journal_keys *keys;
    struct journal_tasks *tasks;
    struct journal_caller caller;
    struct journal_listener listener;     /* to be freed */
    char key[JOURNAL_KEYS_SENT_MOST + 1]; /* of the caller; "": none that a header could have */
    uint64_t saving;                 /* what the disk is to have before the answers are sent; 0: nothing */
    uint64_t room;                   /* and before a message is run for which there was no room; 0: nothing */
    int room_tries;                  /* how often that was waited for; JOURNAL_ROOM_TRIES: it is not again */
    struct journal_contents reading; /* contents that the message needs which is run, or waits for them */
    bool is_overdue;                 /* it has waited long enough: refuse instead */
    int64_t cost;                    /* steps of what was run so far: journal_turns.h */
    char owner[JOURNAL_OWNER_BYTES + 1]; /* of the locks of this connection, random */
};

enum journal_next {
    JOURNAL_GO_ON,
    JOURNAL_WAIT, /* nothing was done: run it again in a moment */
    JOURNAL_SAVE, /* nothing was done: run it again when the disk has `room` */
    JOURNAL_READ, /* nothing was done: run it again when `reading` has ended */
    JOURNAL_PASS, /* nothing was done: it is for the server, as journal_run_operation says */
    JOURNAL_CLOSE /* when the answers are sent */
};

/* Appends the answer, if the function has one, and adds to the cost of the session.  `reading` belongs to the
 * message until another one is run: then the caller forgets it. */
enum journal_next journal_run(struct journal_session *session, const struct journal_request *request,
                              struct builder *out);

/* Reports changes to the listener, if its namespace is served now.  False: to be called again soon, whether
 * or not anything changes. */
bool journal_run_report(struct journal_session *session, size_t most, struct builder *out);

/* The operation of external workers that a function is; NULL: none. */
const char *journal_run_operation(uint16_t function);
/* The answer to such a message, by the outcome of journal_tasks_send. */
void journal_run_answer(struct builder *out, const struct journal_request *request, const char *error,
                        struct bytes text);

#endif
