/* schema_reader: what reads the members of a declaration: for the files that read schemas only.
 *
 * The functions return false when a text is wrong: the problem then has the path of the member and what is
 * expected there. */
#ifndef STAMPD_MODEL_SCHEMA_SCHEMA_READER_H
#define STAMPD_MODEL_SCHEMA_SCHEMA_READER_H

#include "model/schema/schema.h"

struct json;

/* What is expected where a type is. */
#define SCHEMA_TYPE_EXPECTED                                                                                 \
    "A type is expected: string, folded, long, int, double or hash, or a list of one, as string[]."

struct schema_reader {
    struct arena *arena;
    struct schema_problem *problem;
};

/* A value and its path. */
struct schema_node {
    const char *path;
    const struct json *value;
};

/* Records the problem; always false. */
bool schema_reader_refuse(struct schema_reader *reader, const char *path, const char *expected);
struct schema_node schema_reader_member(struct schema_reader *reader, struct schema_node object,
                                        const struct json *member);
bool schema_reader_is_object(struct schema_reader *reader, struct schema_node node, const char *expected);
/* Is it an object with a limited number of members? */
bool schema_reader_is_list(struct schema_reader *reader, struct schema_node node, size_t most,
                           const char *expected);
/* Has the object only these members (NULL ends the list)? */
bool schema_reader_has_only(struct schema_reader *reader, struct schema_node node, const char *const *names);
bool schema_reader_flag(struct schema_reader *reader, struct schema_node object, const char *name,
                        bool *flag_r);
bool schema_reader_number(struct schema_reader *reader, struct schema_node object, const char *name,
                          int64_t least, int64_t most, int64_t standard, int64_t *number_r);

/* --- schema indexes: reads the indexes over several fields that a class of items declares --- */
/* The member `indexes` of the item, whose fields are known. */
MUST_USE bool schema_indexes_read(struct schema_reader *reader, struct schema_node item_node,
                                  struct schema_item *item);

/* --- schema thumbnails --- */

/* The member `thumbnails` of a class of a declaration: names and boxes (schema.md). */

/* Absent: the class has none. */
bool schema_thumbnails_read(struct schema_reader *reader, struct schema_node class_node,
                            struct schema_class *class);

#endif
