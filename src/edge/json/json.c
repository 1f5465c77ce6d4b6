/* json: builds a strict tree from yajl's callbacks.
 *
 * yajl reports where its current token ends but not where it begins: the start follows from the end of the
 * previous token, as only white space, a comma or a colon can stand between two tokens that yajl reports.
 * Accepted by yajl 2.1 but refused here: vertical tab and form feed as white space, an unfinished string
 * after the value, lone surrogates, \u0000, any depth, duplicate members. */
#include "edge/json/json.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "base/log.h"
#include "edge/json/json_fast.h"
#include "edge/json/json_string.h"

enum {
    NAMES_COMPARED = 16, /* members of an object up to which a new name is compared with all others */
    NAMES_AT_HAND = 64,  /* names kept without an allocation */
    BATCH_LEAST = 16,    /* nodes in the first allocation */
    BATCH_MOST = 256,    /* and in the largest */
};

/* A member's decoded name, of an object not yet closed; `offset` is where its text begins. */
struct name {
    const char *data;
    uint32_t size, offset;
};

/* An open array or object.  Frames are reused at the same depth. */
struct frame {
    struct frame *outer, *inner;
    struct json *node;  /* NULL inside a shallow one */
    struct json **tail; /* where the next child goes; NULL: children are not built */
    struct bytes name;  /* of the next member */
    size_t first_name;  /* of this object in reader.names */
    uint32_t count;
};

struct json_reader {
    struct arena *arena;
    const struct json_limits *limits;
    struct bytes text;
    yajl_handle handle;
    size_t end;     /* of the last token */
    bool is_ending; /* yajl has the whole text: the next token is a number that ended with it */
    int depth;
    struct frame *frame; /* innermost open one; NULL: none */
    struct frame *frames;
    struct json *root;
    struct json *spare; /* the rest of the batch */
    size_t spare_count, batch, built;
    struct name *names;
    size_t name_count, name_capacity;
    enum fault fault;
    struct json_problem *problem;
    struct name names_at_hand[NAMES_AT_HAND];
};

/* Records the problem and returns false, which makes yajl stop. */
static bool json_refuse(struct json_reader *reader, enum fault fault, const char *what, size_t offset)
{
    reader->fault = fault;
    *reader->problem = (struct json_problem){.what = what, .offset = offset};
    return false;
}

static size_t offset_of(const struct json_reader *reader, const char *at)
{
    return (size_t)(at - reader->text.data);
}

/* --- memory -------------------------------------------------------------------------------------- */

/* yajl does not check for failed allocations. */
static void *take_memory(void *context UNUSED, size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        log_fatal("out of memory reading JSON bytes=%zu", size);
    return memory;
}

static void *resize_memory(void *context UNUSED, void *old, size_t size)
{
    void *memory = realloc(old, size);
    if (!memory)
        log_fatal("out of memory reading JSON bytes=%zu", size);
    return memory;
}

static void give_back_memory(void *context UNUSED, void *memory)
{
    free(memory);
}

static struct json *take_node(struct json_reader *reader)
{
    if (!reader->spare_count) {
        reader->batch = reader->batch == 0           ? BATCH_LEAST
                        : reader->batch < BATCH_MOST ? reader->batch * 2
                                                     : BATCH_MOST;
        reader->spare = arena_alloc(reader->arena, reader->batch * sizeof *reader->spare);
        reader->spare_count = reader->batch;
    }
    reader->spare_count--;
    return reader->spare++;
}

static void push_name(struct json_reader *reader, struct name name)
{
    if (reader->name_count == reader->name_capacity) {
        bool is_at_hand = reader->names == reader->names_at_hand;
        reader->name_capacity *= 2;
        reader->names = resize_memory(NULL, is_at_hand ? NULL : reader->names,
                                      reader->name_capacity * sizeof *reader->names);
        if (is_at_hand)
            memcpy(reader->names, reader->names_at_hand, sizeof reader->names_at_hand);
    }
    reader->names[reader->name_count++] = name;
}

/* --- tokens -------------------------------------------------------------------------------------- */

/* First byte at or after `at` that is neither white space nor a separator; false: white space not allowed in
 * JSON. */
static bool skip_filler(struct json_reader *reader, size_t at, size_t *start_r)
{
    for (; at < reader->text.size; at++) {
        char byte = reader->text.data[at];
        if (byte == '\v' || byte == '\f')
            return json_refuse(reader, FAULT_AJSON, "white space is of a kind that JSON does not allow", at);
        if (byte > ' ' ? byte != ',' && byte != ':'
                       : byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')
            break;
    }
    *start_r = at;
    return true;
}

/* The token that yajl currently reports, exactly as written. */
static bool take_token(struct json_reader *reader, struct bytes *token_r)
{
    size_t start, end = reader->is_ending ? reader->text.size : yajl_get_bytes_consumed(reader->handle);
    if (!skip_filler(reader, reader->end, &start))
        return false;
    assert(start < end && end <= reader->text.size);
    reader->end = end;
    *token_r = (struct bytes){reader->text.data + start, end - start};
    return true;
}

/* Decodes the text between two quotes into the arena; without `value_r` only checks it. */
static bool json_decode(struct json_reader *reader, struct bytes raw, struct bytes *value_r)
{
    char *value = value_r ? arena_alloc(reader->arena, raw.size) : NULL;
    size_t size, offset;
    const char *wrong = json_string_decode(raw, value, &size, &offset);
    if (wrong)
        return json_refuse(reader, FAULT_AJSON, wrong, offset_of(reader, raw.data) + offset);
    if (value_r)
        *value_r = (struct bytes){value, size};
    return true;
}

/* --- the tree ------------------------------------------------------------------------------------ */

/* Adds a value to the innermost open array or object; `*node_r` is NULL when no nodes are built there. */
static bool json_add_value(struct json_reader *reader, enum json_kind kind, struct bytes text,
                           struct json **node_r)
{
    struct frame *frame = reader->frame;
    *node_r = NULL;
    if (frame)
        frame->count++;
    if (frame && !frame->tail)
        return true;
    if (reader->limits->nodes && reader->built == reader->limits->nodes)
        return json_refuse(
            reader, FAULT_ALIMIT,
            arena_printf(reader->arena, "there are more than %zu values", reader->limits->nodes),
            offset_of(reader, text.data));
    reader->built++;
    struct json *node = take_node(reader);
    *node = (struct json){.kind = kind, .text = text};
    if (frame) {
        node->name = frame->name;
        *frame->tail = node;
        frame->tail = &node->next;
    } else {
        reader->root = node;
    }
    *node_r = node;
    return true;
}

static int take_literal(struct json_reader *reader, enum json_kind kind)
{
    struct bytes token;
    struct json *node;
    if (!take_token(reader, &token) || !json_add_value(reader, kind, token, &node))
        return false;
    if (node && kind == JSON_NUMBER)
        node->value = token;
    return true;
}

static int take_null(void *context)
{
    return take_literal(context, JSON_NULL);
}

static int take_boolean(void *context, int is_true)
{
    return take_literal(context, is_true ? JSON_TRUE : JSON_FALSE);
}

static int json_take_number(void *context, const char *digits UNUSED, size_t size UNUSED)
{
    return take_literal(context, JSON_NUMBER);
}

/* An escape is always longer than its character: a string as long as its text has none. */
static int take_string(void *context, const unsigned char *decoded UNUSED, size_t size)
{
    struct json_reader *reader = context;
    struct bytes token;
    struct json *node;
    if (!take_token(reader, &token) || !json_add_value(reader, JSON_STRING, token, &node))
        return false;
    struct bytes raw = {token.data + 1, token.size - 2};
    if (raw.size != size)
        return json_decode(reader, raw, node ? &node->value : NULL);
    if (node)
        node->value = raw;
    return true;
}

static bool open_frame(struct json_reader *reader, enum json_kind kind)
{
    struct bytes token;
    struct json *node;
    if (!take_token(reader, &token))
        return false;
    if (reader->depth == reader->limits->depth) {
        json_refuse(reader, FAULT_ALIMIT,
                    arena_printf(reader->arena, "it is nested deeper than %d levels", reader->limits->depth),
                    offset_of(reader, token.data));
        reader->problem->is_depth = true;
        return false;
    }
    if (!json_add_value(reader, kind, token, &node))
        return false;
    struct frame *outer = reader->frame, **place = outer ? &outer->inner : &reader->frames;
    if (!*place) {
        *place = arena_alloc(reader->arena, sizeof **place);
        (*place)->inner = NULL;
    }
    struct frame *frame = *place;
    *frame =
        (struct frame){.outer = outer, .inner = frame->inner, .node = node, .first_name = reader->name_count};
    reader->frame = frame;
    reader->depth++;
    if (node) {
        node->is_shallow = reader->depth > reader->limits->tree_depth;
        frame->tail = node->is_shallow ? NULL : &node->first;
    }
    return true;
}

static int open_object(void *context)
{
    return open_frame(context, JSON_OBJECT);
}

static int open_array(void *context)
{
    return open_frame(context, JSON_ARRAY);
}

static bool names_equal(const struct name *a, const struct name *b)
{
    return a->size == b->size &&
           (a->size == 0 || (*a->data == *b->data && memcmp(a->data, b->data, a->size) == 0));
}

static int order_names(const void *left, const void *right)
{
    const struct name *a = left, *b = right;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return memcmp(a->data, b->data, a->size);
}

static bool refuse_duplicate(struct json_reader *reader, size_t offset)
{
    return json_refuse(reader, FAULT_AJSON, "two members of one object have the same name", offset);
}

static int take_name(void *context, const unsigned char *decoded UNUSED, size_t size)
{
    struct json_reader *reader = context;
    struct frame *frame = reader->frame;
    struct bytes token;
    if (!take_token(reader, &token))
        return false;
    struct bytes value = {token.data + 1, token.size - 2};
    if (value.size != size && !json_decode(reader, value, &value))
        return false;
    struct name name = {value.data, (uint32_t)value.size, (uint32_t)offset_of(reader, token.data)};
    if (reader->name_count - frame->first_name < NAMES_COMPARED)
        for (size_t i = frame->first_name; i < reader->name_count; i++)
            if (names_equal(&reader->names[i], &name))
                return refuse_duplicate(reader, name.offset);
    push_name(reader, name);
    frame->name = value;
    return true;
}

/* Compares the names of an object with many members when it is complete, by sorting them. */
static bool check_names(struct json_reader *reader, struct name *names, size_t count)
{
    if (count <= NAMES_COMPARED)
        return true;
    qsort(names, count, sizeof *names, order_names);
    for (size_t i = 1; i < count; i++)
        if (names_equal(&names[i - 1], &names[i]))
            return refuse_duplicate(reader, names[i].offset > names[i - 1].offset ? names[i].offset
                                                                                  : names[i - 1].offset);
    return true;
}

static int close_frame(void *context)
{
    struct json_reader *reader = context;
    struct frame *frame = reader->frame;
    struct bytes token;
    if (!take_token(reader, &token) ||
        !check_names(reader, reader->names + frame->first_name, reader->name_count - frame->first_name))
        return false;
    if (frame->node) {
        frame->node->text.size = reader->end - offset_of(reader, frame->node->text.data);
        frame->node->count = frame->count;
    }
    reader->name_count = frame->first_name;
    reader->frame = frame->outer;
    reader->depth--;
    return true;
}

/* --- a whole text -------------------------------------------------------------------------------- */

static const yajl_callbacks callbacks = {
    .yajl_null = take_null,
    .yajl_boolean = take_boolean,
    .yajl_number = json_take_number,
    .yajl_string = take_string,
    .yajl_start_map = open_object,
    .yajl_map_key = take_name,
    .yajl_end_map = close_frame,
    .yajl_start_array = open_array,
    .yajl_end_array = close_frame,
};

/* Offset of the first malformed sequence. */
static size_t find_malformed(struct bytes text)
{
    size_t at = 0, length = 1;
    for (; at < text.size && length <= 4; at += length <= 4 ? length : 0)
        for (length = 1; length <= 4; length++)
            if (length <= text.size - at && bytes_is_utf8((struct bytes){text.data + at, length}))
                break;
    return at;
}

/* Checks that need no parsing. */
static bool check_text(struct json_reader *reader)
{
    struct bytes text = reader->text;
    if (text.size > UINT32_MAX)
        return json_refuse(reader, FAULT_ALIMIT, "it is longer than 4 GiB", UINT32_MAX);
    if (!bytes_is_utf8(text))
        return json_refuse(reader, FAULT_AUTF8, "the text is not UTF-8", find_malformed(text));
    if (text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0)
        return json_refuse(reader, FAULT_AJSON, "a byte order mark is not allowed", 0);
    size_t start;
    if (!skip_filler(reader, 0, &start))
        return false;
    return start < text.size || json_refuse(reader, FAULT_AJSON, "the text is empty", start);
}

/* Our words for yajl's, which are static ("parse error: trailing garbage\n") unless yajl quotes the text. */
static const char *words_for(const char *words)
{
    static const struct {
        const char *theirs, *ours;
    } all[] = {
        {"premature EOF", "the text ends too early"},
        {"trailing garbage", "something follows the value"},
        {"unallowed token", "a sign or value is not allowed here"},
        {"invalid object key", "the name of a member is expected, a string"},
        {"object key and value", "a colon is expected behind the name of a member"},
        {"after key and value", "a comma or a closing brace is expected"},
        {"after array element", "a comma or a closing bracket is expected"},
        {"invalid string in json", "a word is none of true, false and null"},
        {"invalid char", "a character stands where a value is expected"},
        {"inside a string", "a backslash stands before a character that needs none"},
        {"invalid (non-hex)", "four hexadecimal digits are expected behind \\u"},
        {"malformed number", "a digit is missing in a number"},
        {"probable comment", "comments are not allowed"},
    };
    if (strstr(words, "invalid character inside string"))
        return "a control character stands in a string";
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (strstr(words, all[i].theirs))
            return all[i].ours;
    return "a value is malformed";
}

static void json_explain(struct json_reader *reader)
{
    unsigned char *whole = yajl_get_error(reader->handle, 0, NULL, 0);
    const char *words = words_for((const char *)whole);
    size_t offset = reader->is_ending ? reader->text.size : yajl_get_bytes_consumed(reader->handle);
    json_refuse(reader, FAULT_AJSON, words, offset);
    yajl_free_error(reader->handle, whole);
}

/* yajl accepts the beginning of a string after the value as white space. */
static bool check_rest(struct json_reader *reader)
{
    size_t at;
    if (!skip_filler(reader, reader->end, &at))
        return false;
    return at == reader->text.size || json_refuse(reader, FAULT_AJSON, "something follows the value", at);
}

static void json_parse(struct json_reader *reader)
{
    yajl_alloc_funcs memory = {.malloc = take_memory, .realloc = resize_memory, .free = give_back_memory};
    reader->handle = yajl_alloc(&callbacks, &memory, reader);
    yajl_config(reader->handle, yajl_dont_validate_strings, 1); /* bytes_is_utf8 is stricter */
    yajl_status status =
        yajl_parse(reader->handle, (const unsigned char *)reader->text.data, reader->text.size);
    if (status == yajl_status_ok) {
        reader->is_ending = true;
        status = yajl_complete_parse(reader->handle);
    }
    if (status == yajl_status_error)
        json_explain(reader);
    else if (status == yajl_status_ok && check_rest(reader))
        assert(reader->root && !reader->frame);
    yajl_free(reader->handle);
}

static enum fault json_read_text(struct arena *arena, struct bytes text, const struct json_limits *limits,
                                 bool plain_first, struct json **root_r, struct json_problem *problem_r)
{
    struct json_reader reader;
    memset(&reader, 0, offsetof(struct json_reader, names_at_hand));
    reader.arena = arena;
    reader.limits = limits;
    reader.text = text;
    reader.names = reader.names_at_hand;
    reader.name_capacity = NAMES_AT_HAND;
    reader.problem = problem_r;
    *problem_r = (struct json_problem){0};
    *root_r = NULL;
    bool good = check_text(&reader);
    if (good && plain_first)
        reader.root = json_fast_read(arena, text, limits);
    if (good && !reader.root)
        json_parse(&reader);
    if (reader.names != reader.names_at_hand)
        free(reader.names);
    if (reader.fault == FAULT_NONE)
        *root_r = reader.root;
    return reader.fault;
}

enum fault json_read(struct arena *arena, struct bytes text, const struct json_limits *limits,
                     struct json **root_r, struct json_problem *problem_r)
{
    return json_read_text(arena, text, limits, true, root_r, problem_r);
}

bool json_is_tree(struct arena *arena, struct bytes text, int depth, int tree_depth, struct json **root_r)
{
    struct json_problem problem;
    return json_read(arena, text, &(struct json_limits){.depth = depth, .tree_depth = tree_depth}, root_r,
                     &problem) == FAULT_NONE;
}

enum fault json_fast_avoid(struct arena *arena, struct bytes text, const struct json_limits *limits,
                           struct json **root_r, struct json_problem *problem_r)
{
    return json_read_text(arena, text, limits, false, root_r, problem_r);
}

const struct json *json_member(const struct json *object, const char *name)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    struct bytes wanted = bytes_of(name);
    const struct json *member = object->first;
    while (member && !bytes_equal(member->name, wanted))
        member = member->next;
    return member;
}

bool json_is_i64(const struct json *value, int64_t *number_r)
{
    return value && value->kind == JSON_NUMBER && bytes_to_i64(value->value, number_r);
}

struct bytes json_text_of(const struct json *object, const char *name, struct bytes otherwise)
{
    const struct json *member = json_member(object, name);
    return member && member->kind == JSON_STRING ? member->value : otherwise;
}

int64_t json_i64_of(const struct json *object, const char *name, int64_t otherwise)
{
    int64_t number;
    return json_is_i64(json_member(object, name), &number) ? number : otherwise;
}

bool json_is_true(const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member && member->kind == JSON_TRUE;
}

/* Finds the position of a value in a tree by search, so that readers need not keep a path. */

void json_add_pointer_name(struct builder *builder, struct bytes name)
{
    builder_add_text(builder, "/");
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '~')
            builder_add_text(builder, "~0");
        else if (name.data[i] == '/')
            builder_add_text(builder, "~1");
        else
            builder_add(builder, &name.data[i], 1);
    }
}

/* Recursion is as deep as the tree, which json_limits bound. */
bool json_add_pointer(struct builder *builder, const struct json *root, const struct json *value)
{
    if (root == value)
        return true;
    size_t number = 0, start = builder->size;
    for (const struct json *child = root->first; child; child = child->next, number++) {
        if (child != value && !child->first)
            continue;
        if (root->kind == JSON_OBJECT)
            json_add_pointer_name(builder, child->name);
        else
            builder_printf(builder, "/%zu", number);
        if (json_add_pointer(builder, child, value))
            return true;
        builder->size = start;
    }
    return false;
}
