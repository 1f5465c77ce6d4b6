/* confinement: what a process may still do that reads hostile bytes.
 *
 * It keeps its standard streams, and can open no file, start no program, and use no network.  Linux only; on
 * a processor other than x86-64 and ARM64 the limits hold, and the filter of system calls is left out. */
#ifndef STAMPD_EDGE_CONFINEMENT_H
#define STAMPD_EDGE_CONFINEMENT_H

#include "base/base.h"

struct confinement {
    int64_t memory_bytes; /* address space; 0: no limit */
    int64_t cpu_s;
    int64_t files; /* open descriptors */
};

/* For good.  The process ends when its parent does.  False: errno has the reason, and the process must end.
 */
MUST_USE bool confinement_enter(const struct confinement *confinement);

#endif
