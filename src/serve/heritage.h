/* heritage: what a child of the master receives at fork, and the messages it may send back. */
#ifndef STAMPD_SERVE_HERITAGE_H
#define STAMPD_SERVE_HERITAGE_H

#include <sys/types.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "segment/segment.h"
#include "serve/in_flight.h"
#include "serve/instance.h"

struct heritage {
    const struct settings *settings;
    struct segment *segment;
    const struct instance *instance;
    struct in_flight *in_flight; /* its slot is `index` */
    int index;                   /* its entry; SEGMENT_NO_INDEX: the relay, the live process */
    /* Of a worker: the number of its socket.  The last one, settings->workers, is the thumbnail process: a
     * worker that runs the tasks which wait for the decoder of images, so that no other worker does. */
    int position;
    int listener; /* its socket, if it has one; its own descriptor from now on */
    int messages; /* a pipe to the master, which carries whole struct message */
};

enum message_kind {
    MESSAGE_READY,   /* a worker answers requests from now on */
    MESSAGE_RECYCLE, /* it is due to be recycled and waits for its successor */
};
struct message {
    enum message_kind kind;
    pid_t pid;
};

/* By the child itself. */
static inline void heritage_notify(const struct heritage *heritage, enum message_kind kind)
{
    struct message message = {.kind = kind, .pid = getpid()};
    if (write(heritage->messages, &message, sizeof message) != sizeof message)
        log_warning("cannot reach the master: %m");
}

#endif
