/* cmd_purge: `stampctl purge`: options, and the summary at the end. */
#include "control/documents/purger.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/documents/target.h"

enum { DAYS_MOST = 36500 };

struct purge_options {
    struct target target;
    const char *class, *prefix;
    int64_t days;
    bool is_dry, is_sure;
};

static struct bytes optional(const char *text)
{
    return text ? bytes_of(text) : NO_BYTES;
}

static int purge(struct control *control, const struct purge_options *options, const char *url)
{
    struct purger_options purger = {.class = optional(options->class),
                                    .prefix = optional(options->prefix),
                                    .days = options->days,
                                    .retry_s = options->target.retry_s,
                                    .is_dry = options->is_dry,
                                    .ping_url = target_ping_url(&options->target, control->arena, url),
                                    .list_url = target_url(&options->target, control->arena, url, "list"),
                                    .put_url = target_url(&options->target, control->arena, url, "put"),
                                    .http = target_http(&options->target)};
    struct purger_report report;
    if (!target_read_key(&options->target, control, &purger.key))
        return CONTROL_FAILED;
    purger_run(&purger, &report);
    if (options->is_dry)
        printf("%s: %lld of %lld documents would be deleted\n", options->target.ns,
               (long long)report.selected, (long long)report.listed);
    else
        printf("%s: %lld of %lld documents deleted\n", options->target.ns, (long long)report.deleted,
               (long long)report.listed);
    if (report.kept)
        printf("%s: %lld documents were changed or deleted by others meanwhile\n", options->target.ns,
               (long long)report.kept);
    if (report.is_interrupted) {
        fflush(stdout);
        message_print("interrupted; run the same command to continue");
    }
    return report.is_failed || report.is_interrupted ? CONTROL_FAILED : CONTROL_DONE;
}

static bool cmd_purge_are_right(const struct purge_options *options)
{
    if (!target_is_right(&options->target, "purge"))
        return false;
    if (strcmp(options->target.ns, "z") == 0)
        message_print("purge: the documents of z are the configuration of all namespaces");
    else if (options->class && !control_check_class("purge", options->class))
        return false; /* it was reported */
    else if (!options->is_dry && !options->is_sure)
        message_print("purge: this destroys documents; try --dry-run, then confirm with --yes");
    else
        return true;
    return false;
}

int control_purge(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "purge",
        "URL",
        1,
        1,
        "Delete the documents of a namespace, of a class, or of an age.",
        "Works in batches of up to 32 documents, each a commit of the server, while it is used.  A document\n"
        "that is changed before its batch stays.  After an interruption the same command continues.\n"
        "Expired documents and old deletions: `stampctl ns purge`.\n"};
    struct purge_options options = {.target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        {.name = "class",
         .argument = "NAME",
         .help = "Delete only documents of this class.",
         .text = &options.class},
        {.name = "prefix",
         .argument = "TEXT",
         .help = "Delete only documents whose id begins with TEXT.",
         .text = &options.prefix},
        {.name = "older-than",
         .argument = "DAYS",
         .help = "Delete only documents that have not changed for DAYS.",
         .number = &options.days,
         .least = 1,
         .most = DAYS_MOST},
        {.name = "dry-run", .help = "Only count the documents.", .flag = &options.is_dry},
        {.name = "yes", .help = "Yes, these documents are to be destroyed.", .flag = &options.is_sure},
        TARGET_CONFIG_LINE(control),
    };
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    return cmd_purge_are_right(&options) ? purge(control, &options, words[0]) : CONTROL_WRONG;
}
