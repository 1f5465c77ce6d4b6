/* lineage_file: a line for the cluster of `database`, one for each other cell, and one for each namespace
 * with commits. */
#include "serve/lineage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "segment/lineage.h"

enum { PAUSE_MS = 1000, LINE_BYTES = 256 };

static bool lineage_file_path_of(const struct settings *settings, const char *suffix, char path_r[PATH_MAX])
{
    int size = snprintf(path_r, PATH_MAX, "%s/lineage%s", settings->run_directory, suffix);
    return size > 0 && size < PATH_MAX;
}

/* The last line is the word "end": a file without it is not whole. */
static void lineage_file_compose(const struct segment *segment, struct builder *text)
{
    const struct lineage *lineage = segment->lineage;
    const struct lineage_cell *first = &lineage->cells[0];
    bool is_written[CELLS_MOST] = {true};
    builder_printf(text, "lineage 1 %" PRIu64 " %" PRIu32 "\n", atomic_load(&first->system),
                   atomic_load(&first->timeline));
    for (int ns = 0; ns < namespaces_count(segment); ns++) {
        int number = namespaces_cell(segment, ns);
        const struct lineage_cell *cell = &lineage->cells[number];
        if (!is_written[number] && atomic_load(&cell->timeline))
            builder_printf(text, "cell %" PRIu64 " %" PRIu32 " %s\n", atomic_load(&cell->system),
                           atomic_load(&cell->timeline), namespaces_database(segment, ns));
        is_written[number] = true;
    }
    for (int ns = 0; ns < namespaces_count(segment); ns++) {
        const struct lineage_record *record = &lineage->records[ns];
        const char *database = namespaces_database(segment, ns);
        uint64_t mark = atomic_load(&record->mark);
        uint32_t has_lost = atomic_load(&record->has_lost);
        if (database && (mark || has_lost))
            builder_printf(text, "%" PRIu64 " %" PRId64 " %" PRIu32 " %s\n", mark,
                           atomic_load(&record->epoch), has_lost, database);
    }
    builder_add_text(text, "end\n");
}

static bool write_whole(const struct settings *settings, struct bytes text)
{
    char draft[PATH_MAX], path[PATH_MAX];
    if (!lineage_file_path_of(settings, ".new", draft) || !lineage_file_path_of(settings, "", path))
        return false;
    int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_done = file >= 0 && write(file, text.data, text.size) == (ssize_t)text.size && !fsync(file);
    if (file >= 0)
        is_done &= !close(file);
    crash_at(CRASH_LINEAGE_WRITTEN);
    return is_done && !rename(draft, path);
}

void lineage_file_keep(const struct settings *settings, const struct segment *segment, bool is_last)
{
    static struct builder former; /* what the file has: the relay is one process */
    static int64_t due_ms;
    struct builder text = {0};
    int64_t now_ms = clock_monotonic_ms();
    if (!is_last && now_ms < due_ms)
        return;
    due_ms = now_ms + PAUSE_MS;
    lineage_file_compose(segment, &text);
    if (bytes_equal(builder_bytes(&text), builder_bytes(&former))) {
        builder_free(&text);
        return;
    }
    if (write_whole(settings, builder_bytes(&text))) {
        builder_free(&former);
        former = text;
        return;
    }
    log_often(LOG_LEVEL_WARNING, "lineage", "%s/lineage cannot be written: %m", settings->run_directory);
    builder_free(&text);
}

static void take_cluster(struct segment *segment, int number, uint64_t system, uint32_t timeline)
{
    struct lineage_cell *cell = &segment->lineage->cells[number];
    atomic_store(&cell->system, system);
    atomic_store(&cell->settled, timeline);
    atomic_store(&cell->timeline, timeline);
}

/* The name is that of one of its databases. */
static bool take_cell(struct segment *segment, const char *line)
{
    uint64_t system;
    uint32_t timeline;
    char database[NAMESPACES_DATABASE_BYTES + 1];
    if (sscanf(line, "cell %" SCNu64 " %" SCNu32 " %63[^\n]", &system, &timeline, database) != 3)
        return false;
    int ns = namespaces_find(segment, bytes_of(database));
    if (ns >= 0)
        take_cluster(segment, namespaces_cell(segment, ns), system, timeline);
    return true;
}

static void lineage_file_take_line(struct segment *segment, const char *line)
{
    uint64_t mark;
    int64_t epoch;
    uint32_t has_lost;
    char database[NAMESPACES_DATABASE_BYTES + 1];
    if (sscanf(line, "%" SCNu64 " %" SCNd64 " %" SCNu32 " %63[^\n]", &mark, &epoch, &has_lost, database) != 4)
        return;
    int ns = namespaces_find(segment, bytes_of(database));
    if (ns < 0)
        return;
    struct lineage_record *record = &segment->lineage->records[ns];
    atomic_store(&record->epoch, epoch);
    atomic_store(&record->has_lost, has_lost);
    atomic_store(&record->mark, mark);
}

static bool is_whole(FILE *file)
{
    char line[LINE_BYTES];
    bool is_end = false;
    while (fgets(line, sizeof line, file))
        is_end = strcmp(line, "end\n") == 0;
    rewind(file);
    return is_end;
}

static bool has_met_any(const struct segment *segment)
{
    for (int number = 0; number < CELLS_MOST; number++)
        if (atomic_load(&segment->lineage->cells[number].timeline))
            return true;
    return false;
}

void lineage_file_read(const struct settings *settings, struct segment *segment)
{
    char path[PATH_MAX], line[LINE_BYTES];
    uint64_t system;
    uint32_t timeline;
    FILE *file = has_met_any(segment) || !lineage_file_path_of(settings, "", path) ? NULL : fopen(path, "re");
    if (!file)
        return;
    if (is_whole(file) && fgets(line, sizeof line, file) &&
        sscanf(line, "lineage 1 %" SCNu64 " %" SCNu32, &system, &timeline) == 2) {
        while (fgets(line, sizeof line, file))
            if (!take_cell(segment, line))
                lineage_file_take_line(segment, line);
        take_cluster(segment, 0, system, timeline);
    } else {
        log_warning("lineage is damaged: lost commits of before this start will not be noticed file=%s",
                    path);
    }
    (void)fclose(file);
}
