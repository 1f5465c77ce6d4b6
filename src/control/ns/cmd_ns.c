/* cmd_ns: `stampctl ns migrate, restored, purge, push, access, accounts, origins, state, off, on,
 * map`; the others have files of their own. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "control/message.h"
#include "control/nginx/map.h"
#include "control/ns/migrations.h"
#include "control/ns/ns_purge.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "control/schema/schema_catalog.h"
#include "control/servers.h"
#include "edge/json/json.h"
#include "model/schema/schema.h"

enum { PURGE_DAYS = 60, PURGE_DAYS_LEAST = 8 };

struct namespace_list {
    struct pg *z;
    struct namespace_conf *confs;
    size_t count;
};

static bool open_registry(struct control *control, struct namespace_list *registry_r)
{
    return ns_registry_open(control, &registry_r->z) &&
           ns_registry_read(control, registry_r->z, &registry_r->confs, &registry_r->count);
}

/* --- migrate, restored, purge: one namespace, or all, z first --- */

struct visit_options {
    int64_t days; /* of purge, as is_dry */
    bool is_dry;
    bool is_on; /* of push */
};
/* What is done to each; reports what went wrong. */
typedef bool visitor(struct control *control, struct pg *pg, const struct namespace_conf *conf,
                     const struct visit_options *options);

static bool cmd_ns_visit(struct control *control, const struct namespace_conf *conf, visitor *act,
                         const struct visit_options *options)
{
    struct pg *pg;
    enum fault fault = control_connect(control, conf->database, &pg);
    if (fault == FAULT_ODATABASE)
        message_print("%s: the database %s does not exist", conf->code, conf->database);
    return fault == FAULT_NONE && act(control, pg, conf, options);
}

/* z comes first: the others are read from it. */
static bool visit_all(struct control *control, visitor *act, const struct visit_options *options)
{
    struct namespace_list registry;
    struct namespace_conf z = {.code = "z", .database = control->settings.z_database};
    if (!cmd_ns_visit(control, &z, act, options) || !open_registry(control, &registry))
        return false;
    bool is_done = true;
    for (size_t i = 0; i < registry.count; i++)
        if (strcmp(registry.confs[i].code, "z") != 0)
            is_done = cmd_ns_visit(control, &registry.confs[i], act, options) && is_done;
    return is_done;
}

static bool visit_one(struct control *control, const char *code, visitor *act,
                      const struct visit_options *options)
{
    struct namespace_list registry;
    const struct namespace_conf *conf =
        open_registry(control, &registry) ? ns_registry_require(registry.confs, registry.count, code) : NULL;
    return conf && cmd_ns_visit(control, conf, act, options);
}

static int visit_command(struct control *control, const struct command *command, int argc, char **argv,
                         visitor *act, struct visit_options *options)
{
    struct visit_options none = {0};
    bool is_all = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("all", &is_all, "Do it for all namespaces, z first."),
        CONTROL_ADMIN_LINE(control),
        OPTION_NUMBER("days", "DAYS", options ? &options->days : &none.days, PURGE_DAYS_LEAST,
                      SCHEMA_ZOMBIE_DAYS_MOST,
                      "Keep deletions for DAYS, in classes without zombieDays (default: 60)."),
        OPTION_FLAG("dry-run", options ? &options->is_dry : &none.is_dry,
                    "Only count what would be deleted, by class."),
    };
    char **words = control_begin(control, command, lines, COUNT_OF(lines) - (options ? 0 : 2), argc, argv);
    if (!words)
        return control->status;
    if (is_all == (words[0] != NULL))
        return message_end(CONTROL_WRONG, "%s: expected a CODE or --all", command->name);
    const struct visit_options *given = options ? options : &none;
    bool is_done = is_all ? visit_all(control, act, given) : visit_one(control, words[0], act, given);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static bool migrate(struct control *control, struct pg *pg, const struct namespace_conf *conf,
                    const struct visit_options *options UNUSED)
{
    return migrations_apply(control, pg, conf->database);
}

static int ns_migrate(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns migrate", "[CODE]",
                "Upgrade the database schema of a namespace, or of all, to this release.", NULL);
    return visit_command(control, &command, argc, argv, migrate, NULL);
}

/* All rows have been rewritten: without VACUUM the tables would stay twice as large. */
static bool renew(struct control *control, struct pg *pg, const struct namespace_conf *conf,
                  const struct visit_options *options UNUSED)
{
    struct pg_result *result;
    if (!control_query(control, pg, conf->database, "select stampd.after_restore()", NULL, &result))
        return false;
    printf("%s: all documents are of version %lld now\n", conf->code, (long long)pg_get_i64(result, 0, 0));
    return servers_await(control, pg) && control_execute(pg, conf->database, "vacuum analyze");
}

static int ns_restored(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns restored", "[CODE]", "Make every client fetch its copies again, after a restore of the database.",
        "Every document becomes a new incarnation, with a version above all that were assigned since the\n"
        "backup.  The clock must be right.\n");
    return visit_command(control, &command, argc, argv, renew, NULL);
}

static bool purge(struct control *control, struct pg *pg, const struct namespace_conf *conf,
                  const struct visit_options *options)
{
    return options->is_dry ? ns_purge_count(control, pg, conf->code, options->days)
                           : ns_purge_run(control, pg, conf->code, options->days);
}

static int ns_purge(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns purge", "[CODE]", "Delete expired documents and purge old deletions.",
                "Works in batches.  The server does the same every "
                "keep_interval_s.  zombieDays of a class takes precedence\n"
                "over --days.\n");
    struct visit_options options = {.days = PURGE_DAYS};
    return visit_command(control, &command, argc, argv, purge, &options);
}

/* --- push --- */

/* Once it is on, and all that had begun before is over, every later commit wakes the sessions it matches. */
static bool switch_waking(struct control *control, struct pg *pg, const struct namespace_conf *conf,
                          const struct visit_options *options)
{
    struct pg_result *result;
    if (!control_query(control, pg, conf->database,
                       options->is_on ? "select stampd.wake_sessions(true)"
                                      : "select stampd.wake_sessions(false)",
                       NULL, &result))
        return false;
    return schema_wait_for_older(control, pg);
}

bool cmd_ns_read_switch(const char *name, const char *word, bool *is_on_r)
{
    *is_on_r = strcmp(word, "on") == 0;
    return *is_on_r || strcmp(word, "off") == 0 ||
           message_refuse("%s: \"%s\": expected on or off", name, word);
}

static int ns_push(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns push", "CODE on|off", "Turn Web Push notifications on or off.",
                "In a namespace where they are on, a commit creates a task `push` "
                "for each session that has subscribed\n"
                "to what it changes and has registered a push address.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    bool is_on;
    if (!cmd_ns_read_switch(command.name, words[1], &is_on))
        return CONTROL_WRONG;
    const struct visit_options options = {.is_on = is_on};
    return visit_one(control, words[0], switch_waking, &options) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- access, origins, state, off, on: members of the configuration --- */

/* A member and its value as JSON; NO_BYTES: removed. */
struct setting {
    const char *member;
    struct bytes value;
};

/* The same rules as those of the server's operation `ns`. */
static bool is_valid(struct control *control, const struct setting *setting)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 2};
    struct json *value;
    struct json_problem problem;
    if (!setting->value.data)
        return true;
    const char *expected = json_read(control->arena, setting->value, &limits, &value, &problem)
                               ? "A JSON value is expected."
                               : namespace_refuse_member(control->arena, bytes_of(setting->member), value);
    if (expected)
        message_print("%s: %s", setting->member, expected);
    return !expected;
}

/* Finds the namespace under a lock that excludes other stampctl processes; NULL: reported why. */
static const struct namespace_conf *open_alone(struct control *control, const char *code, struct pg **z_r)
{
    struct namespace_list registry;
    struct pg *alone;
    if (!ns_database_open_alone(control, &alone) || !open_registry(control, &registry))
        return NULL;
    *z_r = registry.z;
    return ns_registry_require(registry.confs, registry.count, code);
}

static bool store_settings(struct control *control, struct pg *z, const struct namespace_conf *conf,
                           const struct setting *settings, size_t count)
{
    struct bytes text = conf->text;
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(control, &settings[i]))
            return false;
        text = namespace_set_json(control->arena, text, settings[i].member, settings[i].value);
    }
    const char *refusal = namespace_refuse_change(control->arena, conf->text, text);
    if (refusal)
        return message_refuse("accounts: %s", refusal);
    return (bytes_equal(text, conf->text) || ns_registry_store(control, z, conf->code, text)) &&
           servers_await(control, z);
}

static bool cmd_ns_change(struct control *control, const char *code, const struct setting *settings,
                          size_t count)
{
    struct pg *z;
    const struct namespace_conf *conf = open_alone(control, code, &z);
    return conf && store_settings(control, z, conf, settings, count);
}

bool cmd_ns_set(struct control *control, const char *code, const char *member, struct bytes value)
{
    const struct setting setting = {member, value};
    return cmd_ns_change(control, code, &setting, 1);
}

static bool read_member(struct control *control, const struct namespace_conf *conf, const char *member,
                        const struct json **value_r)
{
    struct json *root;
    if (!json_is_tree(control->arena, conf->text, 32, 2, &root))
        return message_refuse("%s: its configuration is not JSON", conf->code);
    *value_r = json_member(root, member);
    return true;
}

/* With an arena of its own: the lock ends with its connection. */
bool cmd_ns_place(const struct control *control, const char *code, const char *database,
                  const struct map_options *map)
{
    struct pg *z;
    struct namespace_list registry;
    struct control own = *control;
    own.arena = arena_create("place");
    const struct namespace_conf *conf = open_alone(&own, code, &z);
    bool is_done =
        conf &&
        (!database ||
         ns_registry_store(&own, z, code, namespace_set_member(own.arena, conf->text, "database", database)));
    is_done = is_done && servers_await(&own, z) && open_registry(&own, &registry) &&
              map_write(&own, map, registry.confs, registry.count, NULL);
    arena_destroy(own.arena);
    return is_done;
}

bool cmd_ns_is_free(struct control *control, const char *database, const char *code)
{
    struct namespace_list registry;
    if (!open_registry(control, &registry))
        return false;
    for (size_t i = 0; i < registry.count; i++)
        if (strcmp(registry.confs[i].database, database) == 0 && strcmp(registry.confs[i].code, code) != 0)
            return message_refuse("%s is the database of namespace %s", database, registry.confs[i].code);
    return true;
}

bool cmd_ns_read(struct control *control, const char *code, const char *member, const struct json **value_r)
{
    struct namespace_list registry;
    const struct namespace_conf *conf =
        open_registry(control, &registry) ? ns_registry_require(registry.confs, registry.count, code) : NULL;
    return conf && read_member(control, conf, member, value_r);
}

bool cmd_ns_edit(struct control *control, const char *code, const char *member, cmd_ns_editor *edit,
                 void *context)
{
    struct pg *z;
    struct setting setting = {member, NO_BYTES};
    const struct json *present;
    const struct namespace_conf *conf = open_alone(control, code, &z);
    return conf && read_member(control, conf, member, &present) &&
           edit(control, present, context, &setting.value) && store_settings(control, z, conf, &setting, 1);
}

static struct bytes json_of(struct arena *arena, const char *text)
{
    struct builder json = {0};
    json_add_string(&json, bytes_of(text));
    return builder_take(&json, arena);
}

static int ns_access(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("ns access", "CODE closed|read|open|rules",
                "Set what callers without a key may do: nothing, read, read and write, or what rules allow.",
                "The rules are set with `stampctl rules set`.  Without rules nothing is allowed.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!namespace_is_access(words[1]))
        return message_end(CONTROL_WRONG, "%s: \"%s\": expected %s", command.name, words[1],
                           command.arguments);
    const struct setting setting = {"access", json_of(control->arena, words[1])};
    return cmd_ns_change(control, words[0], &setting, 1) ? CONTROL_DONE : CONTROL_FAILED;
}

/* Prints the member as it is written; nothing: the namespace has no accounts. */
static bool print_accounts(struct control *control, const char *code)
{
    struct namespace_list registry;
    const struct namespace_conf *conf =
        open_registry(control, &registry) ? ns_registry_require(registry.confs, registry.count, code) : NULL;
    if (!conf)
        return false;
    const struct ns_conf read = namespace_read(control->arena, conf->text);
    if (read.accounts_text.size)
        printf("%.*s\n", (int)read.accounts_text.size, read.accounts_text.data);
    return true;
}

/* nginx has the origins of the namespaces too, and from which of them cookies come: where it has a map, that
 * is written again. */
static bool renew_origins(struct control *control, const struct map_options *map)
{
    struct namespace_list registry;
    if (access(map_path(control, map), F_OK) != 0)
        return true;
    return open_registry(control, &registry) && map_write(control, map, registry.confs, registry.count, NULL);
}

static int ns_accounts(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns accounts", "CODE [JSON]", "Give a namespace accounts, or change how; without JSON, print it.",
        "JSON is an object: \"registration\" (closed, invitation or open), \"anonymous\" (true or false),\n"
        "\"anonymous_days\" (0), \"session_days\" (30), \"sessions_most\" (32), \"mail_login\" (false),\n"
        "\"whois\" (nobody, account or role:NAME), \"whois_by\" (name or address).  The access must be rules "
        "or closed.\n");
    struct map_options map = {0};
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        NS_MAP_LINES(&map)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    const struct setting setting = {"accounts", bytes_of(words[1])};
    bool is_done = words[1] ? cmd_ns_change(control, words[0], &setting, 1) && renew_origins(control, &map)
                            : print_accounts(control, words[0]);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static void print_origin(struct bytes origin, bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_text(&record, "origin", origin);
        record_print(&record);
    } else {
        printf("%.*s\n", (int)origin.size, origin.data);
    }
}

static bool print_origins(struct control *control, const char *code, bool is_json)
{
    struct namespace_list registry;
    struct json *root;
    const struct namespace_conf *conf =
        open_registry(control, &registry) ? ns_registry_require(registry.confs, registry.count, code) : NULL;
    if (!conf || !json_is_tree(control->arena, conf->text, 32, 2, &root))
        return false;
    const struct json *origins = json_member(root, "origins");
    for (const struct json *one = origins ? origins->first : NULL; one; one = one->next)
        if (one->kind == JSON_STRING)
            print_origin(one->value, is_json);
    return true;
}

static bool set_origins(struct control *control, const char *code, char **origins)
{
    struct builder json = {0};
    for (size_t i = 0; origins[i]; i++) {
        builder_add(&json, i ? "," : "[", 1);
        json_add_string(&json, bytes_of(origins[i]));
    }
    if (json.size)
        builder_add_text(&json, "]");
    const struct setting setting = {"origins", json.size ? builder_bytes(&json) : NO_BYTES};
    bool is_done = cmd_ns_change(control, code, &setting, 1);
    builder_free(&json);
    return is_done;
}

static int ns_origins(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND_OF("ns origins", "CODE [ORIGIN...]", 1, 1 + NAMESPACE_ORIGINS_MOST,
                   "Set the allowed CORS origins; without ORIGIN, list them.",
                   "An origin is https://host or https://host:port, or * for all.  "
                   "The given origins replace the former ones.\n");
    bool is_none = false, is_json = false;
    struct map_options map = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control), RECORD_JSON_LINE(&is_json),
        OPTION_FLAG("none", &is_none, "Allow no other origin."), NS_MAP_LINES(&map)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    for (size_t i = 1; words[i]; i++)
        if (!namespace_is_origin(words[i]))
            return message_end(CONTROL_WRONG,
                               "ns origins: \"%s\": expected * or an origin like https://host:port",
                               words[i]);
    if (is_none && words[1])
        return message_end(CONTROL_WRONG, "ns origins: expected --none or origins, not both");
    bool is_done = words[1] || is_none
                       ? set_origins(control, words[0], words + 1) && renew_origins(control, &map)
                       : print_origins(control, words[0], is_json);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- state, off, on --- */

/* `message` NULL: none. */
static bool set_state(struct control *control, const char *code, enum ns_state state, const char *message)
{
    char *number = arena_printf(control->arena, "%d", state);
    const struct setting settings[] = {
        {"state", state ? bytes_of(number) : NO_BYTES},
        {"message", message ? json_of(control->arena, message) : NO_BYTES},
    };
    return cmd_ns_change(control, code, settings, COUNT_OF(settings));
}

bool cmd_ns_set_state(const struct control *control, const char *code, enum ns_state state,
                      const char *message)
{
    struct control own = *control;
    own.arena = arena_create("state");
    bool is_set = set_state(&own, code, state, message);
    arena_destroy(own.arena);
    return is_set;
}

static bool is_message(const char *command, const char *words)
{
    bool is_one = *words && strlen(words) <= NAMESPACE_MESSAGE_MOST && bytes_is_utf8(bytes_of(words));
    if (!is_one)
        message_print("%s: expected a message of 1 to %d bytes of UTF-8", command, NAMESPACE_MESSAGE_MOST);
    return is_one;
}

static int state_command(struct control *control, const struct command *command, int argc, char **argv,
                         const enum ns_state *given)
{
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    enum ns_state state = given ? *given : NS_ON;
    char **words = control_begin(control, command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!given && !namespace_find_state(words[1], &state))
        return message_end(CONTROL_WRONG, "%s: \"%s\": expected %s", command->name, words[1],
                           command->arguments);
    const char *message = words[1] && !given ? words[2] : words[1];
    if (message && !is_message(command->name, message))
        return CONTROL_WRONG;
    return set_state(control, words[0], state, message) ? CONTROL_DONE : CONTROL_FAILED;
}

static int ns_state(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns state", "CODE on|readonly|off|gone [MESSAGE]",
        "Set what is served: everything, only what changes nothing, only administrators, nothing.",
        "The highest state of a namespace and of z applies.  Tasks wait until it is on.  MESSAGE is in each\n"
        "refusal and in the answer of ping.\n");
    return state_command(control, &command, argc, argv, NULL);
}

static int ns_off(struct control *control, int argc, char **argv)
{
    static const enum ns_state off = NS_OFF;
    static const struct command command =
        COMMAND("ns off", "CODE WORDS", "Close a namespace for maintenance; every answer contains the words.",
                "The same as `ns state CODE off WORDS`.\n");
    return state_command(control, &command, argc, argv, &off);
}

static int ns_on(struct control *control, int argc, char **argv)
{
    static const enum ns_state on = NS_ON;
    static const struct command command =
        COMMAND("ns on", "CODE", "Reopen a namespace.", "The same as `ns state CODE on`.\n");
    return state_command(control, &command, argc, argv, &on);
}

/* --- map --- */

static int ns_map(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND("ns map", "", "Rewrite nginx's map of namespaces.", NULL);
    struct map_options map = {0};
    struct namespace_list registry;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        NS_MAP_LINES(&map)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_registry(control, &registry) || !map_write(control, &map, registry.confs, registry.count, NULL))
        return CONTROL_FAILED;
    printf("%s: %zu namespaces\n", map_path(control, &map), registry.count);
    return CONTROL_DONE;
}

int control_ns(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"create", "Create a namespace.", cmd_ns_create},
        {"drop", "Destroy a namespace with all its documents and files.", cmd_ns_drop},
        {"keys", "List, add or wrap the data keys of an encrypted namespace.", cmd_ns_keys},
        {"list", "List the namespaces.", cmd_ns_list},
        {"move", "Move a namespace to another site while it is served.", cmd_ns_move},
        {"migrate", "Upgrade schemas to this release.", ns_migrate},
        {"restored", "Make every client fetch its copies again after a restore.", ns_restored},
        {"purge", "Delete expired documents and purge old deletions.", ns_purge},
        {"push", "Turn Web Push notifications on or off.", ns_push},
        {"access", "Set who may call without a key.", ns_access},
        {"accounts", "Give a namespace accounts.", ns_accounts},
        {"origins", "Set or list the allowed CORS origins.", ns_origins},
        {"quotas", "Set or print the quotas of callers.", cmd_ns_quotas},
        {"reads", "Set or list the other namespaces that a namespace reads.", cmd_ns_reads},
        {"readers", "Set or list the other namespaces that may read a namespace.", cmd_ns_readers},
        {"records", "Set or print who may read and write which records.", cmd_ns_records},
        {"spread", "Set whether several hosts hold the records together.", cmd_ns_spread},
        {"state", "Set what is served: everything, reads, administrators, nothing.", ns_state},
        {"off", "Close a namespace for maintenance.", ns_off},
        {"on", "Reopen a namespace.", ns_on},
        {"map", "Rewrite nginx's map of namespaces.", ns_map},
        {"workers", "Set or list the queues that external workers serve.", cmd_ns_workers},
    };
    return options_choose(
        "ns",
        "Manage namespaces.  A namespace holds one application's documents, in one PostgreSQL database.\n",
        choices, COUNT_OF(choices), control, argc, argv);
}
