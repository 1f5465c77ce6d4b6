/* live_judge: rules and filters decide what a listener may know; live_sight finds what it has lost. */
#include "live/access/live_judge.h"

#include <string.h>

#include "base/clock.h"
#include "live/live_audience_private.h"
#include "live/live_listener.h"
#include "live/live_snapshot.h"
#include "live/topics/live_key.h"
#include "model/document/view.h"
#include "model/rules/rules_schema.h"
#include "model/rules/rules_sight.h"
#include "operation/judge/filters.h"

/* What a change has taken from a caller, and given to it, of the document that was changed.
 *
 * Nothing is remembered of what listeners were sent.  The database records which principals a document has
 * lost or gained, and by which version (doc/explanation/sight.md); they are loaded with the document. */

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

static struct rules_sight find_sight(const struct live_sight *sight)
{
    static const struct bytes none[1];
    return rules_sight_find(sight->rules, sight->caller, sight->arena, sight->class, sight->right,
                            sight->item_count ? sight->items : none, sight->item_count);
}

/* Does the caller see each document of the class, whatever it contains?  Does it take several relations at
 * once, so that live_sight_lost does not find what is lost? */
static enum rules_reach live_sight_reach(const struct live_sight *sight)
{
    return find_sight(sight).reach;
}

static bool is_recent(const struct live_sight *sight, const struct live_principal *principal)
{
    return live_snapshot_is_recent(principal->version, principal->writer, sight->version, sight->since);
}

static bool is_team(struct bytes principal)
{
    return principal.size > 2 && memcmp(principal.data, "t:", 2) == 0;
}

/* Is the caller in the team since before this version of the document? */
static bool is_in_team(const struct live_sight *sight, const struct rules_sight *of, struct bytes principal,
                       const struct bytes *principals, size_t count, int64_t version)
{
    const struct bytes id = {principal.data + 2, principal.size - 2};
    if (!count)
        return false;
    const struct live_loaded *team = sight->find_team(sight->context, of->team_class, id);
    if (!team || !rules_sight_is_in_team(of, sight->arena, sight->caller, team->document, principals, count))
        return false;
    for (size_t i = 0; i < team->principal_count; i++) {
        const struct live_principal *one = &team->principals[i];
        if (!one->is_lost && one->gained > version && rules_sight_contains(principals, count, one->name))
            return false;
    }
    return true;
}

/* Everything of the class was seen until its deletion. */
static int64_t find_deletion(const struct live_sight *sight)
{
    const struct document *document = sight->loaded->document;
    if (document_exists(document) || document->has_ended || !document->header.version ||
        document->header.version < sight->version)
        return LIVE_SIGHT_KEPT;
    return document->header.version;
}

/* By which version has the caller, which cannot read the document now, lost sight of it?  LIVE_SIGHT_KEPT:
 * not by this change, or it never had it. */
static int64_t live_sight_lost(const struct live_sight *sight)
{
    int64_t lost = LIVE_SIGHT_KEPT;
    if (!sight->loaded->principal_count && document_exists(sight->loaded->document))
        return lost;
    const struct rules_sight of = find_sight(sight);
    if (of.reach == RULES_REACH_ALL)
        return find_deletion(sight);
    for (size_t i = 0; i < sight->loaded->principal_count && of.reach == RULES_REACH_SOME; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (!one->is_lost || one->version <= lost || !is_recent(sight, one))
            continue;
        if (is_team(one->name)
                ? is_in_team(sight, &of, one->name, of.team_principals, of.team_principal_count, one->version)
                : rules_sight_contains(of.principals, of.principal_count, one->name))
            lost = one->version;
    }
    return lost;
}

/* Has the caller another relation to the document than before? */
static bool live_sight_has_moved(const struct live_sight *sight)
{
    if (!sight->loaded->principal_count)
        return false;
    const struct rules_sight of = find_sight(sight);
    for (size_t i = 0; i < sight->loaded->principal_count; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (is_recent(sight, one) &&
            (is_team(one->name)
                 ? is_in_team(sight, &of, one->name, of.team_watched, of.team_watched_count, INT64_MAX)
                 : rules_sight_contains(of.watched, of.watched_count, one->name)))
            return true;
    }
    return false;
}

/* Most changes of a team do not concern the caller. */
static bool live_sight_is_named(const struct live_sight *sight, const struct live_principal *principal)
{
    struct bytes account = sight->caller->account;
    return account.size && memmem(principal->name.data, principal->name.size, account.data, account.size);
}

/* Has the change of a team changed whether the caller belongs to it, for documents of this class? */
static bool live_sight_has_other_team(const struct live_sight *sight, struct bytes dependent_class)
{
    for (size_t i = 0; i < sight->loaded->principal_count; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (!is_recent(sight, one) || !live_sight_is_named(sight, one))
            continue;
        const struct rules_sight of =
            rules_sight_find(sight->rules, sight->caller, sight->arena, dependent_class, RULES_LIST, NULL, 0);
        if (of.team_class.data && bytes_equal(of.team_class, sight->class) &&
            rules_sight_contains(of.team_watched, of.team_watched_count, one->name))
            return true;
    }
    return false;
}

struct live_event {
    struct live_mark *mark;
    int64_t version;
};

struct live_judgement {
    struct live_judging *of;
    struct live_change *change;
    const struct live_member
        *member;                 /* of the collection that is judged; NULL: of all, as the caller moved */
    bool is_trial;               /* an earlier change is not settled: only finds the team that is needed */
    struct document_name needed; /* a team that is not loaded */
    struct live_event *events;   /* to be sent once all are decided; in the scratch arena */
    size_t event_count, event_room;
};

/* NULL: it is needed, and not loaded. */
static const struct live_loaded *find_team(void *context, struct bytes class, struct bytes id)
{
    struct live_judgement *judgement = context;
    const struct live_change *change = judgement->change;
    for (size_t i = 0; i < change->team_count; i++) {
        const struct live_loaded *team = &judgement->of->loaded[change->place - change->team_count + i];
        if (team->document && bytes_equal(change->teams[i].class, class) &&
            bytes_equal(change->teams[i].id, id))
            return team;
    }
    judgement->needed = (struct document_name){class, id};
    return NULL;
}

static enum fault load_team(void *context, struct bytes class, struct bytes id,
                            const struct document **document_r)
{
    const struct live_loaded *team = find_team(context, class, id);
    *document_r = team ? team->document : NULL;
    return team ? FAULT_NONE : FAULT_STALE;
}

/* A client whose account is in doubt is sent a reset once it is not. */
static bool is_trusted(const struct live_listener *listener)
{
    return listener->trust == LIVE_TRUSTED && !(listener->caller && live_caller_is_over(listener->caller));
}

static const struct rules_caller *caller_of(const struct live_listener *listener)
{
    static const struct rules_caller nobody = {0};
    return listener->caller ? live_caller_rules(listener->caller) : &nobody;
}

static bool rules_allow(struct live_judgement *judgement, const struct live_listener *listener,
                        enum rules_right right, const struct document *document, struct rules_view *view_r)
{
    struct rules_question question = {
        .rules = live_access_rules(listener->audience->access, listener->is_administrator),
        .caller = caller_of(listener),
        .load = load_team,
        .context = judgement,
        .arena = judgement->of->scratch};
    if (!question.rules)
        return true;
    return right == RULES_LIST ? rules_may_list(&question, document, view_r)
                               : rules_may_read(&question, document, view_r);
}

enum { FILTER_MS = 1000 }; /* that it may assume; nothing ends it */

static bool filters_allow(const struct live_judgement *judgement, const struct live_listener *listener,
                          const struct document **document, struct view *view)
{
    const struct live_audience *audience = listener->audience;
    const struct filters *filters = live_access_filters(audience->access, listener->is_administrator);
    const struct filter_question question = {.settings = audience->all->settings,
                                             .ns = bytes_of(audience->code),
                                             .caller = caller_of(listener),
                                             .request_id = "live",
                                             .deadline_ms = clock_monotonic_ms() + FILTER_MS};
    return !filters || filters_show(filters, &question, judgement->of->scratch, document, view);
}

/* Replaces the document by what the caller may be shown of it. */
static bool may(struct live_judgement *judgement, const struct live_listener *listener,
                enum rules_right right, const struct document **document, struct view *view)
{
    return document_exists(*document) &&
           live_access_is_judged(listener->audience->access, listener->is_administrator) &&
           rules_allow(judgement, listener, right, *document, &view->rules) &&
           (judgement->is_trial || filters_allow(judgement, listener, document, view));
}

static struct live_sight sight_of(struct live_judgement *judgement, const struct live_listener *listener)
{
    const struct live_change *change = judgement->change;
    return (struct live_sight){.rules =
                                   live_access_rules(listener->audience->access, listener->is_administrator),
                               .caller = caller_of(listener),
                               .arena = judgement->of->scratch,
                               .class = change->class,
                               .right = RULES_READ,
                               .loaded = &judgement->of->loaded[change->place],
                               .version = change->version,
                               .since = change->since,
                               .find_team = find_team,
                               .context = judgement};
}

/* Has the change reached what the caller sees of the document? */
static bool is_visible(const struct live_judgement *judgement, const struct document *shown,
                       const struct view *view)
{
    const struct live_change *change = judgement->change;
    const struct live_loaded *loaded = &judgement->of->loaded[change->place];
    if (view_is_whole(view))
        return true;
    if (change->version)
        return view->version >= change->version;
    for (size_t i = 0; i < loaded->document->item_count; i++) {
        const struct item *item = &loaded->document->items[i];
        if (live_snapshot_is_recent(0, loaded->writers[i], 0, change->since) &&
            view_shows(view, item->iclass) && document_find_item(shown, item->iclass, item->key))
            return true;
    }
    return false;
}

static bool is_filtered(const struct live_judgement *judgement, const struct live_listener *listener)
{
    return filters_cover(live_access_filters(listener->audience->access, listener->is_administrator),
                         judgement->change->class);
}

/* Where no rules apply, nor a filter to the class: everybody may know of each change. */
static bool is_everybodys(const struct live_judgement *judgement, const struct live_listener *listener)
{
    const struct live_access *access = listener->audience->access;
    bool is_administrator = listener->is_administrator;
    return live_access_is_judged(access, is_administrator) && !live_access_rules(access, is_administrator) &&
           !is_filtered(judgement, listener);
}

static void add_event(struct live_judgement *judgement, struct live_mark *mark, int64_t version)
{
    ARENA_GROW(judgement->of->scratch, judgement->events, judgement->event_count, judgement->event_room);
    judgement->events[judgement->event_count++] = (struct live_event){mark, version};
}

/* `lost`: of live_sight_lost. */
static void add_loss(struct live_judgement *judgement, struct live_mark *mark, int64_t lost)
{
    if (lost != LIVE_SIGHT_KEPT)
        add_event(judgement, mark, lost);
}

/* What a filter hid before is not recorded, so of its classes no departure is sent. */
static int64_t find_loss(const struct live_judgement *judgement, const struct live_listener *listener,
                         const struct live_sight *sight)
{
    return sight->rules && !is_filtered(judgement, listener) ? live_sight_lost(sight) : LIVE_SIGHT_KEPT;
}

/* What it sees has changed, or it is what it has lost. */
static void judge_mark(void *context, struct live_mark *mark)
{
    struct live_judgement *judgement = context;
    const struct live_listener *listener = (const struct live_listener *)(const void *)mark->owner;
    const struct document *document = judgement->of->loaded[judgement->change->place].document;
    struct view view = {0};
    if (judgement->change->serial && judgement->change->serial != listener->serial)
        return;
    if (is_everybodys(judgement, listener)) {
        int64_t version = judgement->change->version;
        add_event(judgement, mark, version ? version : document->header.version);
        return;
    }
    if (!is_trusted(listener))
        return;
    bool is_read = may(judgement, listener, RULES_READ, &document, &view);
    const struct live_sight sight = sight_of(judgement, listener);
    if (!is_read) {
        add_loss(judgement, mark, find_loss(judgement, listener, &sight));
        return;
    }
    view_take(&view, document, judgement->of->scratch);
    if (is_visible(judgement, document, &view) || (sight.rules && live_sight_has_moved(&sight)))
        add_event(judgement, mark, view_version(&view, document));
}

/* --- collections --- */

/* What is listed of the collection: documents that show its properties. */
static struct live_sight sight_in(struct live_judgement *judgement, const struct live_listener *listener,
                                  const struct schema_collection *collection)
{
    struct bytes *items = ARENA_ROOM(judgement->of->scratch, struct bytes, collection->key_count);
    struct live_sight sight = sight_of(judgement, listener);
    for (size_t i = 0; i < collection->key_count; i++)
        items[i] = collection->keys[i].item->name;
    sight.right = RULES_LIST;
    sight.items = items;
    sight.item_count = collection->key_count;
    return sight;
}

static bool may_list_in(struct live_judgement *judgement, const struct live_listener *listener,
                        const struct live_sight *sight, const struct document **document, struct view *view)
{
    bool is_listed = may(judgement, listener, RULES_LIST, document, view);
    if (is_listed)
        view_take(view, *document, judgement->of->scratch);
    for (size_t i = 0; is_listed && i < sight->item_count; i++)
        is_listed = view_shows_plainly(view, sight->items[i]);
    return is_listed;
}

/* The caller's relation to the document is another one than before, so the document may have come into each
 * collection of the class, or left it; nothing here depends on those in which it is.  Where listing takes
 * several relations at once, what the caller may read decides. */
static void judge_moved(struct live_judgement *judgement, struct live_mark *mark,
                        const struct live_listener *listener, const struct live_sight *sight)
{
    const struct document *document = judgement->of->loaded[judgement->change->place].document;
    struct view view = {0}, whole = {0};
    if (may_list_in(judgement, listener, sight, &document, &view)) {
        add_event(judgement, mark, view_version(&view, document));
        return;
    }
    struct live_sight lost_by = *sight;
    if (live_sight_reach(sight) == RULES_REACH_MIXED) {
        lost_by = sight_of(judgement, listener);
        if (may(judgement, listener, RULES_READ, &document, &whole)) {
            view_take(&whole, document, judgement->of->scratch);
            add_event(judgement, mark, view_version(&whole, document));
            return;
        }
    }
    add_loss(judgement, mark, live_sight_lost(&lost_by));
}

/* The document was written in this collection, or has left it. */
static void judge_written(struct live_judgement *judgement, struct live_mark *mark,
                          const struct live_listener *listener, const struct live_sight *sight)
{
    const struct document *document = judgement->of->loaded[judgement->change->place].document;
    struct view view = {0};
    if (may_list_in(judgement, listener, sight, &document, &view)) {
        if (is_visible(judgement, document, &view))
            add_event(judgement, mark, view_version(&view, document));
    } else if (live_sight_reach(sight) == RULES_REACH_ALL) {
        add_loss(judgement, mark, live_sight_lost(sight));
    }
}

static void judge_member(void *context, struct live_mark *mark)
{
    struct live_judgement *judgement = context;
    const struct live_listener *listener = (const struct live_listener *)(const void *)mark->owner;
    const struct definition *definition = live_index_definition(mark);
    const struct schema_collection *collection =
        live_snapshot_collection(judgement->of->snapshot, definition->class, definition->collection);
    if (!collection || collection->key_count != (size_t)definition->value_count)
        return;
    if (is_everybodys(judgement, listener)) {
        if (judgement->member)
            add_event(judgement, mark, judgement->member->version);
        return;
    }
    if (!is_trusted(listener) || is_filtered(judgement, listener))
        return;
    const struct live_sight sight = sight_in(judgement, listener, collection);
    bool has_moved = live_sight_has_moved(&sight);
    if (has_moved && !judgement->member)
        judge_moved(judgement, mark, listener, &sight);
    if (!has_moved && judgement->member)
        judge_written(judgement, mark, listener, &sight);
}

static void judge_members(struct live_judgement *judgement)
{
    struct live_judging *of = judgement->of;
    struct live_index *index = of->audience->ruled_index;
    const struct live_change *change = judgement->change;
    const struct live_loaded *loaded = &of->loaded[change->place];
    const struct bytes class = change->class;
    judgement->member = NULL;
    if (loaded->principal_count)
        live_index_each_member(index, class, judge_member, judgement);
    for (size_t i = 0; i < loaded->member_count; i++) {
        judgement->member = &loaded->members[i];
        if (live_snapshot_is_recent(judgement->member->version, judgement->member->writer, change->version,
                                    change->since))
            live_index_each_mark(
                index,
                live_key_of_member(of->key, class, judgement->member->collection, judgement->member->value),
                judge_member, judgement);
    }
}

/* --- teams --- */

/* A caller that has joined or left a team may now see other documents: those that depend on it. */
static void judge_team(struct live_judgement *judgement)
{
    struct live_judging *of = judgement->of;
    struct live_audience *audience = of->audience;
    const struct rules *rules = live_access_rules(audience->access, false);
    struct bytes class;
    if (!rules || !rules_sight_is_team(rules, judgement->change->class) ||
        !of->loaded[judgement->change->place].principal_count)
        return;
    for (struct live_listener *one = audience->listeners; one; one = one->next) {
        size_t position = 0;
        if (!one->is_ruled || !one->caller || !is_trusted(one))
            continue;
        const struct live_sight sight = sight_of(judgement, one);
        while ((class = rules_sight_next(rules, &position)).data)
            if (live_index_has_class(&one->feed, class) && live_sight_has_other_team(&sight, class))
                live_index_match_class(audience->ruled_index, &one->feed, class);
    }
}

/* --- all together --- */

bool live_judge(struct live_judging *of, struct live_change *change, bool is_trial)
{
    struct live_judgement judgement = {.of = of, .change = change, .is_trial = is_trial};
    struct live_index *index = of->audience->ruled_index;
    const struct live_loaded *loaded = &of->loaded[change->place];
    if (!loaded->document)
        return false;
    live_index_each_mark(index, live_key_of_document(of->key, change->class, change->id), judge_mark,
                         &judgement);
    if (!change->serial) {
        live_index_each_mark(index, live_key_of_class(of->key, change->class), judge_mark, &judgement);
        judge_members(&judgement);
    }
    if (judgement.needed.class.data && change->team_count < LIVE_TEAMS_MOST) {
        struct document_name *team = &change->teams[change->team_count++];
        team->class = arena_keep(of->teams, judgement.needed.class);
        team->id = arena_keep(of->teams, judgement.needed.id);
        return false;
    }
    if (is_trial)
        return false;
    of->is_too_much |= judgement.needed.class.data || loaded->principal_count > LIVE_PRINCIPALS_MOST ||
                       loaded->member_count > LIVE_PRINCIPALS_MOST;
    for (size_t i = 0; i < judgement.event_count; i++)
        live_index_match_mark(index, judgement.events[i].mark, judgement.events[i].version);
    if (!change->serial)
        judge_team(&judgement);
    return true;
}

bool live_judge_tells(const struct live_listener *listener, struct bytes class)
{
    const struct rules *rules = live_access_rules(listener->audience->access, listener->is_administrator);
    return !rules ||
           (is_trusted(listener) && rules_outline_discloses(rules, caller_of(listener), class, NULL, 0));
}
