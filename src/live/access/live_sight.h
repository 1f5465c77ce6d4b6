/* live_sight: what a change has taken from a caller, and given to it, of the document that was changed.
 *
 * Nothing is remembered of what listeners were sent.  The database records which principals a document has
 * lost or gained, and by which version (doc/explanation/sight.md); they are loaded with the document. */
#ifndef STAMPD_LIVE_ACCESS_LIVE_SIGHT_H
#define STAMPD_LIVE_ACCESS_LIVE_SIGHT_H

#include "live/live_snapshot.h"
#include "model/rules/rules_sight.h"

struct live_sight {
    const struct rules *rules;
    const struct rules_caller *caller;
    struct arena *arena;
    struct bytes class;
    enum rules_right right;    /* RULES_LIST: of a collection with these properties */
    const struct bytes *items; /* the classes of the properties' items */
    size_t item_count;
    const struct live_loaded *loaded; /* the document */
    int64_t version, since;           /* of the change; version 0: unknown, then all from the transaction */
    /* A team; NULL: it is not loaded yet, so the answer is not certain. */
    const struct live_loaded *(*find_team)(void *context, struct bytes class, struct bytes id);
    void *context;
};

enum { LIVE_SIGHT_KEPT = -1 };
/* By which version has the caller, which cannot read the document now, lost sight of it?  LIVE_SIGHT_KEPT:
 * not by this change, or it never had it. */
int64_t live_sight_lost(const struct live_sight *sight);
/* Has the caller another relation to the document than before? */
bool live_sight_has_moved(const struct live_sight *sight);
/* Does the caller see each document of the class, whatever it contains?  Does it take several relations at
 * once, so that live_sight_lost does not find what is lost? */
enum rules_reach live_sight_reach(const struct live_sight *sight);
/* Has the change of a team changed whether the caller belongs to it, for documents of this class? */
bool live_sight_has_other_team(const struct live_sight *sight, struct bytes dependent_class);

#endif
