/* responder: what the empty FastCGI responders of the benchmarks have in common.  They take stampd's place
 * behind nginx: the same option, settings and sockets, the constant answer of the file named in
 * STAMPD_BENCH_ANSWER; and nothing of stampd's own work.  STAMPD_BENCH_PROCESSES: how many processes share
 * each socket (1). */
#ifndef STAMPD_TEST_RESPONDER_H
#define STAMPD_TEST_RESPONDER_H

#include "base/bytes.h"

/* Head and body of every answer, of the size of stampd's. */
struct responder_answer {
    struct bytes head, body;
};

/* Starts the processes, each of which runs `serve` on its listener, and waits until they are ended.
 * `blocking`: so are the listeners. */
int responder_main(int argc, char **argv, bool blocking,
                   void (*serve)(int listener, const struct responder_answer *answer));

#endif
