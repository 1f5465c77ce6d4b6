/* journal_shell: what the commands `stampctl journal` share: the connection to a stamp-journal, and how
 * records are printed. */
#ifndef STAMPD_CONTROL_JOURNAL_SHELL_H
#define STAMPD_CONTROL_JOURNAL_SHELL_H

#include "control/control.h"
#include "control/record.h"
#include "journal_client/stampd_journal.h"

/* Begin with JOURNAL_SHELL. */
struct journal_shell {
    struct control *control;
    const char *socket, *connect, *ca, *ns, *key_file; /* NULL: not given */
    int64_t timeout_s;
    bool is_insecure, is_json;
    uint64_t stamp; /* of the last answer; 0: it has none */
    struct stampd_journal *journal;
};
#define JOURNAL_SHELL(of) ((struct journal_shell){.control = (of), .timeout_s = 10})

/* Entries for the options of all these commands. */
#define JOURNAL_SHELL_LINES(shell)                                                                           \
    CONTROL_CONFIG_LINE((shell)->control),                                                                   \
        {.name = "socket",                                                                                   \
         .argument = "PATH",                                                                                 \
         .help = "Connect to this Unix socket (default: journal.sock in run_directory).",                    \
         .text = &(shell)->socket},                                                                          \
        {.name = "connect",                                                                                  \
         .argument = "HOST:PORT",                                                                            \
         .help = "Connect by TCP with TLS instead.",                                                         \
         .text = &(shell)->connect},                                                                         \
        {.name = "ca",                                                                                       \
         .argument = "FILE",                                                                                 \
         .help = "Trust these certificate authorities, PEM (default: the system's).",                        \
         .text = &(shell)->ca},                                                                              \
        {.name = "insecure", .help = "Trust any certificate.", .flag = &(shell)->is_insecure},               \
        {.name = "ns", .argument = "CODE", .help = "The namespace.", .text = &(shell)->ns},                  \
        {.name = "key-file",                                                                                 \
         .argument = "FILE",                                                                                 \
         .help = "Read the key from the first line of FILE.",                                                \
         .text = &(shell)->key_file},                                                                        \
        {.name = "timeout",                                                                                  \
         .argument = "SECONDS",                                                                              \
         .help = "Wait this long for the server (default: 10).",                                             \
         .number = &(shell)->timeout_s,                                                                      \
         .least = 1,                                                                                         \
         .most = 3600},                                                                                      \
        RECORD_JSON_LINE(&(shell)->is_json)

/* Connects, and shows the key; without --ns and --key-file only if `needs_key` is false.  Else reports why
 * not, and returns CONTROL_FAILED or CONTROL_WRONG. */
MUST_USE int journal_shell_open(struct journal_shell *shell, const char *command, bool needs_key);
void journal_shell_close(struct journal_shell *shell);

/* Runs one request.  CONTROL_FAILED: it was refused, or the connection has failed; reported. */
MUST_USE int journal_shell_run(struct journal_shell *shell, const char *command,
                               const struct stampd_journal_request *request,
                               struct stampd_journal_answer *answer_r);
/* One record, or without one the end of the command. */
void journal_shell_print(const struct journal_shell *shell, const struct stampd_journal_answer *answer,
                         const struct stampd_journal_record *record, bool has_value);
/* The value of a type that is named; false: it is none, reported. */
MUST_USE bool journal_shell_read_value(const char *command, const char *type, const char *text,
                                       unsigned char bytes[8], struct stampd_journal_request *request);

static inline struct stampd_journal_text journal_shell_text(const char *text)
{
    struct bytes bytes = bytes_of(text);
    return (struct stampd_journal_text){bytes.data, bytes.size};
}

#endif
