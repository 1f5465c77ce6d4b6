/* firestore_folder: folders are walked down to a limit, then the numbers of files are checked. */
#include "control/foreign/firestore_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "control/message.h"

enum { LEVELS_MOST = 8, FILES_MOST = 100000 };

struct firestore_walk {
    struct arena *arena;
    const char *path;
    struct firestore_folder *folder;
    size_t capacity;
    int overalls; /* files *.overall_export_metadata */
};

static bool ends(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size > end_size && strcmp(name + size - end_size, end) == 0;
}

/* output-7: 7; -1: another name. */
static int64_t number_of(const char *name)
{
    static const char prefix[] = "output-";
    int64_t number;
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || !*digits ||
        strspn(digits, "0123456789") != strlen(digits))
        return -1;
    if (*digits == '0' && digits[1])
        return -1;
    return bytes_to_i64(bytes_of(digits), &number) ? number : -1;
}

static bool add_file(struct firestore_walk *walk, const char *folder, const char *name, int64_t size)
{
    struct firestore_folder *all = walk->folder;
    int64_t number = number_of(name);
    walk->overalls += !*folder && ends(name, ".overall_export_metadata");
    if (number < 0)
        return true;
    if (all->count == FILES_MOST) {
        message_print("%s: more than %d files output-N", walk->path, FILES_MOST);
        return false;
    }
    ARENA_GROW(walk->arena, all->files, all->count, walk->capacity);
    all->files[all->count++] = (struct firestore_file){arena_printf(walk->arena, "%s%s", folder, name),
                                                       strlen(folder), number, size};
    all->size += size;
    return true;
}

static bool visit(struct firestore_walk *walk, const char *folder, int level);

static bool add_entry(struct firestore_walk *walk, int at, const char *folder, const char *name, int level)
{
    struct stat status;
    if (fstatat(at, name, &status, 0) != 0) {
        message_print("%s/%s%s: %s", walk->path, folder, name, strerror(errno));
        return false;
    }
    if (S_ISREG(status.st_mode))
        return add_file(walk, folder, name, status.st_size);
    if (!S_ISDIR(status.st_mode))
        return true;
    if (level == LEVELS_MOST) {
        message_print("%s/%s%s: folders deeper than in an export", walk->path, folder, name);
        return false;
    }
    return visit(walk, arena_printf(walk->arena, "%s%s/", folder, name), level + 1);
}

/* `folder` is empty or ends with a slash. */
static bool visit(struct firestore_walk *walk, const char *folder, int level)
{
    const char *path = arena_printf(walk->arena, "%s/%s", walk->path, folder);
    DIR *directory = opendir(path);
    struct dirent *entry = NULL;
    bool is_good = directory != NULL;
    errno = directory ? 0 : errno;
    while (is_good && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.')
            is_good = add_entry(walk, dirfd(directory), folder, entry->d_name, level);
        errno = 0;
    }
    if (!entry && errno) {
        message_print("%s: %s", path, strerror(errno));
        is_good = false;
    }
    if (directory)
        closedir(directory);
    return is_good;
}

static int compare_folders(const struct firestore_file *left, const struct firestore_file *right)
{
    return bytes_compare((struct bytes){left->name, left->folder_size},
                         (struct bytes){right->name, right->folder_size});
}

static int compare(const void *a, const void *b)
{
    const struct firestore_file *left = a, *right = b;
    int order = compare_folders(left, right);
    return order ? order : (left->number > right->number) - (left->number < right->number);
}

/* Are the files of each folder numbered from 0, without a gap? */
static bool are_whole(const char *path, const struct firestore_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        const struct firestore_file *file = &folder->files[i];
        bool is_first = i == 0 || compare_folders(file, file - 1) != 0;
        int64_t expected = is_first ? 0 : file[-1].number + 1;
        if (file->number != expected) {
            message_print("%s: %.*soutput-%" PRId64 " is missing", path, (int)file->folder_size, file->name,
                          expected);
            return false;
        }
    }
    return true;
}

bool firestore_folder_read(struct arena *arena, const char *path, struct firestore_folder *folder_r)
{
    struct firestore_walk walk = {.arena = arena, .path = path, .folder = folder_r};
    *folder_r = (struct firestore_folder){0};
    if (!visit(&walk, "", 0))
        return false;
    if (walk.overalls != 1 || !folder_r->count) {
        message_print(
            "%s: expected the folder of an export, with one file *.overall_export_metadata and files "
            "output-N",
            path);
        return false;
    }
    qsort(folder_r->files, folder_r->count, sizeof *folder_r->files, compare);
    return are_whole(path, folder_r);
}
