/* stamp-queue: the queue manager's options. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>

#include "base/settings.h"
#include "operation/settings_check.h"
#include "queue/manager.h"

#define CONFIG_DEFAULT "/etc/stampd/stampd.conf"

static void stamp_queue_print_help(void)
{
    puts(
        "Usage: stamp-queue [options]\n"
        "Starts the tasks of stampd, the document database server, when they are due; runs in the "
        "foreground.\n"
        "\n"
        "  -c, --config FILE    Read the settings, those of stampd, from FILE (default: " CONFIG_DEFAULT
        ").\n"
        "  -t, --test           Check the settings and what they name, and exit.\n"
        "      --version        Show the version and exit.\n"
        "  -h, --help           Show this and exit.\n"
        "\n"
        "SIGHUP scans for tasks and namespaces at once.  SIGTERM stops when the running tasks have ended; a\n"
        "second one, or SIGQUIT, stops at once: they continue without it." BUG_LINE);
}

enum { OPTION_VERSION = 256 };

static const struct option known[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct queue_options {
    const char *settings_path;
    bool is_test;
    int status; /* ends with it at once; -1: does not */
};

static struct queue_options stamp_queue_read_options(int argc, char **argv)
{
    struct queue_options options = {.settings_path = CONFIG_DEFAULT, .status = -1};
    for (int option; options.status < 0 && (option = getopt_long(argc, argv, "c:th", known, NULL)) != -1;) {
        switch (option) {
        case 'c':
            options.settings_path = optarg;
            break;
        case 't':
            options.is_test = true;
            break;
        case OPTION_VERSION:
            puts("stamp-queue " PACKAGE_VERSION);
            options.status = 0;
            break;
        case 'h':
            stamp_queue_print_help();
            options.status = 0;
            break;
        default: /* getopt has reported the error */
            options.status = 2;
        }
    }
    if (options.status < 0 && optind < argc) {
        fprintf(stderr, "stamp-queue: %s: unexpected argument\n", argv[optind]);
        options.status = 2;
    }
    return options;
}

int main(int argc, char **argv)
{
    struct settings settings;
    char problem[600] = "";
    struct queue_options options = stamp_queue_read_options(argc, argv);
    if (options.status >= 0)
        return fflush(stdout) ? 1 : options.status;
    if (!settings_load(&settings, options.settings_path, problem, sizeof problem)) {
        fprintf(stderr, "stamp-queue: %s\n", problem);
        return 1;
    }
    int status = 0;
    if (options.is_test) {
        status = settings_check_print(&settings, options.settings_path, false, "stamp-queue");
    } else {
        settings_open_log(&settings, "stamp-queue");
        status = manager_run(&settings);
    }
    settings_free(&settings);
    return status;
}
