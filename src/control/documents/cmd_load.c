/* cmd_load: `stampctl load`: options, the place to begin, and the summary at the end. */
#include "control/documents/loader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"
#include "control/message.h"
#include "control/documents/target.h"

struct load_options {
    struct target target;
    const char *state;
    int64_t batch, batch_bytes, from;
    bool keep_going;
};

static const char *absolute(struct control *control, const char *path)
{
    char resolved[PATH_MAX];
    if (strcmp(path, "-") == 0 || !realpath(path, resolved))
        return path;
    return arena_copy(control->arena, resolved, strlen(resolved));
}

/* How far a former run has come; none: line 0. */
static bool read_bookmark(struct control *control, const struct load_options *options,
                          struct bookmark *bookmark)
{
    struct bookmark former;
    struct bytes text;
    if (!options->state || access(options->state, F_OK) != 0)
        return true;
    if (!control_read_file(control->arena, options->state, &text))
        return false;
    if (!bookmark_parse(control->arena, text, &former))
        message_print("%s: not a state file of load", options->state);
    else if (strcmp(former.ns, bookmark->ns) != 0 || strcmp(former.file, bookmark->file) != 0)
        message_print("%s: the state of another load, of %s into the namespace %s", options->state,
                      former.file, former.ns);
    else if (options->from > 1)
        message_print("%s: line %lld is reached; omit --from or remove the file", options->state,
                      (long long)former.line);
    else {
        *bookmark = former;
        return true;
    }
    return false;
}

/* Reads and drops the lines to skip, or seeks past them when their end is known. */
static bool go_to(struct input *input, const struct bookmark *bookmark)
{
    struct bytes text;
    if (bookmark->offset && input->size)
        return input_seek(input, bookmark->line, bookmark->offset);
    while (input->line < bookmark->line)
        if (input_next(input, true, &text) != INPUT_LINE)
            return false;
    return true;
}

static void cmd_load_report(const struct load_options *options, const struct loader_report *report,
                            int64_t spent_ms)
{
    const char *how = options->state ? "run the same command to continue" : NULL;
    printf("%lld lines, %lld documents stored in %lld.%lld s (%lld/s)", (long long)report->lines,
           (long long)report->documents, (long long)(spent_ms / 1000), (long long)(spent_ms / 100 % 10),
           (long long)(report->documents * 1000 / (spent_ms ? spent_ms : 1)));
    if (report->wrong)
        printf(", %lld wrong", (long long)report->wrong);
    printf("\n");
    if (!report->is_failed && !report->is_interrupted)
        return;
    fflush(stdout);
    if (how)
        message_print("%s; lines up to %lld are stored; %s",
                      report->is_interrupted ? "interrupted" : "stopped", (long long)report->line, how);
    else
        message_print("%s; lines up to %lld are stored; continue with --from %lld",
                      report->is_interrupted ? "interrupted" : "stopped", (long long)report->line,
                      (long long)report->line + 1);
}

static int cmd_load_load(struct control *control, const struct load_options *options, const char *url,
                         const char *path)
{
    struct loader_options loader = {
        .batch = options->batch,
        .batch_bytes = options->batch_bytes,
        .retry_s = options->target.retry_s,
        .keep_going = options->keep_going,
        .bookmark_path = options->state,
        .bookmark = {.line = options->from - 1, .ns = options->target.ns, .file = absolute(control, path)},
        .url = target_url(&options->target, control->arena, url, "put"),
        .http = target_http(&options->target)};
    struct loader_report result;
    struct input input;
    if (!target_read_key(&options->target, control, &loader.key) ||
        !read_bookmark(control, options, &loader.bookmark))
        return CONTROL_FAILED;
    int64_t start_ms = clock_monotonic_ms();
    bool is_open = input_open(&input, path, stop_open());
    if (!is_open)
        message_print("%s: %s", path, strerror(errno));
    else if (!go_to(&input, &loader.bookmark)) {
        message_print("%s: not the file that was loaded before: line %lld is missing or ends elsewhere", path,
                      (long long)loader.bookmark.line);
        is_open = false;
    }
    if (is_open) {
        loader_run(&loader, &input, &result);
        cmd_load_report(options, &result, clock_monotonic_ms() - start_ms);
    }
    input_close(&input);
    return is_open && !result.is_failed && !result.is_interrupted && !result.wrong ? CONTROL_DONE
                                                                                   : CONTROL_FAILED;
}

int control_load(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "load",
        "URL FILE",
        2,
        2,
        "Store documents, one JSON text a line, through the operation put.",
        "A line is {\"c\":class,\"id\":id,\"items\":[{\"c\":class,\"k\":key,\"j\":value}...]}; \"s\":text in "
        "place of\n"
        "\"j\" for raw items, no \"k\" for singletons; v, ct and dt of a dump are ignored.  FILE - is "
        "standard input.\n"
        "Items that a line does not name stay as they are.  Sending a line twice does no harm.\n"
        "Transient faults are retried; a line that the server refuses ends the load.\n"};
    struct load_options options = {.target = TARGET_DEFAULT, .batch = 32, .batch_bytes = 1 << 20, .from = 1};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        TARGET_PARALLEL_LINE(&options.target),
        OPTION_NUMBER("batch", "N", &options.batch, 1, LOADER_BATCH_MAX,
                      "Send N documents in a request (default: 32)."),
        OPTION_NUMBER("batch-bytes", "N", &options.batch_bytes, 1024, 1 << 30,
                      "Send at most N bytes in a request of several documents (default: 1048576)."),
        OPTION_NUMBER("from", "LINE", &options.from, 1, INT64_MAX, "Begin at this line (default: 1)."),
        OPTION_TEXT("state", "FILE", &options.state, "Record the progress in FILE, and continue from there."),
        OPTION_FLAG("keep-going", &options.keep_going, "Continue after lines that are invalid or refused."),
        TARGET_CONFIG_LINE(control),
    };
    char **words;
    int status;
    if (!options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, NULL, &status))
        return status;
    return target_is_right(&options.target, "load") ? cmd_load_load(control, &options, words[0], words[1])
                                                    : CONTROL_WRONG;
}
