/* arguments: query strings, forms and JSON bodies become one struct. */
#include "http/arguments.h"

#include <strings.h>
#include <sys/types.h>

#include "base/names.h"
#include "base/coding/percent.h"
#include "operation/sync/client_copies.h"
#include "http/multipart.h"

/* The level of an item when the document is a resource; CALL_PARAM_TREE is its level in param. */
enum { ITEM_LEVEL_IN_ITEMS = 2 };

struct argument_reader {
    struct arena *arena;
    bool is_resource;
    int whose; /* kinds of requests whose arguments are accepted */
    const struct argument_limits *limits;
    size_t pair_count; /* of the query string and a form */
    struct arguments *arguments;
    struct json_problem *problem;
};

static enum fault arguments_refuse(struct argument_reader *reader, enum fault fault, const char *wrong,
                                   const char *what)
{
    reader->arguments->wrong = wrong;
    reader->problem->what = what;
    return fault;
}

/* --- arguments ----------------------------------------------------------------------------------- */

/* The kinds of requests that have an argument; several may be set. */
enum { OF_OPERATIONS = 1, OF_RESOURCES = 2, OF_MANAGERS = 4, OF_CALLERS = OF_OPERATIONS | OF_RESOURCES };

struct argument {
    const char *name;
    int whose;
    size_t offset; /* of its field in struct arguments */
    enum json_kind kind;
    bool may_be_number;
};

static const struct argument known[] = {
    {"param", OF_OPERATIONS | OF_MANAGERS, offsetof(struct arguments, param), JSON_OBJECT, false},
    {"syncs", OF_OPERATIONS, offsetof(struct arguments, syncs), JSON_ARRAY, false},
    {"items", OF_RESOURCES, offsetof(struct arguments, items), JSON_ARRAY, false},
    {"age", OF_RESOURCES, offsetof(struct arguments, age), JSON_STRING, true},
    {"account", OF_CALLERS, offsetof(struct arguments, account), JSON_STRING, false},
    {"key", OF_CALLERS | OF_MANAGERS, offsetof(struct arguments, key), JSON_STRING, false},
    {"admin", OF_CALLERS, offsetof(struct arguments, admin), JSON_STRING, false},
    {"lang", OF_CALLERS, offsetof(struct arguments, lang), JSON_STRING, false},
    {"dhop", OF_CALLERS, offsetof(struct arguments, dhop), JSON_STRING, true},
    {"session", OF_CALLERS, offsetof(struct arguments, session), JSON_STRING, false},
};

static const struct argument *find_argument(const struct argument_reader *reader, struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (bytes_are(name, known[i].name))
            return known[i].whose & reader->whose ? &known[i] : NULL;
    return NULL;
}

/* Refuses an unknown argument and returns the nearest known name.  The members that GET returns for a
 * document are accepted, so that it can be sent back as it is. */
static enum fault refuse_unknown(struct argument_reader *reader, struct bytes name)
{
    if (reader->is_resource && names_have("c id v ct dt w", name))
        return FAULT_NONE;
    struct arguments *arguments = reader->arguments;
    struct builder names = {0}, text = {0};
    if (!bytes_is_utf8(name))
        return arguments_refuse(reader, FAULT_AUTF8, "query", "The name of an argument is not UTF-8.");
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (known[i].whose & reader->whose)
            builder_printf(&names, "%s%s", names.size ? " " : "", known[i].name);
    struct bytes nearest = names_nearest(names.data, name);
    names_explain(names.data, "argument", name, &text);
    arguments->is_unknown = true;
    arguments->nearest = nearest.data ? arena_copy(reader->arena, nearest.data, nearest.size) : NULL;
    (void)arguments_refuse(reader, FAULT_AARG, arena_copy(reader->arena, name.data, name.size),
                           arena_copy(reader->arena, text.data, text.size));
    builder_free(&names);
    builder_free(&text);
    return FAULT_AARG;
}

/* Describes the error of json_read in a sentence. */
static enum fault refuse_text(struct argument_reader *reader, enum fault fault, const char *wrong)
{
    const struct json_problem *problem = reader->problem;
    const char *sentence = fault == FAULT_AUTF8   ? "The text is not UTF-8 at byte %zu."
                           : fault == FAULT_AJSON ? "The text is not JSON at byte %zu: %s."
                                                  : "The text exceeds a limit at byte %zu: %s.";
    return arguments_refuse(reader, fault, wrong,
                            arena_printf(reader->arena, sentence, problem->offset, problem->what));
}

static int item_level(const struct argument_reader *reader)
{
    return reader->is_resource ? ITEM_LEVEL_IN_ITEMS : CALL_PARAM_TREE;
}

static bool is_tree(const struct argument *argument)
{
    return argument->kind != JSON_STRING;
}

static const struct json **tree_field(struct arguments *arguments, const struct argument *argument)
{
    return (const struct json **)(void *)((char *)arguments + argument->offset);
}

static struct bytes *text_field(struct arguments *arguments, const struct argument *argument)
{
    return (struct bytes *)(void *)((char *)arguments + argument->offset);
}

static bool is_given(struct arguments *arguments, const struct argument *argument)
{
    return is_tree(argument) ? *tree_field(arguments, argument) != NULL
                             : text_field(arguments, argument)->data != NULL;
}

static enum fault set_tree(struct argument_reader *reader, const struct argument *argument,
                           const struct json *tree)
{
    if (tree->kind != argument->kind)
        return arguments_refuse(reader, FAULT_AARG, argument->name,
                                argument->kind == JSON_OBJECT ? "A JSON object is expected."
                                                              : "A JSON array is expected.");
    *tree_field(reader->arguments, argument) = tree;
    return FAULT_NONE;
}

/* Stores the value of an argument of a query string or form. */
static enum fault set_text(struct argument_reader *reader, const struct argument *argument,
                           struct bytes value)
{
    if (!is_tree(argument)) {
        if (!bytes_is_utf8(value))
            return arguments_refuse(reader, FAULT_AUTF8, argument->name, "The text is not UTF-8.");
        *text_field(reader->arguments, argument) = value;
        return FAULT_NONE;
    }
    struct json_limits limits = {reader->limits->depth - 1, item_level(reader), reader->limits->nodes};
    struct json *tree;
    enum fault fault = json_read(reader->arena, value, &limits, &tree, reader->problem);
    if (fault)
        return refuse_text(reader, fault, argument->name);
    return set_tree(reader, argument, tree);
}

static enum fault read_pair(struct argument_reader *reader, struct bytes pair, const char *where)
{
    struct bytes name, value;
    const char *what;
    if (!pair.size)
        return FAULT_NONE;
    enum fault fault = percent_decode(reader->arena, bytes_cut(&pair, '='), true, &name, &what);
    if (fault != FAULT_NONE)
        return arguments_refuse(reader, fault, where, what);
    const struct argument *argument = find_argument(reader, name);
    if (!argument)
        return refuse_unknown(reader, name);
    if (is_given(reader->arguments, argument))
        return FAULT_NONE;
    fault = percent_decode(reader->arena, pair, true, &value, &what);
    if (fault != FAULT_NONE)
        return arguments_refuse(reader, fault, argument->name, what);
    return set_text(reader, argument, value);
}

/* Reads name=value pairs joined by '&'. */
static enum fault read_pairs(struct argument_reader *reader, struct bytes pairs, const char *where)
{
    enum fault fault = FAULT_NONE;
    while (pairs.size && fault == FAULT_NONE) {
        if (++reader->pair_count > reader->limits->parts)
            return arguments_refuse(reader, FAULT_ALIMIT, "limit_parts", "There are too many arguments.");
        fault = read_pair(reader, bytes_cut(&pairs, '&'), where);
    }
    return fault;
}

static enum fault set_member(struct argument_reader *reader, const struct argument *argument,
                             const struct json *member)
{
    if (is_tree(argument))
        return set_tree(reader, argument, member);
    if (member->kind != JSON_STRING && !(member->kind == JSON_NUMBER && argument->may_be_number))
        return arguments_refuse(reader, FAULT_AARG, argument->name,
                                argument->may_be_number ? "A JSON string or number is expected."
                                                        : "A JSON string is expected.");
    *text_field(reader->arguments, argument) = member->value;
    return FAULT_NONE;
}

/* Reads what follows the list of synchronisations as an object; NULL: it is wrong, or has another list. */
static struct json *read_others(struct argument_reader *reader, struct bytes others,
                                const struct json_limits *limits)
{
    struct json *root;
    struct json_problem problem;
    char *text = arena_alloc(reader->arena, others.size + 1);
    text[0] = '{';
    memcpy(text + 1, others.data, others.size);
    enum fault fault =
        json_read(reader->arena, (struct bytes){text, others.size + 1}, limits, &root, &problem);
    return fault || json_member(root, "syncs") ? NULL : root;
}

/* Fast path for a body that begins with synchronisations and cannot exceed the limits of trees; `others_r`
 * NULL: it has nothing else.  False: use the full parser, which reports the error. */
static bool read_client_copies(struct argument_reader *reader, struct bytes body,
                               const struct json_limits *limits, struct json **others_r)
{
    struct bytes others;
    *others_r = NULL;
    if (reader->is_resource || reader->arguments->syncs || limits->depth < CLIENT_COPIES_DEPTH ||
        body.size > limits->nodes)
        return false;
    struct client_copies *client_copies = client_copies_read_fast(reader->arena, body, &others);
    if (!client_copies || (others.size && !(*others_r = read_others(reader, others, limits))))
        return false;
    reader->arguments->client_copies = client_copies;
    return true;
}

static enum fault read_json(struct argument_reader *reader, struct bytes body)
{
    struct json_limits limits = {reader->limits->depth, item_level(reader) + 1, reader->limits->nodes};
    struct json *root;
    enum fault fault = FAULT_NONE;
    if (!read_client_copies(reader, body, &limits, &root))
        fault = json_read(reader->arena, body, &limits, &root, reader->problem);
    if (fault)
        return refuse_text(reader, fault, "body");
    if (!root)
        return FAULT_NONE;
    if (root->kind != JSON_OBJECT)
        return arguments_refuse(reader, FAULT_AARG, "body", "A JSON object is expected.");
    for (const struct json *member = root->first; member && fault == FAULT_NONE; member = member->next) {
        const struct argument *argument = find_argument(reader, member->name);
        if (!argument)
            fault = refuse_unknown(reader, member->name);
        else if (!is_given(reader->arguments, argument))
            fault = set_member(reader, argument, member);
    }
    return fault;
}

/* --- types of content ---------------------------------------------------------------------------- */

static bool is_word(struct bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

/* Are the parameters of the type well-formed, and is the character set, if any, UTF-8? */
static bool parameters_are_fine(struct bytes parameters)
{
    while (parameters.size) {
        struct bytes value = bytes_trim(bytes_cut(&parameters, ';'));
        if (!value.size)
            continue;
        const char *equals = memchr(value.data, '=', value.size);
        struct bytes name = bytes_cut(&value, '=');
        if (!equals || !name.size)
            return false;
        if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"')
            value = (struct bytes){value.data + 1, value.size - 2};
        if (is_word(name, "charset") && !is_word(value, "utf-8"))
            return false;
    }
    return true;
}

/* --- multipart forms ----------------------------------------------------------------------------- */

/* A part without a file name is an argument. */
static enum fault take_argument(struct argument_reader *reader, const struct part *part)
{
    const struct argument *argument = find_argument(reader, part->name);
    if (!argument)
        return refuse_unknown(reader, part->name);
    if (is_given(reader->arguments, argument))
        return FAULT_NONE;
    struct bytes parameters = part->type;
    bytes_cut(&parameters, ';');
    if (part->type.data && !parameters_are_fine(parameters))
        return arguments_refuse(reader, FAULT_ATYPE, argument->name, "The character set must be utf-8.");
    if (part->content.size && memchr(part->content.data, '\0', part->content.size))
        return arguments_refuse(reader, FAULT_AARG, argument->name, "The character U+0000 is not allowed.");
    return set_text(reader, argument, part->content);
}

static void arguments_take_file(struct argument_reader *reader, const struct part *part,
                                struct call_file *files)
{
    files[reader->arguments->file_count++] = (struct call_file){
        .name = part->name,
        .file_name = part->file_name,
        .type = part->type.data ? part->type : BYTES("application/octet-stream"),
        .content = part->content,
    };
}

/* Makes room for the files: doubles it when it is full. */
static struct call_file *arguments_make_room(struct argument_reader *reader, struct call_file *files,
                                             size_t *room)
{
    size_t count = reader->arguments->file_count;
    if (count < *room)
        return files;
    *room = count ? count * 2 : 4;
    struct call_file *more = ARENA_ARRAY(reader->arena, struct call_file, *room);
    if (count)
        memcpy(more, files, count * sizeof *files);
    reader->arguments->files = more;
    return more;
}

static enum fault read_parts(struct argument_reader *reader, struct bytes parameters, struct bytes body)
{
    struct multipart multipart;
    struct part part;
    struct call_file *files = NULL;
    size_t count = 0, room = 0;
    const char *what;
    bool is_there = true;
    enum fault fault = multipart_open(reader->arena, parameters, body, &multipart, &what);
    while (!fault && is_there) {
        fault = multipart_next(&multipart, &part, &is_there, &what);
        if (fault || !is_there)
            break;
        if (++count > reader->limits->parts)
            return arguments_refuse(reader, FAULT_ALIMIT, "limit_parts", "There are too many parts.");
        if (part.file_name.data) {
            files = arguments_make_room(reader, files, &room);
            arguments_take_file(reader, &part, files);
        } else {
            enum fault wrong = take_argument(reader, &part);
            if (wrong)
                return wrong; /* already reported */
        }
    }
    return fault ? arguments_refuse(reader, fault, "body", what) : FAULT_NONE;
}

/* --- bodies -------------------------------------------------------------------------------------- */

/* JSON that a program sends with the type of a form, its default: curl -d. */
static bool looks_like_json(struct bytes body)
{
    body = bytes_trim(body);
    return body.size && (body.data[0] == '{' || body.data[0] == '[');
}

static enum fault refuse_type(struct argument_reader *reader, struct bytes type, struct bytes body)
{
    if (looks_like_json(body))
        return arguments_refuse(reader, FAULT_ATYPE, "body",
                                type.size
                                    ? "The body looks like JSON: send it with Content-Type: application/json."
                                    : "The body has no Content-Type: send JSON with application/json.");
    return arguments_refuse(reader, FAULT_ATYPE, "body", "The body must be application/json or a form.");
}

static enum fault arguments_read_body(struct argument_reader *reader, const struct argument_source *source)
{
    struct bytes parameters = source->content_type;
    struct bytes type = bytes_trim(bytes_cut(&parameters, ';'));
    if (!parameters_are_fine(parameters))
        return arguments_refuse(reader, FAULT_ATYPE, "body", "The character set must be utf-8.");
    if (is_word(type, "application/json"))
        return read_json(reader, source->body);
    if (is_word(type, "application/x-www-form-urlencoded") && !looks_like_json(source->body))
        return read_pairs(reader, source->body, "body");
    if (is_word(type, "multipart/form-data"))
        return read_parts(reader, parameters, source->body);
    return refuse_type(reader, type, source->body);
}

enum fault arguments_read(struct arena *arena, const struct argument_source *source,
                          const struct argument_limits *limits, struct arguments *arguments_r,
                          struct json_problem *problem_r)
{
    struct argument_reader reader = {.arena = arena,
                                     .is_resource = source->is_resource,
                                     .whose = source->is_resource  ? OF_RESOURCES
                                              : source->is_manager ? OF_MANAGERS
                                                                   : OF_OPERATIONS,
                                     .limits = limits,
                                     .arguments = arguments_r,
                                     .problem = problem_r};
    *arguments_r = (struct arguments){0};
    *problem_r = (struct json_problem){0};
    enum fault fault = read_pairs(&reader, source->query, "query");
    if (fault == FAULT_NONE && source->body.size)
        fault = arguments_read_body(&reader, source);
    return fault;
}
