/* firestore_source: files are read one after the other, as if they were one. */
#include "control/foreign/firestore/firestore_source.h"

#include <errno.h>
#include <string.h>

#include "control/message.h"

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

void firestore_source_init(struct firestore_source *firestore, struct arena *arena, const char *class)
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
