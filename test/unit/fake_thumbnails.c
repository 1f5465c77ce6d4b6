/* fake_thumbnails: the notes of thumbnails, for tests without PostgreSQL: there are none. */
#include "store/blobs/store_thumbnails.h"

enum fault store_thumbnails_reasons(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                    const struct blob_digest *digests UNUSED, size_t count,
                                    struct bytes *reasons_r)
{
    for (size_t i = 0; i < count; i++)
        reasons_r[i] = NO_BYTES;
    return FAULT_NONE;
}

enum fault store_thumbnails_refuse(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                   const struct blob_digest *digest UNUSED, const char *reason UNUSED)
{
    return FAULT_NONE;
}

enum fault store_thumbnails_note(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                 struct bytes class UNUSED, struct bytes id UNUSED, struct bytes form UNUSED,
                                 int64_t version UNUSED)
{
    return FAULT_NONE;
}

enum fault store_thumbnails_page(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                 struct bytes class UNUSED, struct bytes form UNUSED,
                                 struct bytes last UNUSED, size_t most UNUSED, struct thumbnails_page *page_r)
{
    *page_r = (struct thumbnails_page){0};
    return FAULT_NONE;
}

enum fault store_thumbnails_due(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                int64_t most_waiting UNUSED, bool *is_due_r)
{
    *is_due_r = false;
    return FAULT_NONE;
}

enum fault store_thumbnails_sweep(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                  struct thumbnails_sweep *sweep_r)
{
    *sweep_r = (struct thumbnails_sweep){0};
    return FAULT_NONE;
}

enum fault store_thumbnails_swept(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                  const struct thumbnails_sweep *sweep UNUSED, bool begins UNUSED)
{
    return FAULT_NONE;
}
