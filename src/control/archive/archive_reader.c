/* archive_reader: the file, the tarball in it, and what is checked of it. */
#include "control/archive/archive_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "base/memory.h"
#include "base/secret.h"
#include "control/archive/archive_line.h"
#include "control/archive/archive_writer.h"
#include "control/documents/progress.h"
#include "control/message.h"
#include "edge/tarball.h"
#include "model/document/attachment.h"
#include "seal/sealed_stream.h"

enum {
    PIECE = 1 << 16,
    MEMBER_MOST = 1 << 30, /* a document may be large; more is no archive of ours */
};

struct archive_reader {
    const char *path;
    int fd;
    char piece[PIECE];
    int64_t done;                        /* bytes of the file */
    struct sealed_stream_reader *sealed; /* between file and tarball; NULL: not encrypted */
    const char *problem;                 /* why the file is refused before its members; NULL: it is not */
    struct tarball_reader *tarball;
    struct digest *digest;
    const struct archive_contents *contents; /* NULL: the first pass */
    size_t next, next_file;                  /* member, file */
    bool is_file;                            /* the member is one, and its bytes were not read yet */
    struct blob_digest file;
    int64_t file_size;
};

static bool archive_reader_complain(const struct archive_reader *reader, const char *why)
{
    return message_refuse("%s: %s", reader->path, why);
}

static bool read_piece(void *context, struct bytes *bytes_r)
{
    struct archive_reader *reader = context;
    ssize_t got;
    do
        got = read(reader->fd, reader->piece, sizeof reader->piece);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return false;
    *bytes_r = (struct bytes){reader->piece, (size_t)got};
    if (!reader->done && !reader->sealed && sealed_stream_is(*bytes_r))
        reader->problem = "encrypted: name its key with --key-file";
    reader->done += got;
    return !reader->problem;
}

static bool read_sealed(void *context, struct bytes *bytes_r)
{
    struct archive_reader *reader = context;
    if (sealed_stream_read(reader->sealed, bytes_r))
        return true;
    reader->problem = sealed_stream_problem(reader->sealed);
    return false;
}

static const char *damage(const struct archive_reader *reader)
{
    return reader->problem ? reader->problem : tarball_damage(reader->tarball);
}

/* Behind the last member: an encrypted stream is whole when its end was reached. */
static bool read_to_end(struct archive_reader *reader)
{
    struct bytes rest = BYTES(" ");
    while (reader->sealed && rest.size)
        if (!read_sealed(reader, &rest))
            return archive_reader_complain(reader, damage(reader));
    return true;
}

static bool open_reader(const char *path, struct bytes key, const struct archive_contents *contents,
                        struct archive_reader **reader_r)
{
    struct archive_reader *reader = memory_zeroed(1, sizeof *reader, "archive");
    *reader_r = reader;
    reader->path = path;
    reader->contents = contents;
    reader->digest = digest_create();
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0)
        return archive_reader_complain(reader, strerror(errno));
    if (key.data)
        reader->sealed = sealed_stream_open(key, read_piece, reader);
    const struct tarball_source source = {key.data ? read_sealed : read_piece, reader};
    reader->tarball = tarball_open(&source);
    return reader->tarball != NULL || archive_reader_complain(reader, strerror(ENOMEM));
}

bool archive_reader_open(const char *path, const struct archive_contents *contents,
                         struct archive_reader **reader_r)
{
    return open_reader(path, contents->key, contents, reader_r);
}

void archive_reader_close(struct archive_reader *reader)
{
    if (!reader)
        return;
    tarball_close(reader->tarball);
    sealed_stream_close(reader->sealed);
    digest_destroy(reader->digest);
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader);
}

bool archive_reader_has_documents(struct bytes name)
{
    static const struct bytes folder = BYTES("documents/");
    return name.size > folder.size && memcmp(name.data, folder.data, folder.size) == 0;
}

/* The bytes of a member, as many as its header announces. */
static bool archive_reader_read_member(struct archive_reader *reader, int64_t size, struct builder *bytes)
{
    builder_clear(bytes, MEMBER_MOST);
    if (size > MEMBER_MOST)
        return archive_reader_complain(reader, "not an archive: a member is too large");
    while ((int64_t)bytes->size < size) {
        size_t left = (size_t)size - bytes->size;
        size_t room = left < PIECE ? left : PIECE; /* the announced size is not to be believed at once */
        int64_t got = tarball_read(reader->tarball, builder_reserve(bytes, room), room);
        if (got <= 0)
            return archive_reader_complain(reader, got < 0 ? damage(reader) : "a member is too short");
        bytes->size += (size_t)got;
    }
    return true;
}

/* Within the second pass: a file that the first one has not seen is refused. */
static bool begin_file(struct archive_reader *reader, int64_t size)
{
    const struct archive_contents *contents = reader->contents;
    reader->is_file = true;
    reader->file_size = size;
    return !contents ||
           (reader->next_file < contents->files.count &&
            memcmp(&contents->files.digests[reader->next_file++], &reader->file, sizeof reader->file) == 0) ||
           archive_reader_complain(reader, "it has changed since it was verified");
}

int64_t archive_reader_file_size(const struct archive_reader *reader)
{
    return reader->file_size;
}

bool archive_reader_take(struct archive_reader *reader, bool (*take)(void *context, struct bytes piece),
                         void *context)
{
    static char piece[PIECE];
    struct blob_digest digest;
    int64_t got, left = reader->file_size;
    reader->is_file = false;
    for (; left; left -= got) {
        got = tarball_read(reader->tarball, piece, left < PIECE ? (size_t)left : PIECE);
        if (got <= 0)
            return archive_reader_complain(reader, got < 0 ? damage(reader) : "a member is too short");
        struct bytes bytes = {piece, (size_t)got};
        digest_add(reader->digest, bytes);
        if (take && !take(context, bytes))
            return false;
    }
    digest_end(reader->digest, digest.bytes);
    if (memcmp(&digest, &reader->file, sizeof digest) == 0)
        return true;
    char name[BLOB_HEX + 1];
    blob_store_write_digest(&reader->file, name);
    return message_refuse("%s: damaged: the file %s has other bytes than its digest", reader->path, name);
}

static bool check_member(struct archive_reader *reader, struct bytes name, struct bytes bytes)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    const struct archive_contents *contents = reader->contents;
    digest_add(reader->digest, bytes);
    digest_end_hex(reader->digest, hex);
    if (reader->next < contents->count) {
        const struct archive_member *member = &contents->members[reader->next++];
        if (bytes_equal(member->name, name) && bytes_equal(member->sha256, bytes_of(hex)))
            return true;
    }
    return archive_reader_complain(reader, "it has changed since it was verified");
}

bool archive_reader_next(struct archive_reader *reader, struct bytes *name_r, struct builder *bytes_r)
{
    const char *name;
    int64_t size;
    *name_r = NO_BYTES;
    if (reader->is_file && !archive_reader_take(reader, NULL, NULL))
        return false;
    switch (tarball_next(reader->tarball, &name, &size)) {
    case TARBALL_END:
        return true;
    case TARBALL_BROKEN:
        return archive_reader_complain(reader, damage(reader));
    case TARBALL_FILE:
        break;
    }
    *name_r = bytes_of(name);
    reader->file_size = 0;
    if (archive_files_read_name(*name_r, &reader->file)) {
        builder_clear(bytes_r, MEMBER_MOST);
        return begin_file(reader, size);
    }
    if (!archive_reader_read_member(reader, size, bytes_r))
        return false;
    if (!reader->contents)
        return true;
    if (bytes_equal(*name_r, BYTES(ARCHIVE_DIGESTS))) {
        *name_r = NO_BYTES;
        return (reader->next == reader->contents->count &&
                reader->next_file == reader->contents->files.count) ||
               archive_reader_complain(reader, "it has changed since it was verified");
    }
    return check_member(reader, *name_r, builder_bytes(bytes_r));
}

bool archive_reader_each(const char *path, const struct archive_contents *contents,
                         archive_reader_taker *take, void *context)
{
    struct archive_reader *reader;
    struct builder bytes = {0};
    struct bytes name;
    bool is_right = archive_reader_open(path, contents, &reader);
    while (is_right && (is_right = archive_reader_next(reader, &name, &bytes)) && name.data)
        is_right = take(context, reader, name, builder_bytes(&bytes));
    archive_reader_close(reader);
    builder_free(&bytes);
    return is_right;
}

const char *archive_identity(struct arena *arena, const struct archive_contents *contents)
{
    char *hex = ARENA_ROOM(arena, char, CRYPTO_SHA256_HEX + 1);
    hex_write(contents->identity, CRYPTO_SHA256, hex);
    hex[CRYPTO_SHA256_HEX] = '\0';
    return hex;
}

/* --- the first pass --- */

struct verification {
    struct arena *arena, *scratch;
    struct archive_reader *reader;
    struct archive_contents *contents;
    struct archive_sum sum;
    struct builder class, id; /* of the last document; empty: none */
    size_t room;
};

static const struct json_limits limits = {.depth = 16, .tree_depth = 16};

static bool archive_reader_parse(struct verification *verification, struct bytes bytes,
                                 const struct json **root_r)
{
    struct json_problem problem;
    struct json *root;
    char *text = arena_copy(verification->arena, bytes.data, bytes.size);
    if (json_read(verification->arena, (struct bytes){text, bytes.size}, &limits, &root, &problem) !=
            FAULT_NONE ||
        root->kind != JSON_OBJECT)
        return archive_reader_complain(verification->reader,
                                       "not an archive: a member that should be JSON is not");
    *root_r = root;
    return true;
}

static bool read_manifest(struct verification *verification, struct bytes name, struct bytes bytes)
{
    struct archive_contents *contents = verification->contents;
    if (!bytes_equal(name, BYTES(ARCHIVE_MANIFEST)))
        return archive_reader_complain(verification->reader, "not an archive of stampctl export");
    if (!archive_reader_parse(verification, bytes, &contents->manifest))
        return false;
    const struct json *manifest = contents->manifest, *since = json_member(manifest, "since");
    if (!bytes_equal(json_text_of(manifest, "format", NO_BYTES), BYTES("stampd archive")))
        return archive_reader_complain(verification->reader, "not an archive of stampctl export");
    if (json_i64_of(manifest, "version", -1) != ARCHIVE_VERSION)
        return archive_reader_complain(verification->reader,
                                       "an archive of another release, whose format is not known here");
    contents->at = json_i64_of(manifest, "at", -1);
    contents->floor = json_i64_of(manifest, "floor", -1);
    contents->ns = json_text_of(manifest, "namespace", NO_BYTES);
    contents->state = json_text_of(manifest, "state", NO_BYTES);
    contents->snapshot = json_text_of(manifest, "snapshot", NO_BYTES);
    contents->database = json_text_of(manifest, "database", NO_BYTES);
    contents->is_increment = since && since->kind == JSON_OBJECT;
    contents->is_partial = json_member(manifest, "classes") || json_member(manifest, "ids");
    return (contents->at > 0 && contents->floor >= 0 && contents->ns.data && contents->snapshot.data &&
            contents->database.data) ||
           archive_reader_complain(verification->reader, "its manifest is not whole");
}

static void archive_reader_keep(struct builder *builder, struct bytes text)
{
    builder_clear(builder, 4096);
    builder_add_bytes(builder, text);
}

/* Documents come in the order of class and id, each once. */
static bool is_later(struct verification *verification, const struct archive_header *header)
{
    int order = bytes_compare(builder_bytes(&verification->class), header->class);
    if (order > 0 || (order == 0 && bytes_compare(builder_bytes(&verification->id), header->id) >= 0))
        return false;
    archive_reader_keep(&verification->class, header->class);
    archive_reader_keep(&verification->id, header->id);
    return true;
}

/* The file of each attachment is in the archive, or is said to be left out. */
static bool check_attachments(struct verification *verification, const struct archive_document *document)
{
    const struct archive_contents *contents = verification->contents;
    struct attachment attachment;
    for (size_t i = 0; i < document->count; i++) {
        const struct archive_item *item = &document->items[i];
        if (!item->content.data || !bytes_equal(item->class, ATTACHMENT_CLASS))
            continue;
        if (item->is_raw || !attachment_read(verification->scratch, item->content, &attachment))
            return archive_reader_complain(verification->reader,
                                           "an item of class P does not describe a file");
        if (!archive_files_has(&contents->files, &attachment.digest) &&
            !archive_files_has(&contents->left_out, &attachment.digest))
            return archive_reader_complain(verification->reader, "the file of an attachment is missing");
    }
    return true;
}

static bool check_documents(struct verification *verification, struct bytes bytes)
{
    const char *problem;
    struct archive_document document;
    while (bytes.size) {
        const char *newline = memchr(bytes.data, '\n', bytes.size);
        if (!newline)
            return archive_reader_complain(verification->reader, "a line has no end");
        struct bytes line = {bytes.data, (size_t)(newline - bytes.data) + 1};
        bytes.data += line.size;
        bytes.size -= line.size;
        if (!archive_line_read(verification->scratch, (struct bytes){line.data, line.size - 1}, &document,
                               &problem))
            return archive_reader_complain(verification->reader, problem);
        if (!is_later(verification, &document.header))
            return archive_reader_complain(verification->reader, "its documents are not in order");
        if (!check_attachments(verification, &document))
            return false;
        verification->sum.documents += document.header.ctime != 0;
        verification->sum.deleted += document.header.ctime == 0;
        verification->sum.items += (int64_t)document.count;
        if (document.header.version > verification->sum.highest)
            verification->sum.highest = document.header.version;
        archive_sum_add(&verification->sum, verification->reader->digest, line);
        arena_reset(verification->scratch);
    }
    return true;
}

static bool archive_reader_add_member(struct verification *verification, struct bytes name,
                                      struct bytes bytes)
{
    struct archive_contents *contents = verification->contents;
    char hex[CRYPTO_SHA256_HEX + 1];
    struct archive_reader *reader = verification->reader;
    if (reader->is_file) {
        contents->files.bytes += reader->file_size;
        return archive_files_add(verification->arena, &contents->files, &reader->file) ||
               archive_reader_complain(reader, "its files are not in order");
    }
    ARENA_GROW(verification->arena, contents->members, contents->count, verification->room);
    digest_add(reader->digest, bytes);
    digest_end_hex(reader->digest, hex);
    contents->members[contents->count++] =
        (struct archive_member){{arena_copy(verification->arena, name.data, name.size), name.size},
                                (int64_t)bytes.size,
                                {arena_copy(verification->arena, hex, CRYPTO_SHA256_HEX), CRYPTO_SHA256_HEX}};
    if (archive_files_is_left_out(name))
        return archive_files_add_lines(verification->arena, &contents->left_out, bytes) ||
               archive_reader_complain(reader, "its list of files that it leaves out is malformed");
    if (!archive_reader_has_documents(name))
        return true;
    contents->document_bytes += (int64_t)bytes.size;
    return check_documents(verification, bytes);
}

/* The last member names all others, as they were written. */
static bool check_digests(struct verification *verification, struct bytes bytes)
{
    struct archive_contents *contents = verification->contents;
    const struct json *digests;
    if (!archive_reader_parse(verification, bytes, &digests))
        return false;
    crypto_sha256(bytes, contents->identity);
    const struct json *members = json_member(digests, "members");
    const struct json *member = members && members->kind == JSON_ARRAY ? members->first : NULL;
    for (size_t i = 0; i < contents->count; i++, member = member->next) {
        const struct archive_member *present = &contents->members[i];
        if (!member || !bytes_equal(json_text_of(member, "name", NO_BYTES), present->name) ||
            json_i64_of(member, "size", -1) != present->size ||
            !bytes_equal(json_text_of(member, "sha256", NO_BYTES), present->sha256))
            return message_refuse("%s: damaged: the member %.*s is not what was written",
                                  verification->reader->path, (int)present->name.size, present->name.data);
    }
    if (member)
        return archive_reader_complain(verification->reader, "damaged: a member is missing");
    if (!archive_sum_read(digests, &contents->sum))
        return archive_reader_complain(verification->reader, "its digests are not whole");
    if (!archive_files_are_in(&contents->files, digests))
        return archive_reader_complain(verification->reader,
                                       "damaged: its files are not those that were written");
    return archive_sum_equals(&contents->sum, &verification->sum) ||
           archive_reader_complain(verification->reader,
                                   "damaged: its documents are not those that were written");
}

static bool archive_reader_read_all(struct verification *verification, bool shows_progress)
{
    struct archive_reader *reader = verification->reader;
    struct builder bytes = {0};
    struct progress progress;
    struct bytes name;
    bool is_whole = false, is_right;
    progress_start(&progress, 0, verification->contents->file_bytes);
    while ((is_right = archive_reader_next(reader, &name, &bytes)) && name.data) {
        struct bytes text = builder_bytes(&bytes);
        if (is_whole)
            is_right = archive_reader_complain(reader, "something follows its end");
        else if (!verification->contents->manifest)
            is_right = read_manifest(verification, name, text) &&
                       archive_reader_add_member(verification, name, text);
        else if (bytes_equal(name, BYTES(ARCHIVE_DIGESTS)))
            is_right = is_whole = check_digests(verification, text);
        else
            is_right = archive_reader_add_member(verification, name, text);
        if (!is_right)
            break;
        if (shows_progress)
            progress_show(&progress, verification->sum.documents + verification->sum.deleted, reader->done);
    }
    progress_clear(&progress);
    builder_free(&bytes);
    return is_right && (is_whole || archive_reader_complain(reader, "truncated: its end is missing")) &&
           read_to_end(reader);
}

bool archive_verify(struct arena *arena, const char *path, struct bytes key, bool shows_progress,
                    struct archive_contents *contents_r)
{
    struct verification verification = {.arena = arena, .contents = contents_r};
    struct stat status;
    *contents_r = (struct archive_contents){.key = key};
    bool is_right = open_reader(path, key, NULL, &verification.reader);
    if (is_right && fstat(verification.reader->fd, &status) == 0)
        contents_r->file_bytes = status.st_size;
    verification.scratch = arena_create("verification");
    is_right = is_right && archive_reader_read_all(&verification, shows_progress);
    arena_destroy(verification.scratch);
    builder_free(&verification.class);
    builder_free(&verification.id);
    archive_reader_close(verification.reader);
    return is_right;
}

/* Reads the key and checks that it can be one. */

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
