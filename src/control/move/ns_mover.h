/* ns_mover: moves a namespace to another site, with its own PostgreSQL, z and stampd, while it is served:
 * copies all documents, then what has changed meanwhile, again and again; then nothing is changed for the
 * seconds that the rest takes.
 *
 * Interrupted at any point, it goes on when it is run again. */
#ifndef STAMPD_CONTROL_MOVE_NS_MOVER_H
#define STAMPD_CONTROL_MOVE_NS_MOVER_H

#include "control/control.h"

struct ns_mover_options {
    const char *code;
    const char *folder;  /* for archives; is made */
    const char *message; /* to callers of the former site, when it has moved */
};

/* Reports what it does, and on failure why. */
MUST_USE bool ns_mover_run(struct control *from, struct control *to, const struct ns_mover_options *options);
/* Opens the namespace again where it was. */
MUST_USE bool ns_mover_abandon(struct control *from, const struct ns_mover_options *options);

#endif
