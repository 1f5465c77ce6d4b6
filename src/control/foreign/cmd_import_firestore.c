/* cmd_import_firestore: `stampctl import-firestore`: the mapping, and the program that reads exports.
 *
 * firestore.py reads the files and prints a line of JSON for each document; its first lines describe them. */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/builder.h"
#include "base/settings.h"
#include "control/documents/input.h"
#include "control/foreign/foreign_import.h"
#include "control/foreign/foreign_mapping.h"
#include "control/message.h"
#include "edge/json/json.h"
#include "model/document/item.h"

/* Which class and item a document of Firestore becomes (import-firestore.md).
 *
 * {"class","item","classes":{collection:class or null},"not_finite"}; all members may be absent.  A class
 * gets the documents of one collection, so that no two have the same id. */

static const char ended_early[] = "firestore.py, which python3 runs to read it, has ended early";

enum { REFUSED_MOST = 100, SHOWN = 60 };

/* Collections of the path with slashes between them, ids likewise. */
struct firestore_key {
    struct bytes collection, id;
    bool is_nested;
};

/* A collection without a class. */
struct refused_collection {
    struct bytes name;
    const char *problem;
    int64_t documents;
};

struct firestore_mapping {
    struct arena *arena; /* of the mapping */
    const struct settings *settings;
    struct bytes class;      /* of a collection that `classes` has not; NO_BYTES: none */
    struct bytes collection; /* the one that got it; NO_BYTES: none yet */
    const struct json *classes;
    struct bytes item_class, item_key;
    const char *not_finite; /* what becomes of NaN and infinities */
    struct refused_collection refused[REFUSED_MOST];
    size_t refused_count;
    int64_t other_documents; /* of further ones */
};

/* --- reading --- */

static const char *firestore_mapping_read_classes(const struct firestore_mapping *mapping)
{
    const struct json *classes = mapping->classes;
    if (classes && classes->kind != JSON_OBJECT)
        return "expected an object as \"classes\"";
    for (const struct json *class = classes ? classes->first : NULL; class; class = class->next) {
        if (class->kind == JSON_NULL)
            continue;
        if (class->kind != JSON_STRING || !item_is_class_name(class->value))
            return "expected as each of the \"classes\" null, or a capital, then up to 15 letters and digits";
        for (const struct json *other = classes->first; other != class; other = other->next)
            if (other->kind == JSON_STRING && bytes_equal(other->value, class->value))
                return "expected another class for each collection: two documents could have the same id";
    }
    return NULL;
}

static const char *read_not_finite(struct firestore_mapping *mapping, const struct json *member)
{
    static const char *const words[] = {"refuse", "null", "text"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!member || (member->kind == JSON_STRING && bytes_equal(member->value, bytes_of(words[i])))) {
            mapping->not_finite = words[i];
            return NULL;
        }
    return "expected as \"not_finite\" \"refuse\", \"null\" or \"text\"";
}

static const char *firestore_mapping_read_text(struct firestore_mapping *mapping, struct bytes text)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 2000};
    struct json_problem problem;
    struct json *root;
    struct bytes item = BYTES("Main");
    if (json_read(mapping->arena, text, &limits, &root, &problem) != FAULT_NONE)
        return arena_printf(mapping->arena, "%s, at byte %zu", problem.what, problem.offset + 1);
    if (root->kind != JSON_OBJECT)
        return "expected an object";
    const char *unknown = foreign_mapping_unknown(mapping->arena, root, "class item classes not_finite");
    if (unknown)
        return unknown;
    mapping->classes = json_member(root, "classes");
    if (!foreign_mapping_text(json_member(root, "class"), &mapping->class) ||
        !foreign_mapping_text(json_member(root, "item"), &item))
        return "expected texts as \"class\" and \"item\"";
    if (!foreign_mapping_item(item, mapping->settings, &mapping->item_class, &mapping->item_key))
        return "expected as \"item\" a class of items, or class/key";
    const char *wrong = read_not_finite(mapping, json_member(root, "not_finite"));
    return wrong ? wrong : firestore_mapping_read_classes(mapping);
}

static bool has_class(const struct firestore_mapping *mapping, struct bytes name)
{
    const struct json *class = mapping->classes ? mapping->classes->first : NULL;
    while (class && !(class->kind == JSON_STRING && bytes_equal(class->value, name)))
        class = class->next;
    return class != NULL;
}

/* Reads the text, NO_BYTES: none; `class` replaces its member where not NULL.  NULL: `problem_r`, in the
 * arena, says why. */
static struct firestore_mapping *firestore_mapping_read(struct arena *arena, const struct settings *settings,
                                                        struct bytes text, const char *class,
                                                        const char **problem_r)
{
    struct firestore_mapping *mapping = ARENA_NEW(arena, struct firestore_mapping);
    *mapping = (struct firestore_mapping){.arena = arena,
                                          .settings = settings,
                                          .item_class = BYTES("Main"),
                                          .item_key = BYTES(""),
                                          .not_finite = "refuse"};
    *problem_r = text.data ? firestore_mapping_read_text(mapping, text) : NULL;
    if (class)
        mapping->class = bytes_of(class);
    if (!*problem_r && (mapping->class.data ? !item_is_class_name(mapping->class) : !mapping->classes))
        *problem_r = "expected as the class of documents a capital, then up to 15 letters and digits";
    if (!*problem_r && mapping->class.data && has_class(mapping, mapping->class))
        *problem_r =
            "expected as the class one that \"classes\" does not have: two documents could have the same id";
    return *problem_r ? NULL : mapping;
}

/* --- documents --- */

static int shown(struct bytes text)
{
    return (int)(text.size < SHOWN ? text.size : SHOWN);
}

/* In the arena of the mapping: why the collection has no class. */
static const char *firestore_mapping_explain(const struct firestore_mapping *mapping,
                                             const struct firestore_key *key)
{
    struct bytes name = key->collection, first = mapping->collection;
    if (key->is_nested || !mapping->class.data)
        return arena_printf(mapping->arena, "the mapping has no class for the %s \"%.*s\"",
                            key->is_nested ? "subcollection" : "collection", shown(name), name.data);
    return arena_printf(
        mapping->arena,
        "the class %.*s is that of the collection \"%.*s\": name one for \"%.*s\" in \"classes\" of "
        "a mapping",
        (int)mapping->class.size, mapping->class.data, shown(first), first.data, shown(name), name.data);
}

static void firestore_mapping_refuse(struct firestore_mapping *mapping, const struct firestore_key *key)
{
    struct bytes name = key->collection;
    for (size_t i = 0; i < mapping->refused_count; i++)
        if (bytes_equal(mapping->refused[i].name, name)) {
            mapping->refused[i].documents++;
            return;
        }
    if (mapping->refused_count < REFUSED_MOST)
        mapping->refused[mapping->refused_count++] =
            (struct refused_collection){{arena_copy(mapping->arena, name.data, name.size), name.size},
                                        firestore_mapping_explain(mapping, key),
                                        1};
    else
        mapping->other_documents++;
}

enum collection_use { COLLECTION_STORED, COLLECTION_LEFT_OUT, COLLECTION_REFUSED };

/* `class_r`: where its documents are stored. */
static enum collection_use firestore_mapping_find_class(struct firestore_mapping *mapping,
                                                        const struct firestore_key *key,
                                                        struct bytes *class_r)
{
    struct bytes collection = key->collection;
    for (const struct json *class = mapping->classes ? mapping->classes->first : NULL; class;
         class = class->next)
        if (bytes_equal(class->name, collection)) {
            *class_r = class->value;
            return class->kind == JSON_STRING ? COLLECTION_STORED : COLLECTION_LEFT_OUT;
        }
    if (key->is_nested || !mapping->class.data)
        return COLLECTION_REFUSED;
    if (!mapping->collection.data)
        mapping->collection =
            (struct bytes){arena_copy(mapping->arena, collection.data, collection.size), collection.size};
    *class_r = mapping->class;
    return bytes_equal(mapping->collection, collection) ? COLLECTION_STORED : COLLECTION_REFUSED;
}

static const char *add_document(const struct firestore_mapping *mapping, struct arena *arena,
                                const struct archive_header *header, struct bytes content,
                                struct builder *lines)
{
    struct foreign_size size = {0};
    const struct archive_item item = {mapping->item_class, mapping->item_key, header->version,
                                      header->version,     content,           false};
    archive_line_begin(lines, header);
    archive_line_add_item(lines, &item, true);
    archive_line_end(lines, header);
    foreign_mapping_count(&size, &item);
    return foreign_mapping_over(arena, mapping->settings, &size);
}

static struct bytes member_text(const struct json *line, const char *name)
{
    const struct json *member = json_member(line, name);
    return member && member->kind == JSON_STRING ? member->value : NO_BYTES;
}

static const char *firestore_wrong(struct arena *arena, struct bytes why)
{
    return why.data ? arena_copy(arena, why.data, why.size) : NULL;
}

/* Appends the document of a line of the reader as a line of an archive, of the version `number`.  Not
 * FOREIGN_DOCUMENT: nothing is appended; FOREIGN_WRONG: `problem_r`, in `arena`, says why; NULL: its
 * collection has no class, see firestore_mapping_report. */
static enum foreign_event firestore_mapping_write(struct firestore_mapping *mapping, struct arena *arena,
                                                  const struct json *line, int64_t number,
                                                  struct builder *lines, const char **problem_r)
{
    struct archive_header header = {.version = number, .ctime = number, .dtime = number};
    const struct json *nested = json_member(line, "is_nested"), *content = json_member(line, "content");
    const struct firestore_key key = {member_text(line, "collection"), member_text(line, "id"),
                                      nested && nested->kind == JSON_TRUE};
    size_t before = lines->size;
    *problem_r = firestore_wrong(arena, member_text(line, "wrong_key"));
    if (*problem_r)
        return FOREIGN_WRONG;
    enum collection_use use = firestore_mapping_find_class(mapping, &key, &header.class);
    if (use == COLLECTION_REFUSED)
        firestore_mapping_refuse(mapping, &key);
    if (use != COLLECTION_STORED)
        return use == COLLECTION_REFUSED ? FOREIGN_WRONG : FOREIGN_LEFT_OUT;
    header.id = key.id;
    *problem_r = foreign_mapping_wrong_id(arena, mapping->settings, key.id);
    if (!*problem_r)
        *problem_r = firestore_wrong(arena, member_text(line, "wrong"));
    if (!*problem_r)
        *problem_r = content ? add_document(mapping, arena, &header, content->text, lines) : ended_early;
    if (!*problem_r)
        return FOREIGN_DOCUMENT;
    lines->size = before;
    *problem_r = arena_printf(arena, "%.*s of %.*s: %s", shown(key.id), key.id.data, shown(key.collection),
                              key.collection.data, *problem_r);
    return FOREIGN_WRONG;
}

/* Reports each collection without a class, with its number of documents; of very many the first ones. */
static void firestore_mapping_report(const struct firestore_mapping *mapping, const char *path)
{
    for (size_t i = 0; i < mapping->refused_count; i++)
        message_print("%s: %s (documents: %lld)", path, mapping->refused[i].problem,
                      (long long)mapping->refused[i].documents);
    if (mapping->other_documents)
        message_print("%s: %lld documents of further collections without a class", path,
                      (long long)mapping->other_documents);
}

/* --- the program --- */

enum { CANNOT_EXEC = 127 };

struct firestore_source {
    struct foreign_source source; /* the first member */
    const char *class;            /* NULL: that of the mapping */
    /* of this pass */
    struct firestore_mapping *mapping;
    pid_t reader;
    struct input input;  /* what it prints */
    struct arena *arena; /* of a line */
};

static struct firestore_source *of(struct foreign_source *source)
{
    return (struct firestore_source *)source;
}

/* It ends when its parent does. */
static void run_reader(const char *const *words, int output, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(output, STDOUT_FILENO) >= 0)
        execvp(words[0], (char *const *)(uintptr_t)words);
    message_print("%s: %s", words[0], strerror(errno));
    _exit(CANNOT_EXEC);
}

static bool start_reader(struct firestore_source *firestore, struct control *control, struct arena *arena)
{
    const char *folder =
        control_directory(arena, "STAMPD_IMPORT", "src/control/foreign", STAMPD_IMPORT_DIRECTORY);
    const char *const words[] = {"python3",
                                 "-I",
                                 arena_printf(arena, "%s/firestore.py", folder),
                                 firestore->source.path,
                                 arena_printf(arena, "%" PRId64, control->settings.limit_depth),
                                 arena_printf(arena, "%" PRId64, control->settings.limit_content_bytes),
                                 firestore->mapping->not_finite,
                                 NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return message_refuse("%s: %s", words[0], strerror(errno));
    pid_t parent = getpid();
    firestore->reader = fork();
    if (firestore->reader == 0)
        run_reader(words, ends[1], parent);
    close(ends[1]);
    input_take(&firestore->input, ends[0]);
    return firestore->reader > 0 || message_refuse("%s: %s", words[0], strerror(errno));
}

static void end_reader(struct firestore_source *firestore)
{
    input_close(&firestore->input);
    if (firestore->reader <= 0)
        return;
    kill(firestore->reader, SIGTERM); /* after its last line there is nothing that it could lose */
    while (waitpid(firestore->reader, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The next line of the reader, in the arena; NULL: it has ended early, or has printed something else. */
static const struct json *read_line(struct firestore_source *firestore)
{
    const struct json_limits limits = {.depth = (int)firestore->mapping->settings->limit_depth + 1,
                                       .tree_depth = 1};
    struct bytes line;
    struct json *root;
    struct json_problem problem;
    arena_reset(firestore->arena);
    return input_next(&firestore->input, true, &line) == INPUT_LINE &&
                   json_read(firestore->arena, line, &limits, &root, &problem) == FAULT_NONE
               ? root
               : NULL;
}

/* --- the source --- */

/* An export of Firestore, one document an entity (import-firestore.md). */

static void close_firestore(struct foreign_source *source)
{
    end_reader(of(source));
    arena_destroy(of(source)->arena);
}

static bool begin_reading(struct firestore_source *firestore)
{
    const struct json *line = read_line(firestore);
    struct bytes refused = member_text(line, "refused");
    if (refused.data)
        return message_refuse("%.*s", (int)refused.size, refused.data);
    return json_is_i64(json_member(line, "size"), &firestore->source.size) ||
           message_refuse("%s: %s", firestore->source.path, ended_early);
}

static bool open_firestore(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct firestore_source *firestore = of(source);
    const char *problem;
    source->line = source->last_line = source->offset = 0;
    firestore->mapping =
        firestore_mapping_read(arena, &control->settings, source->mapping_text, firestore->class, &problem);
    if (!firestore->mapping)
        return message_refuse("%s: %s", source->mapping_path ? source->mapping_path : "import-firestore",
                              problem);
    firestore->arena = arena_create("firestore");
    if (start_reader(firestore, control, arena) && begin_reading(firestore))
        return true;
    close_firestore(source);
    return false;
}

static enum foreign_event end_reading(struct firestore_source *firestore, const struct json *line,
                                      const char **problem_r)
{
    struct bytes digest = member_text(line, "digest"), failed = member_text(line, "failed");
    if (digest.size == CRYPTO_SHA256_HEX) {
        memcpy(firestore->source.digest, digest.data, digest.size);
        firestore->source.offset = firestore->source.size;
        return FOREIGN_END;
    }
    *problem_r = failed.data ? firestore_wrong(firestore->arena, failed) : ended_early;
    return FOREIGN_FAILED;
}

static enum foreign_event next_entity(struct foreign_source *source, struct importer_files *files UNUSED,
                                      int64_t number, struct builder *lines, const char **problem_r)
{
    struct firestore_source *firestore = of(source);
    const struct json *line = read_line(firestore);
    *problem_r = NULL;
    source->line = ++source->last_line;
    struct bytes place = member_text(line, "place");
    if (!place.data || !json_is_i64(json_member(line, "offset"), &source->offset))
        return end_reading(firestore, line, problem_r);
    enum foreign_event written =
        firestore_mapping_write(firestore->mapping, firestore->arena, line, number, lines, problem_r);
    if (*problem_r)
        *problem_r = arena_printf(firestore->arena, "%.*s: %s", (int)place.size, place.data, *problem_r);
    return written;
}

static void firestore_source_sum_up(struct foreign_source *source)
{
    firestore_mapping_report(of(source)->mapping, source->path);
}

static void firestore_source_init(struct firestore_source *firestore, struct arena *arena, const char *class)
{
    static const struct foreign_calls calls = {.kind = "firestore",
                                               .unit = "documents",
                                               .open = open_firestore,
                                               .next = next_entity,
                                               .sum_up = firestore_source_sum_up,
                                               .close = close_firestore};
    *firestore = (struct firestore_source){.class = class};
    firestore->source.calls = &calls;
    firestore->source.options = arena_printf(arena, "%s\n", class ? class : "");
}

/* --- the command --- */

int control_import_firestore(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "import-firestore", "CODE FOLDER", "Store the documents of an export of Firestore.",
        "FOLDER is what `gcloud firestore export` has written, copied to this host.  The fields of a "
        "document\n"
        "become the item Main.  A mapping names the class of each collection, also of subcollections.  "
        "Every\n"
        "file is checked before the first document is stored.  After an interruption run the same command\n"
        "again: it continues.\n");
    struct foreign_import_options options = {0};
    struct firestore_source firestore;
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options,
                             "The class of the one collection for which the mapping has none."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    firestore_source_init(&firestore, control->arena, options.class);
    return foreign_import_run(control, &options, &firestore.source) ? CONTROL_DONE : CONTROL_FAILED;
}
