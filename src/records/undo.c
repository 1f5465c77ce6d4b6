/* undo: writes the notes of a change back. */
#include "records/undo.h"

void undo_back(const struct memory *memory)
{
    struct undo *undo = memory->undo;
    for (uint32_t i = atomic_load(&undo->count); i > 0; i--)
        *(volatile uint32_t *)(memory->words + undo->notes[i - 1].word) = undo->notes[i - 1].before;
    undo_commit(memory);
}
