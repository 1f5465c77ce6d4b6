/* backup_folder: settings and notes are JSON objects of one line. */
#include "control/backup/backup_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/backup/backup_tool.h"
#include "control/message.h"
#include "edge/json/json.h"

enum { FORMAT = 1 };

static bool backup_folder_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
}

/* --- JSON --- */

static bool backup_folder_read_object(struct control *control, const char *path, struct json **object_r)
{
    struct bytes text;
    if (!control_read_file(control->arena, path, &text))
        return false;
    if (json_is_tree(control->arena, text, 2, 2, object_r) && (*object_r)->kind == JSON_OBJECT)
        return true;
    return message_refuse("%s: expected a JSON object as stampctl has written it", path);
}

/* NULL: the member is no text, or an empty one. */
static const char *backup_folder_text_of(struct control *control, const struct json *object, const char *name)
{
    const struct json *value = json_member(object, name);
    return value && value->kind == JSON_STRING && value->value.size
               ? arena_printf(control->arena, "%.*s", (int)value->value.size, value->value.data)
               : NULL;
}

static void backup_folder_add_text(struct builder *json, const char *name, const char *value)
{
    builder_printf(json, "%s\"%s\":", json->size ? "," : "{", name);
    json_add_string(json, bytes_of(value));
}

static void backup_folder_add_number(struct builder *json, const char *name, int64_t value)
{
    builder_printf(json, "%s\"%s\":%lld", json->size ? "," : "{", name, (long long)value);
}

/* No name is followed elsewhere: the folder belongs to a user who may do less than ours. */
static bool write_new(struct control *control, const char *path, struct bytes text)
{
    const char *draft = arena_printf(control->arena, "%s.new", path);
    if (unlink(draft) != 0 && errno != ENOENT)
        return backup_folder_fail(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return backup_folder_fail(draft);
    bool is_written = bytes_write(fd, text) && fsync(fd) == 0;
    int why = errno;
    close(fd);
    errno = why;
    return (is_written && rename(draft, path) == 0) || backup_folder_fail(path);
}

/* The file belongs to the owner of the folder. */
static bool write_object(struct control *control, const struct backup_folder *folder, const char *path,
                         struct builder *json)
{
    builder_add_text(json, "}\n");
    bool is_written = write_new(control, path, builder_bytes(json));
    builder_free(json);
    return is_written && backup_tool_give(folder->user, path);
}

/* --- the folder --- */

static bool make_folder(const struct backup_folder *folder, const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return backup_folder_fail(path);
    return backup_tool_give(folder->user, path);
}

bool backup_folder_create(struct control *control, const struct backup_folder *folder)
{
    static const char *const inside[] = {"base", "log", "files", "objects"};
    struct builder json = {0};
    if (!make_folder(folder, folder->path))
        return false;
    for (size_t i = 0; i < COUNT_OF(inside); i++)
        if (!make_folder(folder, arena_printf(control->arena, "%s/%s", folder->path, inside[i])))
            return false;
    backup_folder_add_number(&json, "format", FORMAT);
    backup_folder_add_text(&json, "system", folder->system);
    backup_folder_add_number(&json, "timeline", folder->timeline);
    backup_folder_add_number(&json, "segment_bytes", folder->segment_bytes);
    backup_folder_add_text(&json, "user", folder->user);
    backup_folder_add_text(&json, "role", folder->role);
    backup_folder_add_text(&json, "slot", folder->slot);
    backup_folder_add_text(&json, "tools", folder->tools);
    return write_object(control, folder, arena_printf(control->arena, "%s/backup.json", folder->path), &json);
}

bool backup_folder_open(struct control *control, const char *path, struct backup_folder *folder_r)
{
    struct json *object;
    char *whole = realpath(path, NULL);
    if (!whole)
        return backup_folder_fail(path);
    const char *absolute = arena_copy(control->arena, whole, strlen(whole));
    free(whole);
    const char *settings = arena_printf(control->arena, "%s/backup.json", absolute);
    if (access(settings, F_OK) != 0 && errno == ENOENT)
        return message_refuse("%s: no backup is kept there (stampctl backup init %s)", path, path);
    if (!backup_folder_read_object(control, settings, &object))
        return false;
    *folder_r = (struct backup_folder){
        .path = absolute,
        .user = backup_folder_text_of(control, object, "user"),
        .role = backup_folder_text_of(control, object, "role"),
        .slot = backup_folder_text_of(control, object, "slot"),
        .tools = backup_folder_text_of(control, object, "tools"),
        .system = backup_folder_text_of(control, object, "system"),
        .timeline = json_i64_of(object, "timeline", -1),
        .segment_bytes = json_i64_of(object, "segment_bytes", -1),
    };
    int64_t segment = folder_r->segment_bytes;
    if (json_i64_of(object, "format", -1) == FORMAT && folder_r->user && folder_r->role && folder_r->slot &&
        folder_r->tools && folder_r->system && folder_r->timeline > 0 && segment >= 1 << 20 &&
        segment <= 1 << 30 && (segment & (segment - 1)) == 0)
        return true;
    return message_refuse("%s: not the settings of a backup of this release", settings);
}

bool backup_folder_lock(struct control *control, const struct backup_folder *folder, const char *name,
                        bool is_waiting)
{
    const char *path = arena_printf(control->arena, "%s/%s", folder->path, name);
    int fd =
        open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); /* closed by the end of the program */
    if (fd < 0 || !backup_tool_give(folder->user, path))
        return backup_folder_fail(path);
    if (flock(fd, is_waiting ? LOCK_EX : LOCK_EX | LOCK_NB) == 0)
        return true;
    return message_refuse("%s: another stampctl is at work there", folder->path);
}

bool backup_folder_is_empty(const char *path)
{
    DIR *directory = opendir(path);
    bool is_empty = directory || errno == ENOENT;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, "lost+found") != 0)
            is_empty = false;
    if (directory)
        closedir(directory);
    return is_empty;
}

/* --- base backups --- */

/* "0/2000028" as a number; false: it has another form. */
static bool backup_folder_position(struct bytes text, uint64_t *position_r)
{
    char copy[32], rest;
    uint32_t high, low;
    if (text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (sscanf(copy, "%" SCNx32 "/%" SCNx32 "%c", &high, &low, &rest) != 2)
        return false;
    *position_r = (uint64_t)high << 32 | low;
    return true;
}

static bool read_base(struct control *control, const char *path, const char *name, struct backup_base *base_r)
{
    struct json *object;
    if (!backup_folder_read_object(control, path, &object))
        return false;
    const char *start = backup_folder_text_of(control, object, "start"),
               *end = backup_folder_text_of(control, object, "end");
    *base_r = (struct backup_base){.name = name,
                                   .started_ms = json_i64_of(object, "started_ms", -1),
                                   .finished_ms = json_i64_of(object, "finished_ms", -1),
                                   .bytes = json_i64_of(object, "bytes", -1),
                                   .missing = json_i64_of(object, "objects_missing", -1)};
    if (base_r->started_ms >= 0 && base_r->finished_ms >= 0 && start && end &&
        backup_folder_position(bytes_of(start), &base_r->start) &&
        backup_folder_position(bytes_of(end), &base_r->end))
        return true;
    return message_refuse("%s: not the note of a base backup", path);
}

static int backup_folder_compare_names(const void *a, const void *b)
{
    return strcmp(((const struct backup_base *)a)->name, ((const struct backup_base *)b)->name);
}

/* Calls `take` with the name of each entry of base/ but . and .. */
static bool walk(const char *path, bool (*take)(void *context, const char *name), void *context)
{
    DIR *directory = opendir(path);
    if (!directory)
        return backup_folder_fail(path);
    bool is_done = true;
    for (struct dirent *entry; is_done && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            is_done = take(context, entry->d_name);
    closedir(directory);
    return is_done;
}

struct base_listing {
    struct control *control;
    const char *path;
    struct backup_base *bases;
    size_t count, room;
};

static bool take_note(void *context, const char *file)
{
    struct base_listing *list = context;
    struct arena *arena = list->control->arena;
    size_t size = strlen(file), ending = strlen(".json");
    if (size <= ending || strcmp(file + size - ending, ".json") != 0)
        return true;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 16;
        struct backup_base *more = arena_alloc(arena, list->room * sizeof *more);
        if (list->count)
            memcpy(more, list->bases, list->count * sizeof *more);
        list->bases = more;
    }
    return read_base(list->control, arena_printf(arena, "%s/%s", list->path, file),
                     arena_printf(arena, "%.*s", (int)(size - ending), file), &list->bases[list->count++]);
}

bool backup_folder_list(struct control *control, const struct backup_folder *folder,
                        struct backup_base **bases_r, size_t *count_r)
{
    struct base_listing list = {.control = control,
                                .path = arena_printf(control->arena, "%s/base", folder->path)};
    if (!walk(list.path, take_note, &list))
        return false;
    if (list.count)
        qsort(list.bases, list.count, sizeof *list.bases, backup_folder_compare_names);
    *bases_r = list.bases;
    *count_r = list.count;
    return true;
}

/* The text of the manifest behind `name`, up to `stop`. */
static bool find_value(struct bytes *rest, const char *name, char stop, struct bytes *value_r)
{
    const char *found = memmem(rest->data, rest->size, name, strlen(name));
    if (!found)
        return false;
    found += strlen(name);
    *rest = (struct bytes){found, rest->size - (size_t)(found - rest->data)};
    *value_r = bytes_cut(rest, stop);
    return true;
}

/* pg_verifybackup has compared the manifest with the files, and its own checksum. */
static bool backup_folder_measure(struct control *control, const char *path, struct backup_base *base)
{
    struct bytes text, rest, start, end, size;
    int64_t bytes;
    if (!control_read_file(control->arena, path, &text))
        return false;
    rest = text;
    for (base->bytes = 0; find_value(&rest, "\"Size\": ", ',', &size); base->bytes += bytes)
        if (!bytes_to_i64(size, &bytes))
            bytes = 0;
    rest = text;
    if (find_value(&rest, "\"Start-LSN\": \"", '"', &start) &&
        find_value(&rest, "\"End-LSN\": \"", '"', &end) && backup_folder_position(start, &base->start) &&
        backup_folder_position(end, &base->end))
        return true;
    return message_refuse("%s: it names no positions in the log", path);
}

static const char *position_text(struct control *control, uint64_t position)
{
    return arena_printf(control->arena, "%X/%X", (unsigned)(position >> 32), (unsigned)position);
}

bool backup_folder_add(struct control *control, const struct backup_folder *folder, struct backup_base *base)
{
    struct builder json = {0};
    const char *path = arena_printf(control->arena, "%s/base/%s", folder->path, base->name);
    if (!backup_folder_measure(control, arena_printf(control->arena, "%s/backup_manifest", path), base))
        return false;
    backup_folder_add_number(&json, "started_ms", base->started_ms);
    backup_folder_add_number(&json, "finished_ms", base->finished_ms);
    backup_folder_add_number(&json, "bytes", base->bytes);
    backup_folder_add_number(&json, "objects_missing", base->missing);
    backup_folder_add_text(&json, "start", position_text(control, base->start));
    backup_folder_add_text(&json, "end", position_text(control, base->end));
    return write_object(control, folder, arena_printf(control->arena, "%s.json", path), &json);
}

static const char *path_of_objects(struct control *control, const struct backup_folder *folder)
{
    return arena_printf(control->arena, "%s/objects.json", folder->path);
}

bool backup_folder_note_objects(struct control *control, const struct backup_folder *folder, int64_t before)
{
    struct builder json = {0};
    backup_folder_add_number(&json, "before", before);
    return write_object(control, folder, path_of_objects(control, folder), &json);
}

bool backup_folder_has_objects(struct control *control, const struct backup_folder *folder)
{
    return access(path_of_objects(control, folder), F_OK) == 0;
}

bool backup_folder_read_objects(struct control *control, const struct backup_folder *folder,
                                int64_t *before_r)
{
    struct json *object;
    const char *path = path_of_objects(control, folder);
    *before_r = -1;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!backup_folder_read_object(control, path, &object))
        return false;
    *before_r = json_i64_of(object, "before", -1);
    return true;
}

bool backup_folder_remove(struct control *control, const struct backup_folder *folder, const char *name)
{
    const char *path = arena_printf(control->arena, "%s/base/%s", folder->path, name);
    const char *note = arena_printf(control->arena, "%s.json", path);
    if (unlink(note) != 0 && errno != ENOENT)
        return backup_folder_fail(note);
    const char *const words[] = {"rm", "-rf", "--", path, NULL};
    return backup_tool_run(control, folder, words);
}

struct sweep {
    struct control *control;
    const struct backup_folder *folder;
};

static bool take_rest(void *context, const char *file)
{
    struct sweep *sweep = context;
    const char *note = arena_printf(sweep->control->arena, "%s/base/%s.json", sweep->folder->path, file);
    if (strchr(file, '.') || access(note, F_OK) == 0)
        return true;
    return backup_folder_remove(sweep->control, sweep->folder, file);
}

bool backup_folder_sweep(struct control *control, const struct backup_folder *folder)
{
    struct sweep sweep = {control, folder};
    return walk(arena_printf(control->arena, "%s/base", folder->path), take_rest, &sweep);
}
