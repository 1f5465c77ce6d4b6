/* journal: the daemon that speaks the journal protocol (doc/reference/journal-protocol.md): one thread, an
 * event loop, connections on a Unix socket and on TCP with TLS. */
#ifndef STAMPD_JOURNAL_JOURNAL_H
#define STAMPD_JOURNAL_JOURNAL_H

#include "base/settings.h"

struct journal_options {
    const char *keys_path;   /* journal_keys.h */
    const char *socket_path; /* NULL: journal.sock in run_directory */
};

/* Until SIGTERM, SIGINT or SIGQUIT; SIGHUP reads the keys and the certificate again and closes all
 * connections.  Returns the exit status. */
int journal_serve(const struct settings *settings, const struct journal_options *options);

#endif
