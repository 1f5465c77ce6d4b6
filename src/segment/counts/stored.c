/* stored: the first sum is that of the namespace; a class takes the first free one. */
#include "segment/counts/stored.h"

#include <string.h>

enum { NAMESPACE_HASH = 1 };

/* FNV-1a: names of classes have up to 16 letters and digits, and a namespace has a few. */
static uint64_t stored_hash_of(struct bytes class)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < class.size; i++)
        hash = (hash ^ (unsigned char)class.data[i]) * UINT64_C(1099511628211);
    return !class.data ? NAMESPACE_HASH : hash > NAMESPACE_HASH ? hash : NAMESPACE_HASH + 1;
}

static int stored_find(const struct segment *segment, int ns, uint64_t hash)
{
    for (int i = 0; i < STORED_SUMS; i++) {
        uint64_t present = atomic_load(&segment->stored[ns].sums[i].class);
        if (present == hash)
            return i;
        if (i && !present)
            break;
    }
    return -1;
}

static void add(struct stored_sum *sum, const int64_t bytes[STORED_KINDS])
{
    for (int kind = 0; kind < STORED_KINDS; kind++)
        if (bytes[kind])
            atomic_fetch_add(&sum->grown[kind], bytes[kind]);
}

void stored_add(struct segment *segment, int ns, struct bytes class, const int64_t bytes[STORED_KINDS])
{
    struct stored *stored = &segment->stored[ns];
    add(&stored->sums[0], bytes);
    int sum = stored_find(segment, ns, stored_hash_of(class));
    if (sum > 0)
        add(&stored->sums[sum], bytes);
}

/* The first place is the namespace's. */
static int claim(struct segment *segment, int ns, uint64_t hash)
{
    struct stored *stored = &segment->stored[ns];
    int first = hash == NAMESPACE_HASH ? 0 : 1, last = hash == NAMESPACE_HASH ? 1 : STORED_SUMS;
    for (int i = first; i < last; i++) {
        uint64_t present = 0;
        if (atomic_compare_exchange_strong(&stored->sums[i].class, &present, hash) || present == hash)
            return i;
    }
    return -1;
}

int stored_want(struct segment *segment, int ns, struct bytes code, struct bytes class)
{
    struct stored *stored = &segment->stored[ns];
    uint64_t words[COUNT_OF(stored->code)] = {0}, hash = stored_hash_of(class);
    int sum = stored_find(segment, ns, hash);
    memcpy(words, code.data, code.size < sizeof words ? code.size : sizeof words);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (atomic_load(&stored->code[i]) != words[i]) /* a database may become that of another namespace */
            atomic_store(&stored->code[i], words[i]);
    return sum >= 0 ? sum : claim(segment, ns, hash);
}

void stored_forget(struct segment *segment, int ns)
{
    for (int i = 0; i < STORED_SUMS; i++)
        if (atomic_load(&segment->stored[ns].sums[i].is_measured))
            atomic_store(&segment->stored[ns].sums[i].is_measured, 0);
}

void stored_begin(const struct segment *segment, int ns, struct stored_measurement *measurement_r)
{
    const struct stored *stored = &segment->stored[ns];
    for (int i = 0; i < STORED_SUMS; i++) {
        measurement_r->classes[i] = atomic_load(&stored->sums[i].class);
        for (int kind = 0; kind < STORED_KINDS; kind++)
            measurement_r->grown[i][kind] = atomic_load(&stored->sums[i].grown[kind]);
    }
}

bool stored_has_classes(const struct stored_measurement *measurement)
{
    return measurement->classes[1] != 0; /* they are taken in their order */
}

void stored_end(struct segment *segment, int ns, const struct stored_measurement *measurement,
                const struct stored_volume *volumes, size_t count)
{
    struct stored *stored = &segment->stored[ns];
    for (int i = 0; i < STORED_SUMS; i++) {
        const struct stored_volume *volume = NULL;
        for (size_t k = 0; k < count && measurement->classes[i] && !volume; k++)
            volume = stored_hash_of(volumes[k].class) == measurement->classes[i] ? &volumes[k] : NULL;
        if (!measurement->classes[i])
            continue; /* it was not wanted yet */
        for (int kind = 0; kind < STORED_KINDS; kind++)
            atomic_store(&stored->sums[i].base[kind],
                         (volume ? volume->bytes[kind] : 0) - measurement->grown[i][kind]);
        atomic_store(&stored->sums[i].is_measured, 1);
    }
}

bool stored_read(const struct segment *segment, int ns, int sum, int64_t bytes_r[STORED_KINDS])
{
    const struct stored_sum *read = &segment->stored[ns].sums[sum];
    if (!atomic_load(&read->is_measured))
        return false;
    for (int kind = 0; kind < STORED_KINDS; kind++)
        bytes_r[kind] = atomic_load(&read->base[kind]) + atomic_load(&read->grown[kind]);
    return true;
}

void stored_code(const struct segment *segment, int ns, char code_r[STORED_CODE_BYTES + 1])
{
    uint64_t words[STORED_CODE_BYTES / 8];
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = atomic_load(&segment->stored[ns].code[i]);
    memcpy(code_r, words, sizeof words);
    code_r[sizeof words] = '\0';
}

size_t stored_size(const struct board_sizes *sizes UNUSED)
{
    return NAMESPACES_MOST * sizeof(struct stored);
}

void stored_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->stored = memory;
}
