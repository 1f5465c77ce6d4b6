/* archive_files: sorted arrays of digests. */
#include "control/archive/archive_files.h"

#include <stdio.h>
#include <stdlib.h>

#include "edge/crypto/crypto.h"

static const struct bytes folder = BYTES("files/"), left_out = BYTES("left-out/");

void archive_files_write_name(const struct blob_digest *digest, char name_r[ARCHIVE_FILES_NAME])
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    snprintf(name_r, ARCHIVE_FILES_NAME, "%s%s", folder.data, text);
}

static bool is_in(struct bytes name, struct bytes prefix)
{
    return name.size > prefix.size && memcmp(name.data, prefix.data, prefix.size) == 0;
}

bool archive_files_read_name(struct bytes name, struct blob_digest *digest_r)
{
    return is_in(name, folder) &&
           blob_store_read_digest((struct bytes){name.data + folder.size, name.size - folder.size}, digest_r);
}

bool archive_files_is_left_out(struct bytes name)
{
    return is_in(name, left_out);
}

static int archive_files_compare(const void *a, const void *b)
{
    return memcmp(a, b, BLOB_DIGEST);
}

bool archive_files_add(struct arena *arena, struct archive_files *files, const struct blob_digest *digest)
{
    if (files->count && archive_files_compare(&files->digests[files->count - 1], digest) >= 0)
        return false;
    ARENA_GROW(arena, files->digests, files->count, files->room);
    files->digests[files->count++] = *digest;
    return true;
}

bool archive_files_has(const struct archive_files *files, const struct blob_digest *digest)
{
    return files->count &&
           bsearch(digest, files->digests, files->count, sizeof *digest, archive_files_compare);
}

bool archive_files_add_lines(struct arena *arena, struct archive_files *files, struct bytes lines)
{
    struct blob_digest digest;
    while (lines.size)
        if (!blob_store_read_digest(bytes_cut(&lines, '\n'), &digest) ||
            !archive_files_add(arena, files, &digest))
            return false;
    return true;
}

static void archive_files_sum_up(const struct archive_files *files, char hex_r[CRYPTO_SHA256_HEX + 1])
{
    crypto_sha256_hex((struct bytes){files->count ? (const char *)files->digests : "",
                                     files->count * sizeof *files->digests},
                      hex_r);
}

void archive_files_write(const struct archive_files *files, struct builder *json)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    archive_files_sum_up(files, hex);
    builder_printf(json, "\"files\":{\"count\":%zu,\"bytes\":%lld,\"sha256\":\"%s\"}", files->count,
                   (long long)files->bytes, hex);
}

bool archive_files_are_in(const struct archive_files *files, const struct json *object)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    int64_t count, bytes;
    const struct json *present = json_member(object, "files");
    if (!present || present->kind != JSON_OBJECT)
        return false;
    const struct json *sum = json_member(present, "sha256");
    const struct json *of_count = json_member(present, "count"), *of_bytes = json_member(present, "bytes");
    archive_files_sum_up(files, hex);
    return sum && sum->kind == JSON_STRING && bytes_equal(sum->value, bytes_of(hex)) && of_count &&
           json_is_i64(of_count, &count) && count == (int64_t)files->count && of_bytes &&
           json_is_i64(of_bytes, &bytes) && bytes == files->bytes;
}
