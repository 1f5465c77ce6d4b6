/* tarball: libarchive's pax format and its filter zstd. */
#include "edge/tarball.h"

#include "config.h"

#ifdef HAVE_ARCHIVES

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 65536, FILE_MODE = 0600 };

/* --- writing --- */

struct tarball_writer {
    struct archive *archive;
    struct archive_entry *entry;
    struct tarball_sink sink;
    char problem[200];
};

static la_ssize_t pass_on(struct archive *archive, void *context, const void *data, size_t size)
{
    struct tarball_writer *writer = context;
    if (writer->sink.write(writer->sink.context, (struct bytes){data, size}))
        return (la_ssize_t)size;
    archive_set_error(archive, errno, "%s", "cannot write");
    return -1;
}

static bool set_up(struct tarball_writer *writer, int level)
{
    struct archive *archive = writer->archive;
    char number[12];
    snprintf(number, sizeof number, "%d", level);
    return archive_write_add_filter_zstd(archive) == ARCHIVE_OK &&
           archive_write_set_filter_option(archive, "zstd", "compression-level", number) == ARCHIVE_OK &&
           archive_write_set_format_pax_restricted(archive) == ARCHIVE_OK &&
           archive_write_set_bytes_per_block(archive, BLOCK_BYTES) == ARCHIVE_OK &&
           archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK &&
           archive_write_open2(archive, writer, NULL, pass_on, NULL, NULL) == ARCHIVE_OK;
}

struct tarball_writer *tarball_create(const struct tarball_sink *sink, int level, const char **problem_r)
{
    struct tarball_writer *writer = calloc(1, sizeof *writer);
    if (writer) {
        writer->sink = *sink;
        writer->archive = archive_write_new();
        writer->entry = archive_entry_new();
    }
    if (writer && writer->archive && writer->entry && set_up(writer, level))
        return writer;
    *problem_r = "libarchive cannot write Zstandard";
    tarball_destroy(writer);
    return NULL;
}

static bool tarball_check(struct tarball_writer *writer, bool is_done)
{
    int why = archive_errno(writer->archive);
    if (is_done)
        return true;
    const char *text = archive_error_string(writer->archive);
    snprintf(writer->problem, sizeof writer->problem, "%s", why > 0 ? strerror(why) : text ? text : "failed");
    return false;
}

bool tarball_begin(struct tarball_writer *writer, const char *name, int64_t size)
{
    archive_entry_clear(writer->entry);
    archive_entry_set_pathname(writer->entry, name);
    archive_entry_set_size(writer->entry, size);
    archive_entry_set_filetype(writer->entry, AE_IFREG);
    archive_entry_set_perm(writer->entry, FILE_MODE);
    return tarball_check(writer, archive_write_header(writer->archive, writer->entry) == ARCHIVE_OK);
}

bool tarball_add_piece(struct tarball_writer *writer, struct bytes bytes)
{
    while (bytes.size) {
        la_ssize_t done = archive_write_data(writer->archive, bytes.data, bytes.size);
        if (done <= 0)
            return tarball_check(writer, false);
        bytes.data += done;
        bytes.size -= (size_t)done;
    }
    return true;
}

bool tarball_add(struct tarball_writer *writer, const char *name, struct bytes bytes)
{
    return tarball_begin(writer, name, (int64_t)bytes.size) && tarball_add_piece(writer, bytes);
}

bool tarball_finish(struct tarball_writer *writer)
{
    return tarball_check(writer, archive_write_close(writer->archive) == ARCHIVE_OK);
}

const char *tarball_problem(const struct tarball_writer *writer)
{
    return writer->problem;
}

void tarball_destroy(struct tarball_writer *writer)
{
    if (!writer)
        return;
    if (writer->archive) {
        archive_write_fail(writer->archive); /* nothing more is written */
        archive_write_free(writer->archive);
    }
    archive_entry_free(writer->entry);
    free(writer);
}

/* --- reading --- */

struct tarball_reader {
    struct archive *archive;
    struct tarball_source source;
};

static la_ssize_t tarball_fetch(struct archive *archive, void *context, const void **data)
{
    struct tarball_reader *reader = context;
    struct bytes bytes = NO_BYTES;
    if (!reader->source.read(reader->source.context, &bytes)) {
        archive_set_error(archive, EIO, "%s", "cannot read");
        return -1;
    }
    *data = bytes.data;
    return (la_ssize_t)bytes.size;
}

struct tarball_reader *tarball_open(const struct tarball_source *source)
{
    struct tarball_reader *reader = calloc(1, sizeof *reader);
    if (!reader || !(reader->archive = archive_read_new())) {
        free(reader);
        return NULL;
    }
    reader->source = *source;
    /* What fails here is reported by the first tarball_next. */
    (void)archive_read_support_filter_zstd(reader->archive);
    (void)archive_read_support_format_tar(reader->archive);
    (void)archive_read_open(reader->archive, reader, NULL, tarball_fetch, NULL);
    return reader;
}

enum tarball_event tarball_next(struct tarball_reader *reader, const char **name_r, int64_t *size_r)
{
    struct archive_entry *entry;
    int result = archive_read_next_header(reader->archive, &entry);
    if (result == ARCHIVE_EOF)
        return TARBALL_END;
    if (result != ARCHIVE_OK)
        return TARBALL_BROKEN;
    *name_r = archive_entry_pathname(entry);
    *size_r = archive_entry_size(entry);
    if (!*name_r || archive_entry_filetype(entry) != AE_IFREG || !archive_entry_size_is_set(entry) ||
        archive_entry_hardlink(entry) || *size_r < 0) {
        archive_set_error(reader->archive, EINVAL, "%s", "a member is no plain file");
        return TARBALL_BROKEN;
    }
    return TARBALL_FILE;
}

int64_t tarball_read(struct tarball_reader *reader, void *buffer, size_t size)
{
    la_ssize_t done = archive_read_data(reader->archive, buffer, size);
    return done < 0 ? -1 : (int64_t)done;
}

const char *tarball_damage(const struct tarball_reader *reader)
{
    const char *text = archive_error_string(reader->archive);
    return text ? text : "it is damaged";
}

void tarball_close(struct tarball_reader *reader)
{
    if (!reader)
        return;
    archive_read_free(reader->archive);
    free(reader);
}

#else

static const char missing[] = "this build has no archives: it was made without libarchive";

struct tarball_writer *tarball_create(const struct tarball_sink *sink, int level, const char **problem_r)
{
    (void)sink, (void)level;
    *problem_r = missing;
    return NULL;
}

/* There is no writer that these could be called for. */
bool tarball_begin(struct tarball_writer *writer, const char *name, int64_t size)
{
    (void)writer, (void)name, (void)size;
    return false;
}

bool tarball_add_piece(struct tarball_writer *writer, struct bytes bytes)
{
    (void)writer, (void)bytes;
    return false;
}

bool tarball_add(struct tarball_writer *writer, const char *name, struct bytes bytes)
{
    return tarball_begin(writer, name, (int64_t)bytes.size);
}

bool tarball_finish(struct tarball_writer *writer)
{
    (void)writer;
    return false;
}

const char *tarball_problem(const struct tarball_writer *writer)
{
    (void)writer;
    return missing;
}

void tarball_destroy(struct tarball_writer *writer)
{
    assert(!writer);
}

/* Not NULL: the reason is in tarball_damage. */
struct tarball_reader *tarball_open(const struct tarball_source *source)
{
    (void)source;
    return (struct tarball_reader *)(uintptr_t)missing;
}

enum tarball_event tarball_next(struct tarball_reader *reader, const char **name_r, int64_t *size_r)
{
    (void)reader, (void)name_r, (void)size_r;
    return TARBALL_BROKEN;
}

int64_t tarball_read(struct tarball_reader *reader, void *buffer, size_t size)
{
    (void)reader, (void)buffer, (void)size;
    return -1;
}

const char *tarball_damage(const struct tarball_reader *reader)
{
    (void)reader;
    return missing;
}

void tarball_close(struct tarball_reader *reader)
{
    (void)reader;
}

#endif
