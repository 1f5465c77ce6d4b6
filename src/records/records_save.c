/* records_save: the list of what is not on disk yet, and its way there and back. */
#include "records/records_save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/disk_table.h"
#include "records/records_private.h"
#include "records/records_rekey.h"
#include "records/records_saved.h"
#include "records/records_seal.h"

enum { SAVE_BUSY_MS = 10000 };

/* Of one change of the disk. */
enum { KEYS_MOST = 1000, BYTES_MOST = 4 << 20, KEPT_BYTES = 1 << 20 };

static const char without_key[] = "they are encrypted, and there is no site key here: see site_key_file";

/* --- to the disk --- */

static bool is_sealed(const struct records *records, int space)
{
    return records->head->space[space].kind == SPACE_SEALED;
}

/* Of an encrypted namespace there is a key. */
static void place_of(const struct records *records, int space, struct bytes key,
                     unsigned char place_r[RECORDS_PLACE_BYTES])
{
    memcpy(place_r, records->head->space[space].code, RECORDS_CODE_MOST);
    if (is_sealed(records, space))
        records_seal_place(records->seal, key, place_r);
    else
        crypto_sha256(key, place_r + RECORDS_CODE_MOST);
}

/* The value whose first key the listed one is; NULL: there is none. */
static struct value_piece *value_under(struct records *records, const struct key_piece *listed)
{
    uint32_t key = records_find(records, (int)(listed->place >> 16), records_key_text(listed));
    uint32_t piece = key ? records_key(records, key)->value : 0;
    struct value_piece *value = piece ? records_value(records, piece) : NULL;
    return value && value->keys == key ? value : NULL;
}

/* What the disk is to have: for each key its place, eight bytes of size, and the text; size UINT64_MAX: none.
 * Returns the number up to which all is there then; 0: `error_r`.  What is to be encrypted is not yet. */
static uint64_t collect(struct records *records, struct builder *texts, const char **error_r)
{
    struct records_head *head = records->head;
    uint64_t last = 0;
    bool has_removed = false;
    builder_clear(texts, KEPT_BYTES);
    *error_r = "they are busy";
    if (!records_enter(records))
        return 0;
    *error_r = NULL;
    uint32_t piece = head->unsaved_first;
    for (int keys = 0; piece; keys++, piece = records_key(records, piece)->chain) {
        struct key_piece *key = records_key(records, piece);
        int space = (int)(key->place >> 16);
        uint64_t own = undo_long(records_number_of(key));
        if (own != last && !has_removed && (keys >= KEYS_MOST || texts->size >= BYTES_MOST))
            break; /* a change is written whole; a record that has gone may be under a key further on */
        last = own;
        const struct value_piece *value = value_under(records, key);
        if (value && records_is_away(value))
            continue; /* an entry before this one has written the same, and the disk alone has it now */
        if (is_sealed(records, space) && !records->seal) {
            *error_r = without_key;
            break;
        }
        place_of(records, space, records_key_text(key),
                 (unsigned char *)builder_reserve(texts, RECORDS_PLACE_BYTES));
        texts->size += RECORDS_PLACE_BYTES;
        size_t start = texts->size;
        records_saved_write(records, space, records_key_text(key), texts);
        has_removed = has_removed || bytes_get_u64((const unsigned char *)texts->data + start) == UINT64_MAX;
        records_commit(records); /* each by itself: the notes of one change are bounded */
    }
    uint64_t number = piece ? last : undo_long(head->save_number);
    records_leave(records);
    return *error_r ? 0 : number;
}

static struct bytes seal(struct records *records, struct bytes place, struct bytes text)
{
    builder_clear(&records->sealed, KEPT_BYTES);
    records_seal_text(records->seal, place, text, &records->sealed);
    return builder_bytes(&records->sealed);
}

static const char *put_all(struct records *records, struct disk_table *disk)
{
    struct bytes texts = builder_bytes(&records->texts);
    const char *error = NULL;
    while (texts.size && !error) {
        struct bytes place = {texts.data, RECORDS_PLACE_BYTES};
        uint64_t size = bytes_get_u64((const unsigned char *)texts.data + RECORDS_PLACE_BYTES);
        struct bytes text = NO_BYTES;
        texts.data += RECORDS_PLACE_BYTES + sizeof size;
        texts.size -= RECORDS_PLACE_BYTES + sizeof size;
        if (size != UINT64_MAX) {
            text = (struct bytes){texts.data, (size_t)size};
            texts.data += size;
            texts.size -= (size_t)size;
            text = records_seal_is_place(place) ? seal(records, place, text) : text;
        }
        error = disk_table_put(disk, place, text);
    }
    return error;
}

/* What was written of the record is still what it is: its content may be given up. */
static void note_key_saved(struct records *records, const struct key_piece *listed)
{
    struct value_piece *value = value_under(records, listed);
    if (value && records_is_apart(value) && records_state_of(value) == VALUE_WRITTEN)
        records_set_state(records, value, VALUE_SAVED);
}

/* By whoever has written; more than once does no harm. */
static void note_saved(struct records *records, uint64_t number)
{
    struct records_head *head = records->head;
    if (!records_enter(records))
        return; /* they are written once more */
    for (uint32_t piece = head->unsaved_first; piece; piece = head->unsaved_first) {
        struct key_piece *key = records_key(records, piece);
        if (undo_long(records_number_of(key)) > number)
            break;
        undo_set(&records->memory, &head->unsaved_first, key->chain);
        undo_set_long(&records->memory, head->unsaved_bytes,
                      undo_long(head->unsaved_bytes) - pieces_size(&records->memory, piece));
        note_key_saved(records, key);
        records_give_later(records, piece);
        records_commit(records);
    }
    if (atomic_load(&head->saved) < number)
        atomic_store(&head->saved, number);
    records_leave(records);
}

/* As a process of its own: a child does not use its parent's handle.  NULL: reported; there may be no folder
 * here, while another process of the host has one. */
static struct disk_table *own_disk(struct records *records)
{
    char problem[600] = "records are to be saved, and records_directory is empty here";
    if (records->disk && disk_table_is_own(records->disk))
        return records->disk;
    records->disk = records->folder
                        ? disk_table_open(records->folder, records->disk_bytes, problem, sizeof problem)
                        : NULL;
    if (!records->disk)
        log_often(LOG_LEVEL_WARNING, "records-disk", "%s", problem);
    return records->disk;
}

/* One change of the disk. */
static const char *write_all(struct records *records, struct disk_table *disk)
{
    const char *error = disk_table_begin(disk);
    if (error)
        return error;
    uint64_t reached = collect(records, &records->texts, &error);
    if (reached)
        error = put_all(records, disk);
    if (error) {
        disk_table_abandon(disk);
        return error;
    }
    crash_at(CRASH_RECORDS_WRITTEN);
    error = disk_table_commit(disk);
    crash_at(CRASH_RECORDS_SYNCED);
    if (!error)
        note_saved(records, reached);
    return error;
}

/* True: something was saved, by whomever.  LMDB would wait for a process that is stopped as long as it is; so
 * there is a lock before it whose wait ends.  To open the disk is to write too. */
static bool save_some(struct records *records, uint64_t number)
{
    const char *error = NULL;
    bool is_open = true;
    if (robust_lock_take(&records->head->save_lock, SAVE_BUSY_MS) == ROBUST_LOCK_REFUSED)
        error = "a process that does not run has the right to write";
    else {
        struct disk_table *disk = own_disk(records);
        is_open = disk != NULL;
        if (is_open && atomic_load(&records->head->saved) < number) /* else another process has, meanwhile */
            error = write_all(records, disk);
        robust_lock_release(&records->head->save_lock);
    }
    if (error)
        log_often(LOG_LEVEL_WARNING, "records-save", "records are not saved: %s", error);
    return is_open && !error;
}

bool records_save(struct records *records, uint64_t number)
{
    bool is_saving = true;
    while (is_saving && atomic_load(&records->head->saved) < number)
        is_saving = save_some(records, number);
    return is_saving;
}

void records_save_rest(struct records *records)
{
    uint64_t number = 0;
    if (!records->folder || !*(volatile uint32_t *)&records->head->unsaved_first || !records_enter(records))
        return;
    number = undo_long(records->head->save_number);
    records_leave(records);
    if (!records_save(records, number))
        log_debug("records wait for the disk");
}

/* --- back --- */

/* Reading waits for no writer, but for the first time in a process. */
static struct disk_table *disk_to_read(struct records *records)
{
    if (records->disk && disk_table_is_own(records->disk))
        return records->disk;
    if (robust_lock_take(&records->head->save_lock, SAVE_BUSY_MS) == ROBUST_LOCK_REFUSED) {
        log_often(LOG_LEVEL_WARNING, "records-disk",
                  "the records on disk are not opened: a process that does not run has the right to write");
        return NULL;
    }
    struct disk_table *disk = own_disk(records);
    robust_lock_release(&records->head->save_lock);
    return disk;
}

/* What stands under the place, decrypted. */
static const char *fetch(struct records *records, struct disk_table *disk, struct bytes place,
                         struct builder *text, struct bytes *text_r)
{
    bool is_there = false;
    builder_clear(text, KEPT_BYTES);
    const char *error = disk_table_get(disk, place, text, &is_there);
    *text_r = builder_bytes(text);
    if (error || !is_there)
        return error ? error : "the disk does not have it";
    return records_seal_is_place(place) &&
                   records_seal_open(records->seal, place, text, text_r) != RECORDS_SEAL_OPENED
               ? "it is damaged"
               : NULL;
}

void records_fetch_content(struct records *records)
{
    struct room_read *read = &records->read;
    unsigned char place[RECORDS_PLACE_BYTES];
    struct bytes content = NO_BYTES, text;
    read->content = NO_BYTES;
    read->problem = NULL;
    read->has_ended = true;
    const struct records_wanted *wanted = &read->wanted;
    if (is_sealed(records, (int)wanted->space) && !records->seal) {
        read->problem = without_key;
        return;
    }
    struct disk_table *disk = disk_to_read(records);
    if (!disk)
        return;
    place_of(records, (int)wanted->space, (struct bytes){wanted->key, wanted->key_size}, place);
    const char *error = fetch(records, disk, (struct bytes){(char *)place, sizeof place}, &read->text, &text);
    if (!error && (!records_saved_content(text, &content) || content.size != wanted->size ||
                   records_digest(records, content) != wanted->digest))
        error = "it is damaged";
    read->problem = error;
    if (!error)
        read->content = content;
}

struct records_loading {
    struct records *records;
    const char *problem;
    uint64_t count;
};

/* NULL, or why not. */
static const char *open_one(struct records *records, struct bytes place, struct bytes *text)
{
    if (!records->seal)
        return "a record is encrypted, and the file key is missing";
    builder_clear(&records->sealed, KEPT_BYTES);
    builder_add_bytes(&records->sealed, *text);
    return records_seal_explain(records_seal_open(records->seal, place, &records->sealed, text));
}

static enum disk_table_next load_one(void *context, struct bytes place, struct bytes text)
{
    struct records_loading *loading = context;
    bool is_encrypted = records_seal_is_place(place);
    loading->problem = is_encrypted ? open_one(loading->records, place, &text) : NULL;
    if (loading->problem)
        return DISK_TABLE_STOP;
    enum records_saved_result result = records_saved_read(loading->records, text, is_encrypted);
    if (result == RECORDS_SAVED_MALFORMED)
        loading->problem = "a record is damaged";
    else if (result == RECORDS_SAVED_NO_ROOM)
        loading->problem = "records_mb is too small for them";
    loading->count += result == RECORDS_SAVED_READ;
    return loading->problem               ? DISK_TABLE_STOP
           : result == RECORDS_SAVED_OVER ? DISK_TABLE_REMOVE
                                          : DISK_TABLE_KEEP;
}

/* One change of the disk: another key for some of the records, if the folder is to get one and no process has
 * the present one; else all of them come into the memory, `is_over_r`. */
static const char *load(struct records *records, struct disk_table *disk, const char *folder,
                        struct records_rekey *rekey, uint64_t *count_r, bool *is_over_r)
{
    struct records_loading loading = {.records = records};
    bool is_rekeyed = false;
    const char *error = disk_table_begin(disk);
    if (error)
        return error;
    if (!*(volatile uint32_t *)&records->head->is_loaded)
        error = records_rekey_some(rekey, disk, folder, &is_rekeyed);
    *is_over_r = !is_rekeyed;
    if (!error && is_rekeyed)
        return disk_table_commit(disk);
    if (error || !records_enter(records)) {
        disk_table_abandon(disk);
        return error ? error : "they are busy";
    }
    error = records_seal_read(&records->seal, folder, RECORDS_SEAL_PRESENT);
    if (!error && !records->head->is_loaded) {
        error = disk_table_each(disk, load_one, &loading);
        error = error ? error : loading.problem;
    }
    if (!error)
        error = records_seal_write(&records->seal, folder);
    if (!error)
        *(volatile uint32_t *)&records->head->is_loaded = 1;
    records_leave(records);
    *count_r = loading.count;
    if (!error)
        return disk_table_commit(disk);
    disk_table_abandon(disk);
    return error;
}

bool records_save_into(struct records *records, const char *folder, size_t bytes, char *problem,
                       size_t problem_size)
{
    struct records_rekey rekey = {0};
    uint64_t count = 0;
    bool is_over = false;
    if (!*folder)
        return true;
    struct disk_table *disk = disk_table_open(folder, bytes, problem, problem_size);
    if (!disk)
        return false;
    const char *error = NULL;
    while (!error && !is_over)
        error = load(records, disk, folder, &rekey, &count, &is_over);
    records_rekey_free(&rekey);
    disk_table_close(disk); /* each child opens its own */
    if (error) {
        snprintf(problem, problem_size, "records in %s: %s", folder, error);
        return false;
    }
    if (count)
        log_info("records: brought %llu back from %s", (unsigned long long)count, folder);
    records->folder = strdup(folder);
    records->disk_bytes = bytes;
    if (!records->folder)
        log_fatal("out of memory opening the records");
    return true;
}
