/* cmd_import_couchdb: `stampctl import-couchdb`: options. */
#include "control/foreign/couch/couch_source.h"

#include <string.h>

#include "base/secret.h"
#include "control/foreign/couch/couch_follow.h"
#include "control/message.h"

enum { RETRY_S = 60, RETRY_MOST_S = 86400 };

struct couch_words {
    struct couch_follow_options follow;
    const char *login; /* a file */
    int64_t retry_s;
    bool leaves_attachments;
};

static bool is_url(const char *path)
{
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

static bool cmd_import_couchdb_are_right(const struct couch_words *words, const char *path)
{
    if (is_url(path) && !words->leaves_attachments)
        return couch_server_check(path, words->login);
    if (is_url(path))
        message_print("import-couchdb: --without-attachments goes with a file");
    else if (words->login || words->follow.server.ca_file || words->follow.begins_anew ||
             words->retry_s != RETRY_S)
        message_print("import-couchdb: --login, --ca, --anew and --retry go with the address of a database");
    else
        return true;
    return false;
}

/* The first line, blanks included. */
static bool read_login(struct control *control, struct couch_words *words)
{
    struct bytes text;
    char problem[1024];
    if (!words->login)
        return true;
    if (!secret_is_closed("login", words->login, problem, sizeof problem)) {
        message_print("%s", problem);
        return false;
    }
    if (!control_read_file(control->arena, words->login, &text))
        return false;
    struct bytes line = bytes_cut(&text, '\n');
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    words->follow.server.login = line.size ? arena_copy(control->arena, line.data, line.size) : "";
    if (strchr(words->follow.server.login, ':'))
        return true;
    message_print("%s: expected name:password", words->login);
    return false;
}

static bool cmd_import_couchdb_run(struct control *control, const struct foreign_import_options *options,
                                   struct couch_words *words)
{
    struct couch_source couch;
    if (is_url(options->path)) {
        words->follow.import = options;
        words->follow.class = options->class;
        words->follow.server.url = options->path;
        words->follow.server.patience_s = words->retry_s;
        return read_login(control, words) && couch_follow_run(control, &words->follow);
    }
    couch_source_init(&couch, control->arena, options->class, words->leaves_attachments);
    return foreign_import_run(control, options, &couch.source);
}

int control_import_couchdb(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import-couchdb",
        "CODE FILE|URL",
        2,
        2,
        "Store the documents of a CouchDB database, with attachments.",
        "From the URL of a database that is served: all documents, then what has changed meanwhile; run it\n"
        "again to catch up.  From a FILE: the answer to _all_docs?include_docs=true&attachments=true, or a\n"
        "dump; every document is checked before the first is stored.  The members of a document become the\n"
        "item Main, without those that begin with _; its attachments become files.  After an interruption\n"
        "run the same command again: it continues.\n"};
    struct foreign_import_options options = {0};
    struct couch_words words = {.retry_s = RETRY_S};
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of documents for which the mapping has none."),
        {.name = "without-attachments",
         .help = "Store the documents of a FILE without their attachments.",
         .flag = &words.leaves_attachments},
        {.name = "login",
         .argument = "FILE",
         .help = "Log in with the first line of FILE, name:password.",
         .text = &words.login},
        {.name = "ca",
         .argument = "FILE",
         .help = "Trust the authorities in FILE (PEM).",
         .text = &words.follow.server.ca_file},
        {.name = "anew", .help = "Begin with the first document again.", .flag = &words.follow.begins_anew},
        {.name = "retry",
         .argument = "SECONDS",
         .help = "Repeat a request so long while the server is away or fails (default: 60).",
         .number = &words.retry_s,
         .least = 0,
         .most = RETRY_MOST_S},
    };
    int status;
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options, &status))
        return status;
    if (!cmd_import_couchdb_are_right(&words, options.path))
        return CONTROL_WRONG;
    return cmd_import_couchdb_run(control, &options, &words) ? CONTROL_DONE : CONTROL_FAILED;
}
