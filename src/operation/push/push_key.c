/* push_key: reads the keys at each use: that costs less than a signature, and no secret stays in memory. */
#include "operation/push/push_key.h"

#include <stdio.h>

#include "base/coding/base64.h"
#include "base/log.h"
#include "base/secret.h"

enum { PROBLEM_BYTES = 600 };

bool push_key_read(const char *path, struct curve_key *key_r, char *problem, size_t problem_size)
{
    struct secret line;
    unsigned char secret[CURVE_SECRET];
    if (!secret_read(&line, "push_key_file", path, problem, problem_size))
        return false;
    bool is_key = base64_read(bytes_of(line.text), secret, sizeof secret) && curve_take_key(secret, key_r);
    if (!is_key)
        snprintf(problem, problem_size, "push_key_file = %s: its first line is no key of P-256 in base64",
                 path);
    explicit_bzero(secret, sizeof secret);
    secret_erase(&line);
    return is_key;
}

enum fault push_key_fetch(const struct settings *settings, struct curve_key *key_r)
{
    char problem[PROBLEM_BYTES];
    if (!*settings->push_key_file)
        return FAULT_OPUSH;
    if (push_key_read(settings->push_key_file, key_r, problem, sizeof problem))
        return FAULT_NONE;
    log_error("%s", problem);
    return FAULT_OPUSH;
}

void push_key_add_secret(struct builder *builder, const struct curve_key *key)
{
    base64_add(builder, (struct bytes){(const char *)key->secret, CURVE_SECRET});
    builder_add_text(builder, "\n");
}

void push_key_add_public(struct builder *builder, const struct curve_key *key)
{
    base64_add(builder, (struct bytes){(const char *)key->point, CURVE_POINT});
}
