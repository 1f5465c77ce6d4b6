/* thumbnails: an attachment's key and type say what it is. */
#include "model/document/thumbnails.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/builder.h"

#define THUMBNAIL_TYPE "image/webp"
#define MARK_BOX       ";thumbnail="
#define MARK_OF        "of="

/* --- names ---------------------------------------------------------------------------------------- */

/* IMAGE~NAME, parted at the last '~'; false: it is another key. */
static bool thumbnails_split(struct bytes key, struct bytes *image_r, struct bytes *name_r)
{
    const char *mark = key.size ? memrchr(key.data, '~', key.size) : NULL;
    if (!mark)
        return false;
    *image_r = (struct bytes){key.data, (size_t)(mark - key.data)};
    *name_r = (struct bytes){mark + 1, key.size - image_r->size - 1};
    return image_r->size && name_r->size;
}

static const struct schema_thumbnail *find_declared(const struct schema_class *class, struct bytes name)
{
    for (size_t i = 0; i < class->thumbnail_count; i++)
        if (bytes_equal(class->thumbnails[i].name, name))
            return &class->thumbnails[i];
    return NULL;
}

bool thumbnails_is_reserved(const struct schema_class *class, struct bytes key)
{
    struct bytes image, name;
    return class && thumbnails_split(key, &image, &name) && find_declared(class, name);
}

struct bytes thumbnails_key(struct arena *arena, struct bytes key, struct bytes name)
{
    size_t size = key.size + 1 + name.size;
    char *text = arena_alloc(arena, size + 1);
    memcpy(text, key.data, key.size);
    text[key.size] = '~';
    memcpy(text + key.size + 1, name.data, name.size);
    text[size] = '\0';
    return (struct bytes){text, size};
}

/* --- types ---------------------------------------------------------------------------------------- */

bool thumbnails_is_image(struct bytes mime)
{
    static const char *const types[] = {"image/jpeg", "image/png", "image/gif", "image/webp"};
    const struct attachment_form form = attachment_form(mime);
    struct bytes type = bytes_cut(&mime, ';');
    while (type.size && type.data[type.size - 1] == ' ')
        type.size--;
    for (size_t i = 0; i < COUNT_OF(types) && !form.is_gzipped && !form.is_encrypted; i++)
        if (type.size == strlen(types[i]) && strncasecmp(type.data, types[i], type.size) == 0)
            return true;
    return false;
}

struct bytes thumbnails_mime(struct arena *arena, const struct schema_thumbnail *thumbnail,
                             const struct blob_digest *image)
{
    char sha[BLOB_HEX + 1];
    blob_store_write_digest(image, sha);
    return bytes_of(arena_printf(arena, THUMBNAIL_TYPE MARK_BOX "%" PRId64 "x%" PRId64 ";" MARK_OF "%s",
                                 thumbnail->width, thumbnail->height, sha));
}

static bool thumbnails_skip(struct bytes *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    *text = (struct bytes){text->data + size, text->size - size};
    return true;
}

static bool read_mark(struct bytes mime, struct thumbnails_file *file)
{
    if (!thumbnails_skip(&mime, THUMBNAIL_TYPE MARK_BOX))
        return false;
    struct bytes box = bytes_cut(&mime, ';'), width = bytes_cut(&box, 'x');
    return bytes_to_i64(width, &file->width) && bytes_to_i64(box, &file->height) &&
           thumbnails_skip(&mime, MARK_OF) && blob_store_read_digest(mime, &file->of);
}

struct bytes thumbnails_plain_mime(struct bytes mime)
{
    struct thumbnails_file file;
    return read_mark(mime, &file) ? BYTES(THUMBNAIL_TYPE) : mime;
}

/* --- lists ---------------------------------------------------------------------------------------- */

static void thumbnails_add_file(struct arena *arena, struct thumbnails_list *list, const struct item *item)
{
    struct thumbnails_file file = {.key = item->key};
    if (item_is_tombstone(item) || !attachment_read(arena, item->content, &file.attachment))
        return;
    file.is_marked =
        thumbnails_split(file.key, &file.image, &file.name) && read_mark(file.attachment.mime, &file);
    list->files[list->count++] = file;
}

struct thumbnails_list thumbnails_of_document(struct arena *arena, const struct document *document)
{
    struct thumbnails_list list = {ARENA_ARRAY(arena, struct thumbnails_file, document->item_count), 0};
    for (uint32_t i = 0; i < document->item_count; i++)
        if (bytes_equal(document->items[i].iclass, ATTACHMENT_CLASS))
            thumbnails_add_file(arena, &list, &document->items[i]);
    return list;
}

/* The item P after this one; NULL: none. */
static const struct item *next_file(const struct draft *draft, struct bytes key)
{
    const struct item *item = draft_next_item(draft, ATTACHMENT_CLASS, key);
    return item && bytes_equal(item->iclass, ATTACHMENT_CLASS) ? item : NULL;
}

struct thumbnails_list thumbnails_of_draft(struct arena *arena, const struct draft *draft)
{
    size_t count = 0;
    for (const struct item *item = next_file(draft, BYTES("")); item; item = next_file(draft, item->key))
        count++;
    struct thumbnails_list list = {ARENA_ARRAY(arena, struct thumbnails_file, count), 0};
    for (const struct item *item = next_file(draft, BYTES("")); item; item = next_file(draft, item->key))
        thumbnails_add_file(arena, &list, item);
    return list;
}

static const struct thumbnails_file *thumbnails_find(const struct thumbnails_list *list, struct bytes key)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(list->files[middle].key, key);
        if (order == 0)
            return &list->files[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- what is to be done ---------------------------------------------------------------------------- */

static bool is_source(const struct thumbnails_file *file)
{
    return !file->is_marked && thumbnails_is_image(file->attachment.mime);
}

static bool is_made_of(const struct thumbnails_file *file, const struct schema_thumbnail *thumbnail,
                       const struct thumbnails_file *image)
{
    return file->is_marked && file->width == thumbnail->width && file->height == thumbnail->height &&
           blob_digest_equal(&file->of, &image->attachment.digest);
}

size_t thumbnails_missing(struct arena *arena, const struct schema_class *class,
                          const struct thumbnails_list *list, const struct thumbnails_file *file,
                          size_t key_most, const struct schema_thumbnail *missing_r[SCHEMA_THUMBNAILS_MOST])
{
    size_t count = 0;
    for (size_t i = 0; i < class->thumbnail_count && is_source(file); i++) {
        const struct schema_thumbnail *thumbnail = &class->thumbnails[i];
        struct bytes key = thumbnails_key(arena, file->key, thumbnail->name);
        const struct thumbnails_file *present = thumbnails_find(list, key);
        bool is_taken = present && !present->is_marked;
        if (key.size <= key_most && !is_taken && !(present && is_made_of(present, thumbnail, file)))
            missing_r[count++] = thumbnail;
    }
    return count;
}

bool thumbnails_is_stale(const struct schema_class *class, const struct thumbnails_list *list,
                         const struct thumbnails_file *file)
{
    if (!file->is_marked)
        return false;
    const struct schema_thumbnail *thumbnail = find_declared(class, file->name);
    const struct thumbnails_file *image = thumbnails_find(list, file->image);
    return !thumbnail || !image || !is_source(image) || !is_made_of(file, thumbnail, image);
}

/* --- the changes of a draft ------------------------------------------------------------------------ */

struct following {
    struct arena *arena;
    const struct schema_class *class;
    const struct draft *draft;
};

static bool is_file(void *whose UNUSED, const struct item *item)
{
    return bytes_equal(item->iclass, ATTACHMENT_CLASS);
}

/* A new image, or a thumbnail that was removed while its image stays. */
static bool needs_task(void *whose, const struct item *item)
{
    const struct following *following = whose;
    struct thumbnails_file file = {.key = item->key};
    struct bytes name;
    if (!bytes_equal(item->iclass, ATTACHMENT_CLASS))
        return false;
    if (item->content.data) {
        struct thumbnails_list list = {&file, 0};
        thumbnails_add_file(following->arena, &list, item);
        return list.count && is_source(&file);
    }
    if (!thumbnails_is_reserved(following->class, item->key) ||
        !thumbnails_split(item->key, &file.image, &name))
        return false;
    const struct item *image = draft_find_item(following->draft, ATTACHMENT_CLASS, file.image);
    return image && attachment_read(following->arena, image->content, &file.attachment) &&
           thumbnails_is_image(file.attachment.mime);
}

bool thumbnails_follow(struct arena *arena, const struct schema_class *class, struct draft *draft)
{
    struct following following = {arena, class, draft};
    if (!draft_exists(draft) || !draft_find_written(draft, is_file, NULL))
        return false;
    bool is_needed = draft_find_written(draft, needs_task, &following) != NULL;
    const struct thumbnails_list list = thumbnails_of_draft(arena, draft);
    for (size_t i = 0; i < list.count; i++)
        if (thumbnails_is_stale(class, &list, &list.files[i]))
            draft_remove_item(draft, ATTACHMENT_CLASS, list.files[i].key);
    return is_needed;
}

struct bytes thumbnails_form(struct arena *arena, const struct schema_class *class)
{
    struct builder text = {0};
    for (size_t i = 0; i < class->thumbnail_count; i++)
        builder_printf(&text, "%s%.*s %" PRId64 "x%" PRId64, i ? ", " : "",
                       (int)class->thumbnails[i].name.size, class->thumbnails[i].name.data,
                       class->thumbnails[i].width, class->thumbnails[i].height);
    struct bytes form = {arena_copy(arena, text.data ? text.data : "", text.size), text.size};
    builder_free(&text);
    return form;
}
