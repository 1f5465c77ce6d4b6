/* fake_blobs: a namespace whose files are in clear, for tests with fake_store. */
#include "store/blobs/store_blobs.h"

enum fault store_blobs_keys(struct store *store UNUSED, int ns UNUSED, struct sealed_file_keys *keys_r)
{
    *keys_r = (struct sealed_file_keys){0};
    return FAULT_NONE;
}

enum fault store_blobs_renew_keys(struct store *store UNUSED, int ns UNUSED, struct sealed_file_keys *keys_r)
{
    *keys_r = (struct sealed_file_keys){0};
    return FAULT_NONE;
}

enum fault store_blobs_seal_note(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                 struct bytes upload UNUSED, struct bytes *text UNUSED)
{
    return FAULT_NONE;
}

enum fault store_blobs_open_note(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                 struct bytes upload UNUSED, struct bytes *text UNUSED)
{
    return FAULT_NONE;
}

enum fault store_blobs_touch(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                             const struct blob_digest *digest UNUSED, int64_t size UNUSED)
{
    return FAULT_NONE;
}

enum fault store_blobs_claim(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                             const struct blob_digest *digest UNUSED, struct bytes account UNUSED)
{
    return FAULT_NATTACHMENT;
}

/* No file is there. */
enum fault store_blobs_find_reference(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                      struct bytes class UNUSED, struct bytes id UNUSED,
                                      const struct blob_digest *digest UNUSED,
                                      struct blob_reference *reference_r)
{
    *reference_r = (struct blob_reference){.key = NO_BYTES};
    return FAULT_NONE;
}

enum fault store_blobs_find(struct store *store, int ns, struct arena *arena, struct bytes account,
                            const struct blob_digest *digests, size_t count, int64_t *sizes_r)
{
    (void)store, (void)ns, (void)arena, (void)account, (void)digests;
    for (size_t i = 0; i < count; i++)
        sizes_r[i] = -1;
    return FAULT_NONE;
}

enum fault store_blobs_find_object(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                   const struct blob_digest *digest UNUSED, struct blob_object *object_r)
{
    *object_r = (struct blob_object){.head = NO_BYTES};
    return FAULT_NONE;
}
