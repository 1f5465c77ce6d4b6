/* cmd_resource: `stampctl resource put, rm, list, get`: the files of a namespace. */
#include "control/control.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "control/resource_store.h"
#include "edge/crypto/crypto.h"
#include "model/resource_file.h"

/* --- the folder --- */

/* The files of a folder, with their folders, for `stampctl resource put`.  Walks a folder, without following
 * symbolic links out of it. */

struct folder_file {
    const char *name; /* from the folder on, as a/b.css */
    const char *path; /* to open it */
};

struct folder_walk {
    struct control *control;
    struct folder_file *files;
    size_t count, capacity, most;
};

static bool resource_folder_add(struct folder_walk *walk, const char *name, const char *path)
{
    if (walk->count == walk->most)
        return message_refuse("%s: more than %zu files; limit_resources is the most", path, walk->most);
    ARENA_GROW(walk->control->arena, walk->files, walk->count, walk->capacity);
    walk->files[walk->count++] = (struct folder_file){name, path};
    return true;
}

static bool resource_folder_visit(struct folder_walk *walk, const char *name, const char *path, int depth);

static bool visit_folder(struct folder_walk *walk, const char *name, const char *path, int depth)
{
    struct arena *arena = walk->control->arena;
    DIR *folder = depth <= RESOURCE_FILE_DEPTH_MOST ? opendir(path) : NULL;
    bool is_done = folder != NULL;
    if (depth > RESOURCE_FILE_DEPTH_MOST)
        message_print("%s: nested deeper than %d folders", path, RESOURCE_FILE_DEPTH_MOST);
    else if (!folder)
        message_print("%s: %m", path);
    for (struct dirent *entry; is_done && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' && strcmp(entry->d_name, ".well-known") != 0)
            continue;
        const char *inner = arena_printf(arena, "%s%s%s", name, *name ? "/" : "", entry->d_name);
        is_done =
            resource_folder_visit(walk, inner, arena_printf(arena, "%s/%s", path, entry->d_name), depth + 1);
    }
    if (folder)
        closedir(folder);
    return is_done;
}

/* `name` "": the folder itself. */
static bool resource_folder_visit(struct folder_walk *walk, const char *name, const char *path, int depth)
{
    struct stat status;
    if ((depth ? lstat(path, &status) : stat(path, &status)) != 0)
        return message_refuse("%s: %m", path);
    if (S_ISDIR(status.st_mode))
        return visit_folder(walk, name, path, depth);
    if (!S_ISREG(status.st_mode))
        return message_refuse("%s: neither a file nor a folder", path);
    const char *slash = strrchr(path, '/');
    return resource_folder_add(walk, *name ? name : slash ? slash + 1 : path, path);
}

static int resource_folder_compare(const void *a, const void *b)
{
    const struct folder_file *first = a, *second = b;
    return strcmp(first->name, second->name);
}

/* All regular files of the folder, or the one file, in the order of their names.  What begins with a dot is
 * left out, except .well-known.  False: something cannot be read, or there are more than `most`; reported. */
static bool resource_folder_read(struct control *control, const char *path, size_t most,
                                 struct folder_file **files_r, size_t *count_r)
{
    struct folder_walk walk = {.control = control, .most = most};
    if (!resource_folder_visit(&walk, "", path, 0))
        return false;
    if (walk.count)
        qsort(walk.files, walk.count, sizeof *walk.files, resource_folder_compare);
    *files_r = walk.files;
    *count_r = walk.count;
    return true;
}

/* --- the commands --- */

/* The database of z, and that the namespace exists; z needs no configuration. */
static bool cmd_resource_open_store(struct control *control, const char *code, struct pg **z_r)
{
    struct namespace_conf *confs;
    size_t count;
    return ns_registry_open(control, z_r) && ns_registry_read(control, *z_r, &confs, &count) &&
           (strcmp(code, "z") == 0 || ns_registry_require(confs, count, code));
}

static bool is_path(const char *command, struct bytes path)
{
    const char *expected = resource_file_refuse_path(path);
    if (expected)
        message_print("%s: \"%.*s\": %s", command, (int)path.size, path.data, expected);
    return !expected;
}

/* --- put --- */

struct put_options {
    const char *under, *policy; /* NULL: none */
    struct option_words types;  /* EXTENSION=TYPE */
    bool is_only, is_json;
};

/* The type declared for the extension of the path; NULL: none. */
static const char *declared_type(const struct put_options *options, struct bytes path)
{
    for (int i = 0; i < options->types.count; i++) {
        const char *word = options->types.words[i], *equals = strchr(word, '=');
        size_t size = equals ? (size_t)(equals - word) : 0;
        if (size && path.size > size && path.data[path.size - size - 1] == '.' &&
            memcmp(path.data + path.size - size, word, size) == 0)
            return equals + 1;
    }
    return NULL;
}

static bool are_types(const struct put_options *options)
{
    for (int i = 0; i < options->types.count; i++) {
        const char *word = options->types.words[i], *equals = strchr(word, '=');
        const char *expected = !equals || equals == word ? "Expected EXTENSION=TYPE."
                                                         : resource_file_refuse_type(bytes_of(equals + 1));
        if (expected)
            return message_refuse("resource put: --type \"%s\": %s", word, expected);
    }
    const char *expected = options->policy ? resource_file_refuse_policy(bytes_of(options->policy)) : NULL;
    if (expected)
        message_print("resource put: --policy: %s", expected);
    return !expected;
}

/* Its type, policy, size and digest. */
static bool describe(struct control *control, const struct put_options *options,
                     struct resource_change *change)
{
    int64_t most = control->settings.limit_resource_bytes;
    const char *type = declared_type(options, change->path);
    if (!type)
        type = resource_file_type(change->path);
    if (!type)
        return message_refuse("%.*s: its media type must be declared, as --type html=text/html",
                              (int)change->path.size, change->path.data);
    if ((int64_t)change->bytes.size > most)
        return message_refuse("%.*s: %zu bytes; limit_resource_bytes is %lld", (int)change->path.size,
                              change->path.data, change->bytes.size, (long long)most);
    char *digest = arena_alloc(control->arena, CRYPTO_SHA256_HEX + 1);
    crypto_sha256_hex(change->bytes, digest);
    change->file = (struct resource_file){
        .type = bytes_of(type), .size = (int64_t)change->bytes.size, .sha256 = bytes_of(digest)};
    if (options->policy && resource_file_is_active(change->file.type))
        change->file.policy = bytes_of(options->policy);
    return true;
}

static bool read_folder(struct control *control, const struct put_options *options, const char *folder,
                        struct resource_change **changes_r, size_t *count_r, size_t room)
{
    struct folder_file *files;
    if (!resource_folder_read(control, folder, (size_t)control->settings.limit_resources, &files, count_r))
        return false;
    *changes_r = ARENA_ARRAY(control->arena, struct resource_change, *count_r + room);
    for (size_t i = 0; i < *count_r; i++) {
        struct resource_change *change = &(*changes_r)[i];
        change->path =
            bytes_of(options->under ? arena_printf(control->arena, "%s/%s", options->under, files[i].name)
                                    : files[i].name);
        if (!is_path("resource put", change->path) ||
            !control_read_file(control->arena, files[i].path, &change->bytes) ||
            !describe(control, options, change))
            return false;
    }
    return true;
}

static bool is_under(const struct put_options *options, struct bytes path)
{
    size_t size = options->under ? strlen(options->under) : 0;
    return !size ||
           (path.size > size && path.data[size] == '/' && memcmp(path.data, options->under, size) == 0);
}

/* With --only: what is there and not in the folder goes. */
static size_t add_removals(const struct put_options *options, const struct stored_resource *present,
                           size_t present_count, struct resource_change *changes, size_t count)
{
    size_t total = count;
    for (size_t i = 0; i < present_count; i++) {
        bool is_kept = !is_under(options, present[i].path);
        for (size_t j = 0; j < count && !is_kept; j++)
            is_kept = bytes_equal(changes[j].path, present[i].path);
        if (!is_kept)
            changes[total++] = (struct resource_change){.path = present[i].path, .is_removal = true};
    }
    return total;
}

static void print_changed(const char *code, size_t changed, bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_word(&record, "ns", code);
        record_add_i64(&record, "changed", (int64_t)changed);
        record_print(&record);
    } else {
        printf("%s: %zu files changed\n", code, changed);
    }
}

static bool cmd_resource_put(struct control *control, const struct put_options *options, const char *code,
                             const char *folder)
{
    struct pg *z;
    struct stored_resource *present = NULL;
    struct resource_change *changes;
    size_t present_count = 0, count, changed;
    if (!cmd_resource_open_store(control, code, &z) ||
        (options->is_only && !resource_store_list(control, z, code, &present, &present_count)) ||
        !read_folder(control, options, folder, &changes, &count, present_count))
        return false;
    count = add_removals(options, present, present_count, changes, count);
    if (!resource_store_change(control, z, code, changes, count, &changed))
        return false;
    print_changed(code, changed, options->is_json);
    return true;
}

static int resource_put(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "resource put", "CODE PATH", "Store a folder of files, or a file, for a namespace, in one commit.",
        "They are served at /CODE/res/, those of z for all namespaces.  Everybody may read them.  Names "
        "that\n"
        "begin with a dot are left out, except .well-known.  HTML, SVG and XML need --type.\n");
    struct put_options options = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        RECORD_JSON_LINE(&options.is_json),
        OPTION_TEXT("under", "PREFIX", &options.under, "Store them under this path."),
        OPTION_WORDS("type", "EXTENSION=TYPE", &options.types,
                     "Declare the media type of an extension, as html=text/html.  May be repeated."),
        OPTION_TEXT("policy", "POLICY", &options.policy,
                    "Send HTML, SVG and XML with this Content-Security-Policy (default: sandbox)."),
        OPTION_FLAG("only", &options.is_only, "Remove all other files, those under PREFIX if it is given."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!are_types(&options) || (options.under && !is_path(command.name, bytes_of(options.under))))
        return CONTROL_WRONG;
    return cmd_resource_put(control, &options, words[0], words[1]) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- rm, list, get --- */

static int resource_rm(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF("resource rm", "CODE PATH...", 2, 1000,
                                                     "Remove files of a namespace, in one commit.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json)};
    size_t count = 0, changed;
    struct pg *z;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    struct resource_change *changes = ARENA_ARRAY(control->arena, struct resource_change, (size_t)argc);
    for (; words[1 + count]; count++) {
        changes[count] = (struct resource_change){.path = bytes_of(words[1 + count]), .is_removal = true};
        if (!is_path(command.name, changes[count].path))
            return CONTROL_WRONG;
        for (size_t i = 0; i < count; i++)
            if (bytes_equal(changes[i].path, changes[count].path))
                return message_end(CONTROL_WRONG, "%s: \"%s\" is given twice", command.name,
                                   words[1 + count]);
    }
    if (!cmd_resource_open_store(control, words[0], &z) ||
        !resource_store_change(control, z, words[0], changes, count, &changed))
        return CONTROL_FAILED;
    print_changed(words[0], changed, is_json);
    return CONTROL_DONE;
}

static void print_file(const struct stored_resource *one, bool is_json)
{
    struct record record = {0};
    if (!is_json) {
        printf("%10lld  %-30.*s  %.*s\n", (long long)one->file.size, (int)one->file.type.size,
               one->file.type.data, (int)one->path.size, one->path.data);
        return;
    }
    record_add_text(&record, "path", one->path);
    record_add_text(&record, "type", one->file.type);
    record_add_i64(&record, "size", one->file.size);
    record_add_text(&record, "sha256", one->file.sha256);
    record_add_text(&record, "policy", one->file.policy);
    record_print(&record);
}

static int resource_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("resource list", "CODE", "List the files of a namespace: size, media type, path.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json)};
    struct stored_resource *files;
    struct pg *z;
    size_t count;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_resource_open_store(control, words[0], &z) ||
        !resource_store_list(control, z, words[0], &files, &count))
        return CONTROL_FAILED;
    for (size_t i = 0; i < count; i++)
        print_file(&files[i], is_json);
    return CONTROL_DONE;
}

static int resource_get(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("resource get", "CODE PATH", "Write a file of a namespace to standard output.", NULL);
    const char *output = NULL;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control),
                                        CONTROL_ADMIN_LINE(control),
                                        {.name = "output",
                                         .letter = 'o',
                                         .argument = "FILE",
                                         .help = "Write to FILE (default: standard output).",
                                         .text = &output}};
    struct bytes bytes;
    struct pg *z;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!is_path(command.name, bytes_of(words[1])))
        return CONTROL_WRONG;
    if (!cmd_resource_open_store(control, words[0], &z) ||
        !resource_store_get(control, z, words[0], bytes_of(words[1]), &bytes))
        return CONTROL_FAILED;
    bool is_done = output ? control_write_file(control->arena, output, bytes, 0644)
                          : fwrite(bytes.data, 1, bytes.size, stdout) == bytes.size;
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

int control_resource(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"put", "Store a folder of files, or a file.", resource_put},
        {"rm", "Remove files.", resource_rm},
        {"list", "List the files of a namespace.", resource_list},
        {"get", "Write a file to standard output.", resource_get},
    };
    return options_choose("resource",
                          "Manage the files of a namespace: style sheets, scripts, images, pages for its "
                          "clients.\n",
                          choices, COUNT_OF(choices), control, argc, argv);
}
