/* json: reads JSON texts into a tree and writes strings, behind yajl.
 *
 * Reading is strict (RFC 8259): UTF-8 is checked first (FAULT_AUTF8); comments, text after the value,
 * duplicate members, \u0000 and lone surrogates are errors; nesting is limited.  Numbers are never converted:
 * a node keeps its text, so 1e400 and 400 digits stay as written.  Nodes live in the arena; their texts are
 * slices of the input (strings with escapes: decoded copies), so the input must live as long. */
#ifndef STAMPD_EDGE_JSON_JSON_H
#define STAMPD_EDGE_JSON_JSON_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/fault.h"

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    bool is_shallow;    /* deeper than limits.tree_depth: only `text` is kept; use json_read to read it */
    uint32_t count;     /* elements or members */
    struct bytes name;  /* member's name, decoded; NO_BYTES in an array */
    struct bytes text;  /* the value exactly as written, quotes and brackets included */
    struct bytes value; /* strings: decoded; numbers: as text */
    struct json *first; /* first element or member; NULL when empty or shallow */
    struct json *next;  /* next sibling */
};

struct json_limits {
    int depth;      /* deepest nesting accepted; the outermost array or object is 1 */
    int tree_depth; /* arrays and objects nested deeper are checked but get no nodes */
    size_t nodes;   /* most nodes built, 0: no limit; over it FAULT_ALIMIT */
};

struct json_problem {
    const char *what; /* a clause without capital and full stop, static or in the arena */
    size_t offset;    /* bytes from the start */
    bool is_depth;    /* FAULT_ALIMIT only: nested too deep */
};

/* Reads one whole JSON text.  FAULT_AJSON, FAULT_AUTF8 or FAULT_ALIMIT (depth, nodes); `problem_r` has the
 * reason. */
MUST_USE enum fault json_read(struct arena *arena, struct bytes text, const struct json_limits *limits,
                              struct json **root_r, struct json_problem *problem_r);

/* The same, where it does not matter why a text cannot be read; without a limit of nodes. */
MUST_USE bool json_is_tree(struct arena *arena, struct bytes text, int depth, int tree_depth,
                           struct json **root_r);

/* The member of that name, or NULL (also when `object` is NULL or not an object). */
const struct json *json_member(const struct json *object, const char *name);
/* What a member holds; `otherwise` when it is absent, or no string or no such integer. */
struct bytes json_text_of(const struct json *object, const char *name, struct bytes otherwise);
int64_t json_i64_of(const struct json *object, const char *name, int64_t otherwise);
bool json_is_true(const struct json *object, const char *name);
/* Appends the position of `value` in the tree of `root` as a JSON pointer (RFC 6901); false, and nothing is
 * appended: the value is not in the tree.  Searches the tree, so for error paths only. */
bool json_add_pointer(struct builder *builder, const struct json *root, const struct json *value);
/* Appends "/" and the name of a member or number of an element, escaped for a pointer. */
void json_add_pointer_name(struct builder *builder, struct bytes name);
/* Is it a number written as an integer (no fraction, no exponent) that fits? */
bool json_is_i64(const struct json *value, int64_t *number_r);

/* Appends text as a JSON string with its quotes.  `text` must be valid UTF-8. */
void json_add_string(struct builder *builder, struct bytes text);
/* The same behind a literal: json_add_text(body, ",\"id\":", id). */
#define json_add_text(builder, literal, ...)                                                                 \
    json_add_behind((builder), ("" literal), sizeof(literal) - 1, __VA_ARGS__)
void json_add_behind(struct builder *builder, const char *before, size_t before_size, struct bytes text);
/* Append `,"name":` and the text; nothing when it has no data, or when it is empty. */
void json_add_member(struct builder *builder, const char *name, struct bytes text);
void json_add_filled(struct builder *builder, const char *name, struct bytes text);
/* Bytes that json_add_string would append. */
size_t json_string_size(struct bytes text);

#endif
