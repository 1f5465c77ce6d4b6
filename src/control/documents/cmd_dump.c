/* cmd_dump: `stampctl dump`: options, the file, and the summary at the end. */
#include "control/documents/dumper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/documents/target.h"
#include "model/document/stamp.h"

struct dump_options {
    struct target target;
    const char *class, *prefix, *cursor, *output;
    int64_t after;
};

/* Where the last whole line of a file ends; -1: errno has the reason. */
static off_t end_of_lines(int fd)
{
    char text[4096];
    off_t end = lseek(fd, 0, SEEK_END);
    while (end > 0) {
        off_t start = end > (off_t)sizeof text ? end - (off_t)sizeof text : 0;
        ssize_t size = pread(fd, text, (size_t)(end - start), start);
        if (size != end - start)
            return -1;
        const char *newline = memrchr(text, '\n', (size_t)size);
        if (newline)
            return start + (newline - text) + 1;
        end = start;
    }
    return end;
}

/* A resumed dump is written after the whole lines. */
static bool open_output(const struct dump_options *options, int *fd_r)
{
    struct stat status;
    *fd_r = STDOUT_FILENO;
    if (!options->output)
        return true;
    int fd = open(options->output, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 &&
        (errno == EACCES || errno == ENXIO || errno == EINVAL)) /* a device or pipe that is write-only */
        fd = open(options->output, O_WRONLY | O_CLOEXEC);
    *fd_r = fd;
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    if (!S_ISREG(status.st_mode))
        return true;
    off_t end = options->cursor ? end_of_lines(fd) : 0;
    return end >= 0 && ftruncate(fd, end) == 0 && lseek(fd, end, SEEK_SET) == end;
}

/* Makes what was written durable, so that it survives a crash. */
static bool close_output(const struct dump_options *options, int fd)
{
    if (!options->output)
        return true;
    bool is_safe = fsync(fd) == 0 || errno == EINVAL || errno == EROFS; /* a pipe has no disk */
    int why = errno;
    if (close(fd) != 0 && is_safe) {
        is_safe = false;
        why = errno;
    }
    errno = why;
    return is_safe;
}

/* The text as one word of a shell. */
static const char *quoted(struct arena *arena, const char *text)
{
    const char *word = "'";
    for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1)
        word = arena_printf(arena, "%s%.*s'\\''", word, (int)(quote - text), text);
    return arena_printf(arena, "%s%s'", word, text);
}

static void cmd_dump_report(struct control *control, const struct dump_options *options,
                            const struct dumper_report *report, int64_t spent_ms)
{
    const char *last = report->last ? report->last : options->cursor;
    fprintf(options->output ? stdout : stderr, "%lld documents in %lld.%lld s (%lld/s)\n",
            (long long)report->documents, (long long)(spent_ms / 1000), (long long)(spent_ms / 100 % 10),
            (long long)(report->documents * 1000 / (spent_ms ? spent_ms : 1)));
    if (!report->is_failed && !report->is_interrupted)
        return;
    fflush(stdout);
    const char *how = report->is_interrupted ? "interrupted" : "stopped";
    if (last)
        message_print("%s; continue with --cursor %s", how, quoted(control->arena, last));
    else
        message_print("%s; no document was written", how);
}

static int dump(struct control *control, const struct dump_options *options, const char *url)
{
    struct dumper_options dumper = {.class = bytes_of(options->class),
                                    .prefix = bytes_of(options->prefix),
                                    .after = options->after,
                                    .parallel = options->target.parallel,
                                    .retry_s = options->target.retry_s,
                                    .output_name = options->output ? options->output : "standard output",
                                    .list_url = target_url(&options->target, control->arena, url, "list"),
                                    .get_url = target_url(&options->target, control->arena, url, "get"),
                                    .http = target_http(&options->target)};
    struct dumper_report result;
    if (options->cursor && !page_name_parse(bytes_of(options->cursor), &dumper.start))
        return CONTROL_WRONG;
    if (!target_read_key(&options->target, control, &dumper.key))
        return CONTROL_FAILED;
    if (!open_output(options, &dumper.output))
        return message_end(CONTROL_FAILED, "%s: %s", options->output, strerror(errno));
    int64_t start_ms = clock_monotonic_ms();
    dumper_run(&dumper, control->arena, &result);
    if (!close_output(options, dumper.output)) {
        message_print("%s: %s", options->output, strerror(errno));
        result.is_failed = true;
    }
    cmd_dump_report(control, options, &result, clock_monotonic_ms() - start_ms);
    return result.is_failed || result.is_interrupted ? CONTROL_FAILED : CONTROL_DONE;
}

static bool cmd_dump_are_right(const struct dump_options *options)
{
    struct page_name name;
    if (!target_is_right(&options->target, "dump") ||
        (options->class && !control_check_class("dump", options->class)))
        return false;
    if (options->cursor && !page_name_parse(bytes_of(options->cursor), &name))
        message_print("dump: --cursor %s: expected CLASS.ID", options->cursor);
    else
        return true;
    return false;
}

int control_dump(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("dump", "URL", "Write documents, one JSON text a line, as load reads them.",
                "Writes the documents of a namespace in the order of class and "
                "id, as the operation get returns them.\n"
                "Each document is of one instant; the whole is not: while others "
                "write, a later line may be of a later\n"
                "instant.  Removed items and deleted documents are left out.\n");
    struct dump_options options = {.target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        TARGET_LINES(&options.target),
        TARGET_PARALLEL_LINE(&options.target),
        OPTION_TEXT("class", "NAME", &options.class, "Write only documents of this class."),
        OPTION_TEXT("prefix", "TEXT", &options.prefix, "Write only documents whose id begins with TEXT."),
        OPTION_NUMBER("after", "VERSION", &options.after, 0, STAMP_MAX,
                      "Write only documents of a later version."),
        OPTION_TEXT("cursor", "CLASS.ID", &options.cursor, "Continue after this document."),
        {.name = "output",
         .letter = 'o',
         .argument = "FILE",
         .help = "Write to FILE, with --cursor at its end (default: standard output).",
         .text = &options.output},
        TARGET_CONFIG_LINE(control),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_dump_are_right(&options) ? dump(control, &options, words[0]) : CONTROL_WRONG;
}
