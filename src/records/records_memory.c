/* records_memory: the memory of the records, its lock, and the changes made under it. */
#include "records/records_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "log/disk_table.h"
#include "records/records_seal.h"

enum { BUSY_MS = 2000, BYTES_A_BUCKET = 256 };

static size_t branches_of_key(void)
{
    return offsetof(struct key_piece, smaller) / sizeof(uint32_t);
}

bool records_open(struct records **records_r, const char *path, size_t bytes, int64_t tombstone_s,
                  char *problem, size_t problem_size)
{
    struct records *records = calloc(1, sizeof *records);
    struct hashed_key *hashed = calloc(1, sizeof *hashed);
    if (!records || !hashed)
        log_fatal("out of memory opening the records");
    assert(bytes >= 2 * sizeof(struct records_head));
    if (!mapping_open(&records->mapping, path, RECORDS_MAGIC, RECORDS_LAYOUT, bytes, problem, problem_size)) {
        free(hashed);
        free(records);
        return false;
    }
    struct records_head *head = records->head = records->mapping.memory;
    uint64_t seed = head->head.seed;
    robust_lock_init(&head->lock);
    robust_lock_init(&head->save_lock);
    records->memory = (struct memory){(uint32_t *)records->mapping.memory, &head->undo};
    records->keys =
        (struct ordering){&head->key_root, (uint32_t)branches_of_key(), seed, records_compare_keys};
    records->ends = (struct ordering){&head->end_root, 0, seed, records_compare_ends};
    records->hash = (struct siphash_key){{seed, ~seed}};
    records->hashed = hashed;
    records->tombstone_ms = tombstone_s * 1000;
    records->busy_ms = BUSY_MS;
    *records_r = records;
    return true;
}

void records_erase(struct records *records)
{
    if (records)
        records->is_to_be_erased = true;
}

void records_close(struct records *records)
{
    if (!records)
        return;
    if (records->disk && disk_table_is_own(records->disk))
        disk_table_close(records->disk);
    if (records->is_to_be_erased)
        mapping_erase(&records->mapping);
    mapping_close(&records->mapping);
    builder_free(&records->out);
    builder_free(&records->texts);
    builder_free(&records->sealed);
    records_seal_free(records->seal);
    builder_free(&records->read.text);
    free(records->folder);
    free(records->hashed);
    free(records);
}

int records_descriptor(const struct records *records)
{
    return records->mapping.fd;
}

/* Under the lock.  A holder that dies here leaves is_ready 0, and the next one begins again. */
static void make_ready(struct records *records)
{
    struct records_head *head = records->head;
    size_t words = records->mapping.size / sizeof(uint32_t);
    uint32_t start = (uint32_t)((sizeof *head + 63) / 64 * 64 / sizeof(uint32_t)), buckets = 1024;
    while (buckets < records->mapping.size / BYTES_A_BUCKET)
        buckets *= 2;
    if (buckets * sizeof(uint32_t) > records->mapping.size / 16)
        buckets /= 2;
    head->ring = (struct changes_ring){.first = start, .mask = records_ring_words(words) - 1};
    start += head->ring.mask + 1;
    memset(records->memory.words + start, 0, buckets * sizeof(uint32_t));
    memset(head->space, 0, sizeof head->space);
    head->key_root = head->end_root = head->spaces = head->states = 0;
    head->is_loaded = head->unsaved_first = head->unsaved_last = 0;
    memset(head->unsaved_bytes, 0, sizeof head->unsaved_bytes);
    memset(head->save_number, 0, sizeof head->save_number);
    memset(head->joined, 0, sizeof head->joined);
    atomic_store(&head->saved, 0);
    head->buckets = start;
    head->bucket_mask = buckets - 1;
    head->hand = head->away = 0;
    head->last_change = (uint32_t)(head->head.seed >> 32);
    memset(head->away_bytes, 0, sizeof head->away_bytes);
    pieces_divide(&records->memory, &head->pieces, &head->contents, &head->fence, start + buckets,
                  (uint32_t)(words - start - buckets));
    undo_commit(&records->memory);
    *(volatile uint32_t *)&head->is_ready = 1;
}

bool records_enter_untimed(struct records *records)
{
    enum robust_lock_result result = robust_lock_take(&records->head->lock, records->busy_ms);
    if (result == ROBUST_LOCK_REFUSED) {
        log_warning("the records are busy: a process holds their lock and does not run");
        return false;
    }
    if (!records->head->is_ready)
        make_ready(records);
    if (result == ROBUST_LOCK_INHERITED) {
        undo_back(&records->memory);
        log_info("took back a change of the records whose process has died");
    }
    records->given_count = 0;
    records->saving = 0;
    records->appended = 0;
    return true;
}

void records_limit_wait(struct records *records, int64_t most_ms)
{
    records->busy_ms = most_ms;
}

bool records_enter(struct records *records)
{
    if (!records_enter_untimed(records))
        return false;
    records->now_ms = clock_present_ms();
    return true;
}

void records_leave(struct records *records)
{
    robust_lock_release(&records->head->lock);
}

void records_give_later(struct records *records, uint32_t piece)
{
    assert(records->given_count < GIVEN_MOST);
    records->given[records->given_count++] = piece;
}

/* The hand never stands in the middle of a piece. */
static void records_memory_give(struct records *records, uint32_t piece)
{
    struct records_head *head = records->head;
    if (piece < head->fence) {
        pieces_give(&records->memory, &head->pieces, piece);
        return;
    }
    uint32_t joined = pieces_give(&records->memory, &head->contents, piece);
    uint32_t end = joined + (uint32_t)(pieces_size(&records->memory, joined) / sizeof(uint32_t));
    if (head->hand > joined && head->hand < end)
        undo_set(&records->memory, &head->hand, joined);
}

void records_commit(struct records *records)
{
    while (records->given_count)
        records_memory_give(records, records->given[--records->given_count]);
    undo_commit(&records->memory);
    records->appended = 0;
}

void records_abandon(struct records *records)
{
    records->given_count = 0;
    records->saving = 0;
    records->appended = 0;
    undo_back(&records->memory);
}
