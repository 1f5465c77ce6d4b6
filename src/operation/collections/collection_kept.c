/* collection_kept: a folder with a file for each stream.
 *
 * A file has its name from the hash of the question, and while it is made the suffix ".new" and an flock of
 * its maker, which ends with it: a file without one is what a dead process left.  Whoever creates or removes
 * a file with the suffix of another process holds the flock of the folder. */
#include "operation/collections/collection_kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/gzip.h"
#include "model/schema/schema.h"
#include "operation/classes.h"
#include "segment/slots.h"
#include "store/documents/store_schema.h"
#include "store/store_long.h"
#include "store/store_sealing.h"

enum {
    QUESTION_MOST = 256,
    FILES_MOST = 64,
    PARTS = 4, /* a file is at most this part of kept_streams_mb, and reserves it while it is made */
    MAKERS_MOST = 3,
    SMALL_PLACES = 512,
    WAIT_MS = 5,
    READ_BYTES = 128 * 1024,
    NAME_BYTES = 32,
};

#define KEPT_MAGIC UINT64_C(0x31746c706d617473) /* raised when lines of a stream have another form */
#define SUFFIX     ".new"

/* At the start of a file; the question follows, then the compressed text. */
struct kept_head {
    uint64_t magic;
    uint64_t seed;  /* of the segment in which the stamp was seen */
    uint64_t stamp; /* of the class, before the query */
    uint64_t size;  /* of the compressed text; 0: not all of it is there */
    int64_t schema; /* number of the one that was applied */
    int32_t ns;
    uint32_t wants_ids, question_size, reserved;
};

/* A stream that was too small while the class had this stamp. */
struct small_stream {
    uint64_t hash, stamp;
};

struct collection_kept {
    int folder;
    int64_t most, part; /* bytes of all files, of one */
    struct small_stream small[SMALL_PLACES];
};

struct kept_stream {
    struct collection_kept *kept;
    const struct documents *documents;
    uint64_t hash;
    struct newest_proof proof;
    struct kept_head head;
    struct bytes question;
    char name[NAME_BYTES], draft[NAME_BYTES];
    int file; /* -1: none */
    int64_t at;
    bool is_begun; /* the draft is ours */
    struct gzip_packer *packer;
};

/* --- the folder --- */

static int open_folder(const struct settings *settings, bool is_made)
{
    char path[PATH_MAX], folder[PATH_MAX + 8];
    if (!settings_segment_path(settings, path, sizeof path))
        return -1;
    snprintf(folder, sizeof folder, "%s.kept", path);
    if (is_made && mkdir(folder, 0700) != 0 && errno != EEXIST)
        return -1;
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

struct collection_kept *collection_kept_create(const struct settings *settings)
{
    if (!settings->kept_streams_mb)
        return NULL;
    int folder = open_folder(settings, true);
    if (folder < 0) {
        log_warning("streams of collections are not kept: no folder beside the segment: %m");
        return NULL;
    }
    struct collection_kept *kept = memory_zeroed(1, sizeof *kept, "kept streams");
    kept->folder = folder;
    kept->most = settings->kept_streams_mb << 20;
    kept->part = kept->most / PARTS;
    if (kept->part > settings->limit_answer_bytes) /* nginx takes as much without waiting for the client */
        kept->part = settings->limit_answer_bytes;
    return kept;
}

void collection_kept_destroy(struct collection_kept *kept)
{
    if (kept)
        close(kept->folder);
    free(kept);
}

/* Another description of the folder: reading it moves its position. */
static DIR *list_folder(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list && copy >= 0)
        close(copy);
    return list;
}

void collection_kept_clear(const struct settings *settings)
{
    int folder = open_folder(settings, false);
    DIR *list = folder < 0 ? NULL : list_folder(folder);
    const struct dirent *entry;
    while (list && (entry = readdir(list)))
        if (*entry->d_name != '.')
            (void)unlinkat(folder, entry->d_name, 0);
    if (list)
        closedir(list);
    if (folder >= 0)
        close(folder);
}

/* --- room --- */

struct kept_file {
    char name[NAME_BYTES];
    int64_t size;
    struct timespec used;
};

static bool is_older(const struct kept_file *a, const struct kept_file *b)
{
    return a->used.tv_sec != b->used.tv_sec ? a->used.tv_sec < b->used.tv_sec
                                            : a->used.tv_nsec < b->used.tv_nsec;
}

static bool is_draft(const char *name)
{
    size_t size = strlen(name), suffix = sizeof SUFFIX - 1;
    return size > suffix && strcmp(name + size - suffix, SUFFIX) == 0;
}

/* Has the draft a living maker?  One of a dead process is removed. */
static bool is_being_made(int folder, const char *name)
{
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    bool is_alive = flock(file, LOCK_EX | LOCK_NB) != 0;
    if (!is_alive)
        (void)unlinkat(folder, name, 0);
    close(file);
    return is_alive;
}

/* Lists the files that are whole; what does not fit in the list is removed. */
static size_t list_files(const struct collection_kept *kept, const char *own_draft,
                         struct kept_file files[FILES_MOST], int *makers_r)
{
    DIR *list = list_folder(kept->folder);
    const struct dirent *entry;
    struct stat status;
    size_t count = 0;
    *makers_r = list ? 0 : INT_MAX;
    while (list && (entry = readdir(list))) {
        const char *name = entry->d_name;
        if (*name == '.' || strcmp(name, own_draft) == 0)
            continue;
        if (is_draft(name)) {
            *makers_r += is_being_made(kept->folder, name);
        } else if (strlen(name) >= NAME_BYTES || count == FILES_MOST) {
            (void)unlinkat(kept->folder, name, 0);
        } else if (fstatat(kept->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            struct kept_file *file = &files[count++];
            *file = (struct kept_file){.size = (int64_t)status.st_size, .used = status.st_mtim};
            memcpy(file->name, name, strlen(name) + 1);
        }
    }
    if (list)
        closedir(list);
    return count;
}

/* Makes room for one file more; called with the flock of the folder. */
static bool make_room(const struct collection_kept *kept, const char *own_draft)
{
    struct kept_file files[FILES_MOST];
    int makers;
    size_t count = list_files(kept, own_draft, files, &makers);
    if (makers >= MAKERS_MOST)
        return false;
    int64_t used = kept->part * (makers + 1);
    for (size_t i = 0; i < count; i++)
        used += files[i].size;
    while (count && (used > kept->most || count == FILES_MOST)) {
        size_t oldest = 0;
        for (size_t i = 1; i < count; i++)
            if (is_older(&files[i], &files[oldest]))
                oldest = i;
        (void)unlinkat(kept->folder, files[oldest].name, 0);
        used -= files[oldest].size;
        files[oldest] = files[--count];
    }
    return true;
}

/* --- a file --- */

static off_t text_offset(const struct kept_stream *stream)
{
    return (off_t)(sizeof stream->head + stream->question.size);
}

/* Is the file of this question, made at a state that is still the newest?  Nothing of it is trusted but its
 * stamp: that it has this name and this folder says who wrote it. */
static bool read_head(const struct kept_stream *stream, int file, struct kept_head *head_r)
{
    char question[QUESTION_MOST];
    const struct bytes text = {question, stream->question.size};
    struct kept_head *head = head_r;
    if (pread(file, head, sizeof *head, 0) != (ssize_t)sizeof *head ||
        pread(file, question, text.size, sizeof *head) != (ssize_t)text.size)
        return false;
    const struct newest_proof proof = {stream->proof.is_valid, stream->proof.slot, head->stamp};
    return head->magic == KEPT_MAGIC && head->seed == stream->head.seed && head->ns == stream->head.ns &&
           head->schema == stream->head.schema && head->wants_ids == stream->head.wants_ids &&
           head->question_size == text.size && bytes_equal(text, stream->question) &&
           documents_is_still_newest(stream->documents, &proof);
}

static bool open_whole(struct kept_stream *stream)
{
    struct kept_head head;
    struct stat status;
    int file = openat(stream->kept->folder, stream->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    if (!read_head(stream, file, &head) || !head.size || fstat(file, &status) != 0 ||
        (uint64_t)status.st_size != (uint64_t)text_offset(stream) + head.size) {
        close(file);
        return false;
    }
    (void)futimens(file, NULL); /* it is in use */
    stream->file = file;
    stream->at = text_offset(stream);
    return true;
}

static void drop_draft(struct kept_stream *stream)
{
    if (stream->is_begun && stream->file >= 0)
        (void)unlinkat(stream->kept->folder, stream->draft, 0);
    if (stream->file >= 0)
        close(stream->file);
    stream->file = -1;
}

static void end_stream(void *pointer)
{
    struct kept_stream *stream = pointer;
    drop_draft(stream);
    gzip_packer_destroy(stream->packer);
}

/* --- who makes it --- */

enum turn { TURN_OURS, TURN_OTHERS, TURN_LATER, TURN_OVER, TURN_NONE };

/* Writes the head of our draft, which says to others of which state it will be. */
static bool begin_draft(struct kept_stream *stream)
{
    stream->head.stamp = stream->proof.tag;
    const struct kept_head head = stream->head;
    bool is_written = ftruncate(stream->file, 0) == 0 &&
                      pwrite(stream->file, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                      pwrite(stream->file, stream->question.data, stream->question.size,
                             sizeof stream->head) == (ssize_t)stream->question.size;
    stream->at = text_offset(stream);
    return is_written;
}

/* With the flock of the folder. */
static enum turn take_turn(struct kept_stream *stream, bool has_waited)
{
    struct kept_head head;
    int folder = stream->kept->folder;
    stream->file = openat(folder, stream->draft, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (stream->file < 0)
        return TURN_NONE;
    if (flock(stream->file, LOCK_EX | LOCK_NB) != 0) {
        bool is_same = read_head(stream, stream->file, &head);
        drop_draft(stream);
        return is_same ? TURN_OTHERS : TURN_NONE;
    }
    stream->is_begun = true;
    /* A caller that has waited in vain does not let others wait: the stream was small, or changes all the
     * time. */
    if (!has_waited && make_room(stream->kept, stream->draft) && begin_draft(stream))
        return TURN_OURS;
    drop_draft(stream);
    stream->is_begun = false;
    return TURN_NONE;
}

static enum turn find_turn(struct kept_stream *stream, const struct documents *documents, int ns,
                           struct bytes class, bool has_waited)
{
    int folder = stream->kept->folder;
    if (flock(folder, LOCK_EX | LOCK_NB) != 0)
        return TURN_LATER;
    stream->proof = documents_prove_class(documents, ns, class);
    /* Its maker may have ended since we looked. */
    enum turn turn = open_whole(stream) ? TURN_OVER : take_turn(stream, has_waited);
    (void)flock(folder, LOCK_UN);
    return turn;
}

static struct small_stream *small_place(const struct kept_stream *stream)
{
    return &stream->kept->small[stream->hash % SMALL_PLACES];
}

static bool is_small(const struct kept_stream *stream)
{
    const struct small_stream *small = small_place(stream);
    return small->hash == stream->hash && small->stamp == stream->proof.tag;
}

static bool may_be_kept(const struct attempt *attempt, const struct collection_request *request)
{
    return attempt->worker_context->kept_streams && !request->is_judged && !request->expires &&
           request->question.size <= QUESTION_MOST && !attempt->reply->outlet->is_head &&
           !store_sealing_keys(documents_store(attempt->worker_context->documents), attempt->ns)->count;
}

static struct kept_stream *make_stream(const struct attempt *attempt,
                                       const struct collection_request *request)
{
    const struct worker_context *context = attempt->worker_context;
    struct kept_stream *stream = ARENA_NEW(attempt->call->arena, struct kept_stream);
    *stream = (struct kept_stream){
        .kept = context->kept_streams,
        .documents = context->documents,
        .hash = slots_hash(context->segment, attempt->ns, request->question,
                           request->wants_ids ? BYTES("ids") : BYTES("docs")),
        .proof = documents_prove_class(context->documents, attempt->ns, request->class),
        .head = {.magic = KEPT_MAGIC,
                 .seed = segment_seed(context->segment),
                 .ns = attempt->ns,
                 .wants_ids = request->wants_ids,
                 .question_size = (uint32_t)request->question.size},
        .question = request->question,
        .file = -1,
    };
    snprintf(stream->name, sizeof stream->name, "%016" PRIx64, stream->hash);
    snprintf(stream->draft, sizeof stream->draft, "%016" PRIx64 SUFFIX, stream->hash);
    arena_defer(attempt->call->arena, end_stream, stream);
    return stream;
}

enum fault collection_kept_find(struct attempt *attempt, const struct collection_request *request,
                                enum collection_kept_state *state_r, struct kept_stream **stream_r)
{
    *state_r = COLLECTION_KEPT_NOT;
    *stream_r = NULL;
    if (!may_be_kept(attempt, request))
        return FAULT_NONE;
    struct documents *documents = attempt->worker_context->documents;
    const struct schema *schema;
    enum fault fault = FAULT_FIRST(
        classes_schema(attempt, &schema),
        store_schema_confirm(documents_store(documents), attempt->ns, attempt->call->arena, schema));
    if (fault)
        return fault == FAULT_STALE ? FAULT_NONE : fault;
    struct kept_stream *stream = make_stream(attempt, request);
    stream->head.schema = schema->number;
    bool has_waited = false;
    while (stream->proof.is_valid && !is_small(stream)) {
        enum turn turn = open_whole(stream)
                             ? TURN_OVER
                             : find_turn(stream, documents, attempt->ns, request->class, has_waited);
        if (turn == TURN_OVER || turn == TURN_OURS) {
            *state_r = turn == TURN_OVER ? COLLECTION_KEPT_WHOLE : COLLECTION_KEPT_BEGUN;
            *stream_r = stream;
            return FAULT_NONE;
        }
        if (turn == TURN_NONE || clock_monotonic_ms() >= attempt->call->deadline_ms)
            return FAULT_NONE;
        has_waited |= turn == TURN_OTHERS;
        fault = store_long_enter(documents_store(documents), attempt->ns);
        if (fault)
            return fault;
        clock_sleep_ms(WAIT_MS);
    }
    return FAULT_NONE;
}

/* --- reading and keeping --- */

bool collection_kept_read(struct kept_stream *stream, struct builder *packed)
{
    ssize_t size = pread(stream->file, builder_reserve(packed, READ_BYTES), READ_BYTES, stream->at);
    if (size < 0)
        return false;
    packed->size += (size_t)size;
    stream->at += size;
    return true;
}

static bool write_all(struct kept_stream *stream, struct bytes text)
{
    if ((int64_t)text.size > stream->kept->part - stream->at)
        return false;
    ssize_t size = pwrite(stream->file, text.data, text.size, stream->at);
    stream->at += size < 0 ? 0 : size;
    return size == (ssize_t)text.size;
}

/* Useless when something has changed meanwhile. */
static void finish_draft(struct kept_stream *stream)
{
    int folder = stream->kept->folder;
    stream->head.size = (uint64_t)(stream->at - text_offset(stream));
    if (documents_is_still_newest(stream->documents, &stream->proof) &&
        pwrite(stream->file, &stream->head, sizeof stream->head, 0) == (ssize_t)sizeof stream->head &&
        renameat(folder, stream->draft, folder, stream->name) == 0)
        stream->is_begun = false; /* it stays */
    drop_draft(stream);
}

void collection_kept_add(struct kept_stream *stream, struct bytes text, bool is_last, struct builder *packed)
{
    size_t before = packed->size;
    if (!stream->packer)
        stream->packer = gzip_packer_create();
    gzip_packer_add(stream->packer, text, is_last, packed);
    if (stream->file < 0)
        return;
    if (!write_all(stream, (struct bytes){packed->data + before, packed->size - before}))
        drop_draft(stream);
    else if (is_last)
        finish_draft(stream);
}

void collection_kept_decline(struct kept_stream *stream)
{
    *small_place(stream) = (struct small_stream){stream->hash, stream->proof.tag};
    drop_draft(stream);
}
