/* cmd_import_firestore: `stampctl import-firestore`: options. */
#include "control/control.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "control/foreign/firestore/firestore_log.h"
#include "control/foreign/firestore/firestore_mapping.h"
#include "control/foreign/firestore/firestore_wire.h"
#include "control/message.h"

/* --- the folder --- */

/* The files of an export: a folder with a file *.overall_export_metadata, which leads to
 * the metadata of groups of kinds in folders of it, and these name the files output-0, output-1… beside them.
 * Only what the metadata names is read: another export may lie in a folder below. */

struct firestore_file {
    const char *name; /* below the folder */
    int64_t size;
};
struct firestore_folder {
    struct firestore_file *files; /* in the order of the metadata */
    size_t count;
    int64_t size;      /* of all */
    int64_t documents; /* in all, as the metadata has it */
};

/* --- metadata of an export --- */

/* The metadata of an export: which files it has, and how many documents.
 *
 * The file *.overall_export_metadata has the log format (firestore_log.h): the version of the format, then a
 * record with the path of a metadata file of each group of kinds, and its number of documents.  Such a file
 * is one protocol buffer, with the names of the files output-N beside it.  Names come from outside, and never
 * lead out of the folder. */

struct firestore_group {
    const char *path;  /* of its metadata, below the folder of the export; '/' between folders */
    int64_t documents; /* in all its files */
};

enum { GROUPS_MOST = 100000, METADATA_MOST = 16 << 20 };

static const char wrong_overall[] = "expected the metadata of an export of Firestore";
static const char wrong_group[] = "expected the metadata of a group of kinds, with the names of its files";

/* Is it the name of a file, or of a folder that is not the one above? */
static bool firestore_metadata_is_name(struct bytes name)
{
    return name.size && name.size <= 255 && !memchr(name.data, 0, name.size) &&
           !memchr(name.data, '/', name.size) && !bytes_equal(name, BYTES(".")) &&
           !bytes_equal(name, BYTES(".."));
}

/* Emulators on Windows write `\` between folders.  NULL: it would lead out of the folder. */
static const char *firestore_metadata_path_of(struct arena *arena, struct bytes text)
{
    char *path = arena_copy(arena, text.data, text.size);
    for (size_t i = 0; i < text.size; i++)
        if (path[i] == '\\')
            path[i] = '/';
    struct bytes rest = {path, text.size};
    for (const char *slash = rest.data; slash;) {
        slash = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
        size_t size = slash ? (size_t)(slash - rest.data) : rest.size;
        if (!firestore_metadata_is_name((struct bytes){rest.data, size}))
            return NULL;
        if (slash)
            rest = (struct bytes){slash + 1, rest.size - size - 1};
    }
    return arena_printf(arena, "%.*s", (int)text.size, path);
}

/* --- the whole export --- */

static const char *read_group(struct arena *arena, struct bytes message, struct firestore_group *group)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    *group = (struct firestore_group){0};
    while ((event = firestore_wire_next(&message, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, 2, FIRESTORE_BYTES))
            group->path = firestore_metadata_path_of(arena, field.text);
        else if (firestore_wire_is(&field, 3, FIRESTORE_VARINT))
            group->documents = (int64_t)field.value;
    return event == FIRESTORE_WIRE_END && group->path && group->documents >= 0 ? NULL : wrong_overall;
}

static const char *read_groups(struct arena *arena, struct bytes record, struct firestore_group **groups_r,
                               size_t *count_r)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    size_t capacity = 0;
    while ((event = firestore_wire_next(&record, &field)) == FIRESTORE_WIRE_FIELD) {
        if (!firestore_wire_is(&field, 1, FIRESTORE_BYTES))
            continue;
        if (*count_r == GROUPS_MOST)
            return "more than 100000 groups of kinds";
        ARENA_GROW(arena, *groups_r, *count_r, capacity);
        const char *problem = read_group(arena, field.text, &(*groups_r)[(*count_r)++]);
        if (problem)
            return problem;
    }
    return event == FIRESTORE_WIRE_END ? NULL : wrong_overall;
}

static const char *expect_end(struct firestore_log *log)
{
    struct bytes record;
    const char *why = NULL;
    switch (firestore_log_next(log, &record, &why)) {
    case FIRESTORE_LOG_RECORD:
        return "a third record, behind the version and the groups of kinds: its documents would be missing";
    case FIRESTORE_LOG_FAILED:
        return why;
    case FIRESTORE_LOG_END:
        break;
    }
    return NULL;
}

/* Reads the file *.overall_export_metadata.  False: why has been reported. */
static bool firestore_metadata_groups(struct arena *arena, const char *path,
                                      struct firestore_group **groups_r, size_t *count_r)
{
    struct firestore_log log;
    struct digest *digest = digest_create();
    struct bytes record;
    const char *problem = NULL, *why = NULL;
    *groups_r = NULL;
    *count_r = 0;
    if (!firestore_log_open(&log, path, arena_alloc(arena, FIRESTORE_BLOCK), digest))
        problem = strerror(errno);
    /* the version, then the groups */
    for (int i = 0; i < 2 && !problem; i++) {
        enum firestore_log_event event = firestore_log_next(&log, &record, &why);
        if (event != FIRESTORE_LOG_RECORD)
            problem = event == FIRESTORE_LOG_FAILED ? why : wrong_overall;
        else if (i == 0)
            problem = bytes_equal(record, BYTES("3")) ? NULL : "an unknown version of the format of exports";
        else
            problem = read_groups(arena, record, groups_r, count_r);
    }
    if (!problem) /* files of groups that are not read would be missed by nothing */
        problem = expect_end(&log);
    firestore_log_close(&log);
    digest_destroy(digest);
    if (problem)
        message_print("%s: %s", path, problem);
    return !problem;
}

/* --- a group --- */

static bool firestore_metadata_read_file(struct arena *arena, const char *path, struct bytes *text_r)
{
    struct stat status;
    if (stat(path, &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size > METADATA_MOST))
        return message_refuse("%s: %s", path, wrong_group);
    return control_read_file(arena, path, text_r);
}

static const char *add_files(struct bytes kinds, const char *(*add)(void *context, struct bytes name),
                             void *context)
{
    struct firestore_field field;
    enum firestore_wire_event event;
    const char *problem = NULL;
    while (!problem && (event = firestore_wire_next(&kinds, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, 2, FIRESTORE_BYTES))
            problem = firestore_metadata_is_name(field.text) ? add(context, field.text) : wrong_group;
    return problem || event == FIRESTORE_WIRE_END ? problem : wrong_group;
}

/* Calls `add` with the name of each file that the metadata of a group names, until it returns a problem.
 * False: why has been reported. */
static bool firestore_metadata_files(struct arena *arena, const char *path,
                                     const char *(*add)(void *context, struct bytes name), void *context)
{
    struct bytes text;
    struct firestore_field field;
    enum firestore_wire_event event = FIRESTORE_WIRE_END;
    const char *problem = NULL;
    if (!firestore_metadata_read_file(arena, path, &text))
        return false;
    while (!problem && (event = firestore_wire_next(&text, &field)) == FIRESTORE_WIRE_FIELD)
        if (firestore_wire_is(&field, 2, FIRESTORE_BYTES))
            problem = add_files(field.text, add, context);
    if (!problem && event != FIRESTORE_WIRE_END)
        problem = wrong_group;
    if (problem)
        message_print("%s: %s", path, problem);
    return !problem;
}

/* --- the folder --- */

enum { FILES_MOST = 100000 };

struct firestore_gathering {
    struct arena *arena;
    const char *path;
    struct bytes folder; /* of the group, empty or ending with a slash */
    struct firestore_folder *files;
    size_t capacity;
};

static bool ends(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size > end_size && strcmp(name + size - end_size, end) == 0;
}

/* The name of the one file *.overall_export_metadata; false: why not has been reported. */
static bool find_overall(struct arena *arena, const char *path, const char **name_r)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    size_t count = 0;
    if (!directory)
        return message_refuse("%s: %s", path, strerror(errno));
    while ((errno = 0, entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && ends(entry->d_name, ".overall_export_metadata")) {
            *name_r = arena_copy(arena, entry->d_name, strlen(entry->d_name) + 1);
            count++;
        }
    bool is_read = !errno;
    if (!is_read)
        message_print("%s: %s", path, strerror(errno));
    else if (count != 1)
        message_print("%s: expected the folder of an export, with one file *.overall_export_metadata", path);
    closedir(directory);
    return is_read && count == 1;
}

static const char *firestore_folder_add_file(void *context, struct bytes name)
{
    struct firestore_gathering *gathering = context;
    struct firestore_folder *all = gathering->files;
    struct bytes folder = gathering->folder;
    struct stat status;
    const char *file =
        arena_printf(gathering->arena, "%.*s%.*s", (int)folder.size, folder.data, (int)name.size, name.data);
    if (all->count == FILES_MOST)
        return "more than 100000 files";
    if (stat(arena_printf(gathering->arena, "%s/%s", gathering->path, file), &status) != 0)
        return arena_printf(gathering->arena, "it names the file %.*s: %s", (int)name.size, name.data,
                            strerror(errno));
    if (!S_ISREG(status.st_mode))
        return arena_printf(gathering->arena, "it names the file %.*s: it is no regular file", (int)name.size,
                            name.data);
    ARENA_GROW(gathering->arena, all->files, all->count, gathering->capacity);
    all->files[all->count++] = (struct firestore_file){file, status.st_size};
    all->size += status.st_size;
    return NULL;
}

/* False: why has been reported; the folder is no export, or no whole one. */
static bool firestore_folder_read(struct arena *arena, const char *path, struct firestore_folder *folder_r)
{
    struct firestore_gathering gathering = {.arena = arena, .path = path, .files = folder_r};
    struct firestore_group *groups;
    const char *overall = NULL;
    size_t count;
    *folder_r = (struct firestore_folder){0};
    if (!find_overall(arena, path, &overall) ||
        !firestore_metadata_groups(arena, arena_printf(arena, "%s/%s", path, overall), &groups, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = groups[i].path, *slash = strrchr(name, '/');
        gathering.folder = (struct bytes){name, slash ? (size_t)(slash + 1 - name) : 0};
        if (!firestore_metadata_files(arena, arena_printf(arena, "%s/%s", path, name),
                                      firestore_folder_add_file, &gathering))
            return false;
        if (__builtin_add_overflow(folder_r->documents, groups[i].documents, &folder_r->documents))
            return message_refuse("%s/%s: more documents than can be counted", path, overall);
    }
    return true;
}

/* --- the source --- */

/* An export of Firestore, one document an entity (import-firestore.md).  Files are read one after the other,
 * as if they were one. */

struct firestore_source {
    struct foreign_source source; /* the first member */
    const char *class;            /* NULL: that of the mapping */
    /* of this pass */
    struct firestore_mapping *mapping;
    struct firestore_folder folder;
    size_t next; /* file to open */
    bool is_open;
    struct firestore_log log;
    int64_t before; /* bytes of the files that were read */
    struct digest *digest;
    struct arena *arena; /* of a document */
};

static struct firestore_source *of(struct foreign_source *source)
{
    return (struct firestore_source *)source;
}

static bool open_firestore(struct foreign_source *source, struct control *control, struct arena *arena)
{
    struct firestore_source *firestore = of(source);
    const char *problem;
    source->line = source->last_line = source->offset = 0;
    firestore->mapping =
        firestore_mapping_read(arena, &control->settings, source->mapping_text, firestore->class, &problem);
    if (!firestore->mapping)
        message_print("%s: %s", source->mapping_path ? source->mapping_path : "import-firestore", problem);
    if (!firestore->mapping || !firestore_folder_read(arena, source->path, &firestore->folder))
        return false;
    source->size = firestore->folder.size;
    firestore->next = 0;
    firestore->before = 0;
    firestore->is_open = false;
    firestore->digest = digest_create();
    firestore->log.block = arena_alloc(arena, FIRESTORE_BLOCK);
    firestore->arena = arena_create("firestore");
    return true;
}

/* The name of a file and its size are part of the digest: bytes cannot pass from one file to the next. */
static bool open_file(struct firestore_source *firestore, const char **problem_r)
{
    const struct firestore_file *file = &firestore->folder.files[firestore->next++];
    const char *path = arena_printf(firestore->arena, "%s/%s", firestore->source.path, file->name);
    digest_add(firestore->digest,
               bytes_of(arena_printf(firestore->arena, "%s %lld\n", file->name, (long long)file->size)));
    firestore->is_open = firestore_log_open(&firestore->log, path, firestore->log.block, firestore->digest);
    if (!firestore->is_open)
        *problem_r = arena_printf(firestore->arena, "%s: %s", file->name, strerror(errno));
    return firestore->is_open;
}

static void close_file(struct firestore_source *firestore)
{
    firestore->before += firestore->folder.files[firestore->next - 1].size;
    firestore_log_close(&firestore->log);
    firestore->is_open = false;
}

/* The next record of all files; its place is in the problem, if there is one. */
static enum firestore_log_event next_record(struct firestore_source *firestore, struct bytes *record_r,
                                            const char **problem_r)
{
    enum firestore_log_event event = FIRESTORE_LOG_END;
    while (event == FIRESTORE_LOG_END) {
        if (!firestore->is_open && firestore->next == firestore->folder.count)
            return FIRESTORE_LOG_END;
        if (!firestore->is_open && !open_file(firestore, problem_r))
            return FIRESTORE_LOG_FAILED;
        event = firestore_log_next(&firestore->log, record_r, problem_r);
        if (event == FIRESTORE_LOG_END)
            close_file(firestore);
    }
    return event;
}

static const char *place(struct firestore_source *firestore, const char *problem)
{
    return arena_printf(firestore->arena, "%s, byte %lld: %s",
                        firestore->folder.files[firestore->next - 1].name, (long long)firestore->log.record,
                        problem);
}

/* A file may have been cut between two records, where nothing in it shows that. */
static enum foreign_event check_count(struct firestore_source *firestore, const char **problem_r)
{
    long long found = (long long)firestore->source.last_line - 1;
    if (found == firestore->folder.documents)
        return FOREIGN_END;
    *problem_r =
        arena_printf(firestore->arena,
                     "the files have %lld documents, and the metadata counts %lld: a file was cut, or "
                     "is of another export",
                     found, (long long)firestore->folder.documents);
    return FOREIGN_FAILED;
}

static enum foreign_event next_entity(struct foreign_source *source, struct importer_files *files UNUSED,
                                      int64_t number, struct builder *lines, const char **problem_r)
{
    struct firestore_source *firestore = of(source);
    struct bytes record;
    arena_reset(firestore->arena);
    *problem_r = NULL;
    enum firestore_log_event event = next_record(firestore, &record, problem_r);
    source->line = ++source->last_line;
    if (event == FIRESTORE_LOG_END) {
        digest_end_hex(firestore->digest, source->digest);
        source->offset = source->size;
        return check_count(firestore, problem_r);
    }
    if (event == FIRESTORE_LOG_FAILED) {
        if (firestore->is_open)
            *problem_r = place(firestore, *problem_r);
        return FOREIGN_FAILED;
    }
    source->offset = firestore->before + firestore->log.start + (int64_t)firestore->log.at;
    enum foreign_event written =
        firestore_mapping_write(firestore->mapping, firestore->arena, record, number, lines, problem_r);
    if (*problem_r)
        *problem_r = place(firestore, *problem_r);
    return written;
}

static void firestore_source_sum_up(struct foreign_source *source)
{
    firestore_mapping_report(of(source)->mapping, source->path);
}

static void close_firestore(struct foreign_source *source)
{
    struct firestore_source *firestore = of(source);
    if (firestore->is_open)
        close_file(firestore);
    digest_destroy(firestore->digest);
    arena_destroy(firestore->arena);
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
