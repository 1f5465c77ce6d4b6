/* store_sealing: the data keys of the sessions of a store (data_keys.h). */
#ifndef STAMPD_STORE_STORE_SEALING_H
#define STAMPD_STORE_STORE_SEALING_H

#include "model/document/document.h"
#include "store/data_keys.h"
#include "store/statements.h"
#include "store/store.h"

/* The keys of an open session; none: it is not encrypted. */
const struct data_keys *store_sealing_keys(const struct store *store, int ns);
/* Reads them again: there may be new ones. */
MUST_USE enum fault store_sealing_renew(struct store *store, int ns);
/* As store_use, for what is sealed or hashed before it is sent: a session of an encrypted namespace that was
 * ended, perhaps because its keys are others now (stampctl ns move), is opened again. */
MUST_USE enum fault store_sealing_use(struct store *store, int ns, struct pg **pg_r);

/* data_keys_digest, by a session that has the present keys. */
MUST_USE enum fault store_sealing_digest(struct store *store, int ns, struct arena *arena,
                                         struct bytes secret, struct bytes kind, struct bytes text,
                                         struct bytes *digest_r);

/* Opens the content and key of an item as it was stored.  FAULT_BCONTENT: altered, or of another place. */
MUST_USE enum fault store_sealing_open_item(struct store *store, int ns, struct arena *arena,
                                            const struct header *header, struct item *item);
/* Logs that an item of the class cannot be opened. */
void store_sealing_report(struct arena *arena, struct bytes class);
/* The same of another text; the first part of its place is its kind. */
MUST_USE enum fault store_sealing_open_text(struct store *store, int ns, struct arena *arena,
                                            struct sealing_place place, struct bytes *text);

/* The id of a document as it is stored, and back, where stored_id_table.h has no place for it: in details of
 * errors, and in statements that are made while the server runs.  FAULT_BCONTENT: altered. */
struct bytes store_sealing_id(const struct store *store, int ns, struct arena *arena, struct bytes class,
                              struct bytes id);
MUST_USE enum fault store_sealing_open_id(const struct store *store, int ns, struct arena *arena,
                                          struct bytes class, struct bytes *id);

/* Whether the namespace is encrypted and the statement would store, or compare in the database, what must be
 * encrypted. */
bool store_sealing_refuses(const struct store *store, int ns, enum statement statement);

#endif
