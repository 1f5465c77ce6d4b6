/* cmd_find: `stampctl find`: a search by the operation find, page after page, one result a line; and
 * `stampctl search`: the rows of a named search. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "control/documents/ask.h"
#include "control/documents/target.h"
#include "control/message.h"
#include "edge/json/json.h"

enum {
    LIMIT_STANDARD = 100,
    LIMIT_MOST = 100000000,
    PAGE_MOST = 1000,
    LEVELS_OF_RESULT = 3 /* out, its list, a result */
};

struct find_options {
    struct target target;
    const char *command; /* find, search: of the operation, too */
    const char *where, *id, *version, *ctime, *order, *want;
    const char *args; /* of search */
    int64_t limit;
};

struct finder {
    struct control *control;
    const struct find_options *options;
    struct http *http;
    const char *url, *class, *item; /* of search: its name is the class */
    struct bytes key, cursor;
    int64_t left; /* results to print */
};

/* --- the request --------------------------------------------------------------------------------- */

static void add_text(struct builder *body, const char *name, struct bytes value)
{
    builder_printf(body, ",\"%s\":", name);
    json_add_string(body, value);
}

/* Fields with commas between them; a rank stands alone, and not in a list. */
static void add_order(struct builder *body, const char *order)
{
    if (!strchr(order, ',')) {
        add_text(body, "order", bytes_of(order));
        return;
    }
    const char *before = ",\"order\":[";
    for (const char *next = order; next; before = ",") {
        const char *comma = strchr(next, ',');
        builder_add_bytes(body, bytes_of(before));
        json_add_string(body, (struct bytes){next, comma ? (size_t)(comma - next) : strlen(next)});
        next = comma ? comma + 1 : NULL;
    }
    builder_add_text(body, "]");
}

/* A list of results, or what is one result: a count, or totals? */
static bool has_pages(const struct find_options *options)
{
    return !options->want || (strcmp(options->want, "count") != 0 && *options->want != '{');
}

static bool is_named(const struct find_options *options)
{
    return strcmp(options->command, "search") == 0;
}

static void write_named(const struct finder *finder, struct builder *body)
{
    json_add_text(body, "\"name\":", bytes_of(finder->class));
    if (finder->options->args)
        builder_printf(body, ",\"args\":%s", finder->options->args);
    builder_add_text(body, "}}");
}

static void write_body(const struct finder *finder, struct builder *body)
{
    const struct find_options *options = finder->options;
    target_begin_body(body, finder->key);
    if (is_named(options)) {
        write_named(finder, body);
        return;
    }
    json_add_text(body, "\"c\":", bytes_of(finder->class));
    add_text(body, "i", bytes_of(finder->item));
    if (options->where)
        builder_printf(body, *options->where == '[' ? ",\"where\":%s" : ",\"where\":[%s]", options->where);
    if (options->id)
        builder_printf(body, ",\"id\":%s", options->id);
    if (options->version)
        builder_printf(body, ",\"v\":%s", options->version);
    if (options->ctime)
        builder_printf(body, ",\"ct\":%s", options->ctime);
    if (options->order)
        add_order(body, options->order);
    if (options->want && (*options->want == '{' || *options->want == '['))
        builder_printf(body, ",\"want\":%s", options->want);
    else if (options->want)
        add_text(body, "want", bytes_of(options->want));
    if (has_pages(options))
        builder_printf(body, ",\"limit\":%lld",
                       (long long)(finder->left < PAGE_MOST ? finder->left : PAGE_MOST));
    if (finder->cursor.data)
        add_text(body, "cursor", finder->cursor);
    builder_add_text(body, "}}");
}

static bool send_page(struct finder *finder, struct http_result *result_r)
{
    struct builder body = {0};
    write_body(finder, &body);
    bool is_answered = ask_server(finder->control, finder->http, finder->url, builder_bytes(&body),
                                  finder->options->target.retry_s, finder->options->command, result_r);
    builder_free(&body);
    return is_answered;
}

/* --- the answer ---------------------------------------------------------------------------------- */

static void print_result(const struct json *result)
{
    if (result->kind != JSON_STRING || memchr(result->value.data, '\n', result->value.size)) {
        ask_print(result->text);
        return;
    }
    fwrite(result->value.data, 1, result->value.size, stdout);
    putchar('\n');
}

static bool print_page(struct finder *finder, struct bytes text)
{
    struct arena *arena = finder->control->arena;
    const struct json *out = ask_out(arena, text, LEVELS_OF_RESULT);
    const struct json *list = out && out->kind == JSON_OBJECT ? out->first : NULL;
    const struct json *cursor = json_member(out, "cursor");
    if (!list)
        return message_refuse("%s: this is no answer of stampd", finder->options->command);
    finder->cursor = NO_BYTES;
    if (list->kind != JSON_ARRAY || !has_pages(finder->options)) {
        print_result(out);
        return true;
    }
    for (const struct json *one = list->first; one; one = one->next)
        print_result(one);
    finder->left -= list->count;
    if (is_named(finder->options) && json_member(out, "more"))
        message_print("search: there are more rows than the server's limits allow");
    if (cursor && finder->left > 0)
        finder->cursor = arena_keep(arena, cursor->value);
    return true;
}

static int find(struct control *control, const struct find_options *options, char **words)
{
    struct finder finder = {.control = control,
                            .options = options,
                            .url = target_url(&options->target, control->arena, words[0], options->command),
                            .class = words[1],
                            .item = is_named(options) ? NULL : words[2],
                            .left = options->limit};
    struct http_options http = target_http(&options->target);
    struct http_result result;
    bool is_well = true;
    if (!target_read_key(&options->target, control, &finder.key))
        return CONTROL_FAILED;
    finder.http = http_open(&http);
    do
        is_well = send_page(&finder, &result) && print_page(&finder, result.body);
    while (is_well && finder.cursor.data);
    http_close(finder.http);
    return is_well ? CONTROL_DONE : CONTROL_FAILED;
}

static bool cmd_find_are_right(struct control *control, const struct find_options *options)
{
    const char *texts[] = {
        options->where, options->id,   options->version,
        options->ctime, options->args, options->want && strchr("[{", *options->want) ? options->want : NULL};
    static const char *const names[] = {"where", "id", "version", "ctime", "args", "want"};
    if (!target_is_right(&options->target, options->command))
        return false;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (texts[i] && !ask_is_json(control->arena, texts[i]))
            return message_refuse("%s: --%s: JSON is expected", options->command, names[i]);
    return true;
}

int control_find(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "find", "URL CLASS ITEM", "Search documents of a class by what their items contain.",
        "Prints one result a line: ids as they are, other results as JSON.  Conditions, orders and totals\n"
        "are those of the operation find (protocol.md), for example\n"
        "  stampctl find https://localhost Post Main --ns lab --order -at --want items\n"
        "  stampctl find https://localhost Post Main --ns lab --where "
        "'{\"f\":\"room\",\"t\":\"eq\",\"v1\":\"hall\"}'\n");
    struct find_options options = {.target = TARGET_DEFAULT, .command = "find", .limit = LIMIT_STANDARD};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        OPTION_TEXT("where", "JSON", &options.where, "Conditions: one, or a list."),
        OPTION_TEXT("id", "JSON", &options.id, "A condition on the id: t, v1, v2."),
        OPTION_TEXT("version", "JSON", &options.version, "A condition on the version: t, v1, v2."),
        OPTION_TEXT("ctime", "JSON", &options.ctime, "A condition on the ctime: t, v1, v2."),
        OPTION_TEXT(
            "order", "FIELDS", &options.order,
            "Up to four fields with commas between them, - before those that descend; or ~ and a field."),
        OPTION_TEXT(
            "want", "WHAT", &options.want,
            "ids, items, docs, count, or JSON: a list of members, or an object of totals (default: ids)."),
        OPTION_NUMBER("limit", "N", &options.limit, 1, LIMIT_MOST, "Print at most N results (default: 100)."),
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_find_are_right(control, &options) ? find(control, &options, words) : CONTROL_WRONG;
}

int control_search(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("search", "URL NAME", "Run a search in SQL that the schema declares.",
                "Prints one row a line, as JSON, for example\n"
                "  stampctl search https://localhost turnover --ns lab --args '{\"least\":5}'\n");
    struct find_options options = {.target = TARGET_DEFAULT, .command = "search", .limit = LIMIT_MOST};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        OPTION_TEXT("args", "JSON", &options.args, "Its parameters: an object."),
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_find_are_right(control, &options) ? find(control, &options, words) : CONTROL_WRONG;
}
