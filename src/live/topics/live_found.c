/* live_found: the step to a turn has its place in a ring. */
#include "live/topics/live_found.h"

#include <stdlib.h>

#include "base/fault.h"
#include "edge/json/json.h"

enum { PROBLEM_DEPTH = 16 };

static void free_steps(struct live_found *found)
{
    for (size_t i = 0; i < LIVE_FOUND_STEPS; i++)
        builder_free(&found->steps[i].changes);
}

void live_found_free(struct live_found *found)
{
    free_steps(found);
    builder_free(&found->fault);
    free(found->page);
}

size_t live_found_bytes(const struct live_found *found)
{
    size_t bytes = found->fault.capacity + (found->page ? found->page->bytes : 0);
    for (size_t i = 0; i < LIVE_FOUND_STEPS; i++)
        bytes += found->steps[i].changes.capacity;
    return bytes;
}

/* --- what is found --- */

static void forget_steps(struct live_found *found)
{
    found->first_step = found->turn + 1;
}

static void note_step(struct live_found *found, const struct live_page *former, const struct live_page *page,
                      struct arena *arena)
{
    struct live_found_step *step = &found->steps[found->turn % LIVE_FOUND_STEPS];
    memcpy(step->former, former->stamp, sizeof step->former);
    memcpy(step->stamp, page->stamp, sizeof step->stamp);
    builder_clear(&step->changes, 0);
    live_page_write_changes(former, page, arena, &step->changes);
    if (found->turn - found->first_step >= LIVE_FOUND_STEPS)
        found->first_step = found->turn - LIVE_FOUND_STEPS + 1;
}

void live_found_take(struct live_found *found, struct live_page *page, struct arena *arena)
{
    struct live_page *former = found->page;
    bool is_same = former && strcmp(former->stamp, page->stamp) == 0;
    found->page = page;
    builder_free(&found->fault);
    if (!is_same)
        found->turn++;
    if (!former || former->answer.data || page->answer.data)
        forget_steps(found);
    else if (!is_same)
        note_step(found, former, page, arena);
    free(former);
}

void live_found_refuse(struct live_found *found, struct bytes problem)
{
    if (!found->page && bytes_equal(builder_bytes(&found->fault), problem))
        return;
    free(found->page);
    found->page = NULL;
    builder_clear(&found->fault, problem.size);
    builder_add_bytes(&found->fault, problem);
    found->turn++;
    free_steps(found);
    forget_steps(found);
}

/* --- the answer of a worker --- */

static bool has_status_ok(struct bytes head)
{
    return !memmem(head.data, head.size, "Status:", strlen("Status:")) ||
           memmem(head.data, head.size, "Status: 200", strlen("Status: 200"));
}

/* A refusal that may be over soon, or that is of the listener alone that was asked for, is no news. */
static bool is_passing(struct arena *arena, struct bytes problem)
{
    struct json *root;
    if (!json_is_tree(arena, problem, PROBLEM_DEPTH, 1, &root))
        return true;
    struct bytes code = json_text_of(root, "code", BYTES(""));
    enum fault_remedy remedy = fault_remedy_of_code(arena_copy(arena, code.data, code.size));
    return remedy == REMEDY_AGAIN || remedy == REMEDY_SIGN || remedy == REMEDY_OVER;
}

/* Former differences are forgotten where the page alone has room. */
static void take_within(struct live_found *found, struct live_page *page, const struct live_found_room *room,
                        struct arena *arena)
{
    if (page->bytes > room->most) {
        free(page);
        live_found_refuse(found, room->problem);
        return;
    }
    live_found_take(found, page, arena);
    if (live_found_bytes(found) <= room->most)
        return;
    free_steps(found);
    forget_steps(found);
}

bool live_found_take_answer(struct live_found *found, struct bytes search, struct bytes answer,
                            const struct live_found_room *room, struct arena *arena)
{
    const char *end = answer.data ? memmem(answer.data, answer.size, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    size_t head = (size_t)(end - answer.data) + 4;
    const struct bytes body = {answer.data + head, answer.size - head};
    struct live_page *page = NULL;
    if (has_status_ok((struct bytes){answer.data, head}))
        page = live_page_read(arena, search, body);
    bool is_refusal = !page && !is_passing(arena, body);
    if (page)
        take_within(found, page, room, arena);
    else if (is_refusal)
        live_found_refuse(found, body);
    return page || is_refusal;
}

/* --- what is written --- */

uint64_t live_found_turn_of(const struct live_found *found, struct bytes stamp)
{
    if (!found->page)
        return 0;
    if (bytes_equal(stamp, bytes_of(found->page->stamp)))
        return found->turn;
    for (uint64_t turn = found->turn; turn >= found->first_step && turn; turn--)
        if (bytes_equal(stamp, bytes_of(found->steps[turn % LIVE_FOUND_STEPS].former)))
            return turn - 1;
    return 0;
}

uint64_t live_found_write(const struct live_found *found, uint64_t known, struct builder *json)
{
    bool is_known = known && known + 1 >= found->first_step;
    const struct live_found_step *step = NULL;
    if (!found->page) {
        builder_add_text(json, ",\"fault\":");
        builder_add_bytes(json, builder_bytes(&found->fault));
        return found->turn;
    }
    if (is_known && known < found->turn)
        step = &found->steps[(known + 1) % LIVE_FOUND_STEPS];
    builder_printf(json, ",\"stamp\":\"%s\"", step ? step->stamp : found->page->stamp);
    if (step)
        builder_add_bytes(json, builder_bytes(&step->changes));
    else if (!is_known)
        live_page_write(found->page, json);
    return step ? known + 1 : found->turn;
}
