/* public_view: an answer is copied under the sequence lock of its entry, examined in the copy, and proven by
 * the slots; that the segment was no other meanwhile is shown by its generation, read before and after. */
#include "segment/public_view.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/coding/siphash.h"
#include "segment/board.h"

enum { LINE = 64, COPY_ATTEMPTS = 2 };

_Static_assert(sizeof(struct public_entry) == PUBLIC_ENTRY_BYTES, "lock, hash and record fill the entry");
_Static_assert(sizeof(struct public_record) % sizeof(uint64_t) == 0, "texts follow the record");
_Static_assert(sizeof(struct mapping_head) == LINE, "the slots follow the head");

/* --- where it lies --- */

size_t public_view_answers_at(uint32_t slots)
{
    return sizeof(struct mapping_head) + sizeof(struct slots_head) + (size_t)slots * sizeof(struct slot);
}

/* A number of slots is a power of two, and one of entries divisible by the ways; both fit into the file. */
static bool public_view_fits(uint64_t slots, uint64_t count, uint64_t size)
{
    if (!slots || slots & (slots - 1) || slots > size / sizeof(struct slot) || slots > UINT32_MAX ||
        count < PUBLIC_WAYS || count % PUBLIC_WAYS)
        return false;
    size_t at = public_view_answers_at((uint32_t)slots) + sizeof(struct public_answers_head);
    return at <= size && count <= (size - at) / PUBLIC_ENTRY_BYTES;
}

bool public_view_measure(int fd, size_t *size_r)
{
    struct mapping_head mapping;
    struct {
        uint32_t words, count;
    } slots;
    struct {
        uint64_t form, beat_ms, count;
    } answers;
    struct stat status;
    if (fstat(fd, &status) || status.st_size < (off_t)sizeof mapping ||
        bytes_read_at(fd, (unsigned char *)&mapping, sizeof mapping, 0) != sizeof mapping ||
        bytes_read_at(fd, (unsigned char *)&slots, sizeof slots, sizeof mapping) != sizeof slots ||
        mapping.magic != SEGMENT_MAGIC || mapping.layout != BOARD_LAYOUT ||
        mapping.size > (uint64_t)status.st_size || !public_view_fits(slots.count, PUBLIC_WAYS, mapping.size))
        return false;
    size_t at = public_view_answers_at(slots.count);
    if (bytes_read_at(fd, (unsigned char *)&answers, sizeof answers, (int64_t)at) != sizeof answers ||
        !public_view_fits(slots.count, answers.count, mapping.size))
        return false;
    *size_r = at + sizeof(struct public_answers_head) + answers.count * PUBLIC_ENTRY_BYTES;
    return true;
}

/* Atomics whose values others may write, read-only. */
#define public_view_load(word) atomic_load(word)
#define plain_load(word)       __atomic_load_n((word), __ATOMIC_SEQ_CST)

bool public_view_open(struct public_view *view, const void *memory, size_t size)
{
    const struct mapping_head *mapping = memory;
    struct slots_head *slots = (struct slots_head *)((uintptr_t)memory + sizeof *mapping);
    *view = (struct public_view){.mapping = mapping};
    if (size < sizeof *mapping + sizeof *slots)
        return false;
    uint32_t slot_count = public_view_load(&slots->count);
    if (!public_view_fits(slot_count, PUBLIC_WAYS, size))
        return false;
    view->head = (const struct public_answers_head *)((uintptr_t)memory + public_view_answers_at(slot_count));
    view->count = public_view_load(&view->head->count);
    view->file_size = plain_load(&mapping->size);
    view->segment = (struct segment){.slots = slots->slots,
                                     .words = &slots->words,
                                     .proof_until_ms = &slots->proof_until_ms,
                                     .slot_mask = slot_count - 1,
                                     .index = SEGMENT_NO_INDEX};
    return public_view_fits(slot_count, view->count, size) && view->file_size >= size;
}

/* --- names --- */

size_t public_view_name(struct bytes database, struct bytes ns, struct bytes class, struct bytes id,
                        char *text_r)
{
    const struct bytes pieces[] = {database, ns, class, id}; /* only the id may contain the separator */
    size_t size = 0;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        if (pieces[i].size >= PUBLIC_NAME_BYTES - size)
            return 0;
        if (i)
            text_r[size++] = '/';
        if (pieces[i].size > PUBLIC_NAME_BYTES - size)
            return 0;
        memcpy(text_r + size, pieces[i].data, pieces[i].size);
        size += pieces[i].size;
    }
    return size;
}

/* Without the seed, names that have one hash cannot be chosen; 0 is that of an empty entry. */
uint64_t public_view_hash(uint64_t seed, struct bytes name)
{
    const struct siphash_key key = {{seed, UINT64_C(0x7075626c69632061)}};
    uint64_t hash = siphash_short(&key, name);
    return hash ? hash : 1;
}

/* --- one entry --- */

/* Copies words up to this one, each as a whole; several in each round, since these are most of what a read
 * executes. */
static void copy_words(const struct public_entry *entry, size_t first, size_t end, struct public_copy *copy)
{
    enum { AT_ONCE = 4 };
    size_t i = first;
#define COPY_WORD(n) copy->words[n] = atomic_load_explicit(&entry->words[n], memory_order_relaxed)
    for (; i + AT_ONCE <= end; i += AT_ONCE) {
        COPY_WORD(i);
        COPY_WORD(i + 1);
        COPY_WORD(i + 2);
        COPY_WORD(i + 3);
    }
    for (; i < end; i++)
        COPY_WORD(i);
#undef COPY_WORD
}

/* Copies the record, whatever it may be; false: a writer was there, or it is too large to be one. */
static bool copy_record(const struct public_entry *entry, uint64_t hash, struct public_copy *copy)
{
    uint64_t before = public_view_load(&entry->lock);
    if (before & PUBLIC_OWNER_MASK || atomic_load_explicit(&entry->hash, memory_order_relaxed) != hash)
        return false;
    struct public_record record;
    copy_words(entry, 0, sizeof record / sizeof *copy->words, copy);
    memcpy(&record, copy->words, sizeof record);
    uint64_t text = (uint64_t)record.name_size + record.etag_size + record.head_size + record.unchanged_size +
                    record.body_size;
    if (text > PUBLIC_TEXT_BYTES)
        return false;
    size_t words = (sizeof record + (size_t)text + sizeof *copy->words - 1) / sizeof *copy->words;
    copy_words(entry, sizeof record / sizeof *copy->words, words, copy);
    atomic_thread_fence(memory_order_acquire); /* the words, then the lock again */
    return public_view_load(&entry->lock) == before;
}

static struct bytes take_text(const char **text, uint32_t size)
{
    struct bytes taken = {*text, size};
    *text += size;
    return taken;
}

/* Of a copied record the sizes are known to fit. */
static bool read_record(const struct public_copy *copy, uint64_t form, struct bytes name,
                        struct public_answer *answer_r)
{
    struct public_record record;
    memcpy(&record, copy->words, sizeof record);
    const char *text = (const char *)copy->words + sizeof record;
    if (record.form != form || !form || !bytes_equal(take_text(&text, record.name_size), name))
        return false;
    answer_r->etag = take_text(&text, record.etag_size);
    answer_r->head = take_text(&text, record.head_size);
    answer_r->unchanged = take_text(&text, record.unchanged_size);
    answer_r->body = take_text(&text, record.body_size);
    return true;
}

/* No commit of the slots is in flight, and none has ended since before the answer was composed. */
static bool public_view_is_proven(const struct public_view *view, const struct public_copy *copy)
{
    struct public_record record;
    memcpy(&record, copy->words, sizeof record);
    if (!record.proof_count || record.proof_count > PUBLIC_PROOFS_MOST)
        return false;
    for (uint32_t i = 0; i < record.proof_count; i++) {
        if (record.proofs[i].slot > view->segment.slot_mask)
            return false;
        struct observation observation = slots_see(&view->segment, record.proofs[i].slot);
        if (observation.busy || observation.stamp != record.proofs[i].tag)
            return false;
    }
    return true;
}

/* --- finding --- */

/* Is it the segment that was examined, complete, and does a master live? */
static bool public_view_is_current(const struct public_view *view, uint64_t *generation_r)
{
    const struct slots_head *slots =
        (const struct slots_head *)((uintptr_t)view->mapping + sizeof *view->mapping);
    *generation_r = plain_load(&view->mapping->generation);
    int64_t quiet_ms =
        (int64_t)((uint64_t)clock_monotonic_ms() - (uint64_t)public_view_load(&view->head->beat_ms));
    return plain_load(&view->mapping->magic) == SEGMENT_MAGIC &&
           plain_load(&view->mapping->layout) == BOARD_LAYOUT &&
           plain_load(&view->mapping->size) == view->file_size &&
           public_view_load(&slots->count) == view->segment.slot_mask + 1 &&
           public_view_load(&view->head->count) == view->count && quiet_ms >= -PUBLIC_BEAT_MS &&
           quiet_ms <= PUBLIC_BEAT_MS;
}

bool public_view_is_living(const struct public_view *view)
{
    uint64_t generation;
    return public_view_is_current(view, &generation);
}

static bool find_proven(const struct public_view *view, uint64_t hash, struct bytes name,
                        struct public_copy *copy, struct public_answer *answer_r)
{
    const struct public_entry *entry = &view->head->entries[hash % (view->count / PUBLIC_WAYS) * PUBLIC_WAYS];
    uint64_t form = public_view_load(&view->head->form);
    for (int way = 0; way < PUBLIC_WAYS; way++, entry++)
        for (int i = 0; i < COPY_ATTEMPTS && public_view_load(&entry->hash) == hash; i++)
            if (copy_record(entry, hash, copy)) {
                if (read_record(copy, form, name, answer_r) && public_view_is_proven(view, copy))
                    return true;
                break;
            }
    return false;
}

bool public_view_find(const struct public_view *view, struct bytes name, struct public_copy *copy,
                      struct public_answer *answer_r)
{
    uint64_t before, after;
    if (!public_view_is_current(view, &before))
        return false;
    uint64_t hash = public_view_hash(plain_load(&view->mapping->seed), name);
    return find_proven(view, hash, name, copy, answer_r) && public_view_is_current(view, &after) &&
           before == after;
}
