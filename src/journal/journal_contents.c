/* journal_contents: a list, mostly of one. */
#include "journal/journal_contents.h"

#include <stdlib.h>

#include "base/memory.h"

void journal_contents_want(struct journal_contents *contents, const struct records *records)
{
    assert(!contents->reader && contents->count < JOURNAL_CONTENTS_MOST);
    struct records_fetched *list =
        memory_grown(contents->list, contents->count + 1, sizeof *list, "reading records");
    list[contents->count] = (struct records_fetched){0};
    records_fetch_wanted(records, &list[contents->count].wanted);
    contents->list = list;
    contents->count++;
}

void journal_contents_forget(struct journal_contents *contents)
{
    assert(!contents->reader);
    for (size_t i = 0; i < contents->count; i++)
        builder_free(&contents->list[i].content);
    free(contents->list);
    *contents = (struct journal_contents){.done = contents->done, .context = contents->context};
}

size_t journal_contents_memory(const struct journal_contents *contents)
{
    size_t bytes = 0;
    for (size_t i = 0; i < contents->count; i++)
        bytes += sizeof contents->list[i] + contents->list[i].content.capacity;
    return bytes;
}
