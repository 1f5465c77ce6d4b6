/* live_judge: which listeners under rules get an event for a change of a document.
 *
 * The document is judged for each listener that its definitions match, on the snapshot that was loaded.  Of a
 * document of which something is hidden, the caller knows another version (model/document/view.h): that is
 * the version of the event, and a change that it cannot see is none.
 *
 * A definition of a collection gets an event when a document that its caller may list was written in it or
 * has left it; and whenever the caller has gained or lost sight of a document of the class, whatever
 * collections that is in, so that the event discloses none of them. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_JUDGE_H
#define STAMPD_LIVE_ACCESS_LIVE_JUDGE_H

#include "live/live_audience.h"
#include "live/live_snapshot.h"

struct live_listener;

enum { LIVE_TEAMS_MOST = LIVE_FIRST_DOCUMENTS - 1 };

struct live_change {
    struct bytes class, id;
    uint64_t serial;                             /* of the only listener that it is judged for; 0: for all */
    int64_t version;                             /* 0: unknown; then `since` decides what is new */
    int64_t since;                               /* all transactions below it are known */
    struct document_name teams[LIVE_TEAMS_MOST]; /* that are known to be needed, loaded before the document */
    size_t team_count;
    size_t place; /* of the document in the query */
};

/* What changes are judged with; all borrowed. */
struct live_judging {
    struct live_audience *audience;
    const struct live_snapshot *snapshot;
    const struct live_loaded *loaded; /* by place */
    struct arena *scratch;            /* of what is judged */
    struct arena *teams;              /* of the names of teams */
    struct builder *key;
    bool is_too_much; /* set when what callers have lost is not known: they must read everything */
};

/* Marks the definitions.  False: it is not settled: it was not loaded, needs one more team, or `is_trial`,
 * when an earlier change is not settled. */
MUST_USE bool live_judge(struct live_judging *judging, struct live_change *change, bool is_trial);

/* Is nothing of the class hidden from the caller, so that it may learn what the schema does not declare
 * there?  As sight_discloses() for operations. */
bool live_judge_tells(const struct live_listener *listener, struct bytes class);

#endif
