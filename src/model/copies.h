/* copies: items that are copied, later, to the documents that hold them (doc/copies.md): which they are, what
 * a commit notes of them, and a batch of copies, which is written by one commit.
 *
 * Declared by an application, before fork, or by the schema of the namespace.  Pure: no I/O. */
#ifndef STAMPD_MODEL_COPIES_H
#define STAMPD_MODEL_COPIES_H

#include "base/settings.h"
#include "model/draft.h"
#include "model/schema.h"
#include "model/task.h"

/* The operation that copies; its task bears the document as `c` and `id` of its argument. */
#define COPIES_OPERATION "copy"

enum {
    COPIES_SOURCES_MOST = 16,   /* items of a batch */
    COPIES_TARGETS_MOST = 1000, /* copies of a batch: of a commit */
};

/* What an application declares; both are borrowed for good.  It goes before what a schema says of the item.
 */
void copies_declare(struct bytes class, struct bytes iclass, const struct schema_copies *copies);
/* Is anything copied at all? */
bool copies_exist(const struct schema *schema);
/* NULL: the item is not copied. */
const struct schema_copies *copies_find(const struct schema *schema, struct bytes class, struct bytes iclass);
/* Key of the copies of the item `key` of a document; in the arena. */
struct bytes copies_key(struct arena *arena, const struct schema_copies *copies, struct bytes key,
                        struct bytes id);

/* An item that a commit has changed or removed, and that is copied. */
struct copy_note {
    struct bytes class, id, iclass, key;
};
struct copy_notes {
    struct copy_note *list;
    size_t count, capacity;
};
/* Adds what a change of the document makes due, also what went with the life that it ended. */
void copies_note(struct copy_notes *notes, struct arena *arena, const struct schema *schema,
                 const struct document *base, enum draft_act act, const struct draft_rows *rows);

/* The task that copies what is noted of the document of the note; one waits for it at most. */
struct task copies_task(struct arena *arena, const struct copy_note *note, const struct settings *settings);

/* An item whose copies are due, as it was when it was read. */
struct copy_source {
    struct bytes iclass, key;
    const struct schema_copies *copies; /* NULL: it is declared no more */
    struct bytes copy_key;
    int64_t due;          /* the number of its note */
    int64_t guard;        /* copies of states before this one are replaced */
    int64_t vop;          /* what they bear then */
    struct bytes content; /* data NULL: it is no more, its copies go */
    bool raw;
    bool is_done; /* none of its copies is older when the batch is written: its note goes */
};

/* A document that has an older copy of a source. */
struct copy_target {
    struct bytes class, id;
    size_t source;
};

/* Copies of the items of one document, written by one commit. */
struct copy_batch {
    struct bytes class, id;
    int64_t schema; /* number of the one that this was made up under */
    struct copy_source *sources;
    size_t source_count;
    struct copy_target *targets; /* in the order of class and id */
    size_t target_count;
};

/* Is this the first target of its document? */
bool copies_is_first(const struct copy_batch *batch, size_t target);
/* Brings the targets into their order. */
void copies_sort(struct copy_batch *batch);

/* How far the copies of one state of an item have come: its targets up to this one are done. */
struct copy_place {
    struct bytes iclass, key;
    int64_t due;
    struct bytes class, id;
};
/* As the text of a checkpoint, and back; a place without a class: none, or another kind of text. */
struct bytes copies_write_place(struct arena *arena, const struct copy_place *place);
struct copy_place copies_read_place(struct arena *arena, struct bytes text);

#endif
