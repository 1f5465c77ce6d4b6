/* firestore_metadata: names come from outside, and never lead out of the folder. */
#include "control/foreign/firestore/firestore_metadata.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "control/control.h"
#include "control/foreign/firestore/firestore_log.h"
#include "control/foreign/firestore/firestore_wire.h"
#include "control/message.h"

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

bool firestore_metadata_groups(struct arena *arena, const char *path, struct firestore_group **groups_r,
                               size_t *count_r)
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
    if (stat(path, &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size > METADATA_MOST)) {
        message_print("%s: %s", path, wrong_group);
        return false;
    }
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

bool firestore_metadata_files(struct arena *arena, const char *path,
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
