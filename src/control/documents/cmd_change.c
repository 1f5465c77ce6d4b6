/* cmd_change: `stampctl change`: a dry run of the operation changemany, or its task. */
#include "control/control.h"

#include <stdio.h>

#include "base/clock.h"
#include "control/documents/ask.h"
#include "control/documents/target.h"
#include "control/message.h"
#include "edge/json/json.h"

enum {
    LIMIT_MOST = 1000000000,
    WAIT_S = 10, /* of a request that waits for the end of the task */
    PAUSE_MOST_MS = 10000
};

struct change_options {
    struct target target;
    const char *where, *id, *merge;
    int64_t limit;
    bool is_delete, is_removal, is_run, is_waited;
};

struct changer {
    struct control *control;
    const struct change_options *options;
    struct http *http;
    char **words; /* the server, the class, the item */
    struct bytes key;
};

/* --- the request --------------------------------------------------------------------------------- */

static void change_add_param(const struct changer *changer, struct builder *body)
{
    const struct change_options *options = changer->options;
    json_add_text(body, "\"c\":", bytes_of(changer->words[1]));
    json_add_text(body, ",\"i\":", bytes_of(changer->words[2]));
    if (options->where)
        builder_printf(body, *options->where == '[' ? ",\"where\":%s" : ",\"where\":[%s]", options->where);
    if (options->id)
        builder_printf(body, ",\"id\":%s", options->id);
    if (options->merge)
        builder_printf(body, ",\"merge\":%s", options->merge);
    else
        builder_add_bytes(body, bytes_of(options->is_delete ? ",\"delete\":true" : ",\"del\":true"));
    if (options->limit)
        builder_printf(body, ",\"limit\":%lld", (long long)options->limit);
}

/* Frees the body.  NULL: failed, which is reported. */
static const struct json *change_ask(struct changer *changer, const char *operation, struct builder *body)
{
    struct control *control = changer->control;
    const struct target *target = &changer->options->target;
    struct http_result result;
    const struct json *out = NULL;
    bool is_answered =
        ask_server(control, changer->http, target_url(target, control->arena, changer->words[0], operation),
                   builder_bytes(body), target->retry_s, "change", &result);
    builder_free(body);
    if (is_answered)
        out = ask_out(control->arena, arena_keep(control->arena, result.body), 1);
    if (is_answered && !out)
        message_print("change: this is no answer of stampd");
    return out;
}

static int change_show(struct changer *changer)
{
    struct builder body = {0};
    target_begin_body(&body, changer->key);
    change_add_param(changer, &body);
    builder_add_text(&body, "}}");
    const struct json *out = change_ask(changer, "changemany", &body);
    if (out)
        ask_print(out->text);
    return out ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- the task ------------------------------------------------------------------------------------ */

static bool change_is_in_state(const struct json *out, const char *state)
{
    const struct json *text = json_member(out, "state");
    return text && text->kind == JSON_STRING && bytes_equal(text->value, bytes_of(state));
}

static int change_end(const struct json *out)
{
    const struct json *result = json_member(out, "result");
    ask_print(result ? result->text : out->text);
    return change_is_in_state(out, "done") ? CONTROL_DONE : CONTROL_FAILED;
}

static int change_wait(struct changer *changer, struct bytes task)
{
    for (;;) {
        struct builder body = {0};
        int64_t pause_ms = 0;
        target_begin_body(&body, changer->key);
        json_add_text(&body, "\"show\":", task);
        builder_printf(&body, ",\"wait\":%d}}", WAIT_S);
        const struct json *out = change_ask(changer, "owntask", &body);
        if (!out)
            return CONTROL_FAILED;
        if (!change_is_in_state(out, "waiting") && !change_is_in_state(out, "running"))
            return change_end(out);
        const struct json *progress = json_member(out, "progress");
        if (progress && progress->kind == JSON_STRING)
            message_print("%.*s", (int)progress->value.size, progress->value.data);
        (void)json_is_i64(json_member(out, "pause"), &pause_ms);
        clock_sleep_ms(pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS);
    }
}

static int change_run(struct changer *changer)
{
    struct builder body = {0};
    target_begin_body(&body, changer->key);
    builder_add_text(&body, "\"op\":\"changemany\",\"param\":{");
    change_add_param(changer, &body);
    builder_add_text(&body, "}}}");
    const struct json *out = change_ask(changer, "task", &body), *id = json_member(out, "id");
    if (!id || id->kind != JSON_STRING)
        return CONTROL_FAILED;
    printf("%.*s\n", (int)id->value.size, id->value.data);
    fflush(stdout);
    return changer->options->is_waited ? change_wait(changer, id->value) : CONTROL_DONE;
}

/* --- the command --------------------------------------------------------------------------------- */

static bool change_is_right(struct control *control, const struct change_options *options)
{
    const char *texts[] = {options->where, options->id, options->merge};
    static const char *const names[] = {"where", "id", "merge"};
    if (!target_is_right(&options->target, "change"))
        return false;
    if (options->is_delete + options->is_removal + (options->merge != NULL) != 1)
        return message_refuse("change: exactly one of --delete, --del and --merge is expected");
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (texts[i] && !ask_is_json(control->arena, texts[i]))
            return message_refuse("change: --%s: JSON is expected", names[i]);
    return true;
}

static int change(struct control *control, const struct change_options *options, char **words)
{
    struct changer changer = {.control = control, .options = options, .words = words};
    struct http_options http = target_http(&options->target);
    if (!target_read_key(&options->target, control, &changer.key))
        return CONTROL_FAILED;
    changer.http = http_open(&http);
    int status = options->is_run ? change_run(&changer) : change_show(&changer);
    http_close(changer.http);
    return status;
}

int control_change(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("change", "URL CLASS ITEM", "Change or remove what a search finds.",
                "Prints how many documents are found, and which would be changed first.  With --run it\n"
                "requests the task that changes them, and prints its id; --wait prints the result, too:\n"
                "  stampctl change https://localhost Post Main --ns lab --delete "
                "--where '{\"f\":\"at\",\"t\":\"lt\",\"v1\":7}'\n"
                "Conditions are those of find.\n");
    struct change_options options = {.target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        OPTION_TEXT("where", "JSON", &options.where, "Conditions: one, or a list."),
        OPTION_TEXT("id", "JSON", &options.id, "A condition on the id: t, v1, v2."),
        OPTION_FLAG("delete", &options.is_delete, "Delete the documents."),
        OPTION_FLAG("del", &options.is_removal, "Remove the items."),
        OPTION_TEXT("merge", "JSON", &options.merge,
                    "Apply this JSON merge patch to the contents of the items."),
        OPTION_NUMBER("limit", "N", &options.limit, 1, LIMIT_MOST,
                      "Change at most N items or documents (default: all)."),
        OPTION_FLAG("run", &options.is_run, "Request the task that does it."),
        OPTION_FLAG("wait", &options.is_waited, "Wait for the end of the task, and print its result."),
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return change_is_right(control, &options) ? change(control, &options, words) : CONTROL_WRONG;
}
