/* draft: a document as an operation changes it in memory, on top of an immutable snapshot.
 *
 * Parts of the base are copied only when needed; content equal to the base's is no change.  At validation the
 * draft is sealed: draft_seal lists the rows that the commit writes.  After the commit draft_snapshot builds
 * the new snapshot.  Pure.  Lives in the arena of its operation; names and contents set must live as long.
 * (commit.md 3, 6) */
#ifndef STAMPD_MODEL_DOCUMENT_DRAFT_H
#define STAMPD_MODEL_DOCUMENT_DRAFT_H

#include "base/arena.h"
#include "model/document/attachment.h"
#include "model/document/document.h"

struct draft;

/* How the commit changes the document's row; the numbers are those of the statements. */
enum draft_act { DRAFT_READ = 0, DRAFT_WRITE = 1, DRAFT_DELETE = 2, DRAFT_RENEW = 3 };

struct draft *draft_open(struct arena *arena, struct document *base); /* borrows `base` */

const struct document *draft_base(const struct draft *draft);
/* Does the document exist within the operation? */
bool draft_exists(const struct draft *draft);
/* Creates the document if it does not exist. */
void draft_create(struct draft *draft);
/* Deletes the document with all its items, if it exists. */
void draft_delete(struct draft *draft);

/* The item as the operation sees it, NULL when there is none (tombstones do not count).  An item changed in
 * this operation has version 0 and no `json`, and vop 0 unless it was copied.  Valid until the next
 * change. */
const struct item *draft_find_item(const struct draft *draft, struct bytes iclass, struct bytes key);
/* The live item after this name in the order of class and key, NULL at the end.  Valid until the next
 * change. */
const struct item *draft_next_item(const struct draft *draft, struct bytes iclass, struct bytes key);
/* Sets an item; creates the document if it does not exist.  Kind and content equal to the present ones: no
 * change. */
void draft_set_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                    struct bytes content);
/* Sets the item P of this key: an attachment. */
void draft_set_attachment(struct draft *draft, struct bytes key, const struct attachment *attachment);
/* Same as draft_set_item, for content that another operation made at the stamp `vop`. */
void draft_copy_item(struct draft *draft, struct bytes iclass, struct bytes key, bool raw,
                     struct bytes content, int64_t vop);
/* Passes each content that was set to `mutate`, which returns it or the content to write instead. */
void draft_mutate(struct draft *draft, struct bytes (*mutate)(void *whose, const struct item *item),
                  void *whose);
/* The first item with content, in the order of class and key, that was changed and that `is_wanted` wants;
 * NULL: none. */
const struct item *draft_find_changed(const struct draft *draft,
                                      bool (*is_wanted)(void *whose, const struct item *item), void *whose);
/* The same among all items that the commit writes or removes; a removed one has no content.  Items that end
 * with their document are not among them. */
const struct item *draft_find_written(const struct draft *draft,
                                      bool (*is_wanted)(void *whose, const struct item *item), void *whose);
/* Removes an item if there is one (the document is not created). */
void draft_remove_item(struct draft *draft, struct bytes iclass, struct bytes key);

/* Cost of its live items after the commit: document_cost. */
int64_t draft_cost(const struct draft *draft);
/* Bytes of the keys and contents of the live items after the commit. */
int64_t draft_volume(const struct draft *draft);
/* Bytes of the attachments after the commit: each as often as an item P has it. */
int64_t draft_attached(const struct draft *draft);
/* Number of live items after the commit. */
int64_t draft_items(const struct draft *draft);
/* The stamp up to which removals must be forgotten so that the document remembers at most about `most` of
 * them; all those from before this commit are forgotten together.  0: there are fewer. */
int64_t draft_forget(const struct draft *draft, int64_t most);

enum draft_act draft_act(const struct draft *draft);
/* Is there anything to write?  A document created and deleted in one operation is unchanged. */
bool draft_is_changed(const struct draft *draft);

/* What the commit writes.  `version` is that of the commit, above all earlier ones.  Removals up to the stamp
 * `horizon` need not be remembered: the new dtime is max(old dtime, horizon), but always below `version`;
 * that of a new incarnation is `version`.  Only for a changed draft. */
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

/* The snapshot after the commit of the sealed rows; act DELETE: a document that does not exist, with the
 * zombie's version. */
struct document *draft_snapshot(const struct draft *draft, const struct draft_rows *rows)
    __attribute__((returns_nonnull));

#endif
