/* collection_unchanged: one entry per place; a new one replaces the former. */
#include "operation/collections/collection_unchanged.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "segment/slots.h"

enum { PLACES = 512, QUESTION_MOST = 256 };

struct unchanged_since {
    struct newest_proof proof; /* of the class */
    int ns;
    int64_t life, number; /* of the collection */
    int64_t from;         /* nothing is of this transaction or a later one */
    int64_t horizon;      /* of the answer: where the next synchronisation begins */
    size_t size;          /* 0: the place is free */
    char question[QUESTION_MOST];
};

struct collection_unchanged {
    struct unchanged_since places[PLACES];
};

struct collection_unchanged *collection_unchanged_create(void)
{
    struct collection_unchanged *unchanged = calloc(1, sizeof *unchanged);
    if (!unchanged)
        log_fatal("out of memory");
    return unchanged;
}

void collection_unchanged_destroy(struct collection_unchanged *unchanged)
{
    free(unchanged);
}

/* NULL: the answer may change without a commit, or depends on more than documents of the class. */
static struct unchanged_since *collection_unchanged_find_place(const struct attempt *attempt,
                                                               const struct collection_request *request)
{
    const struct collection_position *position = &request->position;
    if (!attempt->worker_context->unchanged || request->is_judged || request->expires ||
        position->is_complete || !position->is_first || request->question.size > QUESTION_MOST)
        return NULL;
    uint64_t hash =
        slots_hash(attempt->worker_context->segment, attempt->ns, request->question, BYTES("unchanged"));
    return &attempt->worker_context->unchanged->places[hash % PLACES];
}

bool collection_unchanged_find(const struct attempt *attempt, struct collection_request *request,
                               struct newest_proof *proof_r)
{
    const struct documents *documents = attempt->worker_context->documents;
    struct collection_position *position = &request->position;
    const struct unchanged_since *place = collection_unchanged_find_place(attempt, request);
    *proof_r = (struct newest_proof){0};
    if (!place)
        return false;
    const struct bytes question = {place->question, place->size};
    if (place->ns == attempt->ns && bytes_equal(question, request->question) &&
        place->life == position->life && place->number == position->number && place->from <= position->from &&
        documents_is_still_newest(documents, &place->proof)) {
        position->horizon = place->horizon > position->from ? place->horizon : position->from;
        position->minute = position->since;
        return true;
    }
    *proof_r = documents_prove_class(documents, attempt->ns, request->class);
    return false;
}

void collection_unchanged_note(const struct attempt *attempt, const struct collection_request *request,
                               const struct newest_proof *proof, const struct collection_page *page)
{
    const struct collection_position *position = &request->position;
    struct unchanged_since *place =
        collection_unchanged_find_place(attempt, request); /* none: it has started over */
    if (!place || !proof->is_valid || page->count || page->ended_count || page->has_more ||
        transaction_is_in_snapshot(attempt->transaction))
        return;
    *place = (struct unchanged_since){.proof = *proof,
                                      .ns = attempt->ns,
                                      .life = position->life,
                                      .number = position->number,
                                      .from = position->from,
                                      .horizon = position->horizon,
                                      .size = request->question.size};
    memcpy(place->question, request->question.data, request->question.size);
}
