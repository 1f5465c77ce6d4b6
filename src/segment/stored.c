/* stored: a sum for each namespace. */
#include "segment/stored.h"

#include <string.h>

void stored_add(struct segment *segment, int ns, int64_t bytes)
{
    if (bytes)
        atomic_fetch_add(&segment->stored[ns].grown, bytes);
}

void stored_want(struct segment *segment, int ns, struct bytes code)
{
    struct stored *stored = &segment->stored[ns];
    uint64_t words[COUNT_OF(stored->code)] = {0};
    if (atomic_load(&stored->is_wanted))
        return;
    memcpy(words, code.data, code.size < sizeof words ? code.size : sizeof words);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        atomic_store(&stored->code[i], words[i]);
    atomic_store(&stored->is_wanted, 1);
}

bool stored_is_wanted(const struct segment *segment, int ns)
{
    return atomic_load(&segment->stored[ns].is_wanted);
}

int64_t stored_begin(const struct segment *segment, int ns)
{
    return atomic_load(&segment->stored[ns].grown);
}

void stored_end(struct segment *segment, int ns, int64_t begun, int64_t sum)
{
    atomic_store(&segment->stored[ns].base, sum - begun);
    atomic_store(&segment->stored[ns].is_measured, 1);
}

bool stored_read(const struct segment *segment, int ns, int64_t *bytes_r, char code_r[STORED_CODE_BYTES + 1])
{
    const struct stored *stored = &segment->stored[ns];
    uint64_t words[COUNT_OF(stored->code)];
    if (!atomic_load(&stored->is_measured))
        return false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = atomic_load(&stored->code[i]);
    if (code_r) {
        memcpy(code_r, words, sizeof words);
        code_r[sizeof words] = '\0';
    }
    *bytes_r = atomic_load(&stored->base) + atomic_load(&stored->grown);
    return true;
}

size_t stored_size(const struct board_sizes *sizes UNUSED)
{
    return NAMESPACES_MOST * sizeof(struct stored);
}

void stored_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->stored = memory;
}
