/* foreign_mapping: checks of names and sizes. */
#include "control/foreign/foreign_mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "edge/crypto/crypto.h"
#include "model/document/document.h"
#include "model/document/item.h"

bool foreign_mapping_text(const struct json *value, struct bytes *text_r)
{
    if (value && value->kind == JSON_STRING)
        *text_r = value->value;
    return !value || value->kind == JSON_STRING;
}

const char *foreign_mapping_unknown(struct arena *arena, const struct json *object, const char *known)
{
    struct builder words = {0};
    for (const struct json *member = object->first; member; member = member->next)
        if (!names_have(known, member->name)) {
            names_explain(known, "member", member->name, &words);
            return builder_take(&words, arena).data;
        }
    return NULL;
}

bool foreign_mapping_item(struct bytes text, const struct settings *settings, struct bytes *class_r,
                          struct bytes *key_r)
{
    *class_r = bytes_cut(&text, '/');
    *key_r = text.data ? text : BYTES("");
    return item_is_class_name(*class_r) && !item_is_reserved(*class_r) &&
           (int64_t)key_r->size <= settings->limit_name_bytes;
}

void foreign_mapping_count(struct foreign_size *size, const struct archive_item *item)
{
    const struct item stored = {.iclass = item->class, .key = item->key, .content = item->content};
    int64_t bytes = (int64_t)item->content.size;
    size->items++;
    size->cost += document_item_cost(&stored);
    size->largest = bytes > size->largest ? bytes : size->largest;
}

const char *foreign_mapping_over(struct arena *arena, const struct settings *settings,
                                 const struct foreign_size *size)
{
    if (size->largest > settings->limit_content_bytes)
        return arena_printf(arena, "an item of %lld bytes, more than limit_content_bytes",
                            (long long)size->largest);
    if (size->items > settings->limit_items)
        return arena_printf(arena, "%lld items, more than limit_items", (long long)size->items);
    if (size->cost > settings->limit_document_bytes)
        return arena_printf(arena, "a document of %lld bytes, more than limit_document_bytes",
                            (long long)size->cost);
    return NULL;
}

const char *foreign_mapping_wrong_id(struct arena *arena, const struct settings *settings, struct bytes id)
{
    int64_t most = settings->limit_name_bytes;
    return id.size && (int64_t)id.size <= most
               ? NULL
               : arena_printf(arena, "expected as the id a text of 1 to %lld bytes", (long long)most);
}

/* --- foreign ids --- */

enum { DIGEST_SIZE = 16 }; /* two ids with one digest would lose a document: 8 bytes were too few */

struct repeated_id {
    unsigned char digest[DIGEST_SIZE];
    int64_t left; /* times that it comes again */
};

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_SIZE);
}

void foreign_ids_add(struct foreign_ids *ids, struct bytes id)
{
    unsigned char digest[CRYPTO_SHA256];
    crypto_sha256(id, digest);
    builder_add(&ids->digests, digest, DIGEST_SIZE);
}

int64_t foreign_ids_settle(struct foreign_ids *ids)
{
    const size_t count = ids->digests.size / DIGEST_SIZE;
    const char *digests = ids->digests.data;
    int64_t again = 0;
    if (count)
        qsort(ids->digests.data, count, DIGEST_SIZE, compare_digests);
    for (size_t i = 0, next; i < count; i = next) {
        struct repeated_id one = {.left = 0};
        memcpy(one.digest, digests + i * DIGEST_SIZE, DIGEST_SIZE);
        for (next = i + 1; next < count && memcmp(one.digest, digests + next * DIGEST_SIZE, DIGEST_SIZE) == 0;
             next++)
            one.left++;
        again += one.left;
        if (one.left)
            builder_add(&ids->repeated, &one, sizeof one);
    }
    builder_free(&ids->digests);
    ids->digests = (struct builder){0};
    return again;
}

bool foreign_ids_is_last(struct foreign_ids *ids, struct bytes id)
{
    unsigned char digest[CRYPTO_SHA256];
    const size_t count = ids->repeated.size / sizeof(struct repeated_id);
    if (!count)
        return true;
    crypto_sha256(id, digest);
    struct repeated_id *one =
        bsearch(digest, ids->repeated.data, count, sizeof(struct repeated_id), compare_digests);
    if (!one || !one->left)
        return true;
    one->left--;
    return false;
}

void foreign_ids_free(struct foreign_ids *ids)
{
    builder_free(&ids->digests);
    builder_free(&ids->repeated);
}
