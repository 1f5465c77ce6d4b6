/* cmd_import_couchdb: `stampctl import-couchdb`: options. */
#include "control/control.h"

#include <string.h>

#include "base/secret.h"
#include "control/foreign/couch/couch_follow.h"
#include "control/foreign/couch/couch_mapping.h"
#include "control/foreign/couch/couch_reader.h"
#include "control/foreign/couch/couch_text.h"
#include "control/message.h"

/* --- the source --- */

/* The documents of a database of CouchDB that was saved in a file (import-couchdb.md).  Rows of the reader,
 * written by the mapping. */

struct couch_source {
    struct foreign_source source; /* the first member */
    struct foreign_calls calls;
    const char *class; /* NULL: that of the mapping */
    bool leaves_attachments;
    struct couch_reader reader;
    struct couch_mapping *mapping; /* of this pass */
    struct arena *arena;           /* of one row */
    struct builder row;            /* of a document that stands alone */
};

static struct couch_source *of(struct foreign_source *source)
{
    return (struct couch_source *)source;
}

static bool open_couch(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct couch_source *couch = of(source);
    const char *problem;
    source->line = source->last_line = 0;
    couch->mapping =
        couch_mapping_read(arena, &control->settings, source->mapping_text, couch->class, &problem);
    if (!couch->mapping)
        message_print("%s: %s", source->mapping_path ? source->mapping_path : "import-couchdb", problem);
    if (!couch->mapping || !couch_reader_open(&couch->reader, source->path))
        return false;
    if (couch->leaves_attachments)
        couch_mapping_leave_attachments(couch->mapping);
    source->size = couch->reader.size;
    couch->arena = arena_create("couch");
    return true;
}

/* Lines that pouchdb-dump and couchbackup write beside documents: {"version":…,"db_info":…}, {"seq":…},
 * {"name":"@cloudant/couchbackup",…}. */
static bool is_remark(struct bytes object)
{
    bool has_one_member = !memchr(object.data, ',', object.size);
    return !couch_text_member(object, BYTES("id")).size &&
           ((has_one_member && couch_text_member(object, BYTES("seq")).size) ||
            (couch_text_member(object, BYTES("db_info")).size &&
             couch_text_member(object, BYTES("version")).size) ||
            bytes_equal(couch_text_member(object, BYTES("name")), BYTES("\"@cloudant/couchbackup\"")));
}

static enum foreign_event next_row(struct foreign_source *source, struct importer_files *files,
                                   int64_t number, struct builder *lines, const char **problem_r)
{
    struct couch_source *couch = of(source);
    struct bytes row;
    arena_reset(couch->arena);
    enum couch_event event = couch_reader_next(&couch->reader, &row, problem_r);
    source->line = ++source->last_line;
    source->offset = couch->reader.offset;
    if (event == COUCH_END)
        couch_reader_digest(&couch->reader, source->digest);
    if (event != COUCH_ROW)
        return event == COUCH_END ? FOREIGN_END : FOREIGN_FAILED;
    *problem_r = NULL;
    if (!couch->reader.is_answer) {
        struct bytes id = couch_text_member(row, BYTES("_id"));
        if (!id.size && is_remark(row))
            return FOREIGN_LEFT_OUT;
        if (id.size) {
            couch_text_wrap(&couch->row, id, row, false);
            row = builder_bytes(&couch->row);
        }
    }
    source->id = couch_text_member(row, BYTES("id"));
    return couch_mapping_write(couch->mapping, couch->arena, row, number, files, lines, problem_r);
}

static void couch_source_sum_up(struct foreign_source *source)
{
    int64_t count = couch_mapping_left_out(of(source)->mapping);
    if (count)
        message_print("%s: %lld attachments are left out", source->path, (long long)count);
}

static void close_couch(struct foreign_source *source)
{
    builder_free(&of(source)->row);
    of(source)->row = (struct builder){0};
    couch_reader_close(&of(source)->reader);
    arena_destroy(of(source)->arena);
}

/* `leaves_attachments`: documents keep those that they have in the namespace. */
static void couch_source_init(struct couch_source *couch, struct arena *arena, const char *class,
                              bool leaves_attachments)
{
    *couch = (struct couch_source){.class = class, .leaves_attachments = leaves_attachments};
    couch->calls = (struct foreign_calls){.kind = "couchdb",
                                          .unit = "documents",
                                          .attaches = !leaves_attachments,
                                          .open = open_couch,
                                          .next = next_row,
                                          .sum_up = couch_source_sum_up,
                                          .close = close_couch};
    couch->source.calls = &couch->calls;
    couch->source.options =
        arena_printf(arena, "%s\n%s", class ? class : "", leaves_attachments ? "without attachments\n" : "");
}

/* --- the command --- */

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
    if (!secret_is_closed("login", words->login, problem, sizeof problem))
        return message_refuse("%s", problem);
    if (!control_read_file(control->arena, words->login, &text))
        return false;
    struct bytes line = bytes_cut(&text, '\n');
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    words->follow.server.login = line.size ? arena_copy(control->arena, line.data, line.size) : "";
    if (strchr(words->follow.server.login, ':'))
        return true;
    return message_refuse("%s: expected name:password", words->login);
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
    static const struct command command = COMMAND(
        "import-couchdb", "CODE FILE|URL", "Store the documents of a CouchDB database, with attachments.",
        "From the URL of a database that is served: all documents, then what has changed meanwhile; run it\n"
        "again to catch up.  From a FILE: the answer to _all_docs?include_docs=true&attachments=true, or a\n"
        "dump; every document is checked before the first is stored.  The members of a document become the\n"
        "item Main, without those that begin with _; its attachments become files.  After an interruption\n"
        "run the same command again: it continues.\n");
    struct foreign_import_options options = {0};
    struct couch_words words = {.retry_s = RETRY_S};
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of documents for which the mapping has none."),
        OPTION_FLAG("without-attachments", &words.leaves_attachments,
                    "Store the documents of a FILE without their attachments."),
        OPTION_TEXT("login", "FILE", &words.login, "Log in with the first line of FILE, name:password."),
        OPTION_TEXT("ca", "FILE", &words.follow.server.ca_file, "Trust the authorities in FILE (PEM)."),
        OPTION_FLAG("anew", &words.follow.begins_anew, "Begin with the first document again."),
        OPTION_NUMBER("retry", "SECONDS", &words.retry_s, 0, RETRY_MOST_S,
                      "Repeat a request so long while the server is away or fails (default: 60)."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    if (!cmd_import_couchdb_are_right(&words, options.path))
        return CONTROL_WRONG;
    return cmd_import_couchdb_run(control, &options, &words) ? CONTROL_DONE : CONTROL_FAILED;
}
