/* schema: declarations of classes: documents, their items, exported fields, collections, unique properties,
 * zombies, expiry, releases (schema.md).
 *
 * A schema is immutable.  It is read from a JSON text, strictly: the first error is reported with the path of
 * its member and the expected value.  schema_write returns the text in one canonical form.  Pure: no I/O.
 * The schema that a namespace has *applied* is a row of its database (schema_cache.c); its `number` changes
 * with each update, so work planned under one number is never done under another. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/fault.h"
#include "model/schema/named_search.h"
#include "model/schema/schema_class.h"

struct schema {
    int64_t number;
    struct bytes secret; /* of the namespace: signs its cursors and tokens; applied schemas only */
    const struct schema_class *classes;
    size_t class_count;
    const struct named_search *searches; /* in the order of their names */
    size_t search_count;
    bool has_old;        /* some class may have contents of older releases */
    bool has_copies;     /* some item is copied */
    bool has_contents;   /* contents of some item are checked */
    bool has_global;     /* some property is unique in all namespaces */
    bool has_thumbnails; /* of attachments of some class */
    struct bytes owners; /* applied: members that name owners whose bytes are counted: JSON; "{}": none */
    bool wakes;          /* applied: commits wake the sessions whose subscriptions match (subscriptions.md) */
};

/* Why a text is not a valid schema. */
struct schema_problem {
    const char *path;     /* "classes.Person.items.Adr.fields.zip"; "" for the whole */
    const char *expected; /* one sentence */
};

/* Reads a declaration; everything lives in the arena, texts in `text`.  On error returns FAULT_AARG and the
 * problem. */
MUST_USE enum fault schema_read(struct arena *arena, struct bytes text, struct schema **schema_r,
                                struct schema_problem *problem_r);
/* Writes the schema: members in one order, defaults left out. */
void schema_write(const struct schema *schema, struct builder *text);

/* NULL: not declared. */
const struct schema_class *schema_find_class(const struct schema *schema, struct bytes name);
const struct schema_item *schema_find_item(const struct schema_class *class, struct bytes name);
const struct schema_collection *schema_find_collection(const struct schema_class *class, struct bytes name);
const struct schema_field *schema_find_field(const struct schema_item *item, struct bytes name);
const struct named_search *schema_find_search(const struct schema *schema, struct bytes name);

/* Why a document of this class cannot have such an item, in one sentence; NULL: it can. */
const char *schema_refusal(const struct schema *schema, struct bytes document_class, struct bytes item_class,
                           bool is_singleton, bool is_raw);

/* Why a class of documents with this class of items (NULL: without it) cannot have copies of an item of the
 * same name, in one sentence; NULL: it can. */
const char *schema_refuse_copy(const struct schema_item *target, bool is_open, bool is_raw);

/* Is this a valid name of a field: a letter, then letters, digits and '_', and not a column of the views? */
bool schema_is_field_name(struct bytes name);
/* "string", "int[]"; and back, false when it is not a type. */
const char *schema_type_name(enum field_type type, bool is_list);
bool schema_type_of(struct bytes name, enum field_type *type_r, bool *is_list_r);

/* --- schema index: an index over several fields, as it is declared: ["room","-at"]; of likeness: ["~name"]
 * --- */
/* Writes the list of its fields. */
void schema_index_write(struct builder *text, const struct schema_index *index);
/* Reading an index backwards reverses all its directions: they are the same index when they differ in that
 * only. */
bool schema_index_is_same(const struct schema_index *one, const struct schema_index *other);
/* "room,-at", in the arena: its name in the list of what is being built. */
struct bytes schema_index_word(struct arena *arena, const struct schema_index *index);

#endif
