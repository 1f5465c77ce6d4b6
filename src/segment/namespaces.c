/* namespaces: names are written word by word, without locks. */
#include "segment/namespaces.h"

#include <string.h>

#include "base/clock.h"
#include "base/settings.h"

/* A length byte and the bytes of the name, as words that change once, in order, from 0 to their value. */
enum { NAME_WORDS = (1 + NAMESPACES_DATABASE_BYTES) / 8 };
struct namespace_record {
    _Alignas(64) _Atomic uint64_t name[NAME_WORDS + 1]; /* the last stays 0: the NUL of the longest name */
    _Atomic uint32_t clean;
    _Atomic uint32_t cell;  /* + 1; 0: not looked up yet */
    _Atomic int64_t health; /* monotonic ms of the last use, doubled, + 1: it worked; 0: never */
};
/* Of another cell than the first, numbered from 1; written as those of databases are. */
enum { CELL_BYTES = 23, CELL_WORDS = (1 + CELL_BYTES) / 8 };
struct cell_record {
    _Atomic uint64_t name[CELL_WORDS];
};
_Static_assert(sizeof(struct namespace_record) == 128, "a namespace is two cache lines");
_Static_assert(NAME_WORDS * 8 == 1 + NAMESPACES_DATABASE_BYTES && NAMESPACES_DATABASE_BYTES < 256,
               "count and name fill words");

size_t namespaces_size(const struct board_sizes *sizes UNUSED)
{
    return NAMESPACES_MOST * (sizeof(struct namespace_record) + sizeof(struct cell_record));
}

void namespaces_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->namespaces = memory;
    segment->cells = (struct cell_record *)(void *)(segment->namespaces + NAMESPACES_MOST);
}

/* The words of a name, the first with the count of bytes; returns their number, 0 if the name is not
 * valid. */
static int name_to_words(struct bytes database, uint64_t words_r[NAME_WORDS])
{
    if (database.size == 0 || database.size > NAMESPACES_DATABASE_BYTES ||
        memchr(database.data, '\0', database.size))
        return 0;
    char text[NAME_WORDS * 8] = {(char)database.size};
    memcpy(text + 1, database.data, database.size);
    memcpy(words_r, text, sizeof text);
    return (int)(1 + database.size + 7) / 8;
}

/* Whether the record is that of the namespace, or could be made so.  No word of a name is 0, and a written
 * word never changes.  So a record that differs always will: every process that looks up the same name skips
 * it and reaches the same record.  A name left half-written by a dead process is completed by the next
 * process whose name fits it. */
static bool find_or_write_name(_Atomic uint64_t *name, const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t present = atomic_load(&name[i]);
        if (present == 0 && atomic_compare_exchange_strong(&name[i], &present, words[i]))
            continue;
        if (present != words[i])
            return false;
    }
    return true;
}

int namespaces_find(struct segment *segment, struct bytes database)
{
    uint64_t words[NAME_WORDS];
    int count = name_to_words(database, words);
    if (count == 0)
        return -1;
    for (int i = 0; i < NAMESPACES_MOST; i++)
        if (find_or_write_name(segment->namespaces[i].name, words, count))
            return i;
    return -1;
}

static struct namespace_record *ns_at(const struct segment *segment, int ns)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    return &segment->namespaces[ns];
}

const char *namespaces_database(const struct segment *segment, int ns)
{
    struct namespace_record *record = ns_at(segment, ns);
    uint64_t first = atomic_load(&record->name[0]);
    unsigned char size;
    memcpy(&size, &first, sizeof size);
    if (size == 0)
        return NULL;
    for (int i = 1; i < (1 + size + 7) / 8; i++)
        if (atomic_load(&record->name[i]) == 0)
            return NULL;
    return (const char *)(const void *)record->name + 1;
}

/* There are not more cells than namespaces.  A name that is too long for one is cut: no settings have it. */
static uint32_t find_cell(const struct segment *segment, const char *name)
{
    uint64_t words[NAME_WORDS];
    if (!*name)
        return 0;
    int count = name_to_words((struct bytes){name, strnlen(name, CELL_BYTES)}, words);
    uint32_t cell = 1;
    while (!find_or_write_name(segment->cells[cell - 1].name, words, count))
        cell++;
    assert(cell < CELLS_MOST);
    return cell;
}

int namespaces_cell(const struct segment *segment, int ns)
{
    struct namespace_record *record = ns_at(segment, ns);
    uint32_t cell = atomic_load(&record->cell);
    if (!cell) {
        const char *database = namespaces_database(segment, ns);
        if (!database)
            return 0;
        cell = find_cell(segment, settings_cell_of(database)) + 1;
        atomic_store(&record->cell, cell);
    }
    return (int)cell - 1;
}

int namespaces_count(const struct segment *segment)
{
    int count = 0;
    while (count < NAMESPACES_MOST && atomic_load(&segment->namespaces[count].name[0]))
        count++;
    return count;
}

int namespaces_look_up(const struct segment *segment, const char *database)
{
    int count = namespaces_count(segment);
    for (int ns = 0; ns < count; ns++) {
        const char *name = namespaces_database(segment, ns);
        if (name && strcmp(name, database) == 0)
            return ns;
    }
    return -1;
}

bool namespaces_is_clean(const struct segment *segment, int ns)
{
    return atomic_load(&ns_at(segment, ns)->clean) != 0;
}

void namespaces_set_clean(struct segment *segment, int ns)
{
    atomic_store(&ns_at(segment, ns)->clean, 1);
}

void namespaces_set_health(struct segment *segment, int ns, bool is_up)
{
    atomic_store(&ns_at(segment, ns)->health, clock_monotonic_ms() * 2 + is_up);
}

int64_t namespaces_health(const struct segment *segment, int ns, bool *is_up_r)
{
    int64_t health = atomic_load(&ns_at(segment, ns)->health);
    *is_up_r = health & 1;
    return health ? clock_monotonic_ms() - health / 2 : -1;
}
