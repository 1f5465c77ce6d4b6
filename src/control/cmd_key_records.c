/* cmd_key_records: `key records`: the key of the records that this host keeps of encrypted namespaces. */
#include "control/cmd_key.h"

#include <stdio.h>

#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/record.h"
#include "records/records_seal.h"

static bool cmd_key_records_report(const char *folder, const char *problem)
{
    if (problem)
        message_print("records in %s: %s", folder, problem);
    return !problem;
}

static void print(const char *folder, const struct records_seal *present, const struct records_seal *next,
                  bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_word(&record, "folder", folder);
        record_add_word(&record, "site", present ? records_seal_site(present) : NULL);
        record_add_bool(&record, "next", next);
        record_print(&record);
        return;
    }
    if (present)
        printf("%s: under site key %s\n", folder, records_seal_site(present));
    else
        printf("%s: there is no key, nothing is encrypted\n", folder);
    if (next)
        printf("a new key is waiting: stop stampd and stamp-journal of this host, then start them\n");
}

static bool print_keys(const char *folder, bool is_json)
{
    struct records_seal *present = NULL, *next = NULL;
    bool is_read =
        cmd_key_records_report(folder, records_seal_read(&present, folder, RECORDS_SEAL_PRESENT)) &&
        cmd_key_records_report(folder, records_seal_read(&next, folder, RECORDS_SEAL_NEXT));
    if (is_read)
        print(folder, present, next, is_json);
    records_seal_free(present);
    records_seal_free(next);
    return is_read;
}

int cmd_key_records(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "key records",
        "",
        0,
        0,
        "Show the key of the records of encrypted namespaces on the disk of this host, or give them another.",
        "With --new all of them are encrypted again when no process of stampd and stamp-journal is left on\n"
        "this host and one starts; interrupted, the next start continues.  Then the former key is removed.\n"
        "After a change of the site key, with the former one in site_key_former_file, the first start of\n"
        "stampd wraps the key; --wrap does so without one.\n"};
    bool is_new = false, is_wrap = false, is_json = false, is_there = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("new", &is_new, "Make a new key, which the next start uses."),
        OPTION_FLAG("wrap", &is_wrap, "Wrap the key under the site key."),
        RECORD_JSON_LINE(&is_json),
    };
    char **words;
    int status;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    const char *folder = control->settings.records_directory;
    if (!*folder) {
        message_print("records_directory is empty: no records are kept on disk");
        return CONTROL_FAILED;
    }
    if (!ns_keys_need_site(control) ||
        (is_wrap && !cmd_key_records_report(folder, records_seal_wrap(folder))) ||
        (is_new && !cmd_key_records_report(folder, records_seal_make_next(folder, &is_there))))
        return CONTROL_FAILED;
    if (is_there)
        message_print("a new key was waiting already");
    return print_keys(folder, is_json) ? CONTROL_DONE : CONTROL_FAILED;
}
