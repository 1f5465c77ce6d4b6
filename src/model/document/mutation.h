/* mutation: upgrades contents of older releases to the newest, by the rules of their class (schema.md).
 *
 * The rules leave content of the newest release unchanged, so contents carry no release number.  The database
 * rewrites contents by the same rules (stampd.mutate_content).  Pure. */
#ifndef STAMPD_MODEL_DOCUMENT_MUTATION_H
#define STAMPD_MODEL_DOCUMENT_MUTATION_H

#include "base/arena.h"
#include "model/schema/schema.h"

/* An application's function for one of its classes, applied after the rules: returns the new text, in the
 * arena, or `content` itself.  It must return content of the newest release unchanged. */
typedef struct bytes mutation_function(void *whose, struct arena *arena, struct bytes item_class,
                                       struct bytes content);
void mutation_declare(struct bytes document_class, mutation_function *function, void *whose);
/* Can contents of the class need a change at all? */
bool mutation_applies(const struct schema_class *class);
bool mutation_has_function(const struct schema_class *class);

/* The content of an item of the class in the newest release: `content` itself when nothing changes, else a
 * text in the arena. */
struct bytes mutation_apply(struct arena *arena, const struct schema_class *class, struct bytes item_class,
                            struct bytes content);

/* A member of an item that a rule renames or drops and a later rule adds again, NO_BYTES: none.  With such a
 * member, the rules would change contents of the newest release.  `list` is in the order of releases. */
struct bytes mutation_find_return(struct arena *arena, const struct schema_mutation *list, size_t count);

#endif
