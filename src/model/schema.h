/* schema: what is declared of classes: documents, their items, exported fields, collections, unique
 * properties, zombies, the end of life, releases (doc/schema.md).
 *
 * A schema is immutable.  It is read from a JSON text, strictly: the first thing that is wrong is told with
 * the path of its member and what is expected.  schema_write gives the text back in one canonical form.
 * Pure: no I/O.  What a namespace has *applied* is a row of its database (store_schema.c); its `number` moves
 * with each change, so what was made up under one number is never done under another. */
#ifndef STAMPD_MODEL_SCHEMA_H
#define STAMPD_MODEL_SCHEMA_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/fault.h"

/* An exported field may have these types; a list of one too. */
enum field_type { FIELD_STRING, FIELD_LONG, FIELD_INT, FIELD_DOUBLE, FIELD_TYPES };

enum {
    SCHEMA_FIELD_NAME_MOST = 26, /* "x_Class_Item_field" is a name of PostgreSQL: 63 bytes */
    SCHEMA_CLASSES_MOST = 256,
    SCHEMA_ITEMS_MOST = 64, /* in a class; collections and unique properties too */
    SCHEMA_FIELDS_MOST = 32,
    SCHEMA_KEYS_MOST = 4,
    SCHEMA_RELEASE_MOST = 1000000,
    SCHEMA_ZOMBIE_DAYS_MOST = 3650,
    SCHEMA_COPIES_MOST = 16, /* classes that an item is copied to */
    SCHEMA_SEPARATOR_MOST = 8,
};

/* A member of an item's content whose value is a column of the item's side table. */
struct schema_field {
    struct bytes name;
    enum field_type type;
    bool is_list;
    bool is_ready; /* applied, and its index complete: it may be searched */
};

/* The item is copied, later, to the documents of these classes that have an item of its class under its key,
 * the separator and the id of its document; of a singleton, under that id (doc/copies.md). */
struct schema_copies {
    struct bytes separator;
    struct bytes classes[SCHEMA_COPIES_MOST];
    size_t count;
};

struct schema_item {
    struct bytes name;
    bool is_singleton, is_raw;
    const struct schema_copies *copies; /* NULL: it is not copied */
    const struct schema_field *fields;  /* in the order of their names */
    size_t field_count;                 /* 0: no side table */
};

/* A member of a singleton's content. */
struct schema_property {
    const struct schema_item *item;
    struct bytes member;
};

/* The documents of the class that share the values of the keys; a list: each of its elements. */
struct schema_collection {
    struct bytes name;
    struct schema_property keys[SCHEMA_KEYS_MOST];
    size_t key_count;
    bool is_list, is_mutable;
};

/* No two documents of the namespace have the same values of the keys; or of all namespaces that say so. */
struct schema_unique {
    struct bytes name;
    struct schema_property keys[SCHEMA_KEYS_MOST];
    size_t key_count;
    bool is_global;
};

/* A step that takes contents of release `to` - 1 to release `to`; in this order: rename, default, drop. */
struct schema_mutation {
    int64_t to;
    const struct schema_item *item;
    struct schema_change {
        enum { CHANGE_RENAME, CHANGE_DEFAULT, CHANGE_DROP } kind;
        struct bytes member;
        struct bytes value; /* RENAME: the new name; DEFAULT: the JSON text set where the member is absent */
    } * changes;
    size_t change_count;
};

struct schema_class {
    struct bytes name;
    bool is_old;         /* applied, but not all documents are rewritten in the newest release yet */
    bool is_open;        /* items of other classes than those declared may be there too */
    int64_t release;     /* 1 and on */
    int64_t zombie_days; /* a deleted document is remembered so long; 0: as long as others */
    struct schema_property max_life; /* minutes since 1970 when the document ends; item NULL: it does not */
    const struct schema_item *items; /* in the order of their names, as all lists here */
    size_t item_count;
    const struct schema_collection *collections;
    size_t collection_count;
    const struct schema_unique *uniques;
    size_t unique_count;
    const struct schema_mutation *mutations; /* in the order of `to`, then of items */
    size_t mutation_count;
};

struct schema {
    int64_t number;
    struct bytes secret; /* of the namespace: seals its cursors and tokens; of one that is applied */
    const struct schema_class *classes;
    size_t class_count;
    bool has_old;    /* a class whose contents may be of older releases */
    bool has_copies; /* an item that is copied */
    bool has_global; /* a property that is unique in all namespaces */
    bool wakes;      /* applied: commits wake the sessions that they touch (doc/subscriptions.md) */
};

/* Why a text is no schema. */
struct schema_problem {
    const char *path;     /* "classes.Person.items.Adr.fields.zip"; "" for the whole */
    const char *expected; /* one sentence */
};

/* Reads a declaration; everything lives in the arena, texts in `text`.  FAULT_AARG, with the problem. */
MUST_USE enum fault schema_read(struct arena *arena, struct bytes text, struct schema **schema_r,
                                struct schema_problem *problem_r);
/* Writes it: members in one order, defaults left out. */
void schema_write(const struct schema *schema, struct builder *text);

/* NULL: none is declared. */
const struct schema_class *schema_find_class(const struct schema *schema, struct bytes name);
const struct schema_item *schema_find_item(const struct schema_class *class, struct bytes name);
const struct schema_field *schema_find_field(const struct schema_item *item, struct bytes name);
/* Has the class an item with exported fields? */
bool schema_is_exported(const struct schema_class *class);

/* Why an item like that cannot be in a document like that, in one sentence; NULL: it can. */
const char *schema_refusal(const struct schema *schema, struct bytes document_class, struct bytes item_class,
                           bool is_singleton, bool is_raw);

/* Why a class of documents that has this class of items (NULL: it has not) cannot have copies of one of the
 * same name, in one sentence; NULL: it can. */
const char *schema_refuse_copy(const struct schema_item *target, bool is_open, bool is_raw);

/* May a field have this name: a letter, then letters, digits and '_', and no column of the views? */
bool schema_is_field_name(struct bytes name);
/* "string", "int[]"; and back, false when it is none. */
const char *schema_type_name(enum field_type type, bool is_list);
bool schema_type_of(struct bytes name, enum field_type *type_r, bool *is_list_r);

#endif
