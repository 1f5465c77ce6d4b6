/* content_node: the compiled form of a schema, which its compiler makes and its check reads.
 *
 * A node is a subschema.  Its rules are grouped by the type of value that they concern; a group without
 * rules is NULL. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_NODE_H
#define STAMPD_MODEL_CONTENT_CONTENT_NODE_H

#include "edge/pattern.h"
#include "model/content/content.h"
#include "model/content/content_format.h"
#include "model/content/content_value.h"

/* Bits of `types`. */
enum content_type {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_NUMBER = 4,
    TYPE_INTEGER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64
};

enum { NO_LIMIT = -1 };

struct content_nodes {
    const struct content_node **list;
    size_t count, capacity;
};

/* enum, or const with one value; sorted by hash. */
struct content_choice {
    const char *keyword;
    const struct json *source;
    struct content_option {
        uint64_t hash;
        const struct json *value;
    } * options;
    size_t count;
};

struct content_string_rules {
    int64_t least, most; /* code points */
    const struct pattern *pattern;
    struct bytes pattern_text;
    content_format *format;
    struct bytes format_name;
};

struct content_array_rules {
    int64_t least, most;
    bool is_unique;
    struct content_nodes prefix;
    const struct content_node *items, *contains, *unevaluated;
    int64_t least_contained, most_contained;
};

/* All that a schema has on the member of one name. */
struct content_name {
    struct bytes name;
    const struct content_node *schema;    /* properties */
    const struct content_node *dependent; /* dependentSchemas */
    const struct json *needed;            /* dependentRequired: names; NULL: none */
    bool is_required;
};

struct content_matching {
    const struct pattern *pattern;
    struct bytes text;
    const struct content_node *schema;
};

struct content_object_rules {
    int64_t least, most;
    struct content_name *names; /* sorted, each once */
    size_t name_count, name_capacity;
    size_t required_count;
    struct content_matching *matching; /* patternProperties */
    size_t matching_count;
    const struct content_node *additional, *property_names, *unevaluated;
};

struct content_logic {
    struct content_nodes all, any, one;
    const struct content_node * not, *condition, *then, *otherwise;
    const struct json *reference; /* the text of $ref; NULL: none */
    const struct content_node *target;
};

struct content_node {
    /* Where it stands: in `outer`, under `keyword` and, in a list or object of schemas, `name`. */
    const struct content_node *outer; /* NULL: the root */
    const char *keyword;
    struct bytes name; /* NO_BYTES: the keyword's value is the schema */
    const struct json *source;
    enum { NODE_RULES, NODE_ANY, NODE_NONE } kind;
    unsigned types; /* 0: any */
    struct content_choice *choice, *constant;
    struct content_number_rules *number;
    struct content_string_rules *string;
    struct content_array_rules *array;
    struct content_object_rules *object;
    struct content_logic *logic;
    struct content_nodes in_place; /* those applied to the same value */
    struct bytes anchor;
    enum { MARK_NEW, MARK_OPEN, MARK_DONE } mark; /* of the search for cycles */
};

struct content_schema {
    struct content_node *root;
    bool is_raw;
};

#endif
