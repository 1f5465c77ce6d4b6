/* options: a command's options in one table, the source of both its parser and its --help. */
#ifndef STAMPD_CONTROL_OPTIONS_H
#define STAMPD_CONTROL_OPTIONS_H

#include "base/base.h"

/* The values of an option that may be given several times. */
enum { OPTION_WORDS_MOST = 16 };
struct option_words {
    const char *words[OPTION_WORDS_MOST];
    int count;
};

/* One option.  Exactly one of `text`, `words`, `number` and `flag` is not NULL; it holds the default before,
 * the value after. */
struct option_line {
    const char *name;     /* "batch": --batch */
    char letter;          /* 'b': -b; 0: none */
    const char *argument; /* "LINES"; NULL for a flag */
    const char *help;
    const char **text;
    struct option_words *words;
    int64_t *number;
    int64_t least, most; /* of a number */
    bool *flag;
};

#define OPTION_FLAG(name_, flag_, help_)                                                                     \
    {                                                                                                        \
        .name = (name_), .help = (help_), .flag = (flag_)                                                    \
    }
#define OPTION_TEXT(name_, argument_, text_, help_)                                                          \
    {                                                                                                        \
        .name = (name_), .argument = (argument_), .help = (help_), .text = (text_)                           \
    }
/* May be repeated. */
#define OPTION_WORDS(name_, argument_, words_, help_)                                                        \
    {                                                                                                        \
        .name = (name_), .argument = (argument_), .help = (help_), .words = (words_)                         \
    }
#define OPTION_NUMBER(name_, argument_, number_, least_, most_, help_)                                       \
    {                                                                                                        \
        .name = (name_), .argument = (argument_), .help = (help_), .number = (number_), .least = (least_),   \
        .most = (most_)                                                                                      \
    }

struct command {
    const char *name;      /* "ns create" */
    const char *arguments; /* "CODE [URL]", as written in the usage line; "" when there are none */
    int least, most;       /* how many of them; `most` ARGUMENTS_AS_WRITTEN: those of the usage line, of which
                              those in brackets may be missing */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs that end with a newline; NULL: none */
};
enum { ARGUMENTS_AS_WRITTEN = -1 };
#define COMMAND(name, arguments, summary, details)                                                           \
    {                                                                                                        \
        name, arguments, 0, ARGUMENTS_AS_WRITTEN, summary, details                                           \
    }
#define COMMAND_OF(name, arguments, least, most, summary, details)                                           \
    {                                                                                                        \
        name, arguments, least, most, summary, details                                                       \
    }

struct control;
/* Parses argv[1…]; options may stand anywhere, `--` ends them.  Returns the arguments that are not options,
 * in argv, with a NULL behind them; control->word_count is their number, within the command's bounds.  NULL:
 * the command ends with control->status: --help was given, and the help is on standard output; or the usage
 * is wrong, and one line on standard error says how. */
MUST_USE char **options_read(struct control *control, const struct command *command,
                             const struct option_line *lines, size_t count, int argc, char **argv);

/* What options_read has accepted last, for the record of administration. */
struct options_given {
    const struct command *command; /* NULL: nothing */
    char **words;
    int count;
};
const struct options_given *options_find_given(void);
/* The description of argument `number`, from 0, in the usage line; the last one may be repeated. */
const char *options_find_argument(const struct command *command, int number);

/* --- commands with subcommands: `stampctl`, `stampctl ns` --- */
struct choice {
    const char *name, *summary;
    int (*run)(struct control *control, int argc, char **argv); /* argv[0] is the name */
};
/* Runs the choice that argv[1] names, with the other arguments; handles --help.  Returns the exit status. */
int options_choose(const char *group, const char *details, const struct choice *choices, size_t count,
                   struct control *control, int argc, char **argv);

/* --- completion, for shells --- */

/* While it is on, options_choose and options_read run nothing and print, one a line, what the last word of
 * their arguments may become: commands, options, or the words that an argument may have ("on|off"); ":files"
 * stands for file names.  options_read then returns NULL. */
void options_complete(void);

#endif
