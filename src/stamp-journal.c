/* stamp-journal: the options of the daemon that speaks the journal protocol. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>

#include "base/settings.h"
#include "journal/journal.h"

#define CONFIG_DEFAULT "/etc/stampd/stampd.conf"

static void stamp_journal_print_help(void)
{
    puts("Usage: stamp-journal [options] --keys FILE\n"
         "Serves the records of stampd, the document database server, by the journal protocol on a Unix\n"
         "socket and, with journal_listen in the settings, on TCP with TLS; runs in the foreground.\n"
         "\n"
         "  -c, --config FILE    Read the settings, those of stampd, from FILE (default: " CONFIG_DEFAULT
         ").\n"
         "  -k, --keys FILE      Read the keys of callers from FILE.\n"
         "  -s, --socket PATH    Listen there (default: journal.sock in run_directory).\n"
         "      --version        Show the version and exit.\n"
         "  -h, --help           Show this and exit.\n"
         "\n"
         "SIGHUP reads the keys and the certificate again and closes all connections.  SIGTERM "
         "stops." BUG_LINE);
}

enum { OPTION_VERSION = 256 };

static const struct option known[] = {
    {"config", required_argument, NULL, 'c'}, {"keys", required_argument, NULL, 'k'},
    {"socket", required_argument, NULL, 's'}, {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},         {0},
};

struct journal_main_options {
    const char *settings_path;
    struct journal_options journal;
    int status; /* ends with it at once; -1: does not */
};

static struct journal_main_options stamp_journal_read_options(int argc, char **argv)
{
    struct journal_main_options options = {.settings_path = CONFIG_DEFAULT, .status = -1};
    for (int option;
         options.status < 0 && (option = getopt_long(argc, argv, "c:k:s:h", known, NULL)) != -1;) {
        switch (option) {
        case 'c':
            options.settings_path = optarg;
            break;
        case 'k':
            options.journal.keys_path = optarg;
            break;
        case 's':
            options.journal.socket_path = optarg;
            break;
        case OPTION_VERSION:
            puts("stamp-journal " PACKAGE_VERSION);
            options.status = 0;
            break;
        case 'h':
            stamp_journal_print_help();
            options.status = 0;
            break;
        default: /* getopt has reported the error */
            options.status = 2;
        }
    }
    if (options.status < 0 && optind < argc) {
        fprintf(stderr, "stamp-journal: %s: unexpected argument\n", argv[optind]);
        options.status = 2;
    }
    if (options.status < 0 && !options.journal.keys_path) {
        fputs("stamp-journal: expected --keys FILE\n", stderr);
        options.status = 2;
    }
    return options;
}

int main(int argc, char **argv)
{
    struct settings settings;
    char problem[600] = "";
    struct journal_main_options options = stamp_journal_read_options(argc, argv);
    if (options.status >= 0)
        return fflush(stdout) ? 1 : options.status;
    if (!settings_load(&settings, options.settings_path, problem, sizeof problem)) {
        fprintf(stderr, "stamp-journal: %s\n", problem);
        return 1;
    }
    settings_open_log(&settings, "stamp-journal");
    int status = journal_serve(&settings, &options.journal);
    settings_free(&settings);
    return status;
}
