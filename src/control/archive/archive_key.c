/* archive_key: reads the key and checks that it can be one. */
#include "control/archive/archive_key.h"

#include <string.h>

#include "base/secret.h"
#include "control/message.h"

enum { KEY_LEAST = 32 };

bool archive_key_read(struct control *control, const char *path, struct bytes *key_r)
{
    struct secret secret;
    char problem[1024];
    *key_r = NO_BYTES;
    if (!path)
        return true;
    if (!secret_read(&secret, "key-file", path, problem, sizeof problem))
        return message_refuse("%s", problem);
    size_t size = strlen(secret.text);
    *key_r = (struct bytes){arena_copy(control->arena, secret.text, size), size};
    secret_erase(&secret);
    if (size < KEY_LEAST)
        message_print("%s: a key has at least %d characters: stampctl key new --archive FILE", path,
                      KEY_LEAST);
    return size >= KEY_LEAST;
}
