/* importer: the phases of an import; each can be run again after an interruption. */
#include "control/archive/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/process/subprocess.h"
#include "control/archive/archive_batch.h"
#include "control/archive/archive_reader.h"
#include "control/archive/archive_rows.h"
#include "control/archive/import_progress.h"
#include "control/archive/importer_files.h"
#include "control/documents/progress.h"
#include "control/message.h"
#include "control/ns/cmd_ns.h"
#include "control/ns/ns_registry.h"
#include "control/schema/schema_catalog.h"
#include "edge/json/json.h"
#include "model/namespace.h"
#include "model/rules/rules.h"

/* Lines of an archive passed through a command of the administrator. */

enum { PIECE = 65536, OUTPUT_MOST = 1 << 30 };

/* A command may stop reading before the end. */
static bool feed(struct subprocess *child, struct bytes *rest)
{
    ssize_t done = rest->size ? write(child->in, rest->data, rest->size) : 0;
    if (done < 0 && errno != EPIPE)
        return errno == EAGAIN || errno == EINTR;
    if (done < 0)
        rest->size = 0;
    else {
        rest->data += done;
        rest->size -= (size_t)done;
    }
    if (!rest->size)
        subprocess_close(&child->in);
    return true;
}

static bool exchange(struct subprocess *child, struct bytes rest, struct builder *lines)
{
    while (child->out >= 0) {
        struct pollfd ends[] = {{.fd = child->out, .events = POLLIN}, {.fd = child->in, .events = POLLOUT}};
        if (poll(ends, COUNT_OF(ends), -1) < 0 && errno != EINTR)
            return false;
        if (child->in >= 0 && ends[1].revents && !feed(child, &rest))
            return false;
        if (!ends[0].revents)
            continue;
        ssize_t got = read(child->out, builder_reserve(lines, PIECE), PIECE);
        if (got < 0 && errno != EINTR)
            return false;
        if (got == 0)
            subprocess_close(&child->out);
        lines->size += got > 0 ? (size_t)got : 0;
        if (lines->size > OUTPUT_MOST) {
            errno = EFBIG;
            return false;
        }
    }
    return true;
}

/* Runs the command with /bin/sh, the lines on its standard input; what it prints replaces `lines_r`.  It may
 * return them in any order, and more or fewer.  False: it ended with another status than 0, or its output is
 * not lines, which is reported. */
MUST_USE static bool archive_transform_run(const char *command, struct bytes lines, struct builder *lines_r)
{
    const char *const words[] = {"/bin/sh", "-c", command, NULL};
    struct subprocess child;
    builder_clear(lines_r, OUTPUT_MOST);
    signal(SIGPIPE, SIG_IGN);
    const bool is_started = subprocess_start(
        &(const struct subprocess_work){.words = words, .has_in = true, .has_out = true}, &child);
    const bool is_done =
        is_started && fcntl(child.in, F_SETFL, O_NONBLOCK) == 0 && exchange(&child, lines, lines_r);
    const int why = errno, status = is_started ? subprocess_end(&child) : -1;
    if (!is_done)
        message_print("--transform: %s", strerror(why));
    else if (status != 0)
        message_print("--transform: the command ended with status %d", status);
    else if (lines_r->size && lines_r->data[lines_r->size - 1] != '\n')
        message_print("--transform: the last line of the command has no end");
    else
        return true;
    return false;
}

/* --- the configuration of the namespace --- */

/* The documents of z about a namespace, out of an archive and into z, where the
 * namespace may have another name.  Documents renamed, and merged into z. */

struct renaming {
    struct control *control;
    const struct ns_target *target;
    bool is_wrong; /* a member or a rule is malformed; it was reported */
};

/* Is it a member with such lines? */
static bool archive_configuration_has(struct bytes name)
{
    static const struct bytes folder = BYTES("configuration/");
    return name.size > folder.size && memcmp(name.data, folder.data, folder.size) == 0;
}

/* What the archive sets, over what this namespace has of its own. */
static struct bytes archive_configuration_join(struct arena *arena, struct bytes own, struct bytes other)
{
    struct json *root;
    if (!json_is_tree(arena, other, 128, 1, &root) || root->kind != JSON_OBJECT)
        return own;
    for (const struct json *member = root->first; member; member = member->next)
        if (!bytes_equal(member->name, BYTES("database")) && !bytes_equal(member->name, BYTES("state")) &&
            !bytes_equal(member->name, BYTES("message")) && !bytes_equal(member->name, BYTES("encrypted")))
            own = namespace_set_json(arena, own, arena_copy(arena, member->name.data, member->name.size),
                                     member->text);
    return own;
}

static void archive_configuration_refuse(struct renaming *renaming, const char *item, const char *place,
                                         const char *problem)
{
    message_print(
        "the archive has a malformed configuration, which --no-configuration leaves out: %s%s%s: %s", item,
        *place ? ": " : "", place, problem);
    renaming->is_wrong = true;
}

/* As the server checks them: malformed rules allow nothing, a malformed member may make the namespace
 * read-only. */
static void archive_configuration_check(struct renaming *renaming, const struct archive_item *item)
{
    struct arena *arena = renaming->control->arena;
    struct rules *rules;
    struct rules_problem problem;
    const char *member, *expected;
    if (bytes_equal(item->class, BYTES("Conf"))) {
        expected = namespace_refuse_content(arena, renaming->target->conf->text, item->content, &member);
        if (expected)
            archive_configuration_refuse(renaming, "Conf", member, expected);
    }
    if (bytes_equal(item->class, BYTES("Rules")) && rules_read(arena, item->content, &rules, &problem))
        archive_configuration_refuse(renaming, "Rules", problem.path, problem.expected);
}

static void rename_one(void *context, struct archive_document *document)
{
    struct renaming *renaming = context;
    struct arena *arena = renaming->control->arena;
    struct bytes *id = &document->header.id;
    const char *slash = memchr(id->data, '/', id->size);
    size_t kept = slash ? (size_t)(id->data + id->size - slash) : 0;
    const char *name =
        arena_printf(arena, "%s%.*s", renaming->target->conf->code, (int)kept, slash ? slash : "");
    *id = bytes_of(name);
    if (!bytes_equal(document->header.class, BYTES("Namespace")))
        return;
    for (size_t i = 0; i < document->count; i++) {
        struct archive_item *item = &document->items[i];
        if (!item->content.data)
            continue;
        if (bytes_equal(item->class, BYTES("Conf")))
            item->content = archive_configuration_join(arena, renaming->target->conf->text, item->content);
        archive_configuration_check(renaming, item);
    }
}

/* Stores the lines of a member as the configuration of `target`: its database, its state and the message
 * about it stay.  On failure reports why. */
static bool archive_configuration_store(struct control *control, const struct ns_target *target,
                                        struct bytes lines)
{
    struct renaming renaming = {control, target, false};
    int64_t changed;
    struct archive_batch *batch = archive_batch_create(control, target->z, false);
    bool is_done = archive_batch_read(batch, lines, true);
    if (is_done) {
        archive_batch_each(batch, rename_one, &renaming);
        is_done = !renaming.is_wrong;
    }
    if (is_done) {
        enum fault fault = archive_batch_merge(batch, false, &changed);
        is_done = fault == FAULT_NONE;
        if (fault == FAULT_STALE)
            message_print("storing the configuration: %s", pg_message(target->z));
    }
    archive_batch_destroy(batch);
    return is_done && control_execute(target->z, "storing the configuration", "deallocate all");
}

/* --- the import --- */

struct import {
    struct control *control;
    const struct importer_options *options;
    struct archive_contents contents;
    struct ns_target target;
    struct import_progress done;
    struct archive_batch *batch;
    struct importer_files *files;
    struct builder transformed;
    struct progress progress;
    int64_t number, size; /* of the members with documents so far; of the bytes, files included */
};

/* --- beginning --- */

static const char *identify(struct import *import)
{
    struct arena *arena = import->control->arena;
    char command[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(bytes_of(import->options->transform ? import->options->transform : ""), command);
    return arena_printf(arena, "%s %s%s", archive_identity(arena, &import->contents), command,
                        import->options->keeps_configuration ? " documents" : "");
}

/* Rows are restored where nothing is that they could contradict. */
static bool is_empty(struct import *import)
{
    const char *code = import->options->code;
    struct pg_result *row;
    if (!control_query(import->control, import->target.pg, "checking that the namespace is empty",
                       "select exists (select from stampd.doc), s.content::jsonb -> 'classes' <> '{}'"
                       " from stampd.schema s where s.one",
                       NULL, &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        message_print("%s has documents: import into another namespace, or with --merge", code);
    else if (pg_get_bool(row, 0, 1))
        message_print("%s has a schema already: import into a new namespace, or with --merge", code);
    else if (import->contents.is_increment)
        message_print("%s: what has changed since another archive: it is imported with --merge",
                      import->options->path);
    else
        return true;
    return false;
}

static bool set_state(struct import *import, enum ns_state state)
{
    return cmd_ns_set_state(import->control, import->options->code, state,
                            state == NS_OFF ? "The namespace is being imported." : NULL);
}

static bool importer_begin(struct import *import)
{
    struct import_progress *done = &import->done;
    *done = (struct import_progress){.identity = identify(import),
                                     .is_merge = import->options->is_merge,
                                     .state = import->target.conf->state};
    switch (import_progress_take(import->control, import->target.pg, import->options->code, done)) {
    case IMPORT_NEW:
        return (done->is_merge || is_empty(import)) &&
               importer_files_check(import->control, &import->target, &import->contents) &&
               import_progress_begin(import->control, import->target.pg, done);
    case IMPORT_RESUMED:
        return true;
    case IMPORT_REFUSED:
        break;
    }
    return false;
}

/* Nobody but administrators sees it before it is whole.  What was under way when it was closed is over. */
static bool close_namespace(struct import *import)
{
    return import->done.is_merge || ((import->done.state >= NS_OFF || set_state(import, NS_OFF)) &&
                                     schema_wait_for_older(import->control, import->target.pg));
}

/* --- documents --- */

static bool restore(struct import *import, struct pg *pg)
{
    return control_execute(pg, "storing documents", archive_merge_begin) &&
           control_execute(pg, "storing documents", "set local stampd.worker = 'on'") &&
           archive_batch_restore(import->batch, &import->done.sum) &&
           import_progress_move(pg, &import->done) && control_execute(pg, "storing documents", "commit");
}

static bool import_member(struct import *import, struct bytes lines)
{
    const char *transform = import->options->transform;
    import->done.members++;
    if (transform) {
        if (!archive_transform_run(transform, lines, &import->transformed))
            return false;
        lines = builder_bytes(&import->transformed);
    }
    return archive_batch_read(import->batch, lines, transform != NULL) &&
           (import->done.is_merge ? archive_merge_run(import->target.pg, import->batch,
                                                      import->contents.is_increment, &import->done)
                                  : restore(import, import->target.pg));
}

static bool take_documents(struct import *import, struct bytes lines)
{
    import->size += (int64_t)lines.size;
    return import->number++ < import->done.members || import_member(import, lines);
}

static bool take_member(void *context, struct archive_reader *reader, struct bytes name, struct bytes bytes)
{
    struct import *import = context;
    struct blob_digest digest;
    bool is_right = true;
    if (archive_files_read_name(name, &digest)) {
        is_right = importer_files_store(import->files, reader, name);
        import->size += archive_reader_file_size(reader);
    } else if (archive_reader_has_documents(name)) {
        is_right = take_documents(import, bytes);
    }
    progress_show(&import->progress, import->done.sum.documents, import->size);
    return is_right;
}

/* Members before those that are done are read again, to check them. */
static bool import_documents(struct import *import)
{
    if (import->done.members == IMPORT_VERIFIED)
        return true;
    progress_start(&import->progress, 0, import->contents.document_bytes + import->contents.files.bytes);
    import->batch = archive_batch_create(import->control, import->target.pg, true);
    import->files = importer_files_open(import->control, &import->target);
    bool is_right =
        import->files && archive_reader_each(import->options->path, &import->contents, take_member, import);
    progress_clear(&import->progress);
    if (is_right && import->contents.files.count)
        printf("files: %lld of %zu stored, the others were there\n",
               (long long)importer_files_stored(import->files), import->contents.files.count);
    importer_files_close(import->files);
    archive_batch_destroy(import->batch);
    builder_free(&import->transformed);
    return is_right;
}

/* --- verification --- */

static bool importer_sum_up(struct import *import, struct archive_sum *sum_r)
{
    const struct archive_filter all = {0};
    struct archive_snapshot snapshot;
    struct archive_rows *rows = NULL;
    struct builder line = {0};
    enum archive_rows_event event = ARCHIVE_ROWS_FAILED;
    *sum_r = (struct archive_sum){0};
    if (archive_rows_begin_snapshot(import->control, import->target.pg, import->target.conf->database,
                                    &snapshot) &&
        archive_rows_open(import->control, &snapshot, &all, &rows))
        do {
            builder_clear(&line, 1 << 20);
            event = archive_rows_next(rows, &line, sum_r);
        } while (event == ARCHIVE_ROWS_LINE);
    archive_rows_close(rows);
    builder_free(&line);
    return event == ARCHIVE_ROWS_END && archive_rows_end_snapshot(&snapshot);
}

static bool importer_verify(struct import *import)
{
    struct archive_sum sum;
    if (import->done.is_merge || import->done.members == IMPORT_VERIFIED)
        return true;
    if (!importer_sum_up(import, &sum))
        return false;
    if (archive_sum_equals(&sum, &import->done.sum)) {
        printf("verified: %lld documents, %lld deleted ones, %lld items\n", (long long)sum.documents,
               (long long)sum.deleted, (long long)sum.items);
        import->done.members = IMPORT_VERIFIED; /* the schema may change them */
        return import_progress_move(import->target.pg, &import->done);
    }
    return message_refuse("%s: its documents are not those of the archive: it was written to meanwhile; "
                          "import --abandon %s removes them",
                          import->options->code, import->options->code);
}

/* --- the rest --- */

static bool raise_floor(struct import *import)
{
    struct pg_result *row;
    const struct pg_params *params = PG_PARAMS(import->control->arena, PG_I64(import->contents.floor));
    return import->done.is_merge ||
           control_query(import->control, import->target.pg, "raising the floor",
                         "update stampd.namespace set floor = $1::bigint where one and floor < $1::bigint",
                         params, &row);
}

static bool store_configuration(struct import *import)
{
    struct archive_reader *reader;
    struct builder bytes = {0};
    struct bytes name;
    if (import->done.is_merge || import->options->keeps_configuration || import->control->place)
        return true; /* of `place`: z is the same */
    /* the state was set meanwhile, by another session */
    if (!ns_registry_connect(import->control, import->options->code, &import->target))
        return false;
    bool is_right = archive_reader_open(import->options->path, &import->contents, &reader);
    while (is_right && (is_right = archive_reader_next(reader, &name, &bytes)) && name.data) {
        if (archive_reader_has_documents(name))
            break;
        if (archive_configuration_has(name))
            is_right = archive_configuration_store(import->control, &import->target, builder_bytes(&bytes));
    }
    archive_reader_close(reader);
    builder_free(&bytes);
    return is_right;
}

static bool apply_schema(struct import *import)
{
    char schema[] = "schema", apply[] = "apply";
    char *words[] = {schema, apply, arena_printf(import->control->arena, "%s", import->options->code), NULL};
    return import->done.is_merge || import->options->keeps_configuration ||
           control_schema(import->control, COUNT_OF(words) - 1, words) == CONTROL_DONE;
}

static bool importer_finish(struct import *import)
{
    struct pg *pg = import->target.pg;
    if (import->done.is_merge)
        return import_progress_end(pg);
    if (import->options->stays_off)
        return control_execute(pg, "analysing the tables", "analyze stampd.doc; analyze stampd.item") &&
               import_progress_follow(import->control, pg, &import->contents);
    return control_execute(pg, "analysing the tables", "analyze stampd.doc; analyze stampd.item") &&
           control_execute(pg, "notifying the servers", "select pg_notify('stampd', 'all')") &&
           (import->done.state >= NS_OFF || set_state(import, import->done.state)) && import_progress_end(pg);
}

static void advise(const struct import *import)
{
    if (!import->done.is_merge && !bytes_equal(import->contents.state, BYTES("readonly")) &&
        !bytes_equal(import->contents.state, BYTES("off")))
        printf("%.*s was open when it was exported: if it was written to afterwards and its clients come to "
               "%s, run stampctl ns restored %s\n",
               (int)import->contents.ns.size, import->contents.ns.data, import->options->code,
               import->options->code);
}

bool importer_run(struct control *control, const struct importer_options *options)
{
    struct import import = {.control = control, .options = options};
    if (!archive_verify(control->arena, options->path, options->key, true, &import.contents) ||
        !ns_registry_connect(control, options->code, &import.target) || !importer_begin(&import) ||
        !close_namespace(&import) || !import_documents(&import) || !importer_verify(&import) ||
        !raise_floor(&import) || !store_configuration(&import) || !apply_schema(&import) ||
        !importer_finish(&import))
        return false;
    if (options->stays_off)
        return true;
    if (options->is_merge)
        printf("%s: %lld documents changed\n", options->code, (long long)import.done.sum.documents);
    else
        printf("%s: imported\n", options->code);
    advise(&import);
    return true;
}

bool importer_configure(struct control *control, const struct importer_options *options,
                        const struct archive_contents *contents)
{
    struct import import = {.control = control, .options = options, .contents = *contents};
    return store_configuration(&import) && apply_schema(&import);
}

bool importer_abandon(struct control *control, const char *code)
{
    const struct importer_options options = {.code = code};
    struct import import = {.control = control, .options = &options};
    bool is_there;
    if (!ns_registry_connect(control, code, &import.target) ||
        !import_progress_lock(control, import.target.pg) ||
        !import_progress_read(control, import.target.pg, &is_there, &import.done))
        return false;
    if (!is_there)
        return message_refuse("%s: no import was interrupted", code);
    if (!import.done.is_merge && !control_execute(import.target.pg, "removing the documents",
                                                  "truncate stampd.doc, stampd.item, stampd.blob_ref"))
        return false;
    if (!import_progress_end(import.target.pg))
        return false;
    printf("%s: %s\n", code, import.done.is_merge ? "what was merged stays" : "is empty");
    return import.done.is_merge || import.done.state >= NS_OFF || set_state(&import, import.done.state);
}
