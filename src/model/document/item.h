/* item: a part of a document: class, key, version, content (protocol.md, "Documents").
 *
 * Four kinds: Item and RawItem have a key, Singleton and RawSingleton have none (empty key); the content of
 * Item and Singleton is JSON, that of the raw ones is opaque text.  An item without content is a tombstone:
 * `vop` is 0, and its version is the stamp of the operation that removed it. */
#ifndef STAMPD_MODEL_DOCUMENT_ITEM_H
#define STAMPD_MODEL_DOCUMENT_ITEM_H

#include "base/base.h"
#include "base/bytes.h"

struct item {
    struct bytes iclass;  /* ^[A-Z][A-Za-z0-9]{0,15}$ */
    struct bytes key;     /* empty: singleton */
    int64_t version;      /* stamp of the operation that changed it in this document */
    int64_t vop;          /* stamp of the operation that made the content; 0 for a tombstone */
    struct bytes content; /* data NULL: tombstone */
    struct bytes json;    /* in a document: ready to send, {"c","k","v","j"}, of a tombstone {"c","k","v"} */
    bool raw;             /* content is text, not JSON; false for a tombstone */
};

static inline bool item_is_tombstone(const struct item *item)
{
    return item->content.data == NULL;
}

/* Order inside a document: class, then key, as bytes. */
static inline int item_compare(struct bytes class_a, struct bytes key_a, struct bytes class_b,
                               struct bytes key_b)
{
    int order = bytes_compare(class_a, class_b);
    return order ? order : bytes_compare(key_a, key_b);
}

/* Is it a valid name for a class of documents or items: ^[A-Z][A-Za-z0-9]{0,15}$ ? */
bool item_is_class_name(struct bytes name);
/* The class of items P is that of attachments: only the server writes such items, by draft_set_attachment.  A
 * class of documents may be called P. */
bool item_is_reserved(struct bytes iclass);
#define ITEM_RESERVED "The class P of items is reserved for attachments."

#endif
