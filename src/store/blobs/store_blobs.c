/* store_blobs: names of files travel as hexadecimal digits. */
#include "store/blobs/store_blobs.h"

#include "blob/blob_sealed.h"
#include "model/document/attachment.h"
#include "model/document/document.h"
#include "store/store_private.h"
#include "store/store_run.h"
#include "store/store_sealing.h"

/* Columns of BLOB_FIND, BLOB_OBJECT and BLOB_REFERENCE. */
enum { FOUND_PLACE, FOUND_SIZE };
enum { OBJECT_STORE, OBJECT_NAME, OBJECT_HEAD };
enum { REFERENCE_KEY, REFERENCE_MIME, REFERENCE_SIZE, REFERENCE_IS_LIVE };

enum fault store_blobs_keys(struct store *store, int ns, struct sealed_file_keys *keys_r)
{
    struct pg *pg;
    enum fault fault = store_sealing_use(store, ns, &pg);
    *keys_r = (struct sealed_file_keys){0};
    if (!fault)
        *keys_r = data_keys_of_files(store_sealing_keys(store, ns));
    return fault;
}

enum fault store_blobs_renew_keys(struct store *store, int ns, struct sealed_file_keys *keys_r)
{
    enum fault fault = store_blobs_keys(store, ns, keys_r);
    if (!fault && keys_r->count)
        fault = store_sealing_renew(store, ns);
    return fault ? fault : store_blobs_keys(store, ns, keys_r);
}

static struct sealing_place place_of_note(struct arena *arena, struct bytes upload)
{
    const struct bytes parts[] = {BYTES("upload"), upload};
    return sealing_place_copy(arena, parts, COUNT_OF(parts));
}

enum fault store_blobs_seal_note(struct store *store, int ns, struct arena *arena, struct bytes upload,
                                 struct bytes *text)
{
    struct pg *pg;
    enum fault fault = store_use(store, ns, &pg);
    if (!fault)
        *text =
            data_keys_seal_text(store_sealing_keys(store, ns), arena, place_of_note(arena, upload), *text);
    return fault;
}

enum fault store_blobs_open_note(struct store *store, int ns, struct arena *arena, struct bytes upload,
                                 struct bytes *text)
{
    struct pg *pg;
    return FAULT_FIRST(store_use(store, ns, &pg),
                       store_sealing_open_text(store, ns, arena, place_of_note(arena, upload), text));
}

enum fault store_blobs_touch(struct store *store, int ns, struct arena *arena,
                             const struct blob_digest *digest, int64_t size)
{
    struct sealed_file_keys keys;
    return FAULT_FIRST(store_blobs_keys(store, ns, &keys),
                       store_run_statement(store, ns, STATEMENT_BLOB_TOUCH,
                                           PG_PARAMS(arena, PG_TEXT(blob_sealed_digits(arena, &keys, digest)),
                                                     PG_I64(blob_sealed_size(&keys, size))),
                                           NULL));
}

enum fault store_blobs_claim(struct store *store, int ns, struct arena *arena,
                             const struct blob_digest *digest, struct bytes account)
{
    struct pg_result *row;
    struct sealed_file_keys keys;
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    fault = store_run_statement(store, ns, STATEMENT_BLOB_CLAIM,
                                PG_PARAMS(arena, PG_TEXT(blob_sealed_digits(arena, &keys, digest)),
                                          PG_TEXT(account), PG_I64(BLOB_CLAIM_S)),
                                &row);
    return fault || pg_get_bool(row, 0, 0) ? fault : FAULT_NATTACHMENT;
}

enum fault store_blobs_find(struct store *store, int ns, struct arena *arena, struct bytes account,
                            const struct blob_digest *digests, size_t count, int64_t *sizes_r)
{
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    struct pg_result *rows;
    struct sealed_file_keys keys;
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    for (size_t i = 0; i < count; i++) {
        texts[i] = blob_sealed_digits(arena, &keys, &digests[i]);
        sizes_r[i] = -1;
    }
    fault = store_run_statement(store, ns, STATEMENT_BLOB_FIND,
                                PG_PARAMS(arena, PG_TEXTS(texts, count), PG_TEXT(account)), &rows);
    for (int row = 0; !fault && row < pg_rows(rows); row++) {
        int64_t place = pg_get_i64(rows, row, FOUND_PLACE);
        if (place > 0 && (size_t)place <= count)
            sizes_r[place - 1] = blob_sealed_clear_size(&keys, pg_get_i64(rows, row, FOUND_SIZE));
    }
    return fault;
}

enum fault store_blobs_find_object(struct store *store, int ns, struct arena *arena,
                                   const struct blob_digest *digest, struct blob_object *object_r)
{
    struct pg_result *row;
    struct sealed_file_keys keys;
    *object_r = (struct blob_object){.head = NO_BYTES};
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    fault = store_run_statement(store, ns, STATEMENT_BLOB_OBJECT,
                                PG_PARAMS(arena, PG_TEXT(blob_sealed_digits(arena, &keys, digest))), &row);
    if (fault || !pg_rows(row))
        return fault;
    struct bytes found = pg_get_text(row, 0, OBJECT_STORE), object = pg_get_text(row, 0, OBJECT_NAME);
    *object_r =
        (struct blob_object){arena_copy(arena, found.data, found.size),
                             arena_copy(arena, object.data, object.size), pg_get_text(row, 0, OBJECT_HEAD)};
    return FAULT_NONE;
}

/* The texts of a reference are stored as the key of an item, and as a name. */
static enum fault open_reference(struct store *store, int ns, struct arena *arena,
                                 const struct sealed_file_keys *keys, const struct header *header,
                                 struct blob_reference *reference)
{
    const struct data_keys *data_keys = store_sealing_keys(store, ns);
    struct item_place place = {header->class, header->id, ATTACHMENT_CLASS, reference->key, false, BYTES("")};
    struct bytes none = NO_BYTES;
    reference->size = blob_sealed_clear_size(keys, reference->size);
    if (data_keys_open_item(data_keys, arena, &place, &none) &&
        data_keys_open_mime(data_keys, arena, &place, &reference->mime)) {
        reference->key = place.key;
        return FAULT_NONE;
    }
    store_sealing_report(arena, header->class);
    return FAULT_BCONTENT;
}

enum fault store_blobs_find_reference(struct store *store, int ns, struct arena *arena, struct bytes class,
                                      struct bytes id, const struct blob_digest *digest,
                                      struct blob_reference *reference_r)
{
    struct pg_result *row;
    struct sealed_file_keys keys;
    *reference_r = (struct blob_reference){.key = NO_BYTES};
    enum fault fault = store_blobs_keys(store, ns, &keys);
    if (fault)
        return fault;
    fault = store_run_statement(
        store, ns, STATEMENT_BLOB_REFERENCE,
        PG_PARAMS(arena, PG_TEXT(class), PG_TEXT(id), PG_TEXT(blob_sealed_digits(arena, &keys, digest))),
        &row);
    if (fault || !pg_rows(row))
        return fault;
    *reference_r = (struct blob_reference){.key = pg_get_text(row, 0, REFERENCE_KEY),
                                           .mime = pg_get_text(row, 0, REFERENCE_MIME),
                                           .size = pg_get_i64(row, 0, REFERENCE_SIZE),
                                           .is_live = pg_get_bool(row, 0, REFERENCE_IS_LIVE)};
    const struct header header = {.class = class, .id = id};
    return keys.count ? open_reference(store, ns, arena, &keys, &header, reference_r) : FAULT_NONE;
}
