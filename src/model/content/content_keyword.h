/* content_keyword: the keywords of the dialect, one row each, and what their readers share. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_H
#define STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_H

#include "model/content/content_private.h"

/* KEYWORD(name, word, is_of_text): content_read_WORD reads the keyword; is_of_text: raw text may have it. */
/* clang-format off */
#define CONTENT_KEYWORDS(KEYWORD) \
    KEYWORD("type", type, false) \
    KEYWORD("enum", enum, false) \
    KEYWORD("const", const, false) \
    KEYWORD("multipleOf", multiple, false) \
    KEYWORD("minimum", minimum, false) \
    KEYWORD("maximum", maximum, false) \
    KEYWORD("exclusiveMinimum", above, false) \
    KEYWORD("exclusiveMaximum", below, false) \
    KEYWORD("minLength", least_length, true) \
    KEYWORD("maxLength", most_length, true) \
    KEYWORD("pattern", pattern, true) \
    KEYWORD("format", format, true) \
    KEYWORD("prefixItems", prefix, false) \
    KEYWORD("items", items, false) \
    KEYWORD("contains", contains, false) \
    KEYWORD("minContains", least_contained, false) \
    KEYWORD("maxContains", most_contained, false) \
    KEYWORD("minItems", least_items, false) \
    KEYWORD("maxItems", most_items, false) \
    KEYWORD("uniqueItems", unique, false) \
    KEYWORD("unevaluatedItems", unevaluated_items, false) \
    KEYWORD("properties", properties, false) \
    KEYWORD("patternProperties", pattern_properties, false) \
    KEYWORD("additionalProperties", additional, false) \
    KEYWORD("propertyNames", property_names, false) \
    KEYWORD("required", required, false) \
    KEYWORD("minProperties", least_properties, false) \
    KEYWORD("maxProperties", most_properties, false) \
    KEYWORD("dependentRequired", dependent_required, false) \
    KEYWORD("dependentSchemas", dependent_schemas, false) \
    KEYWORD("unevaluatedProperties", unevaluated_properties, false) \
    KEYWORD("allOf", all, false) \
    KEYWORD("anyOf", any, false) \
    KEYWORD("oneOf", one, false) \
    KEYWORD("not", not, false) \
    KEYWORD("if", if, false) \
    KEYWORD("then", then, false) \
    KEYWORD("else", else, false) \
    KEYWORD("$ref", reference, false) \
    KEYWORD("$defs", definitions, false) \
    KEYWORD("$anchor", anchor, false) \
    KEYWORD("$schema", dialect, false) \
    KEYWORD("$id", identifier, false) \
    KEYWORD("title", text, true) \
    KEYWORD("description", text, true) \
    KEYWORD("$comment", text, true) \
    KEYWORD("default", anything, false) \
    KEYWORD("examples", examples, false) \
    KEYWORD("deprecated", marker, false) \
    KEYWORD("readOnly", marker, false) \
    KEYWORD("writeOnly", marker, false)
/* clang-format on */

content_keyword content_read_above;
content_keyword content_read_additional;
content_keyword content_read_all;
content_keyword content_read_anchor;
content_keyword content_read_any;
content_keyword content_read_anything;
content_keyword content_read_below;
content_keyword content_read_const;
content_keyword content_read_contains;
content_keyword content_read_definitions;
content_keyword content_read_dependent_required;
content_keyword content_read_dependent_schemas;
content_keyword content_read_dialect;
content_keyword content_read_else;
content_keyword content_read_enum;
content_keyword content_read_examples;
content_keyword content_read_format;
content_keyword content_read_identifier;
content_keyword content_read_if;
content_keyword content_read_items;
content_keyword content_read_least_contained;
content_keyword content_read_least_items;
content_keyword content_read_least_length;
content_keyword content_read_least_properties;
content_keyword content_read_marker;
content_keyword content_read_maximum;
content_keyword content_read_minimum;
content_keyword content_read_most_contained;
content_keyword content_read_most_items;
content_keyword content_read_most_length;
content_keyword content_read_most_properties;
content_keyword content_read_multiple;
content_keyword content_read_not;
content_keyword content_read_one;
content_keyword content_read_pattern;
content_keyword content_read_pattern_properties;
content_keyword content_read_prefix;
content_keyword content_read_properties;
content_keyword content_read_property_names;
content_keyword content_read_reference;
content_keyword content_read_required;
content_keyword content_read_text;
content_keyword content_read_then;
content_keyword content_read_type;
content_keyword content_read_unevaluated_items;
content_keyword content_read_unevaluated_properties;
content_keyword content_read_unique;

/* The group of rules of a node, created when needed. */
struct content_number_rules *content_number_rules_of(struct content_compiling *compiling,
                                                     struct content_node *node);
struct content_string_rules *content_string_rules_of(struct content_compiling *compiling,
                                                     struct content_node *node);
struct content_array_rules *content_array_rules_of(struct content_compiling *compiling,
                                                   struct content_node *node);
struct content_object_rules *content_object_rules_of(struct content_compiling *compiling,
                                                     struct content_node *node);
struct content_logic *content_logic_of(struct content_compiling *compiling, struct content_node *node);

/* Reports that the keyword with this value is wrong, and returns false. */
bool content_refuse_value(struct content_compiling *compiling, const struct content_node *node,
                          const struct json *value, const char *expected);
/* Each returns false when it has refused the value. */
bool content_take_size(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, int64_t *size_r);
bool content_take_flag(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, bool *flag_r);
bool content_is_string(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value);
bool content_is_object(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, const char *expected);
/* `keyword` is reported, `list` is checked. */
bool content_is_list_of_names(struct content_compiling *compiling, struct content_node *node,
                              const struct json *keyword, const struct json *list);
/* A subschema as the keyword's value; in place: it applies to the same value as the node. */
bool content_take_schema(struct content_compiling *compiling, struct content_node *node,
                         const struct json *value, const struct content_node **schema_r);
bool content_take_in_place(struct content_compiling *compiling, struct content_node *node,
                           const struct json *value, const struct content_node **schema_r);
/* A list of them. */
bool content_take_list(struct content_compiling *compiling, struct content_node *node,
                       const struct json *value, bool in_place, struct content_nodes *nodes);
void content_add_node(struct content_compiling *compiling, struct content_nodes *nodes,
                      const struct content_node *node);
/* NULL: refused, at this keyword (NULL: at the subschema itself). */
const struct pattern *content_take_pattern(struct content_compiling *compiling,
                                           const struct content_node *node, const char *keyword,
                                           struct bytes text);

#endif
