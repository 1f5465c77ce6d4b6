/* public_answers: the writers of the table.  As in the shared cache, the words of an entry are written
 * relaxed between fences, because a torn copy is discarded. */
#include "segment/public_answers.h"

size_t public_answers_size(const struct board_sizes *sizes)
{
    size_t count = sizes->public_answers_bytes / PUBLIC_ENTRY_BYTES / PUBLIC_WAYS * PUBLIC_WAYS;
    return sizeof(struct public_answers_head) + count * PUBLIC_ENTRY_BYTES;
}

void public_answers_init(struct segment *segment, void *memory, const struct board_sizes *sizes)
{
    segment->public_answers = memory;
    segment->public_answers_count =
        (public_answers_size(sizes) - sizeof *segment->public_answers) / PUBLIC_ENTRY_BYTES;
}

bool public_answers_agree(struct segment *segment)
{
    uint64_t present = 0, count = segment->public_answers_count;
    return atomic_compare_exchange_strong(&segment->public_answers->count, &present, count) ||
           present == count;
}

void public_answers_set_form(struct segment *segment, uint64_t form)
{
    atomic_store(&segment->public_answers->form, form);
}

void public_answers_beat(struct segment *segment, int64_t now_ms)
{
    atomic_store(&segment->public_answers->beat_ms, now_ms);
}

void public_answers_count_served(struct segment *segment, uint64_t count)
{
    atomic_fetch_add(&segment->public_answers->served, count);
}

uint64_t public_answers_served(const struct segment *segment)
{
    return atomic_load(&segment->public_answers->served);
}

/* --- writing --- */

static void public_answers_set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static bool public_answers_lock(struct public_entry *entry, int index)
{
    uint64_t seen = atomic_load(&entry->lock);
    if (seen & PUBLIC_OWNER_MASK ||
        !atomic_compare_exchange_strong(&entry->lock, &seen, seen | (uint64_t)(index + 1)))
        return false;
    atomic_thread_fence(memory_order_release); /* a reader that sees one of our words sees the lock taken */
    return true;
}

static void public_answers_unlock(struct public_entry *entry)
{
    uint64_t held = atomic_load(&entry->lock);
    atomic_store(&entry->lock, ((held >> PUBLIC_OWNER_BITS) + 1) << PUBLIC_OWNER_BITS);
}

void public_answers_recover(struct segment *segment, int index)
{
    for (uint64_t i = 0; i < segment->public_answers_count; i++) {
        struct public_entry *entry = &segment->public_answers->entries[i];
        if ((atomic_load(&entry->lock) & PUBLIC_OWNER_MASK) != (uint64_t)(index + 1))
            continue;
        atomic_thread_fence(memory_order_release);
        public_answers_set(&entry->hash, 0);
        public_answers_unlock(entry);
    }
}

/* The entry of this hash, or an empty one, or one whose turn it is to make room. */
static struct public_entry *choose_entry(struct segment *segment, uint64_t hash)
{
    static uint32_t turn;
    struct public_entry *first =
        &segment->public_answers->entries[hash % (segment->public_answers_count / PUBLIC_WAYS) * PUBLIC_WAYS];
    struct public_entry *chosen = NULL;
    for (int way = 0; way < PUBLIC_WAYS; way++) {
        uint64_t there = atomic_load(&first[way].hash);
        if (there == hash)
            return &first[way];
        if (!there)
            chosen = &first[way];
    }
    return chosen ? chosen : &first[turn++ % PUBLIC_WAYS];
}

/* Whether the record begins with the same words: form, sizes and proofs.  A guess, harmless if wrong. */
static bool has_same_record(const struct public_entry *entry, const struct public_record *record)
{
    uint64_t words[sizeof *record / sizeof(uint64_t)];
    memcpy(words, record, sizeof *record);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (atomic_load_explicit(&entry->words[i], memory_order_relaxed) != words[i])
            return false;
    return true;
}

static void add_text(char **text, struct bytes more)
{
    if (more.size)
        memcpy(*text, more.data, more.size);
    *text += more.size;
}

/* Returns the number of words, 0 when the answer is too large. */
static size_t write_record(struct public_copy *copy, const struct public_record *record, struct bytes name,
                           const struct public_answer *answer)
{
    size_t size = name.size + answer->etag.size + answer->head.size + answer->unchanged.size;
    if (size > PUBLIC_TEXT_BYTES || answer->body.size > PUBLIC_TEXT_BYTES - size)
        return 0;
    size_t words =
        (sizeof *record + size + answer->body.size + sizeof *copy->words - 1) / sizeof *copy->words;
    char *text = (char *)copy->words + sizeof *record;
    copy->words[words - 1] = 0;
    memcpy(copy->words, record, sizeof *record);
    add_text(&text, name);
    add_text(&text, answer->etag);
    add_text(&text, answer->head);
    add_text(&text, answer->unchanged);
    add_text(&text, answer->body);
    return words;
}

void public_answers_put(struct segment *segment, uint64_t form, struct bytes name,
                        const struct public_proof *proofs, size_t proof_count,
                        const struct public_answer *answer)
{
    struct public_copy copy;
    assert(proof_count && proof_count <= PUBLIC_PROOFS_MOST);
    struct public_record record = {.form = form,
                                   .proof_count = (uint32_t)proof_count,
                                   .name_size = (uint32_t)name.size,
                                   .etag_size = (uint32_t)answer->etag.size,
                                   .head_size = (uint32_t)answer->head.size,
                                   .unchanged_size = (uint32_t)answer->unchanged.size,
                                   .body_size = (uint32_t)answer->body.size};
    memcpy(record.proofs, proofs, proof_count * sizeof *proofs);
    size_t words = write_record(&copy, &record, name, answer);
    if (!words || !public_answers_are_kept(segment))
        return;
    uint64_t hash = public_view_hash(segment_seed(segment), name);
    struct public_entry *entry = choose_entry(segment, hash);
    bool is_there = atomic_load(&entry->hash) == hash && has_same_record(entry, &record);
    if (is_there || !public_answers_lock(entry, segment_index(segment)))
        return;
    public_answers_set(&entry->hash, hash);
    for (size_t i = 0; i < words; i++)
        public_answers_set(&entry->words[i], copy.words[i]);
    public_answers_unlock(entry);
}
