/* filters: one of each level, and some that are wrong. */
#include <stampd.h>
#include <stampd_filter.h>

#include <string.h>

#ifndef VERSION
#define VERSION "1.0"
#endif

static bool is_marked(struct stampd_bytes content)
{
    return content.size >= 7 && memcmp(content.data, "\"SECRET", 7) == 0;
}

/* Documents that are veiled are those of editors, and of their owner. */
static const char *veil(struct stampd_call *call, struct stampd_document *document)
{
    const struct stampd_json *main = stampd_item_value(document, "Main", NULL);
    const char *owner = stampd_read_text_or(call, main, "owner", 0, 64, ""), *caller = stampd_caller(call);
    bool is_own = caller && strcmp(caller, owner) == 0;
    bool is_veiled = stampd_read_boolean_or(call, main, "veil", false);
    return !is_veiled || is_own || stampd_has_role(call, "editor") ? "" : NULL;
}

/* Nobody but editors sees items Secret. */
static const char *cut(struct stampd_call *call, struct stampd_document *document)
{
    (void)document;
    return stampd_has_role(call, "editor") ? "" : "reader";
}

static enum stampd_sight cut_items(struct stampd_call *call, const char *view, const char *item_class)
{
    (void)call;
    (void)view;
    return strcmp(item_class, "Secret") == 0 ? STAMPD_HIDE : STAMPD_SHOW;
}

/* Lines that are marked are not shown. */
static enum stampd_sight pick_items(struct stampd_call *call, const char *view, const char *item_class)
{
    (void)call;
    (void)view;
    return strcmp(item_class, "Line") == 0 ? STAMPD_SELECT : STAMPD_SHOW;
}

static enum stampd_verdict pick(struct stampd_call *call, const char *view, const struct stampd_item *item,
                                struct stampd_bytes *content_r)
{
    (void)call;
    (void)view;
    (void)content_r;
    return is_marked(item->content) ? STAMPD_EXCLUDE : STAMPD_ACCEPT;
}

/* Of a person everybody sees the name; the rest is seen by those whose account the item Main names. */
static const char *mask(struct stampd_call *call, struct stampd_document *document)
{
    const struct stampd_json *main = stampd_item_value(document, "Main", NULL);
    const char *owner = stampd_read_text_or(call, main, "owner", 0, 64, ""), *caller = stampd_caller(call);
    return caller && strcmp(caller, owner) == 0 ? "" : "name";
}

static enum stampd_sight mask_items(struct stampd_call *call, const char *view, const char *item_class)
{
    (void)call;
    (void)view;
    return strcmp(item_class, "Main") == 0 || strcmp(item_class, "Raw") == 0 ? STAMPD_REWRITE : STAMPD_SHOW;
}

static enum stampd_verdict mask_content(struct stampd_call *call, const char *view,
                                        const struct stampd_item *item, struct stampd_bytes *content_r)
{
    (void)view;
    if (item->is_raw) {
        *content_r = stampd_bytes("xxx", 3);
        return STAMPD_REPLACE;
    }
    const struct stampd_json *main = stampd_parse(call, item->content);
    struct stampd_writer *writer = stampd_write_object(call);
    stampd_add_text(writer, "name", stampd_read_text_or(call, main, "name", 0, 64, ""));
    *content_r = stampd_written(writer);
    return STAMPD_REPLACE;
}

/* Does what its item Main says: hides or shows, or breaks the contract. */
static const char *wrong(struct stampd_call *call, struct stampd_document *document)
{
    const struct stampd_json *main = stampd_item_value(document, "Main", NULL);
    const char *act = stampd_read_text(call, main, "act", 0, 64);
    if (strcmp(act, "fetch") == 0)
        stampd_fetch(call, "Veil", "b");
    else if (strcmp(act, "set") == 0)
        stampd_set_json(document, "Line", "1", stampd_bytes("1", 1));
    else if (strcmp(act, "raise") == 0)
        stampd_raise(call, "AWRONG", NULL, NULL);
    else if (strcmp(act, "limit") == 0)
        stampd_limit(call, "x", "y", "1/h");
    else if (strcmp(act, "schedule") == 0)
        stampd_schedule(call, &(struct stampd_task){.operation = "sync"});
    else if (strcmp(act, "grant") == 0)
        stampd_grant_read(call, "Veil", "hidden-a");
    else if (strcmp(act, "search") == 0)
        stampd_run_search(call, "x", NULL, 0);
    else if (strcmp(act, "checkpoint") == 0)
        stampd_set_checkpoint(call, stampd_write_object(call));
    else if (strcmp(act, "result") == 0)
        return stampd_result_of_work(call) ? "" : NULL;
    else if (strcmp(act, "long") == 0)
        return stampd_format(call, "%0300d", 1);
    else if (strcmp(act, "bytes") == 0)
        return "\xff";
    return strcmp(act, "fine") == 0 ? "" : stampd_copy(call, act, strlen(act));
}

static enum stampd_sight wrong_items(struct stampd_call *call, const char *view, const char *item_class)
{
    (void)item_class;
    if (strcmp(view, "caller") == 0 && stampd_caller(call))
        return STAMPD_HIDE;
    return strcmp(view, "sight") == 0  ? (enum stampd_sight)99
           : strcmp(view, "hide") == 0 ? STAMPD_HIDE
                                       : STAMPD_REWRITE;
}

static enum stampd_verdict wrong_content(struct stampd_call *call, const char *view,
                                         const struct stampd_item *item, struct stampd_bytes *content_r)
{
    (void)call;
    (void)item;
    if (strcmp(view, "verdict") == 0)
        return (enum stampd_verdict)99;
    if (strcmp(view, "exclude") == 0)
        return STAMPD_EXCLUDE;
    *content_r = stampd_bytes("{no", 3);
    return strcmp(view, "json") == 0 ? STAMPD_REPLACE : STAMPD_ACCEPT;
}

static bool in_filtered(const char *ns)
{
    return strcmp(ns, "plain") != 0;
}

static const struct stampd_filter filters[] = {
    {.document_class = "Veil", .applies = in_filtered, .view = veil},
    {.document_class = "Cut", .applies = in_filtered, .view = cut, .see = cut_items},
    {.document_class = "Pick", .applies = in_filtered, .see = pick_items, .judge = pick},
    {.document_class = "Mask",
     .applies = in_filtered,
     .view = mask,
     .see = mask_items,
     .judge = mask_content},
    {.document_class = "Wrong",
     .applies = in_filtered,
     .view = wrong,
     .see = wrong_items,
     .judge = wrong_content},
    {.document_class = NULL},
};

/* {"c","id"}: what the caller may do with the document, and what of it the module itself sees. */
static enum stampd_outcome look(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    struct stampd_document *document = stampd_fetch(call, stampd_read_text(call, param, "c", 1, 64),
                                                    stampd_read_text(call, param, "id", 1, 64));
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_boolean(result, "exists", stampd_exists(document));
    stampd_add_boolean(result, "read", stampd_may_read(document));
    stampd_add_boolean(result, "list", stampd_may_list(document));
    stampd_add_boolean(result, "main", stampd_may_see(document, "Main"));
    stampd_add_boolean(result, "secret", stampd_may_see(document, "Secret"));
    stampd_grant_read(call, stampd_document_class(document), stampd_document_id(document));
    return stampd_result(call, result);
}

static const struct stampd_search searches[] = {
    {.name = "Items",
     .sql =
         "select class, id, iclass as item, key, content from item where class = $1 order by id, iclass, key",
     .arguments = 1,
     .is_judged = true},
    {.name = "Documents",
     .sql = "select class, id, null as item from doc where class = $1 order by id",
     .arguments = 1,
     .is_judged = true},
    {.name = "Unnamed",
     .sql = "select class, 1 as id from doc where class = $1",
     .arguments = 1,
     .is_judged = true},
    {.name = NULL},
};

/* {"c","search"}: the rows of a search of the class. */
static enum stampd_outcome seek(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *class = stampd_read_text(call, param, "c", 1, 64);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_value(result, "rows",
                     stampd_run_search(call, stampd_read_text(call, param, "search", 1, 64), &class, 1));
    return stampd_result(call, result);
}

static const struct stampd_operation operations[] = {
    {.name = "Seek", .access = STAMPD_PUBLIC, .is_read_only = true, .work = seek},
    {.name = "Look", .access = STAMPD_PUBLIC, .work = look, .flags = STAMPD_GRANTS_READ},
    {.name = NULL},
};

const struct stampd_module stampd_module = {.abi = STAMPD_ABI,
                                            .name = "filters",
                                            .version = VERSION,
                                            .operations = operations,
                                            .searches = searches,
                                            .filters = filters};
