/* cmd_operations: `stampctl operations`: which operations there are, and who may call them. */
#include "control/control.h"

#include <stdio.h>

#include "control/message.h"
#include "control/record.h"
#include "operation/module/module.h"
#include "operation/registry.h"

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
    static const struct command command = {
        "operations",
        "",
        0,
        0,
        "List the operations of the server, including those of its modules.",
        "Columns: name (a method for documents as resources); operation or resource; the right that it "
        "needs; whether it\n"
        "reads or writes; whether it grants documents to callers that may not read the namespace; "
        "whether access\n"
        "rules decide on each document of it; its module.\n"};
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), RECORD_JSON_LINE(&is_json)};
    char **words, problem[1024];
    int count;
    const struct operation *operation;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!control_load_settings(control))
        return CONTROL_FAILED;
    if (!module_load_all(&control->settings, problem, sizeof problem)) {
        message_print("%s", problem);
        return CONTROL_FAILED;
    }
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
