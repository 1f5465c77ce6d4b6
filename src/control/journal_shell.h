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
        OPTION_TEXT("socket", "PATH", &(shell)->socket,                                                      \
                    "Connect to this Unix socket (default: journal.sock in run_directory)."),                \
        OPTION_TEXT("connect", "HOST:PORT", &(shell)->connect, "Connect by TCP with TLS instead."),          \
        OPTION_TEXT("ca", "FILE", &(shell)->ca,                                                              \
                    "Trust these certificate authorities, PEM (default: the system's)."),                    \
        OPTION_FLAG("insecure", &(shell)->is_insecure, "Trust any certificate."),                            \
        OPTION_TEXT("ns", "CODE", &(shell)->ns, "The namespace."),                                           \
        OPTION_TEXT("key-file", "FILE", &(shell)->key_file, "Read the key from the first line of FILE."),    \
        OPTION_NUMBER("timeout", "SECONDS", &(shell)->timeout_s, 1, 3600,                                    \
                      "Wait this long for the server (default: 10)."),                                       \
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
