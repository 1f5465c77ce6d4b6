/* stampctl: the administrator's command line. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/record.h"

#include "config.h"

static int version(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command = {"version", "", 0, 0, "Shows the version.", NULL};
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    struct record record = {0};
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (is_json) {
        record_add_word(&record, "version", PACKAGE_VERSION);
        record_print(&record);
    } else {
        printf("stampctl %s\n", PACKAGE_VERSION);
    }
    return CONTROL_DONE;
}

static int run(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"ns", "Makes, drops, lists, migrates namespaces.", control_ns},
        {"schema", "Declares and applies classes of documents.", control_schema},
        {"task", "Looks at tasks and what became of them; starts, moves, holds, drops them.", control_task},
        {"load", "Stores documents, one JSON text a line.", control_load},
        {"dump", "Writes documents, one JSON text a line, as load takes them.", control_dump},
        {"cron", "Periodic tasks of a namespace.", control_cron},
        {"operations", "Lists the operations that the server has.", control_operations},
        {"ping", "Asks a server and its namespaces how they are.", control_ping},
        {"check-config", "Finds out whether settings, databases and nginx agree.", control_check_config},
        {"key", "Makes the administrator's key.", control_key},
        {"push", "Makes the key by which push services know the server.", control_push},
        {"nginx", "Writes nginx's configuration.", control_nginx},
        {"version", "Shows the version.", version},
    };
    static const char details[] = "Administers stampd, the document database server.\n";
    if (argc > 2 && strcmp(argv[1], "--complete") == 0) { /* what a shell asks for */
        options_complete();
        argc--;
        argv++;
    }
    /* -c may stand before the command as well */
    if (argc > 2 && (strcmp(argv[1], "-c") == 0 || strcmp(argv[1], "--config") == 0)) {
        control->config = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        argv[1] += 2; /* the command of that name */
    return options_choose("", details, choices, COUNT_OF(choices), control, argc, argv);
}

int main(int argc, char **argv)
{
    struct control control = {.arena = arena_create("process"), .config = CONTROL_CONFIG_DEFAULT};
    log_open("stampctl", LOG_LEVEL_ERROR, false);
    int status = run(&control, argc, argv);
    if (fflush(stdout) != 0 && status == CONTROL_DONE) {
        say("standard output: %m");
        status = CONTROL_FAILED;
    }
    arena_destroy(control.arena);
    if (control.has_settings)
        settings_free(&control.settings);
    return status;
}
