/* stamp-forward: the forwarder's options (stamp-forward(8)). */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "forward/forwarder.h"

#define CONFIG_DEFAULT "/etc/stampd/stamp-forward.conf"

static void stamp_forward_print_help(void)
{
    puts("Usage: stamp-forward [options]\n"
         "Sends the requests of a spool to stampd, each of which is stored once; runs in the foreground.\n"
         "\n"
         "  -c, --config FILE    Read the settings from FILE (default: " CONFIG_DEFAULT ").\n"
         "  -t, --test           Check the settings, the key and the spool, and exit.\n"
         "      --until-empty    End when nothing waits any more.\n"
         "      --version        Show the version and exit.\n"
         "  -h, --help           Show this and exit.\n"
         "\n"
         "SIGTERM stops when the requests under way are answered; a second one, or SIGQUIT, stops at once: "
         "the\n"
         "records stay in the spool." BUG_LINE);
}

enum { OPTION_VERSION = 256, OPTION_EMPTY };

static const struct option known[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"until-empty", no_argument, NULL, OPTION_EMPTY},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

int main(int argc, char **argv)
{
    struct forward_settings settings;
    const char *path = CONFIG_DEFAULT;
    char problem[600] = "";
    bool is_test = false, until_empty = false;
    for (int option; (option = getopt_long(argc, argv, "c:th", known, NULL)) != -1;) {
        if (option == 'h' || option == OPTION_VERSION) {
            if (option == 'h')
                stamp_forward_print_help();
            else
                puts("stamp-forward " PACKAGE_VERSION);
            return fflush(stdout) ? 1 : 0;
        }
        if (option == 'c')
            path = optarg;
        else if (option == 't')
            is_test = true;
        else if (option == OPTION_EMPTY)
            until_empty = true;
        else
            return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "stamp-forward: %s: unexpected argument\n", argv[optind]);
        return 2;
    }
    bool is_right = forward_settings_load(&settings, path, problem, sizeof problem);
    if (!is_right)
        fprintf(stderr, "stamp-forward: %s\n", problem);
    log_open("stamp-forward", LOG_LEVEL_INFO, false,
             is_right && strcmp(settings.log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
    int status = !is_right ? 1 : is_test ? forwarder_check(&settings) : forwarder_run(&settings, until_empty);
    forward_settings_free(&settings);
    return status;
}
