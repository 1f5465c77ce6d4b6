/* site_key_command: a program that prints the key of the site, such as the client of a key server.  For
 * site_key.c only. */
#ifndef STAMPD_SEAL_SITE_KEY_COMMAND_H
#define STAMPD_SEAL_SITE_KEY_COMMAND_H

#include "base/secret.h"

enum { SITE_KEY_COMMAND_WORDS = 32, SITE_KEY_COMMAND_MS = 30000 };

/* Runs it, without a shell: its words are separated by blanks.  The first line that it prints is the secret;
 * what it writes to its standard error goes where this process's does.  A program that takes longer than
 * SITE_KEY_COMMAND_MS is killed.  On failure returns false with one line in `problem`, which has nothing of
 * what was printed. */
MUST_USE bool site_key_command_run(const char *command, struct secret *line, char *problem,
                                   size_t problem_size);

#endif
