/* picture: one thread, no cache, no vector code that is generated at run time. */
#include "edge/picture.h"

#include <vips/vips.h>
#include <vips/vector.h> /* after the other, on which it depends */

enum { QUALITY = 80 };

static const char *const decoders[] = {"VipsForeignLoadJpeg", "VipsForeignLoadPng", "VipsForeignLoadNsgif",
                                       "VipsForeignLoadWebp"};

bool picture_start(const char *program)
{
    if (vips_init(program) != 0)
        return false;
    vips_concurrency_set(1);
    vips_cache_set_max(0);
    vips_vector_set_enabled(FALSE);
    vips_block_untrusted_set(TRUE);
    vips_operation_block_set("VipsForeignLoad", TRUE);
    for (size_t i = 0; i < COUNT_OF(decoders); i++)
        vips_operation_block_set(decoders[i], FALSE);
    return true;
}

static bool is_enabled(const char *loader)
{
    for (size_t i = 0; loader && i < COUNT_OF(decoders); i++)
        if (strncmp(loader, decoders[i], strlen(decoders[i])) == 0)
            return true;
    return false;
}

enum picture_end picture_judge(struct bytes image, int64_t pixels_most)
{
    if (!image.size || !is_enabled(vips_foreign_find_load_buffer(image.data, image.size)))
        return PICTURE_UNSUPPORTED;
    VipsImage *opened =
        vips_image_new_from_buffer(image.data, image.size, "", "access", VIPS_ACCESS_SEQUENTIAL, NULL);
    if (!opened)
        return PICTURE_DAMAGED;
    int64_t width = vips_image_get_width(opened), height = vips_image_get_height(opened);
    g_object_unref(opened);
    return width * height <= pixels_most ? PICTURE_DONE : PICTURE_PIXELS;
}

enum picture_end picture_shrink(struct bytes image, struct picture_box box, struct bytes *webp_r)
{
    VipsImage *small = NULL;
    void *webp = NULL;
    size_t size = 0;
    int failed = vips_thumbnail_buffer((void *)(uintptr_t)image.data, image.size, &small, (int)box.width,
                                       "height", (int)box.height, "size", VIPS_SIZE_DOWN, "option_string",
                                       "[fail_on=error]", "export_profile", "srgb", NULL);
    if (!failed)
        failed = vips_webpsave_buffer(small, &webp, &size, "Q", QUALITY, "strip", TRUE, NULL);
    if (small)
        g_object_unref(small);
    *webp_r = (struct bytes){webp, size};
    return failed || !webp ? PICTURE_DAMAGED : PICTURE_DONE;
}
