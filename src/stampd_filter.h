/* stampd_filter.h: filters, which take away from what a caller may read, beside the rules of a namespace.
 *
 * A filter belongs to one class of documents.  It runs after the access of the namespace and its rules, for
 * each document of the class that a caller is to read, list, find, synchronise or be notified of, on every
 * path; it can hide or rewrite, and never grants.  A module names its filters in stampd_module.filters:
 *
 *     static const char *view(struct stampd_call *call, struct stampd_document *article)
 *     {
 *         if (stampd_has_role(call, "editor"))
 *             return "";
 *         return stampd_find_item(article, "Release", NULL, NULL) ? "reader" : NULL;
 *     }
 *
 *     static enum stampd_sight see(struct stampd_call *call, const char *view, const char *item_class)
 *     {
 *         return strcmp(item_class, "Draft") == 0 ? STAMPD_HIDE : STAMPD_SHOW;
 *     }
 *
 *     static const struct stampd_filter filters[] = {
 *         {.document_class = "Article", .view = view, .see = see},
 *         {.document_class = NULL},
 *     };
 *
 * The three levels.  `view` decides about the document: NULL hides it, and then it does not exist for the
 * caller; "" shows it as it is, and the other functions are not called; any other text, the *view*, shows it
 * filtered.  `see` decides about a class of its items, `judge` about one content.  Both get the view and not
 * the document, and no caller: whatever they need of these must be in the view.  So equal views show equal
 * items alike, which synchronisations rely on: a client's copy under another view is replaced as a whole.
 *
 * The contract.  A function of one version of the module returns the same for the same arguments, always and
 * in every process: it depends on the caller, the document and the view alone, not on the time, a file or a
 * variable that changes.  Whenever its answers change, give the module another stampd_module.version, which
 * is part of the digest of the view: then the copies of clients are replaced.  A function does no I/O, and it
 * is short: it runs once for each document of each answer, in workers and in the process for live events,
 * where all listeners of the host wait for it.  In a worker the time limit of the request applies.  A digest
 * of the view is sent to clients: it must not be a secret that can be guessed.
 *
 * What it may call: stampd_namespace; in `view` stampd_caller, stampd_role_count, stampd_role,
 * stampd_has_role and the functions that read its document and items; everywhere stampd_parse and all that
 * reads JSON, writes JSON, allocates and logs.  Nothing else: no other document can be loaded, nothing can be
 * changed, and there are no arguments.  A failure (a member that cannot be read, a forbidden call,
 * stampd_raise, an invalid result) hides the document, and is logged.
 *
 * Not filtered: the administrator; operations of modules, which are trusted and see everything
 * (stampd_may_read includes filters); documents that such an operation grants (stampd_grant_read); the
 * server's own tasks.  Nothing is filtered in the namespace z. */
#ifndef STAMPD_STAMPD_FILTER_H
#define STAMPD_STAMPD_FILTER_H

#include "stampd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a class of items. */
enum stampd_sight {
    STAMPD_SHOW,    /* as they are */
    STAMPD_HIDE,    /* the caller sees none of them, and may not set or remove any */
    STAMPD_REWRITE, /* `judge` is called for each; it may not exclude any */
    STAMPD_SELECT   /* `judge` is called for each, and may exclude some */
};

/* Of a content.  One that is excluded or replaced the caller may neither set nor remove. */
enum stampd_verdict { STAMPD_ACCEPT, STAMPD_EXCLUDE, STAMPD_REPLACE };

enum {
    STAMPD_VIEW_MOST = 255 /* bytes of a view */
};

/* Since 1.9. */
struct stampd_filter {
    const char *document_class; /* at most one filter for each class, in all modules */
    /* Does the filter apply in this namespace?  NULL: in all but z.  Where it does not, it costs nothing. */
    bool (*applies)(const char *ns);
    /* May be NULL: each document is shown, under the view "all". */
    const char *(*view)(struct stampd_call *call, struct stampd_document *document);
    /* May be NULL: STAMPD_SELECT if there is `judge`, else STAMPD_SHOW. */
    enum stampd_sight (*see)(struct stampd_call *call, const char *view, const char *item_class);
    /* STAMPD_REPLACE: sets *content_r, of the same kind as the item: a JSON text or raw text, at most
     * limit_content_bytes, which is checked.  It may live in memory of the call (stampd_alloc,
     * stampd_written).  Required where `see` is NULL or returns STAMPD_REWRITE or STAMPD_SELECT, unless `see`
     * is NULL too. */
    enum stampd_verdict (*judge)(struct stampd_call *call, const char *view, const struct stampd_item *item,
                                 struct stampd_bytes *content_r);
    const void *reserved[4];
};

#ifdef __cplusplus
}
#endif

#endif
