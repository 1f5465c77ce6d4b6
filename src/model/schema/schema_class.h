/* schema_class: what a schema declares of a class: its items, their exported fields and copies, collections,
 * unique properties, mutations. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_CLASS_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_CLASS_H

#include "base/bytes.h"

/* Types of an exported field; a list of one of them is allowed too.  A hash is only compared: its column has
 * the characters of any value, in an encrypted namespace a hash of them (shown.h).  The column of a folded
 * string has it without differences of case and accents, as field_folded() of the database returns it.  That
 * of a text has the words of some members, a tsvector of PostgreSQL. */
enum field_type {
    FIELD_STRING,
    FIELD_LONG,
    FIELD_INT,
    FIELD_DOUBLE,
    FIELD_HASH,
    FIELD_FOLDED,
    FIELD_TEXT,
    FIELD_TYPES
};

/* Does the column have strings? */
static inline bool field_type_is_text(enum field_type type)
{
    return type == FIELD_STRING || type == FIELD_HASH || type == FIELD_FOLDED;
}

struct content_schema; /* model/content/content.h */

enum {
    SCHEMA_FIELD_NAME_MOST = 26, /* "x_Class_Item_field" is a name of PostgreSQL: 63 bytes */
    SCHEMA_CLASSES_MOST = 256,
    SCHEMA_ITEMS_MOST = 64, /* in a class; the same for collections and unique properties */
    SCHEMA_FIELDS_MOST = 32,
    SCHEMA_INDEXES_MOST = 16, /* of several fields, of an item */
    SCHEMA_INDEX_FIELDS_MOST = 4,
    SCHEMA_TEXT_MEMBERS_MOST = 4,
    SCHEMA_PATH_MOST = 8,          /* names from a content to a member within */
    SCHEMA_MEMBER_NAME_MOST = 255, /* bytes */
    SCHEMA_COLLATE_MOST = 32,
    SCHEMA_KEYS_MOST = 4,
    SCHEMA_RELEASE_MOST = 1000000,
    SCHEMA_ZOMBIE_DAYS_MOST = 3650,
    SCHEMA_COPIES_MOST = 16, /* classes that an item is copied to */
    SCHEMA_SEPARATOR_MOST = 8,
    SCHEMA_THUMBNAILS_MOST = 8,
    SCHEMA_THUMBNAIL_NAME_MOST = 16,
    SCHEMA_THUMBNAIL_SIDE_LEAST = 16, /* pixels */
    SCHEMA_THUMBNAIL_SIDE_MOST = 2048,
    SCHEMA_DEPTH_MOST = 72,      /* nesting of the text */
    SCHEMA_ELEMENTS_MOST = 1000, /* of a list that is exported: export_is_list() of the database */
};

/* The names of the members from a content to a value within. */
struct schema_path {
    struct bytes members[SCHEMA_PATH_MOST];
    size_t count;
};

/* Members whose words a field has, those of the first weigh most in the rank. */
struct schema_text {
    struct bytes members[SCHEMA_TEXT_MEMBERS_MOST]; /* of the content */
    const struct schema_path
        *paths[SCHEMA_TEXT_MEMBERS_MOST]; /* from there to the text; NULL: it is the member */
    size_t count;
    struct bytes language; /* of PostgreSQL's configurations */
};

/* A member of an item's content whose value is stored in a column of the item's side table, or a text. */
struct schema_field {
    struct bytes name;
    enum field_type type;
    bool is_list;
    bool is_ready;                  /* applied, and its index is complete: searchable */
    const struct schema_text *text; /* of FIELD_TEXT */
    const struct schema_path *path; /* NULL: the member that has the name of the field */
    struct bytes
        collate; /* of FIELD_STRING: the language whose order it has, "fr"; NO_BYTES: that of bytes */
};

/* The members of the content that the column of a field depends on: `count_r` of them. */
static inline const struct bytes *schema_field_members(const struct schema_field *field, size_t *count_r)
{
    *count_r = field->text ? field->text->count : 1;
    return field->text ? field->text->members : field->path ? field->path->members : &field->name;
}

/* An index over several fields, in this order: equal values of the first ones, the order of the rest.  Or one
 * for the likeness of the strings of one field, which finds them by three characters each (pg_trgm). */
struct schema_index {
    struct schema_index_field {
        struct bytes name; /* of a field that is no list */
        bool is_descending;
    } fields[SCHEMA_INDEX_FIELDS_MOST];
    size_t count; /* 2 and on, since each field has an index of its own; of likeness 1 */
    bool is_likeness;
    bool is_ready; /* applied, and complete */
};

/* The item is copied, later, to the documents of these classes that have an item of its class under its key,
 * the separator and the id of its document; a singleton is copied under that id (copies.md). */
struct schema_copies {
    struct bytes separator;
    struct bytes classes[SCHEMA_COPIES_MOST];
    size_t count;
};

struct schema_item {
    struct bytes name;
    bool is_singleton, is_raw;
    bool is_clear;                      /* its fields may be in clear in an encrypted namespace */
    const struct schema_copies *copies; /* NULL: not copied */
    const struct schema_field *fields;  /* in the order of their names */
    size_t field_count;                 /* 0: no side table */
    const struct schema_index *indexes; /* in the order of the declaration */
    size_t index_count;
    const struct content_schema *content; /* what its contents are checked against; NULL: nothing */
    struct bytes content_text;            /* as JSON */
};

/* A member of a singleton's content; of a collection by keys, the keys of a list of items: no member. */
struct schema_property {
    const struct schema_item *item;
    struct bytes member; /* empty: the keys of the items */
};

/* Groups documents of the class that share the values of the keys; a list: each of its elements.  The only
 * property of a collection by the keys of items is a list. */
struct schema_collection {
    struct bytes name;
    struct schema_property keys[SCHEMA_KEYS_MOST];
    size_t key_count;
    bool is_list, is_mutable;
};

/* No two documents have the same values of the keys, within the namespace or, when global, in all namespaces
 * that declare it. */
struct schema_unique {
    struct bytes name;
    struct schema_property keys[SCHEMA_KEYS_MOST];
    size_t key_count;
    bool is_global;
};

/* A step that upgrades contents of release `to` - 1 to release `to`; in this order: rename, default, drop. */
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

/* The server makes one of each attachment that is an image: as large as fits into this box (thumbnails.h). */
struct schema_thumbnail {
    struct bytes name;
    int64_t width, height;
};

struct schema_class {
    struct bytes name;
    bool is_old;         /* applied, but some documents are not rewritten in the newest release yet */
    bool is_open;        /* items of undeclared classes are allowed too */
    bool encrypts_ids;   /* as the namespace was made: in an encrypted one */
    int64_t release;     /* 1 and on */
    int64_t zombie_days; /* a deleted document is remembered this long; 0: the default time */
    struct schema_property max_life; /* minute since 1970 when the document expires; item NULL: never */
    const struct schema_item *items; /* in the order of their names, as all lists here */
    size_t item_count;
    const struct schema_collection *collections;
    size_t collection_count;
    const struct schema_unique *uniques;
    size_t unique_count;
    const struct schema_mutation *mutations; /* in the order of `to`, then of items */
    size_t mutation_count;
    const struct schema_thumbnail *thumbnails;
    size_t thumbnail_count;
};

#endif
