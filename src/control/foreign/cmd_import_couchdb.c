/* cmd_import_couchdb: `stampctl import-couchdb`: options, and the import from a database that is served:
 * import_couchdb.py reads it.
 *
 * How far a database has been brought in is in the table `import_source` of the namespace, and is stored in
 * the transaction of the documents: an interrupted import goes on there, and one that was complete catches
 * up. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "control/archive/archive_batch.h"
#include "control/archive/import_progress.h"
#include "control/documents/progress.h"
#include "control/foreign/foreign_import.h"
#include "control/foreign/foreign_reader.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"

enum { PROBLEMS_SHOWN = 20, RETRY_S = 60, RETRY_MOST_S = 86400, BATCH_BYTES = 1 << 20 };

struct couch_import {
    struct control *control;
    const struct foreign_import_options *options;
    const char *login_file, *ca_file; /* NULL: none */
    int64_t retry_s;
    bool begins_anew, leaves_attachments;
    /* of a database that is served */
    const char *login, *source; /* source: address, and digest of the mapping */
    struct bytes position;      /* a text of JSON; NO_BYTES: nothing was brought in */
    int64_t documents;          /* brought in so far */
    struct ns_target target;
    struct archive_batch *batch; /* NULL: a dry run, as is `files` */
    struct importer_files *files;
    struct foreign_reader reader;
    struct builder lines;
    struct progress progress;
    int64_t number, read, wrong, changed; /* number: of the lines of the batch */
};

/* --- the position --- */

/* Excludes other imports, and reads the row. */
static bool take_position(struct couch_import *import)
{
    struct control *control = import->control;
    struct pg *pg = import->target.pg;
    struct import_progress other;
    struct pg_result *row;
    bool is_other;
    if (!import_progress_lock(control, pg) || !import_progress_read(control, pg, &is_other, &other))
        return false;
    if (is_other)
        return message_refuse(
            "an import of an archive or a file was interrupted: complete it, or give it up with import "
            "--abandon %s",
            import->options->code);
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(import->source)));
    if ((import->begins_anew &&
         !control_query(control, pg, "beginning anew",
                        "delete from stampd.import_source where source = $1::text", params, &row)) ||
        !control_query(control, pg, "reading how far the import has come",
                       "select position, documents from stampd.import_source where source = $1::text", params,
                       &row))
        return false;
    if (pg_rows(row)) {
        import->position = arena_keep(control->arena, pg_get_text(row, 0, 0));
        import->documents = pg_get_i64(row, 0, 1);
    }
    return true;
}

/* Within the transaction that stores documents. */
static bool store_position(void *context, int64_t changed)
{
    struct couch_import *import = context;
    struct pg_result *row;
    const struct json *root = import->reader.root;
    const struct pg_params *params =
        PG_PARAMS(import->reader.arena, PG_TEXT(bytes_of(import->source)),
                  PG_TEXT(json_text_of(root, "position", BYTES(""))), PG_I64(import->documents));
    import->changed += changed;
    return control_query(
        import->control, import->target.pg, "recording how far the import has come",
        "insert into stampd.import_source (source, position, documents) values ($1::text, $2::text, "
        "$3::bigint)"
        " on conflict (source) do update set position = excluded.position, documents = excluded.documents,"
        " moved = now()",
        params, &row);
}

/* What was read since the last position, with this one. */
static bool store_lines(struct couch_import *import)
{
    import->documents = json_i64_of(import->reader.root, "documents", import->documents);
    const bool is_stored =
        !import->batch ||
        (archive_batch_read(import->batch, builder_bytes(&import->lines), false) &&
         archive_merge_recorded(import->target.pg, import->batch, true, store_position, import));
    import->number = 0;
    builder_clear(&import->lines, 2 * BATCH_BYTES);
    return is_stored;
}

/* --- the documents --- */

/* Does the import go on? */
static bool take_problem(struct couch_import *import, enum foreign_event event, const char *problem)
{
    const bool is_wrong = event == FOREIGN_WRONG;
    progress_clear(&import->progress);
    for (struct bytes rest = bytes_of(problem ? problem : ""); rest.size && import->wrong < PROBLEMS_SHOWN;) {
        const struct bytes line = bytes_cut(&rest, '\n');
        message_print("%.*s", (int)line.size, line.data);
    }
    import->wrong += is_wrong;
    return is_wrong && (import->options->skips_wrong || !import->batch);
}

static bool take_events(struct couch_import *import)
{
    for (;;) {
        const char *problem;
        const enum foreign_event event =
            foreign_reader_next(&import->reader, import->files, import->number + 1, &import->lines, &problem);
        import->number += event == FOREIGN_DOCUMENT;
        import->read += event == FOREIGN_DOCUMENT;
        if (event == FOREIGN_END)
            return true;
        if (event == FOREIGN_POSITION && !store_lines(import))
            return false;
        if ((event == FOREIGN_WRONG || event == FOREIGN_FAILED) && !take_problem(import, event, problem))
            return false;
        progress_show(&import->progress, import->read, import->documents);
    }
}

static const char *text_or_null(struct control *control, struct bytes text)
{
    return text.data ? message_quote(control->arena, text) : "null";
}

static bool follow(struct couch_import *import)
{
    struct control *control = import->control;
    const struct foreign_import_options *options = import->options;
    struct foreign_import_options own = *options;
    struct bytes members;
    own.own = arena_printf(
        control->arena,
        "{\"login\":%s,\"ca\":%s,\"patience\":%lld,\"is_dry_run\":%s,\"position\":%s,\"documents\":%lld}",
        text_or_null(control, import->login ? bytes_of(import->login) : NO_BYTES),
        text_or_null(control, import->ca_file ? bytes_of(import->ca_file) : NO_BYTES),
        (long long)import->retry_s, options->is_dry_run ? "true" : "false",
        text_or_null(control, import->position), (long long)import->documents);
    if (!foreign_import_compose(control, &own, &members, NULL) ||
        !foreign_reader_open(&import->reader, control, options->kind->program, options->path, members))
        return false;
    if (import->position.data)
        printf("%s: going on after %lld documents\n", options->code, (long long)import->documents);
    progress_start(&import->progress, import->documents, import->reader.size);
    import->progress.unit = "documents";
    const bool is_done = take_events(import);
    progress_clear(&import->progress);
    foreign_reader_close(&import->reader);
    return is_done;
}

static void sum_up(const struct couch_import *import)
{
    const struct foreign_import_options *options = import->options;
    if (import->wrong > PROBLEMS_SHOWN)
        message_print("%s: and %lld more", options->path, (long long)import->wrong - PROBLEMS_SHOWN);
    if (options->is_dry_run)
        printf("%s: %lld documents are right, %lld wrong; nothing was stored\n", options->path,
               (long long)import->read, (long long)import->wrong);
    else
        printf("%s: %lld documents read: %lld changed here; %lld wrong left out; up to date with CouchDB\n",
               options->code, (long long)import->read, (long long)import->changed, (long long)import->wrong);
}

/* The first line, blanks included. */
static bool read_login(struct couch_import *import)
{
    struct bytes text;
    char problem[1024];
    struct arena *arena = import->control->arena;
    if (!import->login_file)
        return true;
    if (!secret_is_closed("login", import->login_file, problem, sizeof problem))
        return message_refuse("%s", problem);
    if (!control_read_file(arena, import->login_file, &text))
        return false;
    struct bytes line = bytes_cut(&text, '\n');
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    import->login = arena_copy(arena, line.data, line.size);
    return strchr(import->login, ':') || message_refuse("%s: expected name:password", import->login_file);
}

static bool prepare(struct couch_import *import)
{
    struct control *control = import->control;
    const struct foreign_import_options *options = import->options;
    struct bytes members;
    char hex[CRYPTO_SHA256_HEX + 1];
    if (!read_login(import) || !foreign_import_compose(control, options, &members, hex) ||
        !ns_registry_connect(control, options->code, &import->target) ||
        !ns_keys_refuse(control, import->target.pg, "attachments"))
        return false;
    import->source = arena_printf(control->arena, "couchdb %s %s", options->path, hex);
    if (options->is_dry_run)
        return true;
    import->batch = archive_batch_create(control, import->target.pg, true);
    import->files = importer_files_open(control, &import->target);
    return import->files && take_position(import);
}

static bool import_served(struct couch_import *import)
{
    const bool is_done = prepare(import) && follow(import);
    if (is_done)
        sum_up(import);
    importer_files_close(import->files);
    if (import->batch)
        archive_batch_destroy(import->batch);
    builder_free(&import->lines);
    return is_done && !import->wrong;
}

/* --- the command --- */

static bool is_own_host(struct bytes host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < COUNT_OF(own); i++)
        if (bytes_has_prefix(host, bytes_of(own[i])) &&
            (host.size == strlen(own[i]) || host.data[strlen(own[i])] == ':'))
            return true;
    return false;
}

/* The address of a database, without a password; a login is not sent in clear to another host. */
static bool is_right_address(const char *url, bool has_login)
{
    const bool is_http = strncmp(url, "http://", 7) == 0;
    const char *host = strstr(url, "//") + 2, *path = strchr(host, '/');
    if (!path || path == host || !path[1] || strpbrk(url, "?#\"<>\\ "))
        message_print("expected the address of a database, like https://couch.example.org/people");
    else if (memchr(host, '@', (size_t)(path - host)))
        message_print("an address is seen by others: put the password into a file, and name it by --login");
    else if (has_login && is_http && !is_own_host((struct bytes){host, (size_t)(path - host)}))
        message_print("the password would be sent in clear: expected an address that begins with https:");
    else
        return true;
    return false;
}

static bool is_served(const char *path)
{
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

static bool are_right(const struct couch_import *import, const char *path)
{
    if (is_served(path) && !import->leaves_attachments)
        return is_right_address(path, import->login_file);
    if (is_served(path))
        message_print("import-couchdb: --without-attachments goes with a file");
    else if (import->login_file || import->ca_file || import->begins_anew || import->retry_s != RETRY_S)
        message_print("import-couchdb: --login, --ca, --anew and --retry go with the address of a database");
    else
        return true;
    return false;
}

int control_import_couchdb(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "import-couchdb", "CODE FILE|URL", "Store the documents of a CouchDB database, with attachments.",
        "From the URL of a database that is served: all documents, then what has changed meanwhile; run it\n"
        "again to catch up.  From a FILE: the answer to _all_docs?include_docs=true&attachments=true, or a\n"
        "dump; every document is checked before the first is stored.  The members of a document become the\n"
        "item Main, without those that begin with _; its attachments become files.  After an interruption\n"
        "run the same command again: it continues.\n");
    struct foreign_kind kind = {.name = "couchdb",
                                .unit = "documents",
                                .program = "import_couchdb.py",
                                .attaches = true,
                                .has_repeats = true};
    struct foreign_import_options options = {.kind = &kind, .own = "{}"};
    struct couch_import import = {.control = control, .options = &options, .retry_s = RETRY_S};
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of documents for which the mapping has none."),
        OPTION_FLAG("without-attachments", &import.leaves_attachments,
                    "Store the documents of a FILE without their attachments."),
        OPTION_TEXT("login", "FILE", &import.login_file,
                    "Log in with the first line of FILE, name:password."),
        OPTION_TEXT("ca", "FILE", &import.ca_file, "Trust the authorities in FILE (PEM)."),
        OPTION_FLAG("anew", &import.begins_anew, "Begin with the first document again."),
        OPTION_NUMBER("retry", "SECONDS", &import.retry_s, 0, RETRY_MOST_S,
                      "Repeat a request so long while the server is away or fails (default: 60)."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    if (!are_right(&import, options.path))
        return CONTROL_WRONG;
    if (import.leaves_attachments) {
        kind.attaches = false;
        options.own = "{\"leaves_attachments\":true}";
    }
    const bool is_done =
        is_served(options.path) ? import_served(&import) : foreign_import_run(control, &options);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}
