/* content_keyword_table: the keywords of the dialect, one row each. */
#ifndef STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_TABLE_H
#define STAMPD_MODEL_CONTENT_CONTENT_KEYWORD_TABLE_H

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

#endif
