/* answer: turns an HTTP status and a problem document into one decision. */
#include "control/answer.h"

#include "base/fault.h"
#include "edge/json/json.h"

static const char *answer_text_of(struct arena *arena, const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    if (!member || member->kind != JSON_STRING || !member->value.size)
        return NULL;
    return arena_copy(arena, member->value.data, member->value.size);
}

/* "words (a, b)" */
static const char *with_arguments(struct arena *arena, const char *words, const struct json *arguments)
{
    if (!arguments || arguments->kind != JSON_ARRAY || !arguments->first)
        return words;
    struct builder text = {0};
    builder_add_bytes(&text, bytes_of(words));
    for (const struct json *argument = arguments->first; argument; argument = argument->next) {
        builder_add_bytes(&text, bytes_of(argument == arguments->first ? " (" : ", "));
        builder_add_bytes(&text, argument->value);
    }
    builder_add_text(&text, ")");
    words = builder_take(&text, arena).data;
    return words;
}

static enum answer_kind kind_of_status(int status)
{
    if (status >= 500 || status == 429 || status == 408)
        return ANSWER_AGAIN;
    return status == 413 ? ANSWER_REFUSED : ANSWER_HOPELESS;
}

static enum answer_kind kind_of_code(const char *code)
{
    enum fault_remedy remedy = fault_remedy_of_code(code);
    return remedy == REMEDY_FINAL ? ANSWER_REFUSED : remedy == REMEDY_AGAIN ? ANSWER_AGAIN : ANSWER_HOPELESS;
}

enum answer_kind answer_read(struct arena *arena, const struct http_result *result,
                             struct server_answer *answer_r)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 2};
    struct json_problem problem;
    struct json *root = NULL;
    *answer_r = (struct server_answer){"", result->problem};
    if (!result->status)
        return ANSWER_AGAIN;
    if (result->status >= 200 && result->status < 300)
        return ANSWER_DONE;
    if (json_read(arena, result->body, &limits, &root, &problem) != FAULT_NONE)
        root = NULL;
    const char *code = answer_text_of(arena, root, "code");
    const char *message = answer_text_of(arena, root, "message"),
               *title = answer_text_of(arena, root, "title");
    answer_r->code = code ? code : arena_printf(arena, "HTTP %d", result->status);
    answer_r->words = message ? message : title ? title : "(no words)";
    answer_r->words = with_arguments(arena, answer_r->words, json_member(root, "args"));
    return code ? kind_of_code(code) : kind_of_status(result->status);
}
