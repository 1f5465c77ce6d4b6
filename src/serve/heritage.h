/* heritage: all that a child of the master receives at fork, and what it may say to it. */
#ifndef STAMPD_SERVE_HERITAGE_H
#define STAMPD_SERVE_HERITAGE_H

#include <sys/types.h>

#include "base/settings.h"
#include "segment/segment.h"
#include "serve/in_flight.h"
#include "serve/instance.h"

struct heritage {
    const struct settings *settings;
    struct segment *segment;
    const struct instance *instance;
    struct in_flight *in_flight; /* its place is `index` */
    int index;                   /* its entry; SEGMENT_NO_INDEX: the relay, the live process */
    int position;                /* of a worker: the number of its socket */
    int listener;                /* its socket, if it has one; its own descriptor from now on */
    int messages;                /* a pipe to the master, which takes whole struct message */
};

enum message_kind {
    MESSAGE_READY,   /* a worker answers requests from now on */
    MESSAGE_RECYCLE, /* it has served its time and waits to be succeeded */
};
struct message {
    enum message_kind kind;
    pid_t pid;
};

#endif
