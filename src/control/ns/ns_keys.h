/* ns_keys: the data keys of an encrypted namespace, for commands (store/data_keys.h). */
#ifndef STAMPD_CONTROL_NS_NS_KEYS_H
#define STAMPD_CONTROL_NS_NS_KEYS_H

#include "control/control.h"
#include "model/schema/schema.h"
#include "store/data_keys.h"

/* Reads the site key of the settings; on failure reports why. */
MUST_USE bool ns_keys_load_site(struct control *control);
/* The same, and there must be one. */
MUST_USE bool ns_keys_need_site(struct control *control);
/* The data keys of the database, freed with the arena; none: it is not encrypted.  On failure, as with
 * another site key, reports why. */
MUST_USE bool ns_keys_read(struct control *control, struct pg *pg, struct data_keys **keys_r);
/* Adds a new data key.  The first one encrypts the namespace, and the ids of these classes, separated by
 * blanks; later ones have none: "".  On failure reports why. */
MUST_USE bool ns_keys_add(struct control *control, struct pg *pg, const char *id_classes);
/* Wraps all data keys under the present site key.  On failure reports why. */
MUST_USE bool ns_keys_wrap(struct control *control, struct pg *pg);
/* Seals items again that are not under the newest data key, or show another part than the schema asks for
 * (store/documents/resealing.h); of one class, or of all when it is empty.  Prints how many.  On failure
 * reports why.
 */
MUST_USE bool ns_keys_reseal(struct control *control, struct pg *pg, const struct data_keys *keys,
                             const struct schema *schema, struct bytes class);
/* Reports that the command `what` has no use in an encrypted namespace; true: it is not encrypted. */
MUST_USE bool ns_keys_refuse(struct control *control, struct pg *pg, const char *what);

#endif
