/* rules_sight: by which of its relations to documents a caller sees those of a class.
 *
 * Somebody who saw a document and no longer does must be sent its departure, and nobody else may learn of it.
 * For that the database follows the principals of documents (sql/0015_sight.sql): their owners, members and
 * teams, at the places that the rules name.  Pure: no I/O. */
#ifndef STAMPD_MODEL_RULES_RULES_SIGHT_H
#define STAMPD_MODEL_RULES_RULES_SIGHT_H

#include "base/builder.h"
#include "model/rules/rules.h"

enum rules_reach {
    RULES_REACH_NONE,  /* no document of the class */
    RULES_REACH_ALL,   /* each, whatever it contains */
    RULES_REACH_SOME,  /* those that have one of the principals */
    RULES_REACH_MIXED, /* it takes several relations at once: what is lost cannot be told from principals */
};

struct rules_sight {
    enum rules_reach reach;
    const struct bytes
        *principals; /* the caller's own, by which it sees a document: as its owner or member */
    size_t principal_count;
    const struct bytes *watched; /* those, and those by which it sees items of it */
    size_t watched_count;
    struct bytes team_class, team_members; /* NO_BYTES: teams do not matter */
    /* Its principals in teams; each team that has one of them is a principal of the caller too. */
    const struct bytes *team_principals;
    size_t team_principal_count;
    const struct bytes *team_watched;
    size_t team_watched_count;
};

/* Of documents that the caller may read or list, with the items of these classes in its view; NULL: with all
 * items. */
struct rules_sight rules_sight_find(const struct rules *rules, const struct rules_caller *caller,
                                    struct arena *arena, struct bytes class, enum rules_right right,
                                    const struct bytes *items, size_t item_count);

/* Does the team give the caller one of these principals: as a member, or a member with a role? */
bool rules_sight_is_in_team(const struct rules_sight *sight, struct arena *arena,
                            const struct rules_caller *caller, const struct document *team,
                            const struct bytes *principals, size_t count);
/* The next class of which documents depend on teams; NO_BYTES: no more.  position: 0 at first. */
struct bytes rules_sight_next(const struct rules *rules, size_t *position);
/* Are there such classes with teams of this class? */
bool rules_sight_is_team(const struct rules *rules, struct bytes class);
/* Does any rule depend on the contents of documents? */
bool rules_sight_has_places(const struct rules *rules);
bool rules_sight_contains(const struct bytes *principals, size_t count, struct bytes principal);

/* The places of all classes, as stampd.sight_declare expects them. */
void rules_sight_write_places(const struct rules *rules, struct builder *text);

/* The principal that a team is, in the arena. */
struct bytes rules_sight_team(struct arena *arena, struct bytes id);

/* What becomes of documents when accounts have been deleted.
 *
 * A document whose owner was deleted is deleted too, if the rules of its class say `"on_owner_deleted":
 * "delete"`; otherwise it is kept.  Items by which a deleted account was a member, of the document's class or
 * of a team that rules name, are removed.  Pure: no I/O. */

struct rules_left {
    const struct rules *rules;
    /* Was the account deleted? */
    bool (*is_gone)(void *context, struct bytes account);
    void *context;
};

enum rules_left_act { RULES_LEFT_NOTHING, RULES_LEFT_MEMBERS, RULES_LEFT_DOCUMENT };

/* The next class after this name (empty: the first) whose documents can be concerned, in the order of names;
 * NO_BYTES: there is none. */
struct bytes rules_left_next_class(const struct rules *rules, struct bytes after);
/* Are documents of the class deleted with the account of their owner? */
bool rules_left_ends_class(const struct rules *rules, struct bytes class);
/* What is to be done with the document. */
enum rules_left_act rules_left_find(const struct rules_left *left, struct arena *arena,
                                    const struct document *document);
/* Does it to a draft that has not been changed. */
enum rules_left_act rules_left_apply(const struct rules_left *left, struct arena *arena, struct draft *draft);

#endif
