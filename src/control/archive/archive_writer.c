/* archive_writer: the tarball, its sink, and the list of digests. */
#include "control/archive/archive_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/builder.h"
#include "base/memory.h"
#include "control/message.h"
#include "edge/crypto/digest.h"
#include "edge/json/json.h"
#include "seal/sealed_stream.h"
#include "edge/tarball.h"

struct archive_writer {
    const char *path, *draft; /* draft NULL: written in place */
    const char *folder;       /* of the file */
    int fd;
    int64_t size;
    struct sealed_stream_writer *sealed; /* between tarball and file; NULL: not encrypted */
    struct tarball_writer *tarball;
    struct digest *digest;
    struct builder members; /* JSON */
};

static bool write_bytes(void *context, struct bytes bytes)
{
    struct archive_writer *writer = context;
    writer->size += (int64_t)bytes.size;
    return bytes_write(writer->fd, bytes);
}

static bool seal_bytes(void *context, struct bytes bytes)
{
    struct archive_writer *writer = context;
    return sealed_stream_write(writer->sealed, bytes);
}

static bool archive_writer_complain(const struct archive_writer *writer, const char *why)
{
    return message_refuse("%s: %s", writer->path, why);
}

/* A device or pipe is written in place. */
static bool open_file(struct arena *arena, struct archive_writer *writer)
{
    struct stat status;
    if (strcmp(writer->path, "-") == 0) {
        writer->path = "standard output";
        writer->fd = STDOUT_FILENO;
        return true;
    }
    if (stat(writer->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC);
    } else {
        const char *slash = strrchr(writer->path, '/');
        writer->folder = slash ? arena_copy(arena, writer->path, (size_t)(slash - writer->path) + 1) : ".";
        writer->draft = arena_printf(arena, "%s.part", writer->path);
        writer->fd = open(writer->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    return writer->fd >= 0 || archive_writer_complain(writer, strerror(errno));
}

bool archive_writer_open(struct arena *arena, const struct archive_writer_options *options,
                         struct archive_writer **writer_r)
{
    const char *problem;
    struct archive_writer *writer = memory_zeroed(1, sizeof *writer, "archive");
    *writer_r = writer;
    writer->path = options->path;
    writer->digest = digest_create();
    if (!open_file(arena, writer))
        return false;
    if (options->key.data)
        writer->sealed = sealed_stream_create(options->key, write_bytes, writer);
    const struct tarball_sink sink = {writer->sealed ? seal_bytes : write_bytes, writer};
    writer->tarball = tarball_create(&sink, options->level, &problem);
    return writer->tarball || archive_writer_complain(writer, problem);
}

bool archive_writer_add(struct archive_writer *writer, const char *name, struct bytes bytes)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    digest_add(writer->digest, bytes);
    digest_end_hex(writer->digest, hex);
    builder_printf(&writer->members, "%s\n{\"name\":", writer->members.size ? "," : "");
    json_add_string(&writer->members, bytes_of(name));
    builder_printf(&writer->members, ",\"size\":%zu,\"sha256\":\"%s\"}", bytes.size, hex);
    return tarball_add(writer->tarball, name, bytes) ||
           archive_writer_complain(writer, tarball_problem(writer->tarball));
}

bool archive_writer_begin(struct archive_writer *writer, const char *name, int64_t size)
{
    return tarball_begin(writer->tarball, name, size) ||
           archive_writer_complain(writer, tarball_problem(writer->tarball));
}

bool archive_writer_add_piece(struct archive_writer *writer, struct bytes piece)
{
    return tarball_add_piece(writer->tarball, piece) ||
           archive_writer_complain(writer, tarball_problem(writer->tarball));
}

int64_t archive_writer_size(const struct archive_writer *writer)
{
    return writer->size;
}

/* The name of a new file is durable when its folder is. */
static bool archive_writer_settle(struct archive_writer *writer)
{
    if (writer->fd != STDOUT_FILENO && fsync(writer->fd) != 0 && errno != EINVAL && errno != EROFS)
        return false;
    if (!writer->draft)
        return true;
    if (rename(writer->draft, writer->path) != 0)
        return false;
    writer->draft = NULL;
    int folder = open(writer->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_safe = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
    if (folder >= 0)
        close(folder);
    return is_safe;
}

bool archive_writer_finish(struct archive_writer *writer, struct bytes members)
{
    struct builder text = {0};
    builder_add_text(&text, "{");
    builder_add_bytes(&text, members);
    builder_add_bytes(&text, members.size ? BYTES(",") : BYTES(""));
    builder_add_text(&text, "\"members\":[");
    builder_add_bytes(&text, builder_bytes(&writer->members));
    builder_add_text(&text, "]}\n");
    bool is_done = (tarball_add(writer->tarball, ARCHIVE_DIGESTS, builder_bytes(&text)) &&
                    tarball_finish(writer->tarball)) ||
                   archive_writer_complain(writer, tarball_problem(writer->tarball));
    builder_free(&text);
    is_done = is_done && (!writer->sealed || sealed_stream_finish(writer->sealed) ||
                          archive_writer_complain(writer, strerror(errno)));
    return is_done && (archive_writer_settle(writer) || archive_writer_complain(writer, strerror(errno)));
}

void archive_writer_close(struct archive_writer *writer)
{
    if (!writer)
        return;
    tarball_destroy(writer->tarball);
    sealed_stream_destroy(writer->sealed);
    if (writer->draft)
        unlink(writer->draft);
    if (writer->fd > STDERR_FILENO)
        close(writer->fd);
    digest_destroy(writer->digest);
    builder_free(&writer->members);
    free(writer);
}
