/* draft: the changes are kept in a balanced tree beside the base, so that a long list of items in any order
 * costs no more than sorting it, and ends up sorted. */
#include "model/document/draft.h"

#include "model/document/stamp.h"

/* An item that was set or removed.  It stays in the tree even when it again equals the base's. */
struct draft_change {
    struct draft_change *left, *right;
    unsigned level; /* of an AA tree: 1 at the leaves */
    bool differs;   /* from the base */
    const struct item
        *base;        /* the base's item or tombstone of that name; NULL: none, or of an ended incarnation */
    struct item item; /* as the operation sees it; no content: removed */
};

struct draft {
    struct arena *arena;
    struct document *base;
    bool exists;
    bool goes_on; /* the base's incarnation continues: its items are visible */
    struct draft_change *changes;
    size_t change_count;        /* changes that differ from the base */
    int64_t volume, live, cost; /* of the live items */
    int64_t attached;           /* bytes of the attachments */
    struct item *sealed;        /* the rows' items, consecutive */
};

/* --- the tree ------------------------------------------------------------------------------------ */

static struct draft_change *tree_find(struct draft_change *tree, struct bytes iclass, struct bytes key)
{
    while (tree) {
        int order = item_compare(iclass, key, tree->item.iclass, tree->item.key);
        if (order == 0)
            return tree;
        tree = order < 0 ? tree->left : tree->right;
    }
    return NULL;
}

/* A left child of the same level becomes the parent. */
static struct draft_change *tree_skew(struct draft_change *tree)
{
    struct draft_change *left = tree->left;
    if (!left || left->level != tree->level)
        return tree;
    tree->left = left->right;
    left->right = tree;
    return left;
}

/* Of three nodes on one level the middle one moves up. */
static struct draft_change *tree_split(struct draft_change *tree)
{
    struct draft_change *right = tree->right;
    if (!right || !right->right || right->right->level != tree->level)
        return tree;
    tree->right = right->left;
    right->left = tree;
    right->level++;
    return right;
}

static struct draft_change *tree_insert(struct draft_change *tree, struct draft_change *change)
{
    if (!tree)
        return change;
    if (item_compare(change->item.iclass, change->item.key, tree->item.iclass, tree->item.key) < 0)
        tree->left = tree_insert(tree->left, change);
    else
        tree->right = tree_insert(tree->right, change);
    return tree_split(tree_skew(tree));
}

/* --- the document as the operation sees it ------------------------------------------------------ */

struct draft *draft_open(struct arena *arena, struct document *base)
{
    struct draft *draft = ARENA_NEW(arena, struct draft);
    draft->arena = arena;
    draft->base = base;
    draft->exists = draft->goes_on = document_exists(base);
    draft->volume = base->header.v1;
    draft->attached = base->header.v2;
    draft->cost = document_cost(base);
    draft->live = (int64_t)base->item_count - base->tombstone_count;
    return draft;
}

const struct document *draft_base(const struct draft *draft)
{
    return draft->base;
}

bool draft_exists(const struct draft *draft)
{
    return draft->exists;
}

void draft_create(struct draft *draft)
{
    draft->exists = true;
}

void draft_delete(struct draft *draft)
{
    draft->exists = draft->goes_on = false;
    draft->changes = NULL;
    draft->change_count = 0;
    draft->volume = draft->live = draft->cost = draft->attached = 0;
}

int64_t draft_cost(const struct draft *draft)
{
    return draft->cost;
}

int64_t draft_volume(const struct draft *draft)
{
    return draft->volume;
}

int64_t draft_attached(const struct draft *draft)
{
    return draft->attached;
}

int64_t draft_items(const struct draft *draft)
{
    return draft->live;
}

int64_t draft_forget(const struct draft *draft, int64_t most)
{
    const struct document *base = draft->base;
    bool is_more = draft->goes_on && (int64_t)(base->tombstone_count + draft->change_count) > most;
    return is_more ? base->newest_tombstone : 0;
}

enum draft_act draft_act(const struct draft *draft)
{
    const bool existed = document_exists(draft->base);
    if (!draft->exists)
        return existed ? DRAFT_DELETE : DRAFT_READ;
    if (draft->goes_on)
        return draft->change_count ? DRAFT_WRITE : DRAFT_READ;
    return existed || draft->base->has_ended ? DRAFT_RENEW : DRAFT_WRITE;
}

bool draft_is_changed(const struct draft *draft)
{
    return draft_act(draft) != DRAFT_READ;
}

/* --- its items ----------------------------------------------------------------------------------- */

static bool is_live(const struct item *item)
{
    return item && !item_is_tombstone(item);
}

static bool draft_is_same(const struct item *a, const struct item *b)
{
    if (!is_live(a) || !is_live(b))
        return is_live(a) == is_live(b);
    return a->raw == b->raw && bytes_equal(a->content, b->content);
}

static int64_t volume_of(const struct item *item)
{
    return is_live(item) ? (int64_t)(item->key.size + item->content.size) : 0;
}

static int64_t attached_of(const struct item *item)
{
    return is_live(item) && item_is_reserved(item->iclass) ? attachment_size(item->content) : 0;
}

static int64_t cost_of(const struct item *item)
{
    return is_live(item) ? document_item_cost(item) : 0;
}

static const struct item *find_in_base(const struct draft *draft, struct bytes iclass, struct bytes key)
{
    return draft->goes_on ? document_find_item(draft->base, iclass, key) : NULL;
}

const struct item *draft_find_item(const struct draft *draft, struct bytes iclass, struct bytes key)
{
    const struct draft_change *change = tree_find(draft->changes, iclass, key);
    const struct item *item = change ? &change->item : find_in_base(draft, iclass, key);
    return is_live(item) ? item : NULL;
}

static const struct item *next_in_base(const struct draft *draft, struct bytes iclass, struct bytes key)
{
    const struct item *items = draft->base->items;
    size_t low = 0, high = draft->goes_on ? draft->base->item_count : 0, count = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (item_compare(items[middle].iclass, items[middle].key, iclass, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? &items[low] : NULL;
}

static const struct item *next_in_changes(const struct draft *draft, struct bytes iclass, struct bytes key)
{
    const struct item *next = NULL;
    for (const struct draft_change *tree = draft->changes; tree;) {
        bool is_behind = item_compare(tree->item.iclass, tree->item.key, iclass, key) > 0;
        if (is_behind)
            next = &tree->item;
        tree = is_behind ? tree->left : tree->right;
    }
    return next;
}

const struct item *draft_next_item(const struct draft *draft, struct bytes iclass, struct bytes key)
{
    for (;;) {
        const struct item *base = next_in_base(draft, iclass, key);
        const struct item *change = next_in_changes(draft, iclass, key);
        if (!base && !change)
            return NULL;
        int order = !base     ? 1
                    : !change ? -1
                              : item_compare(base->iclass, base->key, change->iclass, change->key);
        const struct item *next = order < 0 ? base : change;
        if (is_live(next))
            return next;
        iclass = next->iclass;
        key = next->key;
    }
}

/* Sets the item as wanted; without content: removes it. */
static void draft_put(struct draft *draft, const struct item *wanted)
{
    struct draft_change *change = tree_find(draft->changes, wanted->iclass, wanted->key);
    const struct item *base = change ? change->base : find_in_base(draft, wanted->iclass, wanted->key);
    const struct item *present = change ? &change->item : base;
    if (draft_is_same(present, wanted))
        return;
    draft->volume += volume_of(wanted) - volume_of(present);
    draft->attached += attached_of(wanted) - attached_of(present);
    draft->cost += cost_of(wanted) - cost_of(present);
    draft->live += (int64_t)is_live(wanted) - (int64_t)is_live(present);
    if (!change) {
        change = ARENA_NEW(draft->arena, struct draft_change);
        *change = (struct draft_change){.level = 1, .base = base, .item = *wanted};
        draft->changes = tree_insert(draft->changes, change);
    }
    draft->change_count -= change->differs;
    change->differs = !draft_is_same(base, wanted);
    draft->change_count += change->differs;
    change->item = base && !change->differs ? *base : *wanted;
}

void draft_copy_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                     struct bytes content, int64_t vop)
{
    assert(content.data);
    draft_create(draft);
    draft_put(draft,
              &(struct item){.iclass = iclass, .key = key, .content = content, .raw = raw, .vop = vop});
}

void draft_set_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                    struct bytes content)
{
    draft_copy_item(draft, iclass, key, raw, content, 0);
}

void draft_set_attachment(struct draft *draft, struct bytes key, const struct attachment *attachment)
{
    draft_set_item(draft, ATTACHMENT_CLASS, key, false, attachment_write(draft->arena, attachment));
}

void draft_remove_item(struct draft *draft, struct bytes iclass, struct bytes key)
{
    if (draft->exists)
        draft_put(draft, &(struct item){.iclass = iclass, .key = key});
}

static void mutate_changes(struct draft *draft, const struct draft_change *tree,
                           struct bytes (*mutate)(void *whose, const struct item *item), void *whose)
{
    if (!tree)
        return;
    mutate_changes(draft, tree->left, mutate, whose);
    mutate_changes(draft, tree->right, mutate, whose);
    if (!tree->differs || !is_live(&tree->item) || tree->item.raw)
        return;
    struct item wanted = tree->item;
    wanted.content = mutate(whose, &tree->item);
    draft_put(draft, &wanted);
}

static const struct item *find_written(const struct draft_change *tree, bool is_live_wanted,
                                       bool (*is_wanted)(void *whose, const struct item *item), void *whose)
{
    if (!tree)
        return NULL;
    const struct item *found = find_written(tree->left, is_live_wanted, is_wanted, whose);
    bool is_one = tree->differs && (!is_live_wanted || is_live(&tree->item));
    if (!found && is_one && is_wanted(whose, &tree->item))
        found = &tree->item;
    return found ? found : find_written(tree->right, is_live_wanted, is_wanted, whose);
}

const struct item *draft_find_changed(const struct draft *draft,
                                      bool (*is_wanted)(void *whose, const struct item *item), void *whose)
{
    return find_written(draft->changes, true, is_wanted, whose);
}

const struct item *draft_find_written(const struct draft *draft,
                                      bool (*is_wanted)(void *whose, const struct item *item), void *whose)
{
    return find_written(draft->changes, false, is_wanted, whose);
}

void draft_mutate(struct draft *draft, struct bytes (*mutate)(void *whose, const struct item *item),
                  void *whose)
{
    mutate_changes(draft, draft->changes, mutate, whose);
}

/* --- what the commit writes ---------------------------------------------------------------------- */

/* The header of the row after the commit. */
static struct header seal_header(const struct draft *draft, int64_t version, int64_t horizon)
{
    struct header header = draft->base->header;
    header.version = version;
    header.v1 = draft->volume;
    header.v2 = draft->attached;
    if (!draft->exists) {
        header.ctime = header.dtime = 0;
    } else if (!draft->goes_on) {
        header.ctime = header.dtime = version;
    } else if (header.dtime < horizon) {
        header.dtime = horizon;
    }
    return header;
}

/* Adds the changes of the tree, in order. */
static void seal_items(const struct draft_change *tree, int64_t version, struct draft_rows *rows,
                       struct item *sealed)
{
    if (!tree)
        return;
    seal_items(tree->left, version, rows, sealed);
    if (tree->differs) {
        struct item *item = &sealed[rows->item_count];
        *item = tree->item;
        item->version = version;
        if (!item->vop && !item_is_tombstone(item))
            item->vop = version;
        rows->items[rows->item_count++] = item;
    }
    seal_items(tree->right, version, rows, sealed);
}

/* Adds the base's tombstones that need not be remembered any longer, except those that the commit
 * overwrites. */
static void seal_purges(const struct draft *draft, struct draft_rows *rows)
{
    const struct document *base = draft->base;
    if (!draft->goes_on || !base->tombstone_count || base->oldest_tombstone > rows->header.dtime)
        return;
    rows->purges = ARENA_ARRAY(draft->arena, const struct item *, base->tombstone_count);
    for (const struct item *item = base->items; item < base->items + base->item_count; item++) {
        if (!item_is_tombstone(item) || item->version > rows->header.dtime)
            continue;
        const struct draft_change *change = tree_find(draft->changes, item->iclass, item->key);
        if (!change || !change->differs)
            rows->purges[rows->purge_count++] = item;
    }
}

void draft_seal(struct draft *draft, int64_t version, int64_t horizon, struct draft_rows *rows_r)
{
    assert(draft_is_changed(draft));
    assert(version > draft->base->header.version);
    assert(draft->base->header.version || version > draft->base->header.floor); /* no row: a new document */
    if (horizon >= version) /* removals of this commit are always remembered */
        horizon = stamp_add_ms(version, -1);
    *rows_r = (struct draft_rows){.header = seal_header(draft, version, horizon)};
    draft->sealed = ARENA_ARRAY(draft->arena, struct item, draft->change_count);
    rows_r->items = ARENA_ARRAY(draft->arena, const struct item *, draft->change_count);
    seal_items(draft->changes, version, rows_r, draft->sealed);
    assert(rows_r->item_count == draft->change_count);
    seal_purges(draft, rows_r);
}

struct document *draft_snapshot(const struct draft *draft, const struct draft_rows *rows)
{
    if (draft->goes_on)
        return document_merge(draft->base, &rows->header, draft->sealed, rows->item_count);
    return document_build(&rows->header, draft->sealed, rows->item_count);
}
