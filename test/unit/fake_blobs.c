/* fake_blobs: a namespace whose files are in clear, for tests with fake_store. */
#include "store/store_blobs.h"

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
