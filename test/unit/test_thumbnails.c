/* thumbnails: keys, types and marks; what a document lacks; what a draft's changes remove and ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/document/thumbnails.h"

#define DECLARATION                                                                                          \
    "{\"classes\":{\"Photo\":{\"items\":{},\"thumbnails\":{\"small\":{\"width\":64,\"height\":48},"          \
    "\"big\":{\"width\":640,\"height\":480}}}}}"

static struct arena *arena;
static const struct schema_class *photo;

static struct document *absent; /* what each draft begins with */
static struct document *snapshots[32];
static size_t snapshot_count;

static int start(void **state UNUSED)
{
    const struct header header = {.class = BYTES("Photo"), .id = BYTES("p")};
    struct schema *schema;
    struct schema_problem problem;
    arena = arena_create("test");
    absent = document_build(&header, NULL, 0);
    if (schema_read(arena, BYTES(DECLARATION), &schema, &problem))
        return -1;
    photo = schema_find_class(schema, BYTES("Photo"));
    return photo && photo->thumbnail_count == 2 && schema->has_thumbnails ? 0 : -1;
}

static int stop(void **state UNUSED)
{
    document_release(absent);
    while (snapshot_count)
        document_release(snapshots[--snapshot_count]);
    arena_destroy(arena);
    return 0;
}

static struct blob_digest digest(int number)
{
    struct blob_digest made;
    memset(made.bytes, number, sizeof made.bytes);
    return made;
}

static struct draft *empty(void)
{
    struct draft *draft = draft_open(arena, absent);
    draft_create(draft);
    return draft;
}

static void set(struct draft *draft, const char *key, const char *mime, int number)
{
    const struct attachment attachment = {bytes_of(mime), 10, digest(number)};
    draft_set_attachment(draft, bytes_of(key), &attachment);
}

/* The thumbnail of this place in the declaration, made of the image `number`. */
static void set_thumbnail(struct draft *draft, const char *key, int place, int number)
{
    const struct blob_digest image = digest(number);
    struct bytes mime = thumbnails_mime(arena, &photo->thumbnails[place], &image);
    set(draft, key, arena_copy(arena, mime.data, mime.size), 100 + number);
}

static size_t missing(struct draft *draft, const char *key, size_t key_most)
{
    const struct schema_thumbnail *found[SCHEMA_THUMBNAILS_MOST];
    const struct thumbnails_list list = thumbnails_of_draft(arena, draft);
    for (size_t i = 0; i < list.count; i++)
        if (bytes_equal(list.files[i].key, bytes_of(key)))
            return thumbnails_missing(arena, photo, &list, &list.files[i], key_most, found);
    fail_msg("there is no attachment %s", key);
    return 0;
}

static void types_of_images(void **state UNUSED)
{
    static const char *const images[] = {"image/png", "IMAGE/JPEG", "image/webp;a=b", "image/gif ; x"};
    static const char *const others[] = {"image/svg+xml", "image/png.g",     "image/png.gc",
                                         "image/jpeg.c",  "image/pngx",      "text/plain",
                                         "image/",        "image/png;a=b.c", "image/png;a=b.g"};
    for (size_t i = 0; i < COUNT_OF(images); i++)
        assert_true(thumbnails_is_image(bytes_of(images[i])));
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(thumbnails_is_image(bytes_of(others[i])));
}

static void keys_that_are_reserved(void **state UNUSED)
{
    static const char *const reserved[] = {"a~small", "a~b~big", "~~small"};
    static const char *const free_ones[] = {"a", "small", "~small", "a~", "a~other", "a~small~x", "a~Small"};
    for (size_t i = 0; i < COUNT_OF(reserved); i++)
        assert_true(thumbnails_is_reserved(photo, bytes_of(reserved[i])));
    for (size_t i = 0; i < COUNT_OF(free_ones); i++)
        assert_false(thumbnails_is_reserved(photo, bytes_of(free_ones[i])));
    assert_false(thumbnails_is_reserved(NULL, BYTES("a~small")));
}

static void marks_are_taken_off(void **state UNUSED)
{
    const struct blob_digest image = digest(7);
    struct bytes mime = thumbnails_mime(arena, &photo->thumbnails[1], &image);
    assert_true(bytes_equal(thumbnails_plain_mime(mime), BYTES("image/webp")));
    assert_true(bytes_equal(thumbnails_plain_mime(BYTES("image/webp;x=1")), BYTES("image/webp;x=1")));
    assert_true(bytes_equal(thumbnails_plain_mime(BYTES("text/plain")), BYTES("text/plain")));
}

static void what_a_document_lacks(void **state UNUSED)
{
    struct draft *draft = empty();
    set(draft, "a", "image/png", 1);
    set(draft, "text", "text/plain", 2);
    assert_int_equal(missing(draft, "a", 255), 2);
    assert_int_equal(missing(draft, "text", 255), 0);
    assert_int_equal(missing(draft, "a", strlen("a~big")), 1); /* the other key would be too long */
    set_thumbnail(draft, "a~small", 1, 1);
    assert_int_equal(missing(draft, "a", 255), 1);
    assert_int_equal(missing(draft, "a~small", 255), 0); /* it is itself a thumbnail */
    set_thumbnail(draft, "a~small", 1, 3);               /* of another image */
    assert_int_equal(missing(draft, "a", 255), 2);
    set_thumbnail(draft, "a~small", 0, 1); /* of another size */
    assert_int_equal(missing(draft, "a", 255), 2);
    set(draft, "a~small", "image/png", 9); /* somebody's file, which stays */
    assert_int_equal(missing(draft, "a", 255), 1);
}

static void new_images_need_the_task(void **state UNUSED)
{
    struct draft *draft = empty();
    assert_false(thumbnails_follow(arena, photo, draft));
    set(draft, "text", "text/plain", 2);
    assert_false(thumbnails_follow(arena, photo, draft));
    set(draft, "a", "image/png", 1);
    assert_true(thumbnails_follow(arena, photo, draft));
    draft_delete(draft);
    assert_false(thumbnails_follow(arena, photo, draft));
}

/* The document as it is committed: a draft on top of it. */
static struct draft *committed(struct draft *draft)
{
    struct draft_rows rows;
    draft_seal(draft, 261128000000001, 0, &rows);
    assert_true(snapshot_count < COUNT_OF(snapshots));
    snapshots[snapshot_count] = draft_snapshot(draft, &rows);
    return draft_open(arena, snapshots[snapshot_count++]);
}

static struct draft *whole(void)
{
    struct draft *draft = empty();
    set(draft, "a", "image/png", 1);
    set_thumbnail(draft, "a~big", 0, 1);
    set_thumbnail(draft, "a~small", 1, 1);
    return committed(draft);
}

static void its_own_commit_needs_no_task(void **state UNUSED)
{
    struct draft *draft = empty();
    set(draft, "a", "image/png", 1);
    draft = committed(draft);
    set_thumbnail(draft, "a~small", 1, 1);
    assert_false(thumbnails_follow(arena, photo, draft));
    assert_non_null(draft_find_item(draft, ATTACHMENT_CLASS, BYTES("a~small")));
}

static void thumbnails_go_with_their_image(void **state UNUSED)
{
    struct draft *draft = whole();
    draft_remove_item(draft, ATTACHMENT_CLASS, BYTES("a"));
    assert_false(thumbnails_follow(arena, photo, draft));
    assert_int_equal(draft_items(draft), 0);
    draft = whole();
    set(draft, "a", "image/png", 2);
    assert_true(thumbnails_follow(arena, photo, draft));
    assert_int_equal(draft_items(draft), 1);
    draft = whole();
    set(draft, "a", "text/plain", 1);
    assert_false(thumbnails_follow(arena, photo, draft));
    assert_int_equal(draft_items(draft), 1);
}

static void a_removed_thumbnail_needs_the_task(void **state UNUSED)
{
    struct draft *draft = whole();
    draft_remove_item(draft, ATTACHMENT_CLASS, BYTES("a~small"));
    assert_true(thumbnails_follow(arena, photo, draft));
    assert_int_equal(draft_items(draft), 2);
}

static void forms_differ_with_names_and_boxes(void **state UNUSED)
{
    struct bytes form = thumbnails_form(arena, photo);
    assert_true(bytes_equal(form, BYTES("big 640x480, small 64x48")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_images),
        cmocka_unit_test(keys_that_are_reserved),
        cmocka_unit_test(marks_are_taken_off),
        cmocka_unit_test(what_a_document_lacks),
        cmocka_unit_test(new_images_need_the_task),
        cmocka_unit_test(its_own_commit_needs_no_task),
        cmocka_unit_test(thumbnails_go_with_their_image),
        cmocka_unit_test(a_removed_thumbnail_needs_the_task),
        cmocka_unit_test(forms_differ_with_names_and_boxes),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
