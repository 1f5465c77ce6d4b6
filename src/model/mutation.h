/* mutation: contents of older releases made those of the newest, by the rules of their class (doc/schema.md).
 *
 * The rules change a content that is of the newest release already in nothing, so no content says of which
 * release it is; the database rewrites contents by the same rules (stampd.mutate_content).  Pure. */
#ifndef STAMPD_MODEL_MUTATION_H
#define STAMPD_MODEL_MUTATION_H

#include "base/arena.h"
#include "model/schema.h"

/* What an application gives for one of its classes, applied behind the rules: the new text, in the arena, or
 * `content` itself.  One that is of the newest release already must come back as it is. */
typedef struct bytes mutation_function(void *whose, struct arena *arena, struct bytes item_class,
                                       struct bytes content);
void mutation_declare(struct bytes document_class, mutation_function *function, void *whose);
/* May a content of the class be changed at all? */
bool mutation_applies(const struct schema_class *class);
bool mutation_has_function(const struct schema_class *class);

/* The content of an item of the class in the newest release: `content` itself when nothing changes, else a
 * text in the arena. */
struct bytes mutation_apply(struct arena *arena, const struct schema_class *class, struct bytes item_class,
                            struct bytes content);

/* A member of an item that a rule renames or drops and a later rule brings back, NO_BYTES: there is none.
 * With one, the rules would change contents that are newest.  `list` is in the order of releases. */
struct bytes mutation_find_return(struct arena *arena, const struct schema_mutation *list, size_t count);

#endif
