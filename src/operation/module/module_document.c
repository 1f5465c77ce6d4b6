/* module_document: documents and items for modules (stampd.h).
 *
 * A document that could not be loaded appears as one that does not exist and does not change: the try has
 * failed, so what the module does with it has no effect. */
#include "operation/module/module_document.h"

#include "model/document/copies.h"
#include "model/document/draft.h"
#include "operation/classes.h"
#include "operation/module/module_convert.h"
#include "operation/module/module_try.h"
#include "operation/access/other_namespace.h"
#include "operation/sync/sync.h"
#include "document/transaction.h"

/* --- documents --- */

static struct stampd_document *find_document(const struct stampd_call *call, const char *document_class,
                                             const char *id)
{
    struct stampd_document *document = module_try_documents(call);
    while (document &&
           (strcmp(document->id, id) != 0 || strcmp(document->document_class, document_class) != 0))
        document = document->next;
    return document;
}

/* A document new to this try: no draft yet. */
static struct stampd_document *add_document(struct stampd_call *call, const char *document_class,
                                            const char *id)
{
    struct stampd_document *document = ARENA_NEW(module_try_arena(call), struct stampd_document);
    *document = (struct stampd_document){
        .call = call,
        .next = module_try_documents(call),
        .document_class = arena_copy(module_try_arena(call), document_class, strlen(document_class)),
        .id = arena_copy(module_try_arena(call), id, strlen(id)),
    };
    module_try_set_documents(call, document);
    return document;
}

static struct stampd_document *get_document(struct stampd_call *call, const char *document_class,
                                            const char *id)
{
    struct stampd_document *document = find_document(call, document_class, id);
    return document ? document : add_document(call, document_class, id);
}

/* Is the name valid?  The class is the application's; the id may have come from outside. */
static bool judge_name(struct stampd_call *call, const char *document_class, const char *id)
{
    size_t size = strlen(id);
    if (module_try_is_afterwork(call))
        module_try_fail(call, FAULT_BMODULE, "Afterwork cannot fetch documents.", document_class);
    else if (!item_is_class_name(bytes_of(document_class)))
        module_try_fail(call, FAULT_BMODULE, "This is no name of a class.", document_class);
    else if (!size || !bytes_is_utf8(bytes_of(id)))
        module_try_fail(call, FAULT_AARG, "The id of a document must be UTF-8 and not empty.",
                        document_class);
    else if ((int64_t)size > module_try_settings(call)->limit_name_bytes)
        module_try_fail_limit(call, "limit_name_bytes", module_try_settings(call)->limit_name_bytes,
                              (int64_t)size);
    return !module_try_fault(call);
}

static struct document_name module_document_name_of(const struct stampd_document *document)
{
    return (struct document_name){.class = bytes_of(document->document_class), .id = bytes_of(document->id)};
}

/* Loads them all, or records why not. */
static void module_document_fetch(struct stampd_call *call, struct stampd_document **documents, size_t count)
{
    struct document_name *names = ARENA_ARRAY(module_try_arena(call), struct document_name, count);
    struct draft **drafts = ARENA_ARRAY(module_try_arena(call), struct draft *, count);
    for (size_t i = 0; i < count; i++)
        names[i] = module_document_name_of(documents[i]);
    module_try_unwatch(call);
    enum fault fault = transaction_fetch_many(module_try_attempt(call)->transaction, names, count, drafts);
    module_try_watch(call);
    if (fault == FAULT_ALIMIT)
        module_try_fail_limit(call, "limit_documents", module_try_settings(call)->limit_documents,
                              module_try_settings(call)->limit_documents + 1);
    else if (fault)
        module_try_fail(call, fault, NULL, NULL);
    for (size_t i = 0; !fault && i < count; i++) {
        documents[i]->draft = drafts[i];
        documents[i]->may_change = true;
    }
}

static bool is_in_time(struct stampd_call *call)
{
    if (stampd_time_left_ms(call) < 0)
        module_try_fail(call, FAULT_XTIME, NULL, NULL);
    return !module_try_fault(call);
}

void stampd_fetch_many(struct stampd_call *call, const struct stampd_name *names, size_t count,
                       struct stampd_document **documents_r)
{
    struct stampd_document **missing = ARENA_ARRAY(module_try_arena(call), struct stampd_document *, count);
    size_t missing_count = 0;
    for (size_t i = 0; i < count; i++) {
        documents_r[i] = get_document(call, names[i].document_class, names[i].id);
        if (!documents_r[i]->may_change && judge_name(call, names[i].document_class, names[i].id))
            missing[missing_count++] = documents_r[i];
    }
    if (!module_try_fault(call) && missing_count && is_in_time(call))
        module_document_fetch(call, missing, missing_count);
}

struct stampd_document *stampd_fetch(struct stampd_call *call, const char *document_class, const char *id)
{
    struct stampd_document *document = get_document(call, document_class, id);
    if (!document->may_change && judge_name(call, document_class, id) && is_in_time(call))
        module_document_fetch(call, &document, 1);
    return document;
}

struct stampd_document *stampd_read(struct stampd_call *call, const char *document_class, const char *id,
                                    int64_t tolerance_s)
{
    const struct document *found;
    struct stampd_document *document = get_document(call, document_class, id);
    if (tolerance_s < 1)
        module_try_fail(call, FAULT_BMODULE, "A tolerance of at least 1 second is expected.", document_class);
    if (document->draft || !judge_name(call, document_class, id) || !is_in_time(call))
        return document;
    module_try_unwatch(call);
    enum fault fault = transaction_read(module_try_attempt(call)->transaction,
                                        module_document_name_of(document), tolerance_s, &found);
    module_try_watch(call);
    if (fault)
        module_try_fail(call, fault, NULL, NULL);
    else
        document->draft =
            draft_open(module_try_arena(call), (struct document *)found); /* never changed: may_change */
    return document;
}

/* Not among those of the try: a document of the same name may be. */
struct stampd_document *stampd_read_other(struct stampd_call *call, const char *ns,
                                          const char *document_class, const char *id, int64_t tolerance_s)
{
    struct arena *arena = module_try_arena(call);
    struct stampd_document *document = ARENA_NEW(arena, struct stampd_document);
    const struct document *found;
    *document = (struct stampd_document){
        .call = call,
        .document_class = arena_copy(arena, document_class, strlen(document_class)),
        .id = arena_copy(arena, id, strlen(id)),
    };
    if (tolerance_s < 1)
        module_try_fail(call, FAULT_BMODULE, "A tolerance of at least 1 second is expected.", document_class);
    if (!judge_name(call, document_class, id) || !is_in_time(call))
        return document;
    module_try_unwatch(call);
    enum fault fault =
        other_namespace_read(module_try_attempt(call), bytes_of(arena_copy(arena, ns, strlen(ns))),
                             module_document_name_of(document), tolerance_s, &found);
    module_try_watch(call);
    if (fault)
        module_try_fail(call, fault, NULL, NULL);
    else
        document->draft = draft_open(arena, (struct document *)found); /* never changed: may_change */
    return document;
}

void stampd_grant_read(struct stampd_call *call, const char *document_class, const char *id)
{
    struct arena *arena = module_try_arena(call);
    if (!(module_try_operation(call)->flags & STAMPD_GRANTS_READ))
        module_try_fail(call, FAULT_BMODULE, "An operation that does not declare it has granted a document.",
                        document_class);
    if (!judge_name(call, document_class, id))
        return;
    struct bytes class = bytes_of(document_class), text = bytes_of(id);
    sync_grant(module_try_attempt(call),
               (struct document_name){.class = {arena_copy(arena, class.data, class.size), class.size},
                                      .id = {arena_copy(arena, text.data, text.size), text.size}});
}

const char *stampd_document_class(const struct stampd_document *document)
{
    return document->document_class;
}

const char *stampd_document_id(const struct stampd_document *document)
{
    return document->id;
}

bool stampd_exists(const struct stampd_document *document)
{
    return document->draft && draft_exists(document->draft);
}

/* Headers of documents that do not exist have a version too, that of their zombie: modules do not get it. */
static const struct header *header_of(const struct stampd_document *document)
{
    static const struct header none;
    const struct document *base = document->draft ? draft_base(document->draft) : NULL;
    return base && document_exists(base) ? &base->header : &none;
}

int64_t stampd_version(const struct stampd_document *document)
{
    return header_of(document)->version;
}

int64_t stampd_ctime(const struct stampd_document *document)
{
    return header_of(document)->ctime;
}

int64_t stampd_dtime(const struct stampd_document *document)
{
    return header_of(document)->dtime;
}

bool stampd_is_changed(const struct stampd_document *document)
{
    return document->draft && draft_is_changed(document->draft);
}

int64_t stampd_volume(const struct stampd_document *document)
{
    return document->draft ? draft_volume(document->draft) : 0;
}

/* --- changes --- */

static bool judge_change(struct stampd_document *document)
{
    struct stampd_call *call = document->call;
    if (module_try_fault(call))
        return false;
    if (module_try_operation(call)->is_read_only)
        module_try_fail(call, FAULT_BREADONLY, "The operation is declared to be read-only.",
                        document->document_class);
    else if (!document->may_change)
        module_try_fail(call, FAULT_BREADONLY, document->id, document->document_class);
    return !module_try_fault(call);
}

void stampd_create(struct stampd_document *document)
{
    if (judge_change(document))
        draft_create(document->draft);
}

void stampd_delete(struct stampd_document *document)
{
    if (judge_change(document))
        draft_delete(document->draft);
}

/* --- items --- */

static struct bytes module_document_key_of(const char *key)
{
    return key ? bytes_of(key) : BYTES("");
}

static void return_item(const struct stampd_document *document, const struct item *item,
                        struct stampd_item *item_r)
{
    *item_r = item_to(module_try_arena(document->call), item);
}

static const struct item *find_item(const struct stampd_document *document, const char *item_class,
                                    const char *key)
{
    return document->draft
               ? draft_find_item(document->draft, bytes_of(item_class), module_document_key_of(key))
               : NULL;
}

static bool return_found(const struct stampd_document *document, const struct item *item,
                         struct stampd_item *item_r)
{
    if (item && item_r)
        return_item(document, item, item_r);
    else if (item_r)
        *item_r = (struct stampd_item){0};
    return item != NULL;
}

bool stampd_find_item(const struct stampd_document *document, const char *item_class, const char *key,
                      struct stampd_item *item_r)
{
    return return_found(document, find_item(document, item_class, key), item_r);
}

bool stampd_find_loaded_item(const struct stampd_document *document, const char *item_class, const char *key,
                             struct stampd_item *item_r)
{
    const struct document *base = document->draft ? draft_base(document->draft) : NULL;
    const struct item *item = base && document_exists(base) ? document_find_item(base, bytes_of(item_class),
                                                                                 module_document_key_of(key))
                                                            : NULL;
    return return_found(document, item && !item_is_tombstone(item) ? item : NULL, item_r);
}

const struct stampd_json *stampd_item_value(const struct stampd_document *document, const char *item_class,
                                            const char *key)
{
    const char *what;
    const struct item *item = find_item(document, item_class, key);
    return item && !item->raw ? value_of(module_try_read_json(document->call, item->content, &what)) : NULL;
}

bool stampd_next_item(const struct stampd_document *document, const char *item_class,
                      struct stampd_item *item)
{
    struct bytes wanted = item_class ? bytes_of(item_class) : NO_BYTES;
    const struct item *next = NULL;
    if (!document->draft)
        return false;
    if (item->item_class)
        next =
            draft_next_item(document->draft, bytes_of(item->item_class), module_document_key_of(item->key));
    else if (!item_class)
        next = draft_next_item(document->draft, BYTES(""), BYTES(""));
    else if (!(next = draft_find_item(document->draft, wanted, BYTES(""))))
        next = draft_next_item(document->draft, wanted, BYTES(""));
    if (!next || (item_class && !bytes_equal(next->iclass, wanted)))
        return false;
    return_item(document, next, item);
    return true;
}

/* May an item of that name and kind be set? */
static bool judge_item(struct stampd_document *document, const char *item_class, const char *key, bool is_raw,
                       struct bytes content)
{
    struct stampd_call *call = document->call;
    const struct settings *settings = module_try_settings(call);
    struct bytes name = module_document_key_of(key);
    if (!judge_change(document))
        return false;
    const char *refusal = NULL;
    if (!item_is_class_name(bytes_of(item_class))) {
        module_try_fail(call, FAULT_BMODULE, "This is no name of a class.", item_class);
        return false;
    }
    if (item_is_reserved(bytes_of(item_class))) {
        module_try_fail(call, FAULT_BMODULE, ITEM_RESERVED, item_class);
        return false;
    }
    module_try_unwatch(call);
    enum fault fault = classes_judge(module_try_attempt(call), bytes_of(document->document_class),
                                     bytes_of(item_class), !name.size, is_raw, &refusal);
    module_try_watch(call);
    if (fault)
        module_try_fail(call, fault, NULL, NULL);
    else if (refusal)
        module_try_fail(call, FAULT_BMODULE, refusal, item_class);
    else if (!bytes_is_utf8(name))
        module_try_fail(call, FAULT_AARG, "The key of an item must be UTF-8.", item_class);
    else if ((int64_t)name.size > settings->limit_name_bytes)
        module_try_fail_limit(call, "limit_name_bytes", settings->limit_name_bytes, (int64_t)name.size);
    else if ((int64_t)content.size > settings->limit_content_bytes)
        module_try_fail_limit(call, "limit_content_bytes", settings->limit_content_bytes,
                              (int64_t)content.size);
    return !module_try_fault(call);
}

/* The names are copied, since they are short and often temporary; the content is not.  `vop`: of the
 * operation that made the content; 0: this operation. */
static void copy_item(struct stampd_document *document, const char *item_class, const char *key, bool is_raw,
                      struct bytes content, int64_t vop)
{
    struct arena *arena = module_try_arena(document->call);
    struct bytes name = module_document_key_of(key);
    if (!is_raw && bytes_equal(content, BYTES("null")))
        stampd_remove_item(document, item_class, key);
    else if (judge_item(document, item_class, key, is_raw, content))
        draft_copy_item(document->draft, bytes_of(arena_copy(arena, item_class, strlen(item_class))),
                        bytes_of(arena_copy(arena, name.data, name.size)), is_raw, content, vop);
}

static void set_item(struct stampd_document *document, const char *item_class, const char *key, bool is_raw,
                     struct bytes content)
{
    copy_item(document, item_class, key, is_raw, content, 0);
}

void stampd_set_value(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_json *value)
{
    if (value)
        set_item(document, item_class, key, false, json_of(value)->text);
    else
        module_try_fail(document->call, FAULT_BMODULE, "There is no value to be set.", item_class);
}

void stampd_set_json(struct stampd_document *document, const char *item_class, const char *key,
                     struct stampd_bytes text)
{
    struct stampd_call *call = document->call;
    struct bytes content = bytes_from(text);
    const struct json_limits limits = {.depth = (int)module_try_settings(call)->limit_depth};
    struct json *root;
    struct json_problem problem;
    if (!judge_item(document, item_class, key, false, content))
        return;
    if (!content.data || json_read(module_try_arena(call), content, &limits, &root, &problem))
        module_try_fail(call, FAULT_BMODULE, "A content to be set is no JSON.", item_class);
    else
        set_item(document, item_class, key, false, content);
}

void stampd_set_written(struct stampd_document *document, const char *item_class, const char *key,
                        struct stampd_writer *writer)
{
    stampd_set_json(document, item_class, key, stampd_written(writer));
}

void stampd_set_raw(struct stampd_document *document, const char *item_class, const char *key,
                    struct stampd_bytes text)
{
    struct bytes content = bytes_from(text);
    if (!content.data || memchr(content.data, '\0', content.size) || !bytes_is_utf8(content))
        module_try_fail(document->call, FAULT_BMODULE, "A raw content to be set is not UTF-8 without NUL.",
                        item_class);
    else
        set_item(document, item_class, key, true, content);
}

void stampd_remove_item(struct stampd_document *document, const char *item_class, const char *key)
{
    struct arena *arena = module_try_arena(document->call);
    struct bytes name = module_document_key_of(key);
    if (judge_change(document))
        draft_remove_item(document->draft, bytes_of(arena_copy(arena, item_class, strlen(item_class))),
                          bytes_of(arena_copy(arena, name.data, name.size)));
}

/* Is the item to be a copy that follows `item` (copies.md)?  Then its stamp is that of the source, so
 * that the source's stamps alone order its states; else 0. */
static int64_t followed_stamp(const struct stampd_document *document, const char *item_class, const char *key,
                              const struct stampd_document *from, const struct item *item)
{
    const struct stampd_call *call = document->call;
    const struct schema *schema;
    if (!bytes_equal(item->iclass, bytes_of(item_class)))
        return 0;
    module_try_unwatch(call);
    enum fault fault = classes_schema(module_try_attempt(call), &schema); /* checked with the item */
    module_try_watch(call);
    const struct schema_copies *copies =
        fault ? NULL : copies_find(schema, bytes_of(from->document_class), item->iclass);
    if (!copies || !bytes_equal(copies_key(module_try_arena(call), copies, item->key, bytes_of(from->id)),
                                module_document_key_of(key)))
        return 0;
    for (size_t i = 0; i < copies->count; i++)
        if (bytes_equal(copies->classes[i], bytes_of(document->document_class)))
            return item->version;
    return 0;
}

void stampd_copy_item(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_document *from, const char *from_class, const char *from_key)
{
    const struct item *item = find_item(from, from_class, from_key);
    if (item)
        copy_item(document, item_class, key, item->raw, item->content,
                  followed_stamp(document, item_class, key, from, item));
    else
        stampd_remove_item(document, item_class, key);
}
