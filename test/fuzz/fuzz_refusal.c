/* fuzz_refusal: what PostgreSQL tells of a refused commit, the detail of ST001.  None but the documents that
 * it names are flagged, and what a list names is flagged. */
#include "fuzz.h"

#include "store/documents/store_commit.h"
#include "store/documents/commit_verdict.h"
#include "edge/json/json.h"

const char fuzz_target[] = "refusal";
static const struct data_keys none;

static const struct header headers[] = {
    {.class = {"A", 1}, .id = {"1", 1}, .version = 1, .ctime = 1},
    {.class = {"A", 1}, .id = {"\xc3\xa9\"", 3}, .version = 2, .ctime = 1},
    {.class = {"Bb", 2}, .id = {"1", 1}, .version = 3, .ctime = 1},
};

enum { COUNT = COUNT_OF(headers) };

/* The list as the database would write it for what is flagged. */
static void write_list(const struct commit *commit, struct builder *list)
{
    builder_add_text(list, "[");
    for (size_t i = 0; i < COUNT; i++) {
        if (!commit->documents[i].moved)
            continue;
        if (list->size > 1)
            builder_add_text(list, ", ");
        builder_add_text(list, "[");
        json_add_string(list, headers[i].class);
        builder_add_text(list, ", ");
        json_add_string(list, headers[i].id);
        builder_printf(list, ", %lld]", (long long)headers[i].version + 1);
    }
    builder_add(list, "]", 2); /* and its NUL */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    struct commit_document documents[COUNT] = {0}, again[COUNT] = {0};
    struct commit commit = {.documents = documents, .count = COUNT},
                  same = {.documents = again, .count = COUNT};
    for (size_t i = 0; i < COUNT; i++)
        documents[i].base = again[i].base = document_build(&headers[i], NULL, 0);
    size_t told =
               commit_verdict_flag_listed(&commit, &none, arena, arena_copy(arena, (const char *)data, size)),
           flagged = 0;
    for (size_t i = 0; i < COUNT; i++)
        flagged += documents[i].moved;
    assert(flagged <= told && (flagged > 0) == (told > 0));
    struct builder list = {0};
    write_list(&commit, &list);
    assert(commit_verdict_flag_listed(&same, &none, arena, list.data) == flagged);
    for (size_t i = 0; i < COUNT; i++) {
        assert(documents[i].moved == again[i].moved);
        document_release((struct document *)(uintptr_t)documents[i].base);
    }
    builder_free(&list);
    arena_destroy(arena);
    return 0;
}
