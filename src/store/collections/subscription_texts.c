/* subscription_texts: names of data_keys.h. */
#include "store/collections/subscription_texts.h"

#include "base/builder.h"
#include "base/log.h"
#include "store/documents/store_shown.h"

struct bytes subscription_texts_key(const struct data_keys *keys, struct arena *arena, struct bytes key,
                                    size_t value_count)
{
    struct bytes value = key;
    bool is_document = key.size && key.data[0] == 'd';
    if (!keys->count || !key.size || (key.data[0] != 'm' && !is_document))
        return key;
    struct bytes name = bytes_cut(&value, '@'), class = {name.data + 1, name.size - 1};
    class = bytes_cut(&class, '/');
    struct builder sealed = {0};
    builder_add_bytes(&sealed, name);
    builder_add_text(&sealed, "@");
    builder_add_bytes(&sealed, is_document ? data_keys_seal_id(keys, arena, class, value)
                                           : store_shown_value(keys, arena, class, value, value_count));
    struct bytes text = {arena_copy(arena, sealed.data, sealed.size), sealed.size};
    builder_free(&sealed);
    return text;
}

struct bytes subscription_texts_seal(const struct data_keys *keys, struct arena *arena, struct bytes session,
                                     const char *what, struct bytes text)
{
    const struct bytes parts[] = {bytes_of(what), session};
    return data_keys_seal_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, text);
}

bool subscription_texts_open(const struct data_keys *keys, struct arena *arena, struct bytes session,
                             const char *what, struct bytes *text)
{
    const struct bytes parts[] = {bytes_of(what), session};
    if (data_keys_open_name(keys, arena, (struct sealing_place){parts, COUNT_OF(parts)}, text))
        return true;
    log_often(LOG_LEVEL_ERROR, what,
              "a text of a subscription cannot be decrypted: it was altered, or is another session's: %s",
              what);
    *text = NO_BYTES;
    return false;
}
