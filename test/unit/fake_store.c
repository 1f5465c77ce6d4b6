/* fake_store: see the header. */
#include "fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/expiry.h"
#include "fake_tasks.h"
#include "segment/segment.h"
#include "store/store_long.h"
#include "store/collections/store_stream.h"
#include "store/documents/store_commit.h"
#include "store/collections/store_copies.h"
#include "store/documents/store_idempotency.h"
#include "store/collections/store_list.h"
#include "store/documents/store_load.h"
#include "store/documents/store_owners.h"
#include "store/documents/store_schema.h"
#include "store/store_sealing.h"
#include "store/collections/store_search.h"

enum { ROWS = 128, ANSWERS = 16 };

struct fake_store fake;
static struct document *rows[ROWS];
static size_t row_count;
static int64_t floor_now;
static struct idempotency answers[ANSWERS];
static size_t answer_count;

void fake_reset(void)
{
    for (size_t i = 0; i < row_count; i++)
        document_release(rows[i]);
    row_count = 0;
    fake_forget_kept();
    fake_forget_tasks();
    floor_now = 0;
    fake = (struct fake_store){.outcome = COMMIT_DONE};
}

/* --- answers --- */

static struct bytes copy(struct bytes text)
{
    char *data = malloc(text.size + 1);
    if (text.size)
        memcpy(data, text.data, text.size);
    return (struct bytes){data, text.size};
}

void fake_keep(const struct idempotency *kept)
{
    answers[answer_count++] = (struct idempotency){.account = copy(kept->account),
                                                   .key = copy(kept->key),
                                                   .digest = copy(kept->digest),
                                                   .mime = copy(kept->mime),
                                                   .answer = copy(kept->answer),
                                                   .version = kept->version,
                                                   .versions_after = copy(kept->versions_after)};
}

static const struct idempotency *find_kept(struct bytes account, struct bytes key)
{
    for (size_t i = 0; i < answer_count; i++)
        if (bytes_equal(answers[i].key, key) && (!account.data || bytes_equal(answers[i].account, account)))
            return &answers[i];
    return NULL;
}

const struct idempotency *fake_kept(const char *key)
{
    return find_kept(NO_BYTES, bytes_of(key));
}

void fake_forget_kept(void)
{
    while (answer_count) {
        struct idempotency *idempotency = &answers[--answer_count];
        struct bytes texts[] = {idempotency->account, idempotency->key,    idempotency->digest,
                                idempotency->mime,    idempotency->answer, idempotency->versions_after};
        for (size_t i = 0; i < COUNT_OF(texts); i++)
            free((void *)(uintptr_t)texts[i].data);
    }
}

enum fault store_spool_find(struct store *store, int ns, struct arena *arena, const struct spool_batch *batch,
                            struct spool_known *known_r, int64_t *forgotten_r)
{
    (void)store, (void)ns, (void)arena;
    memset(known_r, 0, batch->count * sizeof *known_r);
    *forgotten_r = 0;
    return FAULT_NONE;
}

enum fault store_idempotency_find(struct store *store, int ns, struct arena *arena,
                                  struct idempotency *idempotency, bool *found_r)
{
    (void)store, (void)ns, (void)arena;
    const struct idempotency *kept = find_kept(idempotency->account, idempotency->key);
    fake.finds++;
    *found_r = !fake.find_fault && kept;
    if (*found_r)
        *idempotency = *kept;
    if (fake.after_find)
        fake.after_find();
    return fake.find_fault;
}

/* --- documents --- */

void fake_set_floor(int64_t floor)
{
    floor_now = floor;
}

static struct document **find(struct bytes class, struct bytes id)
{
    for (size_t i = 0; i < row_count; i++)
        if (bytes_equal(rows[i]->header.class, class) && bytes_equal(rows[i]->header.id, id))
            return &rows[i];
    return NULL;
}

static void store_row(struct document *document)
{
    struct document **row = find(document->header.class, document->header.id);
    if (row) {
        document_release(*row);
        *row = document;
    } else {
        rows[row_count++] = document;
    }
}

void fake_change(const char *class, const char *id, int64_t version, const char *content)
{
    struct document **row = find(bytes_of(class), bytes_of(id));
    int64_t birth = row && document_exists(*row) ? (*row)->header.ctime : version;
    const struct header header = {.class = bytes_of(class),
                                  .id = bytes_of(id),
                                  .version = version,
                                  .ctime = content ? birth : 0,
                                  .dtime = content ? birth : 0};
    const struct item item = {.iclass = strcmp(class, "Namespace") ? BYTES("Sta") : BYTES("Conf"),
                              .key = BYTES(""),
                              .version = version,
                              .vop = version,
                              .content = bytes_of(content)};
    store_row(document_build(&header, &item, content ? 1 : 0));
}

int64_t fake_version(const char *class, const char *id)
{
    struct document **row = find(bytes_of(class), bytes_of(id));
    return row ? (*row)->header.version : 0;
}

struct store *store_create(const struct settings *settings, struct segment *segment)
{
    (void)settings, (void)segment;
    return (struct store *)&fake;
}

void store_destroy(struct store *store)
{
    (void)store;
}

enum fault store_connect(struct store *store, int ns)
{
    (void)store, (void)ns;
    return FAULT_NONE;
}

enum fault store_reconnect(struct store *store, int ns, int64_t patience_ms)
{
    (void)store, (void)ns, (void)patience_ms;
    return fake.reconnect_fault;
}

static void judge_expiry(struct document *document)
{
    struct schema_problem problem;
    struct schema *schema;
    if (!fake.schema)
        return;
    struct arena *arena = arena_create("fake schema");
    if (!schema_read(arena, bytes_of(fake.schema), &schema, &problem))
        document->until = expiry_of(schema, document);
    arena_destroy(arena);
}

enum fault store_load_part(struct store *store, int ns, struct arena *arena, struct load *loads, size_t count,
                           size_t bytes_most)
{
    size_t bytes = 0;
    (void)store, (void)ns, (void)arena;
    if (fake.load_fault)
        return fake.load_fault;
    fake.round_trips++;
    for (size_t i = 0; i < count && bytes < bytes_most; i++) {
        struct document **row = find(loads[i].class, loads[i].id);
        const struct header absent = {.class = loads[i].class, .id = loads[i].id, .floor = floor_now};
        loads[i].document = row ? document_hold(*row) : document_build(&absent, NULL, 0);
        judge_expiry(loads[i].document);
        bytes += loads[i].document->block_bytes;
        fake.loads++;
    }
    if (fake.after_load)
        fake.after_load();
    return FAULT_NONE;
}

enum fault store_load_many(struct store *store, int ns, struct arena *arena, struct load *loads, size_t count)
{
    return store_load_part(store, ns, arena, loads, count, SIZE_MAX);
}

enum fault store_load(struct store *store, int ns, struct arena *arena, struct load *load)
{
    return store_load_many(store, ns, arena, load, 1);
}

enum fault store_snapshot_begin(struct store *store, int ns)
{
    (void)store, (void)ns;
    fake.snapshots++;
    return FAULT_NONE;
}

void store_snapshot_end(struct store *store, int ns)
{
    (void)store, (void)ns;
}

static enum fault verify(struct commit *commit)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < commit->count; i++) {
        const struct header *header = &commit->documents[i].base->header;
        struct document **row = find(header->class, header->id);
        commit->documents[i].moved = (row ? (*row)->header.version : 0) != header->version;
        if (commit->documents[i].moved)
            fault = FAULT_STALE;
    }
    return fault;
}

enum fault store_commit_verify(struct store *store, int ns, struct arena *arena, struct commit *commit)
{
    (void)store, (void)ns, (void)arena;
    fake.verifies++;
    return verify(commit);
}

/* What the statements would leave behind: the base's live items under those of the commit. */
static void write_row(const struct commit_document *written, int64_t version)
{
    const struct draft_rows *changes = &written->rows;
    struct header header = changes->header;
    header.version = version;
    size_t most = written->base->item_count + changes->item_count;
    struct item *items = calloc(most + 1, sizeof *items);
    size_t count = 0, b = 0, c = 0;
    bool keeps = written->act == DRAFT_WRITE && document_exists(written->base);
    while (c < changes->item_count || (keeps && b < written->base->item_count)) {
        const struct item *old = keeps && b < written->base->item_count ? &written->base->items[b] : NULL;
        const struct item *new = c < changes->item_count ? changes->items[c] : NULL;
        int order = !old ? 1 : !new ? -1 : item_compare(old->iclass, old->key, new->iclass, new->key);
        items[count++] = order < 0 ? *old : *new;
        b += order <= 0;
        c += order >= 0;
    }
    store_row(document_build(&header, items, written->act == DRAFT_DELETE ? 0 : count));
    free(items);
}

/* --- copies --- */

enum fault store_copies_read(struct store *store, int ns, struct arena *arena, const struct schema *schema,
                             struct copy_batch *batch, size_t limit)
{
    (void)store, (void)ns, (void)arena, (void)limit;
    batch->schema = schema->number;
    batch->sources = fake.due.sources;
    batch->source_count = fake.due.source_count;
    return fake.load_fault;
}

enum fault store_copies_find(struct store *store, int ns, struct arena *arena, struct copy_batch *batch,
                             const struct copy_position *after, size_t limit, struct copy_position *last_r)
{
    (void)store, (void)ns, (void)arena, (void)after, (void)limit;
    batch->targets = fake.due.targets;
    batch->target_count = fake.due.target_count;
    *last_r = (struct copy_position){0};
    return FAULT_NONE;
}

static void note_copies(const struct commit *commit)
{
    for (size_t i = 0; i < commit->notes.count; i++) {
        const struct copy_note *note = &commit->notes.list[i];
        assert(fake.note_count < COUNT_OF(fake.notes));
        snprintf(fake.notes[fake.note_count++].text, sizeof fake.notes->text, "%.*s.%.*s %.*s.%.*s",
                 (int)note->class.size, note->class.data, (int)note->id.size, note->id.data,
                 (int)note->iclass.size, note->iclass.data, (int)note->key.size, note->key.data);
    }
    if (commit->copies)
        fake.copy_count += commit->copies->target_count;
}

enum commit_outcome store_commit(struct store *store, int ns, struct arena *arena, struct commit *commit,
                                 enum fault *fault_r)
{
    (void)store, (void)ns, (void)arena;
    fake.commits++;
    if (fake.before_commit)
        fake.before_commit();
    *fault_r = FAULT_NONE;
    bool is_lost = fake.outcome == COMMIT_UNKNOWN && fake.is_lost;
    if (fake.outcome != COMMIT_DONE && !is_lost) {
        *fault_r = fake.outcome_fault;
        return fake.outcome;
    }
    *fault_r = commit->idempotency && find_kept(commit->idempotency->account, commit->idempotency->key)
                   ? FAULT_STALE
                   : verify(commit);
    if (!*fault_r)
        *fault_r = fake_commit_tasks(commit);
    if (*fault_r)
        return COMMIT_REFUSED;
    for (size_t i = 0; i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ)
            write_row(&commit->documents[i], commit->version);
    if (commit->idempotency)
        fake_keep(commit->idempotency);
    note_copies(commit);
    fake.session = commit->match.own;
    commit->match = fake.match;
    return is_lost ? COMMIT_UNKNOWN : COMMIT_DONE;
}

enum fault store_list(struct store *store, int ns, struct arena *arena, const struct list_query *query,
                      struct header **headers_r, size_t *count_r, struct bytes *more_r)
{
    (void)store, (void)ns;
    *headers_r = ARENA_ARRAY(arena, struct header, ROWS);
    *count_r = 0;
    *more_r = NO_BYTES;
    for (size_t i = 0; i < row_count; i++)
        if (document_exists(rows[i]) && bytes_equal(rows[i]->header.class, query->class))
            (*headers_r)[(*count_r)++] = rows[i]->header;
    return FAULT_NONE;
}

/* Above `cursor`, the least one not yet there, again and again. */
enum fault store_list_classes(struct store *store, int ns, struct arena *arena, struct bytes cursor,
                              int32_t limit, struct bytes **classes_r, size_t *count_r)
{
    (void)store, (void)ns;
    *classes_r = ARENA_ARRAY(arena, struct bytes, ROWS);
    *count_r = 0;
    while (*count_r < (size_t)limit) {
        struct bytes least = NO_BYTES;
        for (size_t i = 0; i < row_count; i++) {
            struct bytes class = rows[i]->header.class;
            if (bytes_compare(class, cursor) > 0 && (!least.data || bytes_compare(class, least) < 0))
                least = class;
        }
        if (!least.data)
            break;
        (*classes_r)[(*count_r)++] = cursor = least;
    }
    return FAULT_NONE;
}

/* Of the namespace alone. */
enum fault store_list_volumes(struct store *store, int ns, struct arena *arena, int32_t limit,
                              struct volume **volumes_r, size_t *count_r)
{
    (void)store, (void)ns, (void)limit;
    *volumes_r = ARENA_ARRAY(arena, struct volume, 1);
    *count_r = 1;
    for (size_t i = 0; i < row_count; i++)
        (*volumes_r)->documents += document_exists(rows[i]);
    return FAULT_NONE;
}

/* No collection is declared. */
enum fault store_collection(struct store *store, int ns, const struct collection_query *query,
                            struct collection_page *page_r)
{
    (void)store, (void)ns, (void)query;
    *page_r = (struct collection_page){0};
    return FAULT_NONE;
}

enum fault store_stream_begin(struct store *store, int ns, const struct collection_query *query,
                              bool with_documents, int64_t deadline_ms, struct collection_page *page_r,
                              struct store_stream **stream_r)
{
    (void)store, (void)ns, (void)query, (void)with_documents, (void)deadline_ms;
    *page_r = (struct collection_page){0};
    *stream_r = NULL;
    return FAULT_NONE;
}

enum fault store_stream_next(struct store_stream *stream, const struct store_stream_row **row_r)
{
    (void)stream;
    *row_r = NULL;
    return FAULT_NONE;
}

void store_stream_end(struct store_stream *stream)
{
    (void)stream;
}

enum fault store_owners_declare(struct store *store, int ns, struct arena *arena, struct bytes owners)
{
    (void)store, (void)ns, (void)arena, (void)owners;
    return FAULT_NONE;
}

enum fault store_owners_find(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                             struct bytes class UNUSED, struct bytes id UNUSED, struct bytes *account_r,
                             int64_t *bytes_r)
{
    *account_r = NO_BYTES;
    *bytes_r = 0;
    return FAULT_NONE;
}

enum fault store_schema_progress(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                 struct bytes *text_r)
{
    *text_r = BYTES("{}");
    return FAULT_NONE;
}

enum fault store_schema(struct store *store, int ns, struct arena *arena, const struct schema **schema_r)
{
    (void)store, (void)ns;
    static const struct schema empty;
    *schema_r = &empty;
    if (!fake.schema)
        return FAULT_NONE;
    struct schema *schema;
    struct schema_problem problem;
    enum fault fault = schema_read(arena, bytes_of(fake.schema), &schema, &problem);
    *schema_r = schema;
    return fault;
}

enum fault store_search(struct store *store, int ns, struct arena *arena, const struct search *search,
                        struct search_page *page_r)
{
    (void)store, (void)ns, (void)arena, (void)search;
    *page_r = (struct search_page){0};
    return FAULT_NONE;
}

enum fault store_search_marks(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                              const struct search_condition *match UNUSED, struct bytes texts UNUSED,
                              struct bytes secret UNUSED, size_t count UNUSED, struct bytes *rows_r UNUSED)
{
    return FAULT_XDATABASE;
}

enum fault store_search_totals(struct store *store, int ns, struct arena *arena, const struct search *search,
                               const struct search_totals *totals, const struct search_approved *approved,
                               struct search_sums *sums_r)
{
    (void)store, (void)ns, (void)arena, (void)search, (void)totals, (void)approved;
    *sums_r = (struct search_sums){0};
    return FAULT_NONE;
}

enum fault store_search_count(struct store *store, int ns, struct arena *arena, const struct search *search,
                              int64_t *count_r)
{
    (void)store, (void)ns, (void)arena, (void)search;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_search_named(struct store *store, int ns, struct arena *arena,
                              const struct named_search *search, int64_t schema_number,
                              const struct pg_params *values, struct named_rows *rows_r)
{
    (void)store, (void)ns, (void)arena, (void)search, (void)schema_number, (void)values;
    *rows_r = (struct named_rows){0};
    return FAULT_NONE;
}

bool store_schema_judge_expiry(struct store *store, int ns, struct document *document)
{
    (void)store, (void)ns;
    judge_expiry(document);
    return !fake.is_forgetful;
}

enum fault store_schema_confirm(struct store *store, int ns, struct arena *arena, const struct schema *schema)
{
    (void)store, (void)ns, (void)arena, (void)schema;
    return FAULT_NONE;
}

enum fault store_search_select(struct store *store, int ns, struct arena *arena,
                               const struct selection *selection, struct bytes *rows_r)
{
    (void)store, (void)ns, (void)arena;
    fake.selects++;
    fake.selected = selection->count ? selection->values[0] : NO_BYTES;
    *rows_r = fake.rows ? bytes_of(fake.rows) : NO_BYTES;
    return fake.select_fault;
}

void store_set_requester(struct store *store, const struct store_requester *requester)
{
    (void)store, (void)requester;
}

bool store_rest(struct store *store UNUSED)
{
    return false;
}

void store_clear_requester(struct store *store)
{
    (void)store;
}

enum fault store_long_enter(struct store *store, int ns)
{
    (void)store, (void)ns;
    return FAULT_NONE;
}

enum fault store_long_enter_late(struct store *store, int ns)
{
    (void)store, (void)ns;
    return FAULT_NONE;
}

const char *store_reading_refused(const struct store *store, enum fault fault, int64_t *value_r)
{
    (void)store, (void)fault;
    *value_r = 0;
    return NULL;
}

enum fault store_sealing_digest(struct store *store, int ns, struct arena *arena, struct bytes secret,
                                struct bytes kind, struct bytes text, struct bytes *digest_r)
{
    (void)store, (void)ns;
    static const struct data_keys none;
    *digest_r = data_keys_digest(&none, arena, secret, kind, text);
    return FAULT_NONE;
}

struct bytes store_sealing_id(const struct store *store, int ns, struct arena *arena, struct bytes class,
                              struct bytes id)
{
    (void)store, (void)ns;
    return data_keys_seal_id(&fake.keys, arena, class, id);
}

const struct data_keys *store_sealing_keys(const struct store *store, int ns)
{
    (void)store, (void)ns;
    return &fake.keys;
}

enum fault store_sealing_open_id(const struct store *store, int ns, struct arena *arena, struct bytes class,
                                 struct bytes *id)
{
    (void)store, (void)ns;
    return data_keys_open_id(&fake.keys, arena, class, id) ? FAULT_NONE : FAULT_BCONTENT;
}

void store_set_visitor(struct store *store, int ns)
{
    (void)store;
    (void)ns;
}

void store_clear_visitor(struct store *store)
{
    (void)store;
}
