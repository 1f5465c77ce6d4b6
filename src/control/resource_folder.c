/* resource_folder: walks a folder, without following symbolic links out of it. */
#include "control/resource_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/message.h"
#include "model/resource_file.h"

struct folder_walk {
    struct control *control;
    struct folder_file *files;
    size_t count, capacity, most;
};

static bool resource_folder_add(struct folder_walk *walk, const char *name, const char *path)
{
    if (walk->count == walk->most) {
        message_print("%s: more than %zu files; limit_resources is the most", path, walk->most);
        return false;
    }
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
    if ((depth ? lstat(path, &status) : stat(path, &status)) != 0) {
        message_print("%s: %m", path);
        return false;
    }
    if (S_ISDIR(status.st_mode))
        return visit_folder(walk, name, path, depth);
    if (!S_ISREG(status.st_mode)) {
        message_print("%s: neither a file nor a folder", path);
        return false;
    }
    const char *slash = strrchr(path, '/');
    return resource_folder_add(walk, *name ? name : slash ? slash + 1 : path, path);
}

static int resource_folder_compare(const void *a, const void *b)
{
    const struct folder_file *first = a, *second = b;
    return strcmp(first->name, second->name);
}

bool resource_folder_read(struct control *control, const char *path, size_t most,
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
