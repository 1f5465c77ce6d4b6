/* public_answers: whole answers to reads of documents that anybody may have, in the shared segment, for
 * nginx (public_view.h), which sends them without asking a worker.
 *
 * A worker puts there what it is about to send, with the stamps of all that has decided it: the document, the
 * configuration of the namespace, and that of z.  It has seen these stamps before it began, no mark beside
 * any.  The answer is what a worker would send as long as the slots have these stamps and no marks: a commit
 * that a later answer would have to show has its mark there, or has moved the stamp (freshness.md).
 *
 * An entry has one writer at a time, which never waits.  A process killed during a write leaves its entry
 * locked; the next process of its index empties and unlocks it. */
#ifndef STAMPD_SEGMENT_PUBLIC_ANSWERS_H
#define STAMPD_SEGMENT_PUBLIC_ANSWERS_H

#include "segment/public_view.h"

/* Whether the segment has room for answers. */
static inline bool public_answers_are_kept(const struct segment *segment)
{
    return segment->public_answers_count != 0;
}

/* By the master: the digest of the settings with which answers are composed from now on; 0: none may be used.
 */
void public_answers_set_form(struct segment *segment, uint64_t form);
/* By the master, several times in PUBLIC_BEAT_MS. */
void public_answers_beat(struct segment *segment, int64_t now_ms);
/* By the relay: answers that nginx has sent. */
void public_answers_count_served(struct segment *segment, uint64_t count);
uint64_t public_answers_served(const struct segment *segment);

/* Stores an answer, unless the same is there, it is too large, or another process is writing in its place. */
void public_answers_put(struct segment *segment, uint64_t form, struct bytes name,
                        const struct public_proof *proofs, size_t proof_count,
                        const struct public_answer *answer);

/* Whether all attached processes have room for the same number of answers. */
bool public_answers_agree(struct segment *segment);

/* For board.c. */
size_t public_answers_size(const struct board_sizes *sizes);
void public_answers_init(struct segment *segment, void *memory, const struct board_sizes *sizes);
void public_answers_recover(struct segment *segment, int index);

#endif
