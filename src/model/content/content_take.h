/* content_take: the kinds of values that keywords have. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_TAKE_H
#define STAMPD_MODEL_CONTENT_CONTENT_TAKE_H

#include "model/content/content_compiling.h"

/* The group of rules of a node, created when needed. */
struct content_number_rules *content_take_number_rules(struct content_compiling *compiling,
                                                       struct content_node *node);
struct content_string_rules *content_take_string_rules(struct content_compiling *compiling,
                                                       struct content_node *node);
struct content_array_rules *content_take_array_rules(struct content_compiling *compiling,
                                                     struct content_node *node);
struct content_object_rules *content_take_object_rules(struct content_compiling *compiling,
                                                       struct content_node *node);
struct content_logic *content_take_logic(struct content_compiling *compiling, struct content_node *node);

/* Reports that the keyword with this value is wrong, and returns false. */
bool content_take_refuse(struct content_compiling *compiling, const struct content_node *node,
                         const struct json *value, const char *expected);
/* Each returns false when it has refused the value. */
bool content_take_size(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, int64_t *size_r);
bool content_take_flag(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, bool *flag_r);
bool content_take_string(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value);
bool content_take_object(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value, const char *expected);
/* `keyword` is reported, `list` is checked. */
bool content_take_names(struct content_compiling *compiling, struct content_node *node,
                        const struct json *keyword, const struct json *list);
/* A subschema as the keyword's value; in place: it applies to the same value as the node. */
bool content_take_schema(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value, const struct content_node **schema_r);
bool content_take_in_place(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value, const struct content_node **schema_r);
/* A list of them. */
bool content_take_list(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, bool in_place, struct content_nodes *nodes);
void content_take_add(struct content_compiling *compiling, struct content_nodes *nodes,
                      const struct content_node *node);
/* NULL: refused, at this keyword (NULL: at the subschema itself). */
const struct pattern *content_take_pattern(struct content_compiling *compiling,
                                           const struct content_node *node, const char *keyword,
                                           struct bytes text);

/* Define content_read_WORD, the reader of a keyword whose value goes into a member of a group of rules; the
 * list is one of subschemas. */
#define CONTENT_VALUE(word, take, group, member)                                                             \
    bool content_read_##word(struct content_compiling *compiling, struct content_node *node,                 \
                             const struct json *value)                                                       \
    {                                                                                                        \
        return take(compiling, node, value, &content_take_##group(compiling, node)->member);                 \
    }
#define CONTENT_LIST(word, in_place, group, member)                                                          \
    bool content_read_##word(struct content_compiling *compiling, struct content_node *node,                 \
                             const struct json *value)                                                       \
    {                                                                                                        \
        return content_take_list(compiling, node, value, in_place,                                           \
                                 &content_take_##group(compiling, node)->member);                            \
    }

#endif
