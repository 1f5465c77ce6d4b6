/* draft: a document as an operation changes it in memory, on top of an immutable snapshot.
 *
 * Nothing of the base is copied until it is needed; content equal to the base's is no change.  At validation
 * the draft is sealed: it says which rows the commit writes.  After the commit it gives the new snapshot.
 * Pure.  Lives in the arena of its operation; names and contents set must live as long. (seed 000,
 * "Opérations"; commit.md 3, 6) */
#ifndef STAMPD_MODEL_DRAFT_H
#define STAMPD_MODEL_DRAFT_H

#include "base/arena.h"
#include "model/document.h"

struct draft;

/* What the commit does with the document's row; the numbers are those of the statements. */
enum draft_act { DRAFT_READ = 0, DRAFT_WRITE = 1, DRAFT_DELETE = 2, DRAFT_RENEW = 3 };

struct draft *draft_open(struct arena *arena, struct document *base); /* borrows `base` */

const struct document *draft_base(const struct draft *draft);
/* Does the document exist in the operation's eyes? */
bool draft_exists(const struct draft *draft);
/* Begins a life if there is none; nothing otherwise. */
void draft_create(struct draft *draft);
/* Ends the life: all items go.  Nothing when there is none. */
void draft_delete(struct draft *draft);

/* The item in the operation's eyes, NULL when there is none (tombstones are none).  One changed in this
 * operation has version 0 and no `json`, and vop 0 unless it was copied.  Valid until the next change. */
const struct item *draft_find_item(const struct draft *draft, struct bytes iclass, struct bytes key);
/* The live item that follows this name in the order of class and key, NULL at the end.  Valid until the next
 * change. */
const struct item *draft_next_item(const struct draft *draft, struct bytes iclass, struct bytes key);
/* Sets an item; begins a life if there is none.  Kind or content equal to the present one: no change. */
void draft_set_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                    struct bytes content);
/* The same of a content that another operation has made, at the stamp `vop`. */
void draft_copy_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                     struct bytes content, int64_t vop);
/* Gives each content that was set to `mutate`, which returns it, or what is to be written in its place. */
void draft_mutate(struct draft *draft, struct bytes (*mutate)(void *whose, const struct item *item),
                  void *whose);
/* Removes an item; nothing when there is none (no life is begun). */
void draft_remove_item(struct draft *draft, struct bytes iclass, struct bytes key);

/* What its live items cost, as they would be after the commit: document_cost. */
int64_t draft_cost(const struct draft *draft);
/* Bytes of the keys and contents of the live items, as they would be after the commit. */
int64_t draft_volume(const struct draft *draft);
/* Its live items, as they would be after the commit. */
int64_t draft_items(const struct draft *draft);
/* The stamp up to which removals are to be forgotten so that the document remembers about `most` of them at
 * the most: those of before this commit go together.  0: there are fewer. */
int64_t draft_forget(const struct draft *draft, int64_t most);

enum draft_act draft_act(const struct draft *draft);
/* Is there anything to write?  A life begun and ended in one operation is no change. */
bool draft_is_changed(const struct draft *draft);

/* What the commit writes.  `version` is that of the commit, above all that was there.  Removals up to the
 * stamp `horizon` need not be remembered: the new dtime is max(old dtime, horizon), but always below
 * `version`; that of a new life is `version`.  Only for a draft that is changed. */
struct draft_rows {
    struct header header; /* of the row; act DELETE: ctime = dtime = v1 = v2 = 0 */
    /* Items and tombstones to upsert, sorted; their version and vop (0 of tombstones) are set. */
    const struct item **items;
    size_t item_count;
    /* Tombstones of the base not above the new dtime: rows to delete. */
    const struct item **purges;
    size_t purge_count;
};
void draft_seal(struct draft *draft, int64_t version, int64_t horizon, struct draft_rows *rows_r);

/* The snapshot after the commit of what was sealed; act DELETE: one that does not exist, with the zombie's
 * version. */
struct document *draft_snapshot(const struct draft *draft, const struct draft_rows *rows)
    __attribute__((returns_nonnull));

#endif
