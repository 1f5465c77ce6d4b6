/* cmd_audit: `stampctl audit` shows the record of administration; and what it has of commands. */
#include "control/cmd_audit.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/logging/audit.h"
#include "base/logging/log_json.h"
#include "base/log.h"
#include "control/message.h"
#include "control/record.h"
#include "edge/json/json.h"

/* --- recording --- */

/* Those that change nothing of the server; a command that is not here is recorded. */
static const char *const looks[] = {
    "account list",  "account show", "account whois", "audit",        "backup check", "backup list",
    "check-config",  "cron list",    "cron next",     "doctor",       "dump",         "files check",
    "files verify",  "find",         "journal get",   "journal list", "journal ping", "journal listen",
    "key hash",      "ns list",      "operations",    "ping",         "push public",  "resource get",
    "resource list", "rules check",  "rules explain", "rules show",   "rules test",   "schema check",
    "schema plan",   "schema show",  "search",        "task backlog", "task history", "task list",
    "task show",     "top",          "verify",        "version"};

static bool is_look(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(looks); i++)
        if (strcmp(looks[i], name) == 0)
            return true;
    return false;
}

/* Does the usage line call the argument so? */
static bool is_named(const struct command *command, int number, const char *name)
{
    const char *argument = options_find_argument(command, number);
    argument += strspn(argument, "[");
    return strcspn(argument, " .|]") == strlen(name) && strncmp(argument, name, strlen(name)) == 0;
}

static const char *describe_user(struct arena *arena)
{
    const struct passwd *user = getpwuid(getuid());
    return user ? arena_printf(arena, "user %s", user->pw_name) : arena_printf(arena, "user %u", getuid());
}

/* The namespace and what the command is about.  Arguments that do not name something may be contents. */
static void find_target(struct arena *arena, const struct options_given *given, struct audit_event *event)
{
    static const char *const targets[] = {"NAME", "ID", "PATH", "STORE", "OTHER"};
    for (int i = 0; i < given->count; i++) {
        const char *word = given->words[i];
        if (is_named(given->command, i, "CODE"))
            event->ns = bytes_of(word);
        for (size_t j = 0; j < COUNT_OF(targets); j++)
            if (is_named(given->command, i, targets[j]))
                event->target = bytes_of(
                    event->target.data ? arena_printf(arena, "%s %s", event->target.data, word) : word);
    }
}

void cmd_audit_note(const struct control *control, int status)
{
    const struct options_given *given = options_find_given();
    if (!given->command || !control->has_settings || is_look(given->command->name))
        return;
    struct audit_event event = {.who = bytes_of(describe_user(control->arena)),
                                .operation = bytes_of(given->command->name),
                                .outcome = bytes_of(status == CONTROL_DONE ? "done" : "failed")};
    find_target(control->arena, given, &event);
    log_open("stampctl", LOG_LEVEL_INFO, true, (enum log_format)control->settings.log_format);
    audit_note(&control->settings, &event);
}

/* --- showing --- */

struct audit_wish {
    const char *ns;
    bool is_json, is_refused;
};

static const char *audit_text(struct arena *arena, const struct json *event, const char *name)
{
    const struct json *member = json_member(event, name);
    return member && member->kind == JSON_STRING ? arena_copy(arena, member->value.data, member->value.size)
                                                 : "-";
}

/* Control characters do not reach a terminal. */
static const char *audit_quoted(struct arena *arena, const struct json *event, const char *name)
{
    const char *quoted = message_quote(arena, bytes_of(audit_text(arena, event, name)));
    return arena_copy(arena, quoted + 1, strlen(quoted) - 2);
}

static void show_event(struct arena *arena, const struct audit_wish *wish, struct bytes line)
{
    const struct json_limits limits = {.depth = 2, .tree_depth = 1, .nodes = 64};
    struct json_problem problem;
    struct json *event;
    if (json_read(arena, line, &limits, &event, &problem) != FAULT_NONE)
        return; /* a disk was full: a line may be cut */
    if ((wish->ns && strcmp(audit_text(arena, event, "ns"), wish->ns) != 0) ||
        (wish->is_refused && strcmp(audit_text(arena, event, "outcome"), "done") == 0))
        return;
    if (wish->is_json) {
        printf("%.*s\n", (int)line.size, line.data);
        return;
    }
    printf("%-24s  %-24s  %-20s  %-16s  %-12s  %s\n", audit_quoted(arena, event, "time"),
           audit_quoted(arena, event, "who"), audit_quoted(arena, event, "operation"),
           audit_quoted(arena, event, "ns"), audit_quoted(arena, event, "outcome"),
           audit_quoted(arena, event, "target"));
    const char *unrecorded = audit_quoted(arena, event, "unrecorded");
    if (strcmp(unrecorded, "-") != 0)
        printf("%s attempts before this one are not recorded\n", unrecorded);
}

/* False: it cannot be read. */
static bool show_file(const struct audit_wish *wish, const char *path)
{
    char line[LOG_JSON_BYTES + 2];
    FILE *file = fopen(path, "re");
    struct arena *arena = arena_create("audit");
    while (file && fgets(line, sizeof line, file)) {
        show_event(arena, wish, (struct bytes){line, strcspn(line, "\n")});
        arena_reset(arena);
    }
    arena_destroy(arena);
    return file && fclose(file) == 0;
}

int control_audit(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("audit", "", "Show what administrators did, and who was refused.",
                "Reads the file of the setting audit_file and the one before it, oldest first.\n"
                "Columns: time, who, operation, namespace, outcome, target.\n");
    struct audit_wish wish = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), OPTION_TEXT("ns", "CODE", &wish.ns, "Only events of this namespace."),
        OPTION_FLAG("refused", &wish.is_refused, "Only events whose outcome is not done."),
        RECORD_JSON_LINE(&wish.is_json)};
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    const char *path = control->settings.audit_file;
    if (!*path) {
        message_print("audit: the setting audit_file is empty: the record is in the log");
        return CONTROL_FAILED;
    }
    bool has_former = show_file(&wish, arena_printf(control->arena, "%s.1", path));
    if (!show_file(&wish, path) && !has_former) {
        message_print("audit: %s: %m", path);
        return CONTROL_FAILED;
    }
    return CONTROL_DONE;
}
