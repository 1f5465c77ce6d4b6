/* cmd_ping: `stampctl ping`: the state of a server and its namespaces; and `stampctl operations`. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/answer.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "edge/json/json.h"
#include "operation/module/module.h"
#include "operation/registry.h"

struct pinger {
    struct control *control;
    struct http *http;
    const char *url; /* without its last slash */
    int64_t timeout_ms;
    bool is_json;
};

/* What is wrong in a namespace's answer; NULL: nothing. */
static const char *find_trouble(struct arena *arena, const struct json *root)
{
    const struct json *message = json_member(root, "message"), *database = json_member(root, "db");
    int64_t state;
    if (json_is_i64(json_member(root, "state"), &state) && state > NS_ON && state <= NS_GONE)
        return arena_printf(arena, "%s%s%.*s", namespace_state_word((enum ns_state)state),
                            message ? ": " : "", message ? (int)message->value.size : 0,
                            message ? message->value.data : "");
    if (database && bytes_equal(database->value, BYTES("?")))
        return "whether its database can be reached is not known";
    if (database && !bytes_equal(database->value, BYTES("ok")))
        return "its database cannot be reached";
    return NULL;
}

static const char *cmd_ping_judge(struct arena *arena, const struct http_result *result, bool has_ns)
{
    struct server_answer answer;
    struct json *root;
    if (answer_read(arena, result, &answer) != ANSWER_DONE)
        return arena_printf(arena, "%s%s%s", answer.code, *answer.code ? ": " : "", answer.words);
    if (!json_is_tree(arena, result->body, 32, 1, &root) || !json_member(root, "t") ||
        (has_ns && !json_member(root, "db")))
        return "this is no answer of stampd";
    return find_trouble(arena, root);
}

/* `trouble` NULL: it is well, and the answer is JSON. */
static void print_answer(const char *path, const char *trouble, const struct http_result *result,
                         int64_t spent_us)
{
    printf("%-4s  %-22s  ", trouble ? "FAIL" : "OK", path);
    if (trouble)
        printf("%s\n", trouble);
    else
        printf("%.*s  %lld.%lld ms\n", (int)result->body.size, result->body.data,
               (long long)(spent_us / 1000), (long long)(spent_us / 100 % 10));
}

static void write_answer(const char *path, const char *trouble, const struct http_result *result,
                         int64_t spent_us)
{
    struct record record = {0};
    record_add_word(&record, "path", path);
    record_add_word(&record, "problem", trouble);
    if (!trouble) {
        record_add_json(&record, "answer", result->body);
        record_add_i64(&record, "microseconds", spent_us);
    }
    record_print(&record);
}

/* `ns` "": the server itself. */
static bool ping(struct pinger *pinger, const char *ns)
{
    struct arena *arena = pinger->control->arena;
    const char *path = *ns ? arena_printf(arena, "/%s/ping", ns) : "/ping";
    struct http_request request = {.method = "GET",
                                   .url = arena_printf(arena, "%s%s", pinger->url, path),
                                   .timeout_ms = pinger->timeout_ms};
    struct http_result result;
    int64_t start_us = clock_monotonic_us();
    http_run(pinger->http, &request, &result);
    int64_t spent_us = clock_monotonic_us() - start_us;
    const char *trouble = cmd_ping_judge(arena, &result, *ns);
    (pinger->is_json ? write_answer : print_answer)(path, trouble, &result, spent_us);
    return !trouble;
}

/* The namespaces recorded in z, when the settings name its database. */
static bool ping_known(struct pinger *pinger)
{
    struct control *control = pinger->control;
    struct namespace_conf *confs;
    size_t count;
    struct pg *z;
    bool is_well = true;
    if (!control_load_settings(control))
        return false;
    if (control_connect_worker(control, control->settings.z_database, &z) != FAULT_NONE)
        return message_refuse("the namespaces are not known: database %s", control->settings.z_database);
    if (!ns_registry_read(control, z, &confs, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        is_well = ping(pinger, confs[i].code) && is_well;
    return is_well;
}

int control_ping(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND_OF("ping", "[URL [CODE...]]", 0, 100, "Check a server and its namespaces.",
                   "URL defaults to https://localhost.  Without a CODE, all "
                   "namespaces of z are checked, which needs stampd's\n"
                   "settings.  With `-` as CODE only the server is checked.\n");
    struct pinger pinger = {.control = control};
    struct http_options http = {.parallel = 1};
    int64_t timeout_s = 10;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_NUMBER("timeout", "SECONDS", &timeout_s, 1, 3600,
                      "Wait this long for each answer (default: 10)."),
        OPTION_TEXT("ca", "FILE", &http.ca_file,
                    "Trust these certificate authorities, PEM (default: the system's)."),
        OPTION_FLAG("insecure", &http.is_insecure, "Trust any certificate."),
        RECORD_JSON_LINE(&pinger.is_json),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    const char *url = control->word_count ? words[0] : "https://localhost";
    size_t size = strlen(url);
    while (size && url[size - 1] == '/')
        size--;
    pinger.url = arena_copy(control->arena, url, size);
    pinger.timeout_ms = http.connect_timeout_ms = timeout_s * 1000;
    pinger.http = http_open(&http);
    bool is_well = ping(&pinger, "");
    for (int i = 1; i < control->word_count && strcmp(words[i], "-") != 0; i++)
        is_well = ping(&pinger, words[i]) && is_well;
    if (control->word_count < 2)
        is_well = ping_known(&pinger) && is_well;
    http_close(pinger.http);
    return is_well ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- operations --- */

static const char *right_of(const struct operation *operation)
{
    switch (operation->right) {
    case RIGHT_READ:
        return "read";
    case RIGHT_WRITE:
        return "write";
    case RIGHT_PUBLIC:
        return "public";
    case RIGHT_ADMIN:
        break;
    }
    return "administrator";
}

static void write_record(const struct operation *operation, const char *kind)
{
    struct record record = {0};
    record_add_word(&record, "name", operation->name);
    record_add_word(&record, "kind", kind);
    record_add_word(&record, "right", right_of(operation));
    record_add_bool(&record, "reads", operation->is_safe);
    record_add_bool(&record, "grants", operation->may_grant);
    record_add_bool(&record, "rules", operation->obeys_rules);
    record_add_word(&record, "module", operation->task.module);
    record_print(&record);
}

static void write_line(const struct operation *operation, const char *kind)
{
    printf("%-24s  %-9s  %-13s  %-6s  %-6s  %-5s  %s\n", operation->name, kind, right_of(operation),
           operation->is_safe ? "reads" : "writes", operation->may_grant ? "grants" : "-",
           operation->obeys_rules ? "rules" : "-", operation->task.module ? operation->task.module : "-");
}

int control_operations(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "operations", "", "List the operations of the server, including those of its modules.",
        "Columns: name (a method for documents as resources); operation or resource; the right that it "
        "needs; whether it\n"
        "reads or writes; whether it grants documents to callers that may not read the namespace; "
        "whether access\n"
        "rules decide on each document of it; its module.\n");
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), RECORD_JSON_LINE(&is_json)};
    char problem[1024];
    const struct operation *operation;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!control_load_settings(control))
        return CONTROL_FAILED;
    if (!module_load_all(&control->settings, problem, sizeof problem))
        return message_end(CONTROL_FAILED, "%s", problem);
    void (*write)(const struct operation *, const char *) = is_json ? write_record : write_line;
    for (size_t i = 0; (operation = registry_get_builtin(i)); i++)
        if (!operation->task.is_internal)
            write(operation, "operation");
    for (size_t i = 0; (operation = registry_get_added(i)); i++)
        write(operation, "operation");
    for (int act = RESOURCE_READ; act <= RESOURCE_REMOVE; act++)
        write(registry_get_resource((enum resource_act)act), "resource");
    return CONTROL_DONE;
}
