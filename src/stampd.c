/* stampd: the server's options. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/settings.h"
#include "live/live.h"
#include "operation/settings_check.h"
#include "serve/handover.h"
#include "serve/master.h"
#include "serve/start_check.h"

#define CONFIG_DEFAULT "/etc/stampd/stampd.conf"

static void stampd_print_help(void)
{
    puts("Usage: stampd [options]\n"
         "The document database server; runs in the foreground.\n"
         "\n"
         "  -c, --config FILE    Read the settings from FILE (default: " CONFIG_DEFAULT ").\n"
         "  -t, --test           Check the settings and what they name, and exit.\n"
         "  -p, --pidfile FILE   Write the master's process id to FILE.\n"
         "      --settings       Show all settings with their limits and defaults, and exit.\n"
         "      --version        Show the version and exit.\n"
         "  -h, --help           Show this and exit.\n"
         "\n"
         "SIGHUP reloads the settings.  SIGUSR2 starts the program again and exits when the new process "
         "serves.\n"
         "SIGTERM drains and stops; a second one, or SIGQUIT, stops at once." BUG_LINE);
}

static void print_line(const char *line)
{
    puts(line);
}

enum { OPTION_SETTINGS = 256, OPTION_VERSION };

static const struct option known[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"pidfile", required_argument, NULL, 'p'},
    {"settings", no_argument, NULL, OPTION_SETTINGS},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

struct start_options {
    struct master_options master;
    bool is_test;
    int status; /* ends with it at once; -1: does not */
};

static struct start_options stampd_read_options(int argc, char **argv)
{
    struct start_options options = {.master = {.settings_path = CONFIG_DEFAULT, .live_run = live_run},
                                    .status = -1};
    for (int option; options.status < 0 && (option = getopt_long(argc, argv, "c:tp:h", known, NULL)) != -1;) {
        switch (option) {
        case 'c':
            options.master.settings_path = optarg;
            break;
        case 't':
            options.is_test = true;
            break;
        case 'p':
            options.master.pid_path = optarg;
            break;
        case OPTION_SETTINGS:
            settings_describe(print_line);
            options.status = 0;
            break;
        case OPTION_VERSION:
            puts("stampd " PACKAGE_VERSION);
            options.status = 0;
            break;
        case 'h':
            stampd_print_help();
            options.status = 0;
            break;
        default: /* getopt has reported the error */
            options.status = 2;
        }
    }
    if (options.status < 0 && optind < argc) {
        fprintf(stderr, "stampd: %s: unexpected argument\n", argv[optind]);
        options.status = 2;
    }
    return options;
}

int main(int argc, char **argv)
{
    handover_take();
    struct settings settings;
    char problem[600] = "";
    struct start_options options = stampd_read_options(argc, argv);
    if (options.status >= 0)
        return fflush(stdout) ? 1 : options.status;
    if (!settings_load(&settings, options.master.settings_path, problem, sizeof problem)) {
        fprintf(stderr, "stampd: %s\n", problem);
        return 1;
    }
    if (options.is_test) {
        int status = settings_check_print(&settings, options.master.settings_path, true, "stampd");
        settings_free(&settings);
        return status;
    }
    master_open_log(&settings);
    if (!start_check_keys(&settings, problem, sizeof problem)) {
        fprintf(stderr, "stampd: %s\n", problem);
        settings_free(&settings);
        return 1;
    }
    options.master.arguments = argv;
    return master_run(&settings, &options.master);
}
