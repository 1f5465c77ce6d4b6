/* firestore_folder: only what the metadata names is read: another export may lie in a folder below. */
#include "control/foreign/firestore/firestore_folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "control/foreign/firestore/firestore_metadata.h"
#include "control/message.h"

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
    if (!directory) {
        message_print("%s: %s", path, strerror(errno));
        return false;
    }
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

bool firestore_folder_read(struct arena *arena, const char *path, struct firestore_folder *folder_r)
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
        if (__builtin_add_overflow(folder_r->documents, groups[i].documents, &folder_r->documents)) {
            message_print("%s/%s: more documents than can be counted", path, overall);
            return false;
        }
    }
    return true;
}
