/* answer: tracks the documents it carries by their addresses, since there is one object for one name. */
#include "operation/answer.h"

struct answer answer_begin(const struct settings *settings, struct arena *arena, size_t elements)
{
    return (struct answer){
        .arena = arena, .most = (size_t)settings->limit_answer_bytes, .elements = elements};
}

bool answer_has_room(const struct answer *answer, size_t size, size_t more)
{
    return !answer->count || (size <= answer->most && more <= answer->most - size);
}

static void make_table(struct answer *answer)
{
    size_t room = 2;
    while (room < 2 * answer->elements)
        room *= 2;
    answer->carried = ARENA_ARRAY(answer->arena, const struct document *, room);
    answer->mask = room - 1;
}

bool answer_carry(struct answer *answer, const struct document *document)
{
    if (!answer->carried)
        make_table(answer);
    size_t at = (size_t)((uintptr_t)document / sizeof *document);
    while (answer->carried[at & answer->mask]) {
        if (answer->carried[at & answer->mask] == document)
            return false;
        at++;
    }
    assert(answer->count < answer->elements);
    answer->carried[at & answer->mask] = document;
    answer->count++;
    return true;
}
