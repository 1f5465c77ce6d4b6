/* stampctl: the administrator's command line. */
#include "control/control.h"
#include "control/message.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/cmd_audit.h"
#include "control/record.h"

#include "config.h"

static int version(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command = COMMAND("version", "", "Show the version.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    struct record record = {0};
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_json) {
        record_add_word(&record, "version", PACKAGE_VERSION);
        record_print(&record);
    } else {
        printf("stampctl %s\n", PACKAGE_VERSION);
    }
    return CONTROL_DONE;
}

static int stampctl_run(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"setup", "Set up stampd with nginx and PostgreSQL on this host.", control_setup},
        {"ns", "Create, drop, list, migrate and configure namespaces.", control_ns},
        {"schema", "Declare and apply classes of documents.", control_schema},
        {"rules", "Set, check, test and explain access rules.", control_rules},
        {"resource", "Store, remove, list and show files of namespaces.", control_resource},
        {"task", "List, start, move, hold and drop tasks; show their history.", control_task},
        {"account", "List, show, create and disable accounts; set passwords, end sessions.", control_account},
        {"load", "Store documents, one JSON text a line.", control_load},
        {"dump", "Write documents, one JSON text a line, as load reads them.", control_dump},
        {"find", "Search documents by what their items contain.", control_find},
        {"change", "Change or remove what a search finds.", control_change},
        {"search", "Run a search in SQL that the schema declares.", control_search},
        {"purge", "Delete documents by class, id and age.", control_purge},
        {"export", "Write a namespace into an archive.", control_export},
        {"import", "Bring the documents of an archive into a namespace.", control_import},
        {"import-couchdb", "Store the documents of a CouchDB database.", control_import_couchdb},
        {"import-csv", "Store the rows of a CSV file as documents.", control_import_csv},
        {"import-firestore", "Store the documents of an export of Firestore.", control_import_firestore},
        {"verify", "Check an archive or a namespace.", control_verify},
        {"files", "Copy files of attachments to an object store, and back.", control_files},
        {"backup", "Back up the cluster; list and check backups.", control_backup},
        {"restore", "Make a data directory from a backup, as of any time.", control_restore},
        {"cell", "List the PostgreSQL clusters that namespaces are in; ask how they are.", control_cell},
        {"cron", "Set, list and drop periodic tasks.", control_cron},
        {"operations", "List the operations of the server.", control_operations},
        {"ping", "Check a server and its namespaces.", control_ping},
        {"journal", "Test a stamp-journal: get and set records.", control_journal},
        {"host", "Add, list and remove hosts that hold records together.", control_host},
        {"audit", "Show what administrators did, and who was refused.", control_audit},
        {"top", "Show what runs now: requests, queues, rates.", control_top},
        {"doctor", "Check the whole installation, and say what to do.", control_doctor},
        {"check-config", "Check that settings, databases and nginx agree.", control_check_config},
        {"key", "Create keys of administrators and queue managers.", control_key},
        {"push", "Create the key that identifies the server to push services.", control_push},
        {"nginx", "Write nginx's configuration.", control_nginx},
        {"version", "Show the version.", version},
    };
    static const char details[] = "Administer stampd, the document database server." BUG_LINE "\n";
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
    log_open("stampctl", LOG_LEVEL_ERROR, false, LOG_FORMAT_TEXT);
    int status = stampctl_run(&control, argc, argv);
    if (fflush(stdout) != 0 && status == CONTROL_DONE) {
        message_print("standard output: %m");
        status = CONTROL_FAILED;
    }
    cmd_audit_note(&control, status);
    arena_destroy(control.arena);
    if (control.has_settings)
        settings_free(&control.settings);
    return status;
}
