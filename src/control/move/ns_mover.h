/* ns_mover: moves a namespace while it is served: to another site, with its own PostgreSQL, z and stampd, or
 * to another cell of this one.
 *
 * All documents are copied, then what has changed meanwhile, again and again; then nothing is changed for the
 * seconds that the rest takes.
 *
 * Interrupted at any point, it goes on when it is run again.  The folder has two archives: `base`, which the
 * namespace there has, and `next`, which it gets; the state that the namespace had, which a move that was
 * interrupted has changed; and the database that it leaves. */
#ifndef STAMPD_CONTROL_MOVE_NS_MOVER_H
#define STAMPD_CONTROL_MOVE_NS_MOVER_H

#include "control/control.h"
#include "control/nginx/map.h"

struct ns_mover_options {
    const char *code;
    const char *folder;            /* for archives; is made */
    const char *message;           /* to callers of the former site, when it has moved */
    const struct map_options *map; /* of nginx: of a move to another cell */
    bool drops_former;             /* the database that it leaves, in this site */
};

/* `to` has the settings of the other site; those of this one and `place`: within the site.  Reports what it
 * does, and on failure why. */
MUST_USE bool ns_mover_run(struct control *from, struct control *to, const struct ns_mover_options *options);
/* Opens the namespace again where it was. */
MUST_USE bool ns_mover_abandon(struct control *from, const struct ns_mover_options *options);

#endif
