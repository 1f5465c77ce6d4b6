/* copies: items that are copied, later, to the documents that hold them (copies.md): their declarations,
 * the notes that a commit writes, and a batch of copies, which one commit writes.
 *
 * Declared by an application, before fork, or by the schema of the namespace.  Pure: no I/O. */
#ifndef STAMPD_MODEL_DOCUMENT_COPIES_H
#define STAMPD_MODEL_DOCUMENT_COPIES_H

#include "base/settings.h"
#include "model/document/draft.h"
#include "model/schema/schema.h"
#include "model/task/task.h"

/* The operation that copies; its task has the document as `c` and `id` of its argument. */
#define COPIES_OPERATION "copy"

enum {
    COPIES_SOURCES_MOST = 16,   /* source items in a batch */
    COPIES_TARGETS_MOST = 1000, /* copies in a batch: in one commit */
};

/* Registers an application's declaration; the texts and `copies` are borrowed for good.  It takes precedence
 * over the schema's declaration of the item. */
void copies_declare(struct bytes class, struct bytes iclass, const struct schema_copies *copies);
/* Is any item declared as copied? */
bool copies_exist(const struct schema *schema);
/* NULL: the item is not copied. */
const struct schema_copies *copies_find(const struct schema *schema, struct bytes class, struct bytes iclass);
/* Key of the copies of a document's item `key`; in the arena. */
struct bytes copies_key(struct arena *arena, const struct schema_copies *copies, struct bytes key,
                        struct bytes id);

/* A copied item that a commit has changed or removed. */
struct copy_note {
    struct bytes class, id, iclass, key;
};
struct copy_notes {
    struct copy_note *list;
    size_t count, capacity;
};
/* Adds the notes that a change of the document makes due, including items of the incarnation that it
 * ended. */
void copies_note(struct copy_notes *notes, struct arena *arena, const struct schema *schema,
                 const struct document *base, enum draft_act act, const struct draft_rows *rows);

/* The task that copies the noted items of the note's document; at most one waits. */
struct task copies_task(struct arena *arena, const struct copy_note *note, const struct settings *settings);

/* An item whose copies are due, as it was when read. */
struct copy_source {
    struct bytes iclass, key;
    const struct schema_copies *copies; /* NULL: no longer declared */
    struct bytes copy_key;
    int64_t due;          /* number of its note */
    int64_t guard;        /* copies of earlier states are replaced */
    int64_t vop;          /* `vop` of the new copies */
    struct bytes content; /* data NULL: the item is gone, its copies are removed */
    bool raw;
    bool is_done; /* no copy is older when the batch is written: its note is deleted */
};

/* A document that has an older copy of a source. */
struct copy_target {
    struct bytes class, id;
    size_t source;
};

/* Copies of the items of one document, written by one commit. */
struct copy_batch {
    struct bytes class, id;
    int64_t schema; /* number of the schema that the batch was built under */
    struct copy_source *sources;
    size_t source_count;
    struct copy_target *targets; /* in the order of class and id */
    size_t target_count;
};

/* Is this the first target of its document? */
bool copies_is_first(const struct copy_batch *batch, size_t target);
/* Sorts the targets. */
void copies_sort(struct copy_batch *batch);

/* Progress of the copies of one state of an item: its targets up to this one are done. */
struct copy_position {
    struct bytes iclass, key;
    int64_t due;
    struct bytes class, id;
};
/* Converts to the text of a checkpoint, and back; a place without a class: none, or another kind of text. */
struct bytes copies_write_position(struct arena *arena, const struct copy_position *place);
struct copy_position copies_read_position(struct arena *arena, struct bytes text);

#endif
