/* cmd_ns_keys: `ns keys`: the data keys of an encrypted namespace. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>

#include "control/files/files_reseal.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/record.h"
#include "control/schema/schema_plan.h"

static bool print_keys(struct control *control, struct pg *pg, const struct data_keys *keys, bool is_json)
{
    struct pg_result *rows;
    if (!control_query(control, pg, "reading the data keys",
                       "select id, site, to_char(made at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
                       " from stampd.data_key order by id",
                       NULL, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes site = pg_get_text(rows, row, 1), made = pg_get_text(rows, row, 2);
        struct record record = {0};
        if (is_json) {
            record_add_i64(&record, "id", pg_get_i64(rows, row, 0));
            record_add_word(&record, "site", arena_copy(control->arena, site.data, site.size));
            record_add_word(&record, "made", arena_copy(control->arena, made.data, made.size));
            record_add_word(&record, "encryptedIds", keys->id_classes);
            record_print(&record);
        } else {
            printf("%lld  made %.*s  under site key %.*s\n", (long long)pg_get_i64(rows, row, 0),
                   (int)made.size, made.data, (int)site.size, site.data);
        }
    }
    if (!is_json && *keys->id_classes)
        printf("ids are encrypted of %s\n", keys->id_classes);
    return true;
}

static bool reseal(struct control *control, const struct ns_target *target)
{
    struct pg *pg = target->pg;
    struct schema_plan plan;
    struct data_keys *keys;
    return ns_keys_read(control, pg, &keys) && schema_plan_read_applied(control, pg, &plan) &&
           ns_keys_reseal(control, pg, keys, plan.applied, NO_BYTES) &&
           files_reseal_run(control, target, keys);
}

int cmd_ns_keys(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "ns keys",
        "CODE",
        1,
        1,
        "List the data keys of an encrypted namespace, add one, or wrap them under the present site key.",
        "Running servers begin to use a new data key at once; what was written before stays readable under\n"
        "its own.  After a change of the site key, with the former one in site_key_former_file, --wrap "
        "wraps\n"
        "all data keys under the present one; then the former one is no longer needed.  --reseal works "
        "while\n"
        "the servers do; interrupted, it is run again.\n"};
    bool is_new = false, is_wrap = false, is_again = false, is_json = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("new", &is_new, "Add a data key, for what is written from now on."),
        OPTION_FLAG("reseal", &is_again,
                    "Encrypt all items and files that are not under the newest data key again."),
        OPTION_FLAG("wrap", &is_wrap, "Wrap all data keys under the site key."),
        RECORD_JSON_LINE(&is_json),
    };
    char **words;
    int status;
    struct ns_target target;
    struct data_keys *keys;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    if (!ns_registry_connect(control, words[0], &target) || !ns_keys_read(control, target.pg, &keys))
        return CONTROL_FAILED;
    if (!keys->count) {
        message_print("%s is not encrypted: a namespace is encrypted from its creation (ns create "
                      "--encrypted); export it, and import it into an encrypted one",
                      words[0]);
        return CONTROL_FAILED;
    }
    if ((is_wrap && !ns_keys_wrap(control, target.pg)) || (is_new && !ns_keys_add(control, target.pg, "")) ||
        (is_again && !reseal(control, &target)) || !print_keys(control, target.pg, keys, is_json))
        return CONTROL_FAILED;
    return CONTROL_DONE;
}
