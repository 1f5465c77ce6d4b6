/* cmd_cron: `stampctl cron add, list, drop, restore, next`: periodic tasks of a namespace. */
#include "control/control.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "model/task/cron.h"
#include "model/document/stamp.h"
#include "model/task/task.h"
#include "edge/json/json.h"
#include "store/statements.h"
#include "store/tasks/task_rows.h"

enum { NAME_MOST = 64, OPERATION_MOST = 32, INFO_MOST = 255 };

#define PERIODS "Ymmddhhmm, Mddhhmm, Wdhhmm (1 is Monday), Dhhmm, Hmm, or the fields of crontab(5)"

/* --- common parts --- */

static bool take_zone(const struct control *control)
{
    if (cron_set_zone(control->settings.zone))
        return true;
    return message_refuse("zone = %s: there is no such time zone", control->settings.zone);
}

/* The database of the namespace, connected to as administrator. */
static bool open_namespace(struct control *control, const char *code, struct pg **pg_r)
{
    struct ns_target target;
    if (!control_load_settings(control) || !take_zone(control) ||
        !ns_registry_connect(control, code, &target))
        return false;
    *pg_r = target.pg;
    return true;
}

static bool is_period(const char *command, const char *text, struct cron *cron_r)
{
    if (cron_parse(bytes_of(text), cron_r))
        return true;
    return message_refuse("%s: %s: expected " PERIODS ", with a day and a time that exist", command, text);
}

enum { TIME_ROOM = 64 };

/* In the time zone of the command; returns `room`. */
static const char *write_time(int64_t epoch_ms, const char *format, char room[TIME_ROOM])
{
    time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm parts;
    if (!localtime_r(&seconds, &parts) || !strftime(room, TIME_ROOM, format, &parts))
        room[0] = '\0';
    return room;
}

static void print_time(int64_t epoch_ms)
{
    char room[TIME_ROOM];
    printf("%s", write_time(epoch_ms, "%Y-%m-%d %H:%M:%S %z", room));
}

static void add_time(struct record *record, const char *name, int64_t epoch_ms)
{
    char room[TIME_ROOM];
    record_add_word(record, name, write_time(epoch_ms, "%Y-%m-%dT%H:%M:%S%z", room));
}

/* --- add --- */

static bool cmd_cron_is_name(const char *what, const char *text, size_t most)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                      all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (strspn(text, letters) && strlen(text) <= most && !text[strspn(text, all)])
        return true;
    return message_refuse(
        "cron add: %s is no name of %s: a letter, then letters, digits, '_', '.', '-', %zu in all", text,
        what, most);
}

static bool is_param(struct control *control, const char *text)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 1};
    struct json_problem problem = {0};
    struct json *json;
    if (json_read(control->arena, bytes_of(text), &limits, &json, &problem) != FAULT_NONE)
        message_print("cron add: --param %s: %s", text, problem.what ? problem.what : "it is no JSON");
    else if (json->kind != JSON_OBJECT)
        message_print("cron add: --param %s: expected a JSON object", text);
    else
        return true;
    return false;
}

static bool is_info(const char *text)
{
    if (strlen(text) <= INFO_MOST && bytes_is_utf8(bytes_of(text)))
        return true;
    return message_refuse("cron add: --info: expected at most %d bytes of UTF-8", INFO_MOST);
}

static int cron_add(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "cron add", "CODE NAME PERIOD OPERATION", "Create or change a periodic task of a namespace.",
        "PERIOD is " PERIODS ",\nin the time zone of the setting zone.  The next scan of the queue manager "
        "plans the task.\n");
    const char *param = "{}", *info = "";
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("param", "JSON", &param, "Set the argument of the operation, an object (default: {})."),
        OPTION_TEXT("info", "WORDS", &info, "Set the info of its tasks, by which they can be found."),
    };
    enum { WORD_CODE, WORD_NAME, WORD_PERIOD, WORD_OPERATION };
    struct pg_result *result;
    struct cron cron;
    struct pg *pg;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_cron_is_name("a periodic task", words[WORD_NAME], NAME_MOST) ||
        !is_period("cron add", words[WORD_PERIOD], &cron) ||
        !cmd_cron_is_name("an operation", words[WORD_OPERATION], OPERATION_MOST) ||
        !is_param(control, param) || !is_info(info))
        return CONTROL_WRONG;
    if (!open_namespace(control, words[WORD_CODE], &pg))
        return CONTROL_FAILED;
    const struct pg_params *params = PG_PARAMS(
        control->arena, PG_TEXT(bytes_of(words[WORD_NAME])), PG_TEXT(bytes_of(words[WORD_OPERATION])),
        PG_TEXT(bytes_of(words[WORD_PERIOD])), PG_TEXT(bytes_of(param)), PG_TEXT(bytes_of(info)));
    if (!control_query(control, pg, words[WORD_NAME],
                       "select stampd.cron_set($1::text, $2::text, $3::text, $4::text, $5::text)", params,
                       &result))
        return CONTROL_FAILED;
    if (bytes_equal(pg_get_text(result, 0, 0), BYTES("same"))) {
        printf("%s: it is so already\n", words[WORD_NAME]);
        return CONTROL_DONE;
    }
    printf("%s: next ", words[WORD_NAME]);
    print_time(cron_next_ms(&cron, clock_wall_ms()));
    puts("");
    return CONTROL_DONE;
}

/* --- list --- */

/* What becomes of the rule; NULL: it is planned for its start. */
static const char *state_of(const struct pg_result *rows, int row)
{
    static const char *const words[][2] = {
        {"unplanned", "not planned yet"}, {"running", "runs"}, {"dropped", "dropped"}, {"parked", "parked"}};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (bytes_equal(pg_get_text(rows, row, RULE_STATE), bytes_of(words[i][0])))
            return words[i][1];
    return NULL;
}

static const struct {
    const char *name;
    int column, width;
} shown[] = {{"name", RULE_NAME, 20}, {"period", RULE_PERIOD, 9}, {"op", RULE_OPERATION, 20}};

static void write_rule(const struct pg_result *rows, int row)
{
    struct record record = {0};
    const char *state = state_of(rows, row);
    for (size_t i = 0; i < COUNT_OF(shown); i++)
        record_add_text(&record, shown[i].name, pg_get_text(rows, row, shown[i].column));
    record_add_text(&record, "module", pg_get_text(rows, row, RULE_MODULE));
    record_add_word(&record, "state", state ? state : "planned");
    if (!state)
        add_time(&record, "next", stamp_to_epoch_ms(pg_get_i64(rows, row, RULE_START)));
    if (!pg_is_null(rows, row, RULE_CODE)) {
        record_add_text(&record, "code", pg_get_text(rows, row, RULE_CODE));
        record_add_i64(&record, "retry", pg_get_i64(rows, row, RULE_RETRY));
    }
    record_print(&record);
}

static void print_rule(const struct pg_result *rows, int row)
{
    const char *state = state_of(rows, row);
    struct bytes code = pg_get_text(rows, row, RULE_CODE), module = pg_get_text(rows, row, RULE_MODULE);
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        struct bytes text = pg_get_text(rows, row, shown[i].column);
        printf("%-*.*s  ", shown[i].width, (int)text.size, text.data);
    }
    if (state)
        printf("%s", state);
    else
        print_time(stamp_to_epoch_ms(pg_get_i64(rows, row, RULE_START)));
    if (code.data)
        printf("  %.*s, retry %lld", (int)code.size, code.data, (long long)pg_get_i64(rows, row, RULE_RETRY));
    if (module.data)
        printf("  (module %.*s)", (int)module.size, module.data);
    puts("");
}

static int cron_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("cron list", "CODE", "List the periodic tasks of a namespace, with their next times.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json)};
    struct pg_result *rows;
    struct pg *pg;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_namespace(control, words[0], &pg) ||
        !control_query(control, pg, words[0], statements[STATEMENT_TASK_RULES].sql,
                       PG_PARAMS(control->arena, PG_I32(INT32_MAX)), &rows))
        return CONTROL_FAILED;
    for (int row = 0; row < pg_rows(rows); row++)
        (is_json ? write_rule : print_rule)(rows, row);
    return CONTROL_DONE;
}

/* --- drop and restore --- */

/* CODE NAME, and a function of the database that is false when there is nothing to do. */
static int cmd_cron_change(struct control *control, const struct command *command, const char *sql,
                           const char *problem, int argc, char **argv)
{
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct pg_result *result;
    struct pg *pg;
    char **words = options_read(control, command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_namespace(control, words[0], &pg))
        return CONTROL_FAILED;
    if (!control_query(control, pg, words[1], sql, PG_PARAMS(control->arena, PG_TEXT(bytes_of(words[1]))),
                       &result))
        return CONTROL_FAILED;
    if (pg_get_bool(result, 0, 0))
        return CONTROL_DONE;
    return message_end(CONTROL_FAILED, "%s: %s", words[1], problem);
}

static int cron_drop(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("cron drop", "CODE NAME", "End a periodic task, and delete its waiting task.",
                "A rule of a module stays ended until `cron restore`.  Where "
                "`cron add` has replaced a module's rule, the\n"
                "module's rule takes effect again.\n");
    return cmd_cron_change(control, &command, "select stampd.cron_drop($1::text)",
                           "there is no such periodic task", argc, argv);
}

static int cron_restore(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("cron restore", "CODE NAME", "Restore a periodic task of a module after `cron drop`.", NULL);
    return cmd_cron_change(control, &command, "select stampd.cron_restore($1::text)",
                           "there is no such periodic task of a module that was dropped", argc, argv);
}

/* --- next --- */

static int cron_next(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("cron next", "PERIOD", "Show the next times of a period.", "PERIOD is " PERIODS ".\n");
    int64_t many = 5, moment = clock_wall_ms();
    bool is_json = false;
    const char *zone = NULL;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_TEXT("zone", "ZONE", &zone,
                    "Use this time zone, as Europe/Paris (default: the setting zone)."),
        OPTION_NUMBER("count", "N", &many, 1, 1000, "Show N times (default: 5)."),
        RECORD_JSON_LINE(&is_json),
    };
    struct cron cron;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!is_period("cron next", words[0], &cron))
        return CONTROL_WRONG;
    if (zone && !cron_set_zone(zone))
        return message_end(CONTROL_WRONG, "cron next: --zone %s: there is no such time zone", zone);
    if (!zone && (!control_load_settings(control) || !take_zone(control)))
        return CONTROL_FAILED;
    for (int64_t i = 0; i < many; i++) {
        struct record record = {0};
        moment = cron_next_ms(&cron, moment);
        if (is_json) {
            add_time(&record, "next", moment);
            record_print(&record);
        } else {
            print_time(moment);
            puts("");
        }
    }
    return CONTROL_DONE;
}

int control_cron(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"add", "Create or change a periodic task.", cron_add},
        {"list", "List periodic tasks, with their next times.", cron_list},
        {"drop", "End a periodic task.", cron_drop},
        {"restore", "Restore a periodic task of a module.", cron_restore},
        {"next", "Show the next times of a period.", cron_next},
    };
    return options_choose("cron", "Set, list and drop the periodic tasks of a namespace.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
