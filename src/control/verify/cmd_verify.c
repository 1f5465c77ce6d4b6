/* cmd_verify: `stampctl verify`: an archive, a namespace, or one against the other. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "blob/blob_sealed.h"
#include "blob/blob_store.h"
#include "control/archive/archive_line.h"
#include "control/archive/archive_reader.h"
#include "control/archive/archive_rows.h"
#include "control/documents/progress.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "edge/pg/pg_copy.h"
#include "model/document/attachment.h"

/* The differences that a verification reports: the first ones in words, all of them counted. */

struct findings {
    struct arena *arena; /* emptied with each finding */
    int64_t count;
};

enum { SHOWN = 20 };

static bool findings_is_shown(struct findings *findings)
{
    arena_reset(findings->arena);
    if (findings->count++ == SHOWN)
        message_print("more differences follow, which are only counted");
    return findings->count <= SHOWN;
}

/* Ids are printed as JSON strings. */
static void findings_add_document(struct findings *findings, struct bytes class, struct bytes id,
                                  const char *what)
{
    if (findings_is_shown(findings))
        message_print("%.*s %s: %s", (int)class.size, class.data, message_quote(findings->arena, id), what);
}

/* Class NO_BYTES: of the whole namespace. */
static void findings_add_class(struct findings *findings, struct bytes class, const char *what)
{
    if (findings_is_shown(findings))
        message_print("%s%.*s: %s", class.data ? "class " : "the namespace", (int)class.size, class.data,
                      what);
}

static void findings_add_file(struct findings *findings, const struct blob_digest *digest, const char *what)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    if (findings_is_shown(findings))
        message_print("file %s: %s", text, what);
}

/* The documents and files of an archive against those of a namespace. */

struct archive_comparison {
    struct findings findings;
    int64_t same, other, missing, more; /* documents: equal, different, not there, not in the archive */
    int64_t files, missing_files;       /* of the archive; not in the store with their size */
};

struct compared {
    struct arena *arena; /* of the line of the namespace */
    struct arena *scratch;
    const struct archive_contents *contents;
    int64_t floor; /* of the namespace */
    struct archive_rows *rows;
    struct archive_sum sum;
    struct builder line; /* the next one of the namespace; empty: there are no more */
    struct archive_document document;
    struct archive_comparison *result;
};

static bool archive_comparison_take_row(struct compared *compared)
{
    const char *problem;
    builder_clear(&compared->line, 1 << 20);
    arena_reset(compared->arena);
    enum archive_rows_event event = archive_rows_next(compared->rows, &compared->line, &compared->sum);
    if (event != ARCHIVE_ROWS_LINE)
        return event == ARCHIVE_ROWS_END;
    struct bytes line = {compared->line.data, compared->line.size - 1};
    if (archive_line_read(compared->arena, line, &compared->document, &problem))
        return true;
    return message_refuse("a document of the namespace cannot be read: %s", problem);
}

static int archive_comparison_compare(const struct archive_header *one, const struct archive_header *other)
{
    int order = bytes_compare(one->class, other->class);
    return order ? order : bytes_compare(one->id, other->id);
}

/* A document of the namespace that the archive does not have. */
static void add_more(struct compared *compared)
{
    const struct archive_header *header = &compared->document.header;
    if (compared->contents->is_increment || compared->contents->is_partial)
        return;
    compared->result->more++;
    findings_add_document(&compared->result->findings, header->class, header->id, "is not in the archive");
}

static void add_missing(struct compared *compared, const struct archive_header *header)
{
    if (!header->ctime && header->version <= compared->floor)
        return; /* a deletion that was purged */
    compared->result->missing++;
    findings_add_document(&compared->result->findings, header->class, header->id, "is not in the namespace");
}

static bool compare_line(struct compared *compared, struct bytes line)
{
    struct archive_document document;
    const char *problem;
    struct archive_comparison *result = compared->result;
    if (!archive_line_read(compared->scratch, (struct bytes){line.data, line.size - 1}, &document, &problem))
        return false; /* it was verified */
    while (compared->line.size &&
           archive_comparison_compare(&compared->document.header, &document.header) < 0) {
        add_more(compared);
        if (!archive_comparison_take_row(compared))
            return false;
    }
    if (!compared->line.size ||
        archive_comparison_compare(&compared->document.header, &document.header) != 0) {
        add_missing(compared, &document.header);
        return true;
    }
    if (bytes_equal(builder_bytes(&compared->line), line)) {
        result->same++;
    } else {
        int64_t theirs = compared->document.header.version;
        result->other++;
        findings_add_document(&result->findings, document.header.class, document.header.id,
                              theirs > document.header.version ? "is newer in the namespace"
                              : theirs < document.header.version
                                  ? "is older in the namespace"
                                  : "has the same version and another content");
    }
    return archive_comparison_take_row(compared);
}

static bool compare_lines(struct compared *compared, struct bytes lines)
{
    while (lines.size) {
        const char *newline = memchr(lines.data, '\n', lines.size);
        struct bytes line = {lines.data, newline ? (size_t)(newline - lines.data) + 1 : lines.size};
        if (!compare_line(compared, line))
            return false;
        arena_reset(compared->scratch);
        lines = (struct bytes){lines.data + line.size, lines.size - line.size};
    }
    return true;
}

/* Its bytes are read by `verify --ns`, without an archive. */
static bool compare_file(struct archive_comparison *result, struct stored_files *store,
                         const struct blob_digest *digest, int64_t size)
{
    int64_t present;
    if (stored_files_measure(store, digest, &present))
        return message_refuse("the files of attachments cannot be read");
    result->files++;
    if (present == size)
        return true;
    result->missing_files++;
    findings_add_file(&result->findings, digest,
                      present < 0 ? "is not in the namespace" : "has another size in the namespace");
    return true;
}

static bool compare_members(struct compared *compared, struct control *control, struct archive_reader *reader,
                            const char *database, const struct data_keys *keys)
{
    struct stored_files *store = stored_files_open(control, database);
    stored_files_set_keys(store, keys);
    struct builder bytes = {0};
    struct progress progress;
    struct blob_digest digest;
    struct bytes name;
    int64_t size = 0;
    bool is_done;
    progress_start(&progress, 0, compared->contents->document_bytes + compared->contents->files.bytes);
    while ((is_done = archive_reader_next(reader, &name, &bytes)) && name.data) {
        if (archive_files_read_name(name, &digest))
            is_done = compare_file(compared->result, store, &digest, archive_reader_file_size(reader));
        else if (archive_reader_has_documents(name))
            is_done = compare_lines(compared, builder_bytes(&bytes));
        if (!is_done)
            break;
        size += archive_reader_has_documents(name) ? (int64_t)bytes.size : archive_reader_file_size(reader);
        progress_show(&progress, compared->result->same + compared->result->other, size);
    }
    while (is_done && compared->line.size) {
        add_more(compared);
        is_done = archive_comparison_take_row(compared);
    }
    progress_clear(&progress);
    builder_free(&bytes);
    stored_files_close(store);
    return is_done;
}

/* The archive has been verified.  Of one that has some documents only, or changes only, these are compared,
 * and `more` stays 0; deletions that the namespace has purged are not missing.  False: it was not completed,
 * which has been reported. */
MUST_USE static bool archive_comparison_run(struct control *control, const struct ns_target *target,
                                            const char *path, const struct archive_contents *contents,
                                            struct archive_comparison *comparison)
{
    const struct archive_filter all = {0};
    struct archive_snapshot snapshot;
    struct archive_reader *reader = NULL;
    struct compared compared = {.contents = contents, .result = comparison};
    struct data_keys *keys;
    if (!ns_keys_read(control, target->pg, &keys) ||
        !archive_rows_begin_snapshot(control, target->pg, target->conf->database, &snapshot))
        return false;
    compared.floor = snapshot.floor;
    compared.arena = arena_create("document of the namespace");
    compared.scratch = arena_create("document of the archive");
    bool is_done = archive_rows_open(control, &snapshot, &all, &compared.rows) &&
                   archive_comparison_take_row(&compared) && archive_reader_open(path, contents, &reader) &&
                   compare_members(&compared, control, reader, target->conf->database, keys);
    archive_reader_close(reader);
    archive_rows_close(compared.rows);
    arena_destroy(compared.arena);
    arena_destroy(compared.scratch);
    builder_free(&compared.line);
    return is_done && archive_rows_end_snapshot(&snapshot);
}

/* --- the check of a namespace --- */

/* A namespace against itself: documents, volumes, references, and the bytes of every file that
 * an attachment has or had.  Documents by archive_rows, references by SQL, files by their rows and by the
 * store's lists. */

struct ns_verification {
    struct findings findings;
    struct archive_sum sum;
    int64_t files, bytes;                     /* that attachments have or had */
    int64_t unused;                           /* registered files that no attachment has or had */
    int64_t unregistered, unregistered_bytes; /* files of the store that the database does not know */
};

enum { LISTED_REFERENCES = 100 };

struct ns_check {
    struct control *control;
    const struct ns_target *target;
    struct archive_snapshot snapshot;
    struct arena *arena; /* of a document, or of a part of the store */
    struct stored_files *store;
    struct digest *digest;
    struct progress progress;
    struct ns_verification *verification;
    struct sealed_file_keys keys; /* of files */
};

/* --- documents --- */

static void check_document(struct ns_check *check, const struct archive_rows *rows, struct bytes line)
{
    struct findings *findings = &check->verification->findings;
    struct archive_document document;
    struct attachment attachment;
    const char *problem;
    int64_t v1, v2;
    line.size -= line.size > 0; /* the newline */
    if (!archive_line_read(check->arena, line, &document, &problem)) {
        message_print("a document cannot be read: %s", problem);
        findings->count++;
        return;
    }
    const struct archive_header *header = &document.header;
    archive_rows_volumes(rows, &v1, &v2);
    if (v1 != document.bytes)
        findings_add_document(findings, header->class, header->id, "v1 is not the size of its items");
    if (v2 != archive_line_attached(&document))
        findings_add_document(findings, header->class, header->id, "v2 is not the size of its attachments");
    for (size_t i = 0; i < document.count; i++) {
        const struct archive_item *item = &document.items[i];
        if (item->content.data && bytes_equal(item->class, ATTACHMENT_CLASS) &&
            !attachment_read(check->arena, item->content, &attachment))
            findings_add_document(findings, header->class, header->id,
                                  "an item of class P does not describe a file");
    }
}

static bool check_documents(struct ns_check *check)
{
    const struct archive_filter all = {0};
    struct archive_sum *sum = &check->verification->sum;
    struct archive_rows *rows = NULL;
    struct builder line = {0};
    enum archive_rows_event event = ARCHIVE_ROWS_FAILED;
    if (archive_rows_open(check->control, &check->snapshot, &all, &rows))
        while ((event = archive_rows_next(rows, &line, sum)) == ARCHIVE_ROWS_LINE) {
            check_document(check, rows, builder_bytes(&line));
            builder_clear(&line, 1 << 20);
            arena_reset(check->arena);
            progress_show(&check->progress, sum->documents + sum->deleted, sum->documents + sum->deleted);
        }
    archive_rows_close(rows);
    builder_free(&line);
    return event == ARCHIVE_ROWS_END;
}

/* --- volumes --- */

/* The sums that commits keep, and those of all documents, in one snapshot. */
static bool check_volumes(struct ns_check *check)
{
    static const char sql[] = "select distinct class from ((table kept except table counted) union all "
                              "(table counted except table kept)) d"
                              " order by 1 nulls first";
    struct pg_result *rows;
    const char *query =
        arena_printf(check->control->arena,
                     "with kept as (select * from stampd.volumes()), counted as (select * from"
                     " stampd.volumes_counted()) %s",
                     sql);
    if (!control_query(check->control, check->snapshot.documents, "reading the volumes", query, NULL, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++)
        findings_add_class(&check->verification->findings,
                           pg_is_null(rows, row, 0) ? NO_BYTES : pg_get_text(rows, row, 0),
                           "its volumes are not those of its documents");
    return true;
}

/* --- references --- */

/* A trigger keeps both in step. */
static bool check_references(struct ns_check *check, const struct data_keys *keys)
{
    static const char items[] =
        "with given as (select class, id, key, decode(stampd.export_object(content) ->> 'sha', 'hex') as "
        "digest from"
        " stampd.item where iclass = 'P' and content is not null and not raw),"
        " live as (select class, id, key, digest from stampd.blob_ref where ended is null)"
        " select n.class, n.id from ((table given except table live) union all"
        " (table live except table given)) n order by 1, 2 limit $1::bigint";
    struct pg_result *rows;
    if (!control_query(check->control, check->snapshot.documents, "reading the references", items,
                       PG_PARAMS(check->control->arena, PG_I64(LISTED_REFERENCES)), &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes class = pg_get_text(rows, row, 0), id = pg_get_text(rows, row, 1);
        bool is_sealed = !data_keys_open_id(keys, check->control->arena, class, &id);
        findings_add_document(&check->verification->findings, class, id,
                              is_sealed ? "an id of the references to files was altered"
                                        : "its attachments and the references to files are not the same");
    }
    return true;
}

/* --- files --- */

struct content {
    struct digest *digest;
    int64_t size;
};

static bool add_piece(void *context, struct bytes piece)
{
    struct content *content = context;
    digest_add(content->digest, piece);
    content->size += (int64_t)piece.size;
    return true;
}

static void check_file(struct ns_check *check, const struct blob_digest *digest, int64_t size)
{
    struct findings *findings = &check->verification->findings;
    struct content content = {.digest = check->digest};
    struct blob_digest present;
    enum fault fault = stored_files_read_name(check->store, digest, add_piece, &content);
    digest_end(check->digest, present.bytes);
    present = blob_sealed_name(&check->keys, &present);
    if (fault)
        findings_add_file(findings, digest,
                          fault == FAULT_NFILE      ? "is missing"
                          : fault == FAULT_BCONTENT ? "is damaged: it was altered or cut off"
                                                    : "cannot be read");
    else if (blob_sealed_size(&check->keys, content.size) != size)
        findings_add_file(findings, digest, "has another size");
    else if (memcmp(&present, digest, sizeof present) != 0)
        findings_add_file(findings, digest, "is damaged: its bytes are not those of its digest");
    check->verification->files++;
    check->verification->bytes += size;
    progress_show(&check->progress, check->verification->sum.documents, check->verification->files);
}

/* Files that are referred to, whether they are registered or not, and registered ones. */
static bool ns_verifier_check_files(struct ns_check *check)
{
    static const char sql[] =
        "copy (select coalesce(b.digest, r.digest), b.size, r.digest is not null from stampd.blob b full join"
        " (select distinct digest from stampd.blob_ref) r on r.digest = b.digest order by 1)"
        " to stdout (format binary)";
    enum { DIGEST, SIZE, IS_USED };
    struct pg *pg = check->snapshot.documents;
    struct pg_copy_row row;
    struct blob_digest digest;
    enum fault fault = pg_copy_out(pg, sql);
    while (!fault && !(fault = pg_copy_next(pg, &row)) && row.count) {
        if (row.fields[DIGEST].size != sizeof digest)
            continue; /* the table refuses others */
        memcpy(&digest, row.fields[DIGEST].data, sizeof digest);
        if (!pg_copy_bool(row.fields[IS_USED]))
            check->verification->unused++;
        else if (!row.fields[SIZE].data)
            findings_add_file(&check->verification->findings, &digest, "is referred to, and not registered");
        else
            check_file(check, &digest, pg_copy_i64(row.fields[SIZE]));
    }
    if (fault)
        message_print("reading the files of attachments: %s", pg_message(pg));
    return !fault;
}

/* Of one part of the store, files that no row has: an upload of this moment, or what a crash has left. */
static bool count_unregistered(struct ns_check *check, const struct blob_entry *entries, size_t count)
{
    struct control own = *check->control;
    struct pg_result *rows;
    struct bytes *digests = ARENA_ARRAY(check->arena, struct bytes, count);
    int64_t *sizes = ARENA_ARRAY(check->arena, int64_t, count);
    own.arena = check->arena;
    for (size_t i = 0; i < count; i++) {
        digests[i] = blob_store_digits(check->arena, &entries[i].digest);
        sizes[i] = entries[i].size;
    }
    const struct pg_params *params = PG_PARAMS(check->arena, PG_TEXTS(digests, count), PG_I64S(sizes, count));
    if (!control_query(
            &own, check->snapshot.documents, "looking up files of the store",
            "select count(*), coalesce(sum(u.size), 0)::bigint from unnest($1::text[], $2::bigint[])"
            " u(digest, size) where not exists (select from stampd.blob b where b.digest ="
            " decode(u.digest, 'hex'))",
            params, &rows))
        return false;
    check->verification->unregistered += pg_get_i64(rows, 0, 0);
    check->verification->unregistered_bytes += pg_get_i64(rows, 0, 1);
    return true;
}

static bool find_unregistered(struct ns_check *check)
{
    bool is_done = true;
    for (int shelf = 0; shelf < BLOB_SHELVES && is_done; shelf++) {
        struct blob_entry *entries = NULL;
        size_t count = 0;
        is_done = !blob_store_list(stored_files_directory(check->store),
                                   bytes_of(check->target->conf->database), shelf, &entries, &count);
        if (!is_done)
            message_print("blob_directory = %s cannot be read", check->control->settings.blob_directory);
        else if (count)
            is_done = count_unregistered(check, entries, count);
        free(entries);
        arena_reset(check->arena);
    }
    return is_done;
}

/* Documents and references as they are in one snapshot; each file is read after it.  False: it was not
 * completed, which has been reported; what differs is in `findings`, whose arena the caller sets. */
static bool ns_verifier_run(struct control *control, const struct ns_target *target,
                            struct ns_verification *verification)
{
    struct ns_check check = {.control = control, .target = target, .verification = verification};
    struct data_keys *keys;
    if (!ns_keys_read(control, target->pg, &keys))
        return false;
    if (!archive_rows_begin_snapshot(control, target->pg, target->conf->database, &check.snapshot))
        return false;
    check.arena = arena_create("verification");
    check.digest = digest_create();
    check.store = stored_files_open(control, target->conf->database);
    check.keys = data_keys_of_files(keys);
    stored_files_set_keys(check.store, keys);
    progress_start(&check.progress, 0, check.snapshot.document_rows);
    bool is_done = check_documents(&check) && check_volumes(&check) && check_references(&check, keys) &&
                   ns_verifier_check_files(&check) && find_unregistered(&check) &&
                   archive_rows_end_snapshot(&check.snapshot);
    progress_clear(&check.progress);
    stored_files_close(check.store);
    digest_destroy(check.digest);
    arena_destroy(check.arena);
    return is_done;
}

/* --- the command --- */

static void cmd_verify_report(const char *path, const struct archive_contents *contents)
{
    printf("%s: whole%s: %.*s as of %lld, %lld documents, %lld deleted ones, %lld items, %zu files%s\n", path,
           contents->key.data ? ", encrypted" : "", (int)contents->ns.size, contents->ns.data,
           (long long)contents->at, (long long)contents->sum.documents, (long long)contents->sum.deleted,
           (long long)contents->sum.items, contents->files.count,
           contents->is_increment ? ", an increment" : "");
}

static int cmd_verify_end(struct findings *findings, const char *whole)
{
    arena_destroy(findings->arena);
    if (findings->count)
        message_print("%lld differences", (long long)findings->count);
    else
        printf("%s\n", whole);
    return findings->count ? CONTROL_FAILED : CONTROL_DONE;
}

static int verify_namespace(struct control *control, const struct ns_target *target)
{
    const char *code = target->conf->code;
    struct ns_verification result = {.findings = {.arena = arena_create("findings")}};
    bool is_done = ns_verifier_run(control, target, &result);
    if (!is_done) {
        arena_destroy(result.findings.arena);
        return CONTROL_FAILED;
    }
    printf("%s: %lld documents, %lld deleted ones, %lld items, %lld files of attachments, %lld bytes\n", code,
           (long long)result.sum.documents, (long long)result.sum.deleted, (long long)result.sum.items,
           (long long)result.files, (long long)result.bytes);
    if (result.unused || result.unregistered)
        printf("%s: no attachment has %lld files; %lld more, of %lld bytes, are not registered: the server "
               "removes them\n",
               code, (long long)result.unused, (long long)result.unregistered,
               (long long)result.unregistered_bytes);
    return cmd_verify_end(&result.findings, "everything is as it should be");
}

static int cmd_verify_compare(struct control *control, const struct ns_target *target, const char *path,
                              const struct archive_contents *contents)
{
    const char *code = target->conf->code;
    struct archive_comparison result = {.findings = {.arena = arena_create("findings")}};
    if (!archive_comparison_run(control, target, path, contents, &result)) {
        arena_destroy(result.findings.arena);
        return CONTROL_FAILED;
    }
    printf("%s: %lld documents are the same, %lld differ, %lld are missing, %lld are not in the archive; "
           "%lld of "
           "%lld files are there\n",
           code, (long long)result.same, (long long)result.other, (long long)result.missing,
           (long long)result.more, (long long)(result.files - result.missing_files), (long long)result.files);
    return cmd_verify_end(&result.findings, "the namespace has what the archive has");
}

static int cmd_verify_verify(struct control *control, const char *path, const char *code,
                             const char *key_path)
{
    struct archive_contents contents;
    struct ns_target target;
    struct bytes key;
    if (!archive_key_read(control, key_path, &key) || (code && !control_load_settings(control)))
        return CONTROL_FAILED;
    if (path && !archive_verify(control->arena, path, key, true, &contents))
        return CONTROL_FAILED;
    if (path)
        cmd_verify_report(path, &contents);
    if (!code)
        return CONTROL_DONE;
    if (!ns_registry_connect(control, code, &target))
        return CONTROL_FAILED;
    return path ? cmd_verify_compare(control, &target, path, &contents) : verify_namespace(control, &target);
}

int control_verify(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "verify", "[ARCHIVE]", "Check an archive, a namespace, or one against the other.",
        "ARCHIVE: it is whole and was not altered.  --ns CODE: the volumes of its documents, its references "
        "to "
        "files, and\n"
        "the bytes of every file.  Both: what the namespace has other than the archive.  Exit status 1: "
        "something differs.\n");
    const char *key_path = NULL, *code = NULL;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        OPTION_TEXT("ns", "CODE", &code, "Check this namespace."),
                                        ARCHIVE_KEY_LINE(&key_path)};
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!control->word_count && !code)
        return message_end(CONTROL_WRONG, "verify: expected ARCHIVE, --ns CODE, or both");
    return cmd_verify_verify(control, control->word_count ? words[0] : NULL, code, key_path);
}
