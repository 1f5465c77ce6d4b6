/* hosts_run: commands of records in a spread namespace, as questions to the hosts (hosts.h). */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_RUN_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_RUN_H

#include "journal/hosts/hosts.h"
#include "records/records_state.h"

/* The command's namespace, as it was admitted. */
struct hosts_space {
    struct bytes ns;
    uint64_t made;
    bool is_encrypted;
};

/* A key that begins with @L: (a digit L) has a level: it is searched among the hosts that differ from this
 * one in the last L levels of their addresses only. */
enum { HOSTS_LEVEL_BYTES = 3 };

/* As records_run, but for what the hosts do not do: RECORDS_UNSUPPORTED.  `found_r` is valid until the memo
 * is forgotten.  False: nothing is answered yet, and the command is to be run again when `done` of the memo
 * is called.  `hosts` NULL: this host is none of several, RECORDS_NO_PARTICIPANTS. */
MUST_USE bool hosts_run(struct hosts *hosts, struct hosts_memo *memo, const struct hosts_space *space,
                        const struct records_command *command, enum records_outcome *outcome_r,
                        struct records_found *found_r);

#endif
