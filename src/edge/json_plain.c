/* json_plain: recursive descent, bounded in depth. */
#include "edge/json_plain.h"

enum { NODES_LEAST = 16, NODES_MOST = 256 };

struct scan {
    const char *at, *end;
    struct arena *arena;
    const struct json_limits *limits;
    struct json *spare; /* nodes taken from the arena, not used yet */
    size_t spare_count, batch, built;
    int depth;
};

static bool read_value(struct scan *scan, struct json *node);

static struct json *take_node(struct scan *scan)
{
    if (!scan->spare_count) {
        scan->batch = scan->batch == 0           ? NODES_LEAST
                      : scan->batch < NODES_MOST ? scan->batch * 2
                                                 : NODES_MOST;
        scan->spare = arena_alloc(scan->arena, scan->batch * sizeof *scan->spare);
        scan->spare_count = scan->batch;
    }
    scan->spare_count--;
    return scan->spare++;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at))
        scan->at++;
}

/* Takes `byte` when it comes next. */
static bool take(struct scan *scan, char byte)
{
    if (scan->at == scan->end || *scan->at != byte)
        return false;
    scan->at++;
    return true;
}

/* From the opening quote on; the text between the quotes. */
static bool read_string(struct scan *scan, struct bytes *value_r)
{
    if (!take(scan, '"'))
        return false;
    const char *start = scan->at, *p = start;
    while (p < scan->end && *p != '"') {
        if (*p == '\\' || (unsigned char)*p < ' ')
            return false;
        p++;
    }
    if (p == scan->end)
        return false;
    *value_r = (struct bytes){start, (size_t)(p - start)};
    scan->at = p + 1;
    return true;
}

static bool read_digits(struct scan *scan)
{
    const char *start = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > start;
}

static bool read_number(struct scan *scan)
{
    take(scan, '-');
    if (!take(scan, '0') && !read_digits(scan))
        return false;
    if (take(scan, '.') && !read_digits(scan))
        return false;
    if (take(scan, 'e') || take(scan, 'E')) {
        if (!take(scan, '+'))
            take(scan, '-');
        return read_digits(scan);
    }
    return true;
}

static bool read_word(struct scan *scan, struct bytes word)
{
    if ((size_t)(scan->end - scan->at) < word.size || memcmp(scan->at, word.data, word.size) != 0)
        return false;
    scan->at += word.size;
    return true;
}

/* What an array or object is while it is read. */
struct group {
    struct json *node;  /* NULL: not built */
    struct json **tail; /* where the next child goes; NULL: children are not built */
    uint32_t count;
};

static bool open_group(struct scan *scan, struct group *group, struct json *node)
{
    if (scan->depth == scan->limits->depth || scan->depth == JSON_PLAIN_DEPTH)
        return false;
    scan->depth++;
    scan->at++;
    bool is_shallow = scan->depth > scan->limits->tree_depth;
    *group = (struct group){.node = node, .tail = node && !is_shallow ? &node->first : NULL};
    if (node)
        node->is_shallow = is_shallow;
    skip_blanks(scan);
    return true;
}

static bool close_group(struct scan *scan, struct group *group)
{
    scan->depth--;
    if (group->node)
        group->node->count = group->count;
    return true;
}

static bool read_child(struct scan *scan, struct group *group, struct bytes name)
{
    struct json *child = NULL;
    skip_blanks(scan);
    if (group->tail) {
        if (scan->limits->nodes && scan->built == scan->limits->nodes)
            return false;
        scan->built++;
        child = take_node(scan);
        *child = (struct json){.name = name};
        *group->tail = child;
        group->tail = &child->next;
    }
    group->count++;
    if (!read_value(scan, child))
        return false;
    skip_blanks(scan);
    return true;
}

static bool read_array(struct scan *scan, struct json *node)
{
    struct group group;
    if (!open_group(scan, &group, node))
        return false;
    if (take(scan, ']'))
        return close_group(scan, &group);
    do {
        if (!read_child(scan, &group, NO_BYTES))
            return false;
    } while (take(scan, ','));
    return take(scan, ']') && close_group(scan, &group);
}

static bool read_object(struct scan *scan, struct json *node)
{
    struct group group;
    struct bytes names[JSON_PLAIN_MEMBERS];
    if (!open_group(scan, &group, node))
        return false;
    if (take(scan, '}'))
        return close_group(scan, &group);
    do {
        struct bytes name;
        skip_blanks(scan);
        if (group.count == JSON_PLAIN_MEMBERS || !read_string(scan, &name))
            return false;
        for (uint32_t i = 0; i < group.count; i++)
            if (bytes_equal(names[i], name))
                return false;
        names[group.count] = name;
        skip_blanks(scan);
        if (!take(scan, ':') || !read_child(scan, &group, name))
            return false;
    } while (take(scan, ','));
    return take(scan, '}') && close_group(scan, &group);
}

/* The kind of the value that begins with the byte, and the value; `node` is NULL when it is not built. */
static bool read_kind(struct scan *scan, enum json_kind *kind_r, struct bytes *value_r, struct json *node)
{
    switch (*scan->at) {
    case '{':
        *kind_r = JSON_OBJECT;
        return read_object(scan, node);
    case '[':
        *kind_r = JSON_ARRAY;
        return read_array(scan, node);
    case '"':
        *kind_r = JSON_STRING;
        return read_string(scan, value_r);
    case 't':
        *kind_r = JSON_TRUE;
        return read_word(scan, BYTES("true"));
    case 'f':
        *kind_r = JSON_FALSE;
        return read_word(scan, BYTES("false"));
    case 'n':
        *kind_r = JSON_NULL;
        return read_word(scan, BYTES("null"));
    default:
        *kind_r = JSON_NUMBER;
        return read_number(scan);
    }
}

/* `node` is NULL when the value is checked only. */
static bool read_value(struct scan *scan, struct json *node)
{
    enum json_kind kind;
    struct bytes value = {0};
    if (scan->at == scan->end)
        return false;
    const char *start = scan->at;
    if (!read_kind(scan, &kind, &value, node))
        return false;
    if (!node)
        return true;
    node->kind = kind;
    node->text = (struct bytes){start, (size_t)(scan->at - start)};
    if (kind == JSON_STRING)
        node->value = value;
    else if (kind == JSON_NUMBER)
        node->value = node->text;
    return true;
}

struct json *json_read_plain(struct arena *arena, struct bytes text, const struct json_limits *limits)
{
    struct scan scan = {
        .at = text.data, .end = text.data + text.size, .arena = arena, .limits = limits, .built = 1};
    struct json *root = take_node(&scan);
    *root = (struct json){.name = NO_BYTES};
    skip_blanks(&scan);
    if (!read_value(&scan, root))
        return NULL;
    skip_blanks(&scan);
    return scan.at == scan.end ? root : NULL;
}
