/* journal_session: what a connection of stamp-journal has, whichever protocol it speaks, and the way of every
 * command to the records: admission by the state and the quotas of the namespace, and one that never waits
 * for the disk. */
#ifndef STAMPD_JOURNAL_JOURNAL_SESSION_H
#define STAMPD_JOURNAL_JOURNAL_SESSION_H

#include "base/settings.h"
#include "journal/hosts/hosts_run.h"
#include "journal/journal_contents.h"
#include "journal/journal_keys.h"
#include "journal/journal_listener.h"
#include "records/records.h"
#include "records/records_state.h"

enum { JOURNAL_OWNER_BYTES = 32, JOURNAL_ROOM_TRIES = 100 };

struct journal_tasks;
struct resp_session;
struct resp_cursors;

struct journal_session {
    const struct settings *settings;
    struct records *records;
    const struct journal_keys *keys;
    struct journal_tasks *tasks;
    struct resp_cursors *cursors; /* of all connections: resp/resp_scan.h */
    struct hosts *hosts;          /* NULL: this host is none of several */
    struct journal_caller caller;
    struct journal_listener listener;     /* to be freed */
    char key[JOURNAL_KEYS_SENT_MOST + 1]; /* of the caller; "": none that a header could have */
    uint64_t saving;                 /* what the disk is to have before the answers are sent; 0: nothing */
    uint64_t room;                   /* and before a message is run for which there was no room; 0: nothing */
    int room_tries;                  /* how often that was waited for; JOURNAL_ROOM_TRIES: it is not again */
    struct journal_contents reading; /* contents that the message needs which is run, or waits for them */
    struct hosts_memo memo;          /* what other hosts have answered the message that is run */
    bool is_spread;                  /* several hosts hold the records of the namespace that was admitted */
    uint64_t made;                   /* which of the namespaces of its code it is */
    bool is_overdue;                 /* it has waited long enough: refuse instead */
    int64_t cost;                    /* steps of what was run so far: journal_turns.h */
    struct resp_session *resp;       /* of a connection that speaks RESP; NULL: of others */
    char owner[JOURNAL_OWNER_BYTES + 1]; /* of the locks of this connection, random */
};

enum journal_next {
    JOURNAL_GO_ON,
    JOURNAL_WAIT, /* nothing was done: run it again in a moment */
    JOURNAL_SAVE, /* nothing was done: run it again when the disk has `room` */
    JOURNAL_READ, /* nothing was done: run it again when `reading` has ended */
    JOURNAL_ASK,  /* nothing was done: run it again when `memo` has one more answer */
    JOURNAL_PART, /* a part was done: run it again, when there is room for more of its answer */
    JOURNAL_PASS, /* nothing was done: it is for the server, as journal_run_operation says */
    JOURNAL_CLOSE /* when the answers are sent */
};

/* The caller shows a key for a namespace.  False: it is wrong, and the session has no caller any more. */
MUST_USE bool journal_session_enter(struct journal_session *session, struct bytes ns, struct bytes key);

/* The words of a refusal by the state of the namespace. */
enum { JOURNAL_REFUSAL_MOST = RECORDS_STATE_MESSAGE_MOST + 32 };
/* May the namespace be served now?  Counts the request, unless it was counted before it waited for contents.
 * Notes whether the namespace is encrypted, and whether several hosts hold its records.  Otherwise
 * JOURNAL_WAIT, or JOURNAL_GO_ON with the refusal. */
MUST_USE bool journal_session_admit(struct journal_session *session, bool is_write,
                                    struct records_command *command, enum journal_next *next_r,
                                    char refusal_r[JOURNAL_REFUSAL_MOST]);
/* May it be read now?  For listeners. */
MUST_USE bool journal_session_is_served(const struct journal_session *session, bool is_counted,
                                        struct records_answer *answer_r);
/* Does the command need the right to write? */
bool journal_session_is_write(const struct records_command *command);
/* Runs it without waiting for the disk.  Answers are held until the disk has the changes that they report.
 * JOURNAL_SAVE, JOURNAL_READ, JOURNAL_ASK: nothing was done; what is to be read is not noted yet. */
enum journal_next journal_session_run(struct journal_session *session, struct records_command *command,
                                      enum records_outcome *outcome_r, struct records_found *found_r);
/* Notes what the last command needs, in place of what was read for the message before; JOURNAL_READ. */
enum journal_next journal_session_read_again(struct journal_session *session);

#endif
