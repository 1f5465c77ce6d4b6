/* records_save: the list of what is not on disk yet, and its way there and back. */
#include "records/records_save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "log/disk_table.h"
#include "records/records_private.h"
#include "records/records_rekey.h"
#include "records/records_saved.h"
#include "records/records_seal.h"

enum { SAVE_BUSY_MS = 10000 };

/* Of one part of a save, read in one hold of the lock. */
enum { KEYS_MOST = 1000, BYTES_MOST = 4 << 20, KEPT_BYTES = 1 << 20 };

static const char without_key[] = "they are encrypted, and there is no site key here: see site_key_file";

/* --- to the disk --- */

static bool is_sealed(const struct records *records, int space)
{
    return records->head->space[space].kind == SPACE_SEALED;
}

/* Of an encrypted namespace there is a key. */
static void records_save_place_of(const struct records *records, int space, struct bytes key,
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

/* Of a change of the disk, which has one part of the list after the other. */
struct save_walk {
    uint32_t piece;   /* the entry that was read last; 0: none was.  It stays in the list */
    uint64_t reached; /* the number up to which all is there */
    bool may_end;     /* here */
    const char *error;
};

/* The present state of what the entry is about, to the texts. */
static void collect_key(struct records *records, const struct key_piece *key)
{
    int space = (int)(key->place >> 16);
    const struct value_piece *value = value_under(records, key);
    if (value && records_is_away(value))
        return; /* an entry before this one has written the same, and the disk alone has it now */
    records_save_place_of(records, space, records_key_text(key),
                          (unsigned char *)builder_reserve(&records->texts, RECORDS_PLACE_BYTES));
    records->texts.size += RECORDS_PLACE_BYTES;
    records_saved_write(records, space, records_key_text(key), &records->texts);
    records_commit(records); /* each by itself: the notes of one change are bounded */
}

/* Each key is written as it is now, which another change further on may have led to.  If that one has several
 * keys, all of them have to be written with it: else the disk might have a record that was renamed under both
 * keys, or under none.  A change of one key only may come to the disk before others that were made earlier.
 */
static void note_reached(const struct records *records, struct save_walk *walk, uint32_t next)
{
    const struct records_head *head = records->head;
    walk->may_end = !next;
    walk->reached = undo_long(head->save_number);
    if (!next)
        return;
    uint64_t last = undo_long(records_number_of(records_key(records, walk->piece)));
    bool is_inside = undo_long(records_number_of(records_key(records, next))) == last;
    walk->may_end = !is_inside && undo_long(head->joined) <= last;
    walk->reached = last;
}

/* What the disk is to have, of the next part of the list: for each key its place, eight bytes of size, and
 * the text; size UINT64_MAX: none.  What is to be encrypted is not yet.  Between two parts others have the
 * lock: what they change is listed further on, and written again. */
static void records_save_collect(struct records *records, struct save_walk *walk)
{
    builder_clear(&records->texts, KEPT_BYTES);
    walk->error = "they are busy";
    if (!records_enter(records))
        return;
    walk->error = NULL;
    uint32_t next = walk->piece ? records_key(records, walk->piece)->chain : records->head->unsaved_first;
    for (int keys = 0; next && keys < KEYS_MOST && records->texts.size < BYTES_MOST; keys++) {
        const struct key_piece *key = records_key(records, next);
        if (is_sealed(records, (int)(key->place >> 16)) && !records->seal) {
            walk->error = without_key;
            break;
        }
        collect_key(records, key);
        walk->piece = next;
        next = key->chain;
    }
    if (!walk->error)
        note_reached(records, walk, next);
    records_leave(records);
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

/* Some of the list; true: all up to the number.  Under the lock. */
static bool note_some(struct records *records, uint64_t number)
{
    struct records_head *head = records->head;
    uint32_t piece = head->unsaved_first;
    for (int keys = 0; piece && keys < KEYS_MOST; keys++, piece = head->unsaved_first) {
        struct key_piece *key = records_key(records, piece);
        if (undo_long(records_number_of(key)) > number)
            return true;
        undo_set(&records->memory, &head->unsaved_first, key->chain);
        undo_set_long(&records->memory, head->unsaved_bytes,
                      undo_long(head->unsaved_bytes) - pieces_size(&records->memory, piece));
        note_key_saved(records, key);
        records_give_later(records, piece);
        records_commit(records);
    }
    return !piece;
}

/* By whoever has written; more than once does no harm. */
static void note_saved(struct records *records, uint64_t number)
{
    struct records_head *head = records->head;
    for (bool is_over = false; !is_over;) {
        if (!records_enter(records))
            return; /* they are written once more */
        is_over = note_some(records, number);
        if (is_over && atomic_load(&head->saved) < number)
            atomic_store(&head->saved, number);
        records_leave(records);
    }
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

/* Parts of the list until the change may end, as it does soon: those who change several keys wait for it, and
 * the list, which it does not shorten, has an end (records_unsaved.c). */
static void write_parts(struct records *records, struct disk_table *disk, struct save_walk *walk)
{
    while (!walk->error && !walk->may_end) {
        records_save_collect(records, walk);
        if (!walk->error)
            walk->error = put_all(records, disk);
        crash_at(CRASH_RECORDS_PART_WRITTEN);
    }
}

/* One change of the disk. */
static const char *records_save_write_all(struct records *records, struct disk_table *disk)
{
    struct save_walk walk = {.error = disk_table_begin(disk)};
    if (walk.error)
        return walk.error;
    write_parts(records, disk, &walk);
    if (walk.error) {
        disk_table_abandon(disk);
        return walk.error;
    }
    crash_at(CRASH_RECORDS_WRITTEN);
    const char *error = disk_table_commit(disk);
    crash_at(CRASH_RECORDS_SYNCED);
    if (!error)
        note_saved(records, walk.reached);
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
            error = records_save_write_all(records, disk);
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
static const char *records_save_fetch(struct records *records, struct disk_table *disk, struct bytes place,
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
    records_save_place_of(records, (int)wanted->space, (struct bytes){wanted->key, wanted->key_size}, place);
    const char *error =
        records_save_fetch(records, disk, (struct bytes){(char *)place, sizeof place}, &read->text, &text);
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
static const char *records_save_load(struct records *records, struct disk_table *disk, const char *folder,
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
        return records_rekey_retry(rekey, disk_table_commit(disk));
    if (error || !records_enter(records)) {
        disk_table_abandon(disk);
        return records_rekey_retry(rekey, error ? error : "they are busy");
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
        error = records_save_load(records, disk, folder, &rekey, &count, &is_over);
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
