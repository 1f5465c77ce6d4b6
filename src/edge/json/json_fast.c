/* json_fast: recursive descent with limited depth.  Each function takes a pointer to the first byte that it
 * reads and returns a pointer past the last, or NULL when the text needs the full parser.
 *
 * The text must end with a bracket, `last`, which is found first.  No blank, digit, name or word extends past
 * it, strings stop before it, and only the outermost array or object may consume it: so no other check for
 * the end of the text is needed. */
#include "edge/json/json_fast.h"

#include "base/coding/swar.h"
#include "edge/json/json_blank.h"
#include "edge/json/json_string.h"

enum { NODES_LEAST = 16, NODES_MOST = 256 };
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

struct scan {
    const char *last; /* the outermost closing bracket */
    struct arena *arena;
    const struct json_limits *limits;
    struct json *spare; /* nodes allocated from the arena, not used yet */
    size_t spare_count, batch;
    size_t left; /* nodes that may still be built */
    int depth;
};

/* An array or object while it is read. */
struct group {
    struct json *node;  /* NULL: not built */
    struct json **tail; /* where the next child goes; NULL: children are not built */
    uint32_t count;
};

static const char *read_array(struct scan *scan, const char *at, struct json *node);
static const char *json_fast_read_object(struct scan *scan, const char *at, struct json *node);

static struct json *take_batch(struct scan *scan)
{
    scan->batch = scan->batch == 0 ? NODES_LEAST : scan->batch < NODES_MOST ? scan->batch * 2 : NODES_MOST;
    scan->spare = arena_alloc(scan->arena, scan->batch * sizeof *scan->spare);
    scan->spare_count = scan->batch;
    return scan->spare;
}

static inline struct json *take_node(struct scan *scan)
{
    struct json *node = scan->spare_count ? scan->spare : take_batch(scan);
    scan->spare_count--;
    scan->spare = node + 1;
    return node;
}

/* --- scalars ------------------------------------------------------------------------------------ */

/* Reads from the opening quote; returns the text between the quotes. */
static inline const char *read_string(const struct scan *scan, const char *at, struct bytes *value_r)
{
    const char *start = at + 1;
    if (start > scan->last)
        return NULL;
    size_t size = json_fast_size(start, (size_t)(scan->last - start));
    *value_r = (struct bytes){start, size};
    return start[size] == '"' ? start + size + 1 : NULL;
}

static inline const char *skip_digits(const struct scan *scan, const char *at)
{
    while (scan->last - at >= 8) {
        uint64_t others = swar_no_digits(swar_load(at));
        if (others)
            return at + swar_first(others);
        at += 8;
    }
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

static const char *read_digits(const struct scan *scan, const char *at)
{
    const char *behind = skip_digits(scan, at);
    return behind > at ? behind : NULL;
}

/* Fraction and exponent. */
static const char *read_fraction(const struct scan *scan, const char *at)
{
    if (*at == '.' && !(at = read_digits(scan, at + 1)))
        return NULL;
    if (*at != 'e' && *at != 'E')
        return at;
    at++;
    return read_digits(scan, *at == '+' || *at == '-' ? at + 1 : at);
}

static inline const char *read_number(const struct scan *scan, const char *at)
{
    const char *start = at + (*at == '-');
    at = *start == '0' ? start + 1 : skip_digits(scan, start);
    if (at == start)
        return NULL;
    return *at == ',' || *at == '}' ? at : read_fraction(scan, at);
}

static const char *read_word(const struct scan *scan, const char *at, struct bytes word)
{
    bool is_there = (size_t)(scan->last - at) >= word.size && memcmp(at, word.data, word.size) == 0;
    return is_there ? at + word.size : NULL;
}

/* --- arrays and objects -------------------------------------------------------------------------- */

/* After the bracket and the blanks that follow it. */
static const char *open_group(struct scan *scan, const char *at, struct group *group, struct json *node)
{
    if (at == scan->last || scan->depth == scan->limits->depth || scan->depth == JSON_FAST_DEPTH)
        return NULL;
    scan->depth++;
    bool is_shallow = scan->depth > scan->limits->tree_depth;
    *group = (struct group){.node = node, .tail = node && !is_shallow ? &node->first : NULL};
    if (node)
        node->is_shallow = is_shallow;
    return json_blank_skip(at + 1);
}

/* At the bracket that should close the group. */
static const char *close_group(struct scan *scan, const char *at, const struct group *group, char bracket)
{
    if (*at != bracket || (at == scan->last) != (scan->depth == 1))
        return NULL;
    scan->depth--;
    if (group->node)
        group->node->count = group->count;
    return at + 1;
}

static const char *read_rarity(struct scan *scan, const char *at, enum json_kind *kind_r, struct json *node)
{
    switch (*at) {
    case '{':
        *kind_r = JSON_OBJECT;
        return json_fast_read_object(scan, at, node);
    case '[':
        *kind_r = JSON_ARRAY;
        return read_array(scan, at, node);
    case 't':
        *kind_r = JSON_TRUE;
        return read_word(scan, at, BYTES("true"));
    case 'f':
        *kind_r = JSON_FALSE;
        return read_word(scan, at, BYTES("false"));
    case 'n':
        *kind_r = JSON_NULL;
        return read_word(scan, at, BYTES("null"));
    default:
        return NULL;
    }
}

/* `node` is NULL when the value is only checked; otherwise it has its name already. */
ALWAYS_INLINE const char *read_value(struct scan *scan, const char *at, struct json *node)
{
    enum json_kind kind;
    struct bytes value = {0};
    const char *behind;
    if (*at == '"') {
        kind = JSON_STRING;
        behind = read_string(scan, at, &value);
    } else if ((*at >= '0' && *at <= '9') || *at == '-') {
        kind = JSON_NUMBER;
        behind = read_number(scan, at);
        value = (struct bytes){at, (size_t)(behind - at)};
    } else {
        behind = read_rarity(scan, at, &kind, node);
    }
    if (!behind || !node)
        return behind;
    node->kind = kind;
    node->text = (struct bytes){at, (size_t)(behind - at)};
    node->value = value;
    return behind;
}

/* Including the blanks after it. */
ALWAYS_INLINE const char *read_child(struct scan *scan, const char *at, struct group *group,
                                     struct bytes name)
{
    struct json *child = NULL;
    if (group->tail) {
        if (scan->left-- == 0)
            return NULL;
        child = take_node(scan);
        *child = (struct json){.name = name};
        *group->tail = child;
        group->tail = &child->next;
    }
    group->count++;
    at = read_value(scan, at, child);
    return at ? json_blank_skip(at) : NULL;
}

static const char *read_array(struct scan *scan, const char *at, struct json *node)
{
    struct group group;
    at = open_group(scan, at, &group, node);
    if (!at || *at == ']')
        return at ? close_group(scan, at, &group, ']') : NULL;
    while ((at = read_child(scan, at, &group, NO_BYTES)) && *at == ',')
        at = json_blank_skip(at + 1);
    return at ? close_group(scan, at, &group, ']') : NULL;
}

/* Names of one object; equal names have the same key and set the same bit. */
struct names {
    struct bytes names[JSON_FAST_MEMBERS];
    uint64_t keys[JSON_FAST_MEMBERS], bits;
};

/* Beginning, end and length, mixed. */
static inline uint64_t key_of(const struct scan *scan, struct bytes name)
{
    uint64_t key = 0;
    if (name.size > 8)
        return swar_load(name.data) * SPREAD + swar_load(name.data + name.size - 8) + name.size;
    if (scan->last - name.data >= 8)
        return name.size ? swar_load(name.data) << (64 - 8 * name.size) : 0;
    for (size_t i = 0; i < name.size; i++)
        key = key >> 8 | (uint64_t)(unsigned char)name.data[i] << 56;
    return key;
}

/* Is the name among them?  They are too few for a search to pay. */
static bool has_name(const struct names *names, size_t count, struct bytes name, uint64_t key)
{
    for (size_t i = 0; i < count; i++)
        if (names->keys[i] == key && bytes_equal(names->names[i], name))
            return true;
    return false;
}

/* Adds a name to those of the object, which must all differ. */
static inline bool add_name(const struct scan *scan, struct names *names, size_t count, struct bytes name)
{
    uint64_t key = key_of(scan, name), bit = UINT64_C(1) << (key * SPREAD >> 58);
    if (count == JSON_FAST_MEMBERS || (names->bits & bit && has_name(names, count, name, key)))
        return false;
    names->names[count] = name;
    names->keys[count] = key;
    names->bits |= bit;
    return true;
}

static const char *json_fast_read_object(struct scan *scan, const char *at, struct json *node)
{
    struct group group;
    struct names names;
    names.bits = 0;
    at = open_group(scan, at, &group, node);
    if (!at || *at == '}')
        return at ? close_group(scan, at, &group, '}') : NULL;
    for (;;) {
        struct bytes name;
        if (*at != '"' || !(at = read_string(scan, at, &name)) || !add_name(scan, &names, group.count, name))
            return NULL;
        at = json_blank_skip(at);
        if (*at != ':')
            return NULL;
        at = read_child(scan, json_blank_skip(at + 1), &group, name);
        if (!at || *at != ',')
            return at ? close_group(scan, at, &group, '}') : NULL;
        at = json_blank_skip(at + 1);
    }
}

struct json *json_fast_read(struct arena *arena, struct bytes text, const struct json_limits *limits)
{
    while (text.size && json_blank_is(text.data[text.size - 1]))
        text.size--;
    if (!text.size || (text.data[text.size - 1] != '}' && text.data[text.size - 1] != ']'))
        return NULL;
    struct scan scan = {.last = text.data + text.size - 1,
                        .arena = arena,
                        .limits = limits,
                        .left = limits->nodes ? limits->nodes - 1 : SIZE_MAX};
    struct json *root = take_node(&scan);
    *root = (struct json){.name = NO_BYTES};
    const char *at = read_value(&scan, json_blank_skip(text.data), root);
    return at && at == scan.last + 1 ? root : NULL;
}
