/* live_searcher: one piece of memory with all texts behind the lists. */
#include "live/live_searcher.h"

#include "base/memory.h"

static struct bytes keep(char **room, struct bytes text)
{
    if (!text.size)
        return NO_BYTES;
    memcpy(*room, text.data, text.size);
    struct bytes kept = {*room, text.size};
    *room += text.size;
    return kept;
}

struct live_searcher *live_searcher_create(const struct live_question *question,
                                           const struct live_credential *credential)
{
    size_t texts = credential->authorization.size + credential->cookie.size + credential->client.size;
    if (!question->wish_count)
        return NULL;
    for (size_t i = 0; i < question->wish_count; i++)
        texts += question->wishes[i].text.size + question->wishes[i].body.size;
    for (size_t i = 0; i < question->stamp_count; i++)
        texts += question->stamps[i].size;
    size_t lists =
        question->wish_count * sizeof(struct live_searching) + question->stamp_count * sizeof(struct bytes);
    struct live_searcher *searcher = memory_zeroed(1, sizeof *searcher + lists + texts, "live");
    searcher->count = question->wish_count;
    searcher->count_own = question->count_own;
    searcher->bytes = sizeof *searcher + lists + texts;
    searcher->stamps = (struct bytes *)(void *)(searcher->list + searcher->count);
    searcher->stamp_count = question->stamp_count;
    char *room = (char *)(searcher->stamps + question->stamp_count);
    searcher->authorization = keep(&room, credential->authorization);
    searcher->cookie = keep(&room, credential->cookie);
    searcher->client = keep(&room, credential->client);
    for (size_t i = 0; i < question->stamp_count; i++)
        searcher->stamps[i] = keep(&room, question->stamps[i]);
    for (size_t i = 0; i < question->wish_count; i++) {
        const struct live_wish *wish = &question->wishes[i];
        searcher->list[i] = (struct live_searching){.owner = searcher,
                                                    .text = keep(&room, wish->text),
                                                    .body = keep(&room, wish->body),
                                                    .position = wish->position,
                                                    .end = wish->end};
    }
    return searcher;
}

size_t live_searcher_bytes(const struct live_searcher *searcher)
{
    return searcher ? searcher->bytes : 0;
}
