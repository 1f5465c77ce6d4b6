/* options: getopt_long with the table, and the text of --help. */
#include "control/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/builder.h"
#include "base/names.h"
#include "control/control.h"
#include "control/message.h"

enum { NAME_ROOM = 64, OPTIONS_MAX = 32, LONG_ONLY = 256 /* codes of getopt_long above every letter */ };

static struct options_given given;

const struct options_given *options_find_given(void)
{
    return &given;
}

/* --- completion --- */

static bool is_completing;

void options_complete(void)
{
    is_completing = true;
}

/* Prints `before` + the word when it begins as `partial` does. */
static void offer(const char *before, const char *word, size_t size, const char *partial)
{
    size_t ahead = strlen(before);
    const char *rest = strlen(partial) > ahead ? partial + ahead : "";
    if (strncmp(before, partial, strlen(partial) < ahead ? strlen(partial) : ahead) == 0 &&
        strlen(rest) <= size && strncmp(word, rest, strlen(rest)) == 0)
        printf("%s%.*s\n", before, (int)size, word);
}

/* What an argument may be, from its description in the usage line: "on|off" names words, FILE and FOLDER are
 * paths. */
static void offer_argument(const char *argument, const char *partial)
{
    argument += strspn(argument, "[");
    size_t size = strcspn(argument, " .]");
    if (strncmp(argument, "FILE", strlen("FILE")) == 0 || strncmp(argument, "FOLDER", strlen("FOLDER")) == 0)
        puts(":files");
    else if (memchr(argument, '|', size))
        for (const char *at = argument; at < argument + size; at += strcspn(at, "| .]") + 1)
            offer("", at, strcspn(at, "| .]"), partial);
}

const char *options_find_argument(const struct command *command, int number)
{
    const char *arguments = command->arguments;
    for (const char *blank; number > 0 && (blank = strchr(arguments, ' ')); number--)
        arguments = blank + 1;
    return number == 0 || strstr(arguments, "...") ? arguments : "";
}

/* The option that a word names, of those with an argument that is the next word. */
static const struct option_line *find_named(const struct option_line *lines, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (lines[i].argument &&
            ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, lines[i].name) == 0) ||
             (lines[i].letter && word[0] == '-' && word[1] == lines[i].letter && !word[2])))
            return &lines[i];
    return NULL;
}

/* The last of argv is completed, argv[0] is the command. */
static void complete_options(const struct command *command, const struct option_line *lines, size_t count,
                             int argc, char **argv)
{
    const char *partial = argv[argc - 1];
    const struct option_line *before = NULL;
    int number = 0;
    for (int i = 1; i < argc - 1; i++) {
        bool is_value = before != NULL;
        before = is_value ? NULL : find_named(lines, count, argv[i]);
        number += !is_value && argv[i][0] != '-';
    }
    if (before) {
        offer_argument(before->argument, partial);
        return;
    }
    if (partial[0] != '-') {
        offer_argument(options_find_argument(command, number), partial);
        return;
    }
    for (size_t i = 0; i < count; i++)
        offer("--", lines[i].name, strlen(lines[i].name), partial);
    offer("--", "help", strlen("help"), partial);
}

/* --- --help --- */

static void print_option(char letter, const char *name, const char *argument, const char *help)
{
    char head[64];
    snprintf(head, sizeof head, "%c%c%s--%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
             letter ? ", " : "  ", name, argument ? " " : "", argument ? argument : "");
    if (strlen(head) > 28)
        printf("  %s\n%*s%s\n", head, 32, "", help);
    else
        printf("  %-28s  %s\n", head, help);
}

static void options_print_help(const struct command *command, const struct option_line *lines, size_t count)
{
    printf("usage: stampctl %s [OPTION]...%s%s\n%s\n", command->name, *command->arguments ? " " : "",
           command->arguments, command->summary);
    if (command->details)
        printf("\n%s", command->details);
    printf("\nOptions:\n");
    for (size_t i = 0; i < count; i++)
        print_option(lines[i].letter, lines[i].name, lines[i].argument, lines[i].help);
    print_option('h', "help", NULL, "Show this and exit.");
}

static bool options_take_value(const struct command *command, const struct option_line *line,
                               const char *value)
{
    if (line->flag) {
        *line->flag = true;
    } else if (line->text) {
        *line->text = value;
    } else if (line->words) {
        if (line->words->count == OPTION_WORDS_MOST)
            return message_refuse("%s: --%s: given more than %d times", command->name, line->name,
                                  OPTION_WORDS_MOST);
        line->words->words[line->words->count++] = value;
    } else if (!bytes_to_i64(bytes_of(value), line->number) || *line->number < line->least ||
               *line->number > line->most) {
        return message_refuse("%s: --%s %s: expected a number from %lld to %lld", command->name, line->name,
                              value, (long long)line->least, (long long)line->most);
    }
    return true;
}

/* getopt's two notations of the table; --help comes last. */
static void describe(const struct option_line *lines, size_t count, char *letters, struct option *longs)
{
    *letters++ = ':'; /* distinguishes a missing value from an unknown option */
    for (size_t i = 0; i < count; i++) {
        longs[i] = (struct option){lines[i].name, lines[i].argument ? required_argument : no_argument, NULL,
                                   LONG_ONLY + (int)i};
        if (lines[i].letter) {
            *letters++ = lines[i].letter;
            if (lines[i].argument)
                *letters++ = ':';
        }
    }
    longs[count] = (struct option){"help", no_argument, NULL, 'h'};
    longs[count + 1] = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

/* The nearest name in `known`, which ends each name with a blank, to an unknown word. */
static const char *meant(struct builder *known, const char *word, char room[NAME_ROOM])
{
    builder_add(known, "", 1);
    struct bytes nearest = names_nearest(known->data, bytes_of(word));
    room[0] = '\0';
    if (nearest.size && nearest.size < NAME_ROOM)
        snprintf(room, NAME_ROOM, "%.*s", (int)nearest.size, nearest.data);
    builder_free(known);
    return room;
}

static void refuse_option(const struct command *command, const struct option_line *lines, size_t count,
                          const char *word)
{
    struct builder known = {0};
    char room[NAME_ROOM], name[NAME_ROOM];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
             word + strspn(word, "-"));
    for (size_t i = 0; i < count; i++)
        builder_printf(&known, "%s ", lines[i].name);
    const char *nearest = meant(&known, name, room);
    if (strncmp(word, "--", 2) != 0)
        message_print("%s: %s: there is no such option; a word that begins with - stands behind -- "
                      "(see stampctl %s --help)",
                      command->name, word, command->name);
    else if (*nearest)
        message_print("%s: %s: there is no such option; is --%s meant? (see stampctl %s --help)",
                      command->name, word, nearest, command->name);
    else
        message_print("%s: %s: there is no such option (see stampctl %s --help)", command->name, word,
                      command->name);
}

static const struct option_line *find_line(const struct option_line *lines, size_t count, int code)
{
    if (code >= LONG_ONLY)
        return &lines[code - LONG_ONLY];
    for (size_t i = 0; i < count; i++)
        if (lines[i].letter == code)
            return &lines[i];
    return NULL;
}

static void count_arguments(const struct command *command, int *least_r, int *most_r)
{
    *least_r = command->least;
    *most_r = command->most;
    if (command->most != ARGUMENTS_AS_WRITTEN)
        return;
    *least_r = *most_r = 0;
    for (const char *word = command->arguments; *word; word += strspn(word, " ")) {
        *least_r += *word != '[';
        *most_r += 1;
        word += strcspn(word, " ");
    }
}

static bool check_words(const struct command *command, char **words, int count)
{
    int least, most;
    count_arguments(command, &least, &most);
    if (count < least)
        message_print("%s: expected %s (see stampctl %s --help)", command->name, command->arguments,
                      command->name);
    else if (count > most)
        message_print("%s: %s: unexpected argument (see stampctl %s --help)", command->name, words[most],
                      command->name);
    else
        return true;
    return false;
}

char **options_read(struct control *control, const struct command *command, const struct option_line *lines,
                    size_t count, int argc, char **argv)
{
    char letters[3 * OPTIONS_MAX];
    struct option longs[OPTIONS_MAX + 2];
    assert(count <= OPTIONS_MAX - 1);
    control->status = CONTROL_WRONG;
    if (is_completing) {
        complete_options(command, lines, count, argc, argv);
        control->status = CONTROL_DONE;
        return NULL;
    }
    describe(lines, count, letters, longs);
    optind = 0; /* start anew: an outer command line was parsed before */
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (code == 'h') {
            options_print_help(command, lines, count);
            control->status = CONTROL_DONE;
            return NULL;
        }
        if (code == ':') {
            message_print("%s: %s: a value is missing", command->name, argv[optind - 1]);
            return NULL;
        }
        const struct option_line *line = code == '?' ? NULL : find_line(lines, count, code);
        if (!line) {
            /* A letter need not be the last one of its word, which getopt is still at then. */
            const char letter[] = {'-', (char)optopt, '\0'};
            bool is_letter = optopt > 0 && optopt < LONG_ONLY && !find_line(lines, count, optopt);
            refuse_option(command, lines, count, is_letter ? letter : argv[optind - 1]);
            return NULL;
        }
        if (!options_take_value(command, line, optarg))
            return NULL;
    }
    if (!check_words(command, argv + optind, argc - optind))
        return NULL;
    control->status = CONTROL_FAILED; /* of a command that cannot begin all the same */
    control->word_count = argc - optind;
    given = (struct options_given){command, argv + optind, argc - optind};
    return argv + optind;
}

static void print_choices(const char *group, const char *details, const struct choice *choices, size_t count)
{
    printf("usage: stampctl%s%s COMMAND [OPTION]... [ARGUMENT]...\n%s\nCommands:\n", *group ? " " : "", group,
           details);
    for (size_t i = 0; i < count; i++)
        printf("  %-14s  %s\n", choices[i].name, choices[i].summary);
    printf("\n"
           "`stampctl %s%sCOMMAND --help` describes each command.\n",
           group, *group ? " " : "");
}

static void refuse_choice(const char *group, const struct choice *choices, size_t count, const char *word)
{
    const char *ns = *group ? " " : "";
    struct builder known = {0};
    char room[NAME_ROOM];
    for (size_t i = 0; i < count; i++)
        builder_printf(&known, "%s ", choices[i].name);
    const char *nearest = meant(&known, word, room);
    if (*nearest)
        message_print("%s%s%s: there is no such command; is %s%s%s meant? (see stampctl %s%s--help)", group,
                      ns, word, group, ns, nearest, group, ns);
    else
        message_print("%s%s%s: there is no such command (see stampctl %s%s--help)", group, ns, word, group,
                      ns);
}

int options_choose(const char *group, const char *details, const struct choice *choices, size_t count,
                   struct control *control, int argc, char **argv)
{
    const char *ns = *group ? " " : "";
    if (is_completing && argc == 1) { /* behind -c */
        puts(":files");
        return CONTROL_DONE;
    }
    if (is_completing && argc == 2) {
        for (size_t i = 0; i < count; i++)
            offer("", choices[i].name, strlen(choices[i].name), argv[1]);
        if (argv[1][0] == '-')
            offer("--", "help", strlen("help"), argv[1]);
        if (argv[1][0] == '-' && !*group)
            offer("--", "version", strlen("version"), argv[1]);
        return CONTROL_DONE;
    }
    if (argc > 1 && !is_completing &&
        (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        print_choices(group, details, choices, count);
        return CONTROL_DONE;
    }
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], choices[i].name) == 0)
            return choices[i].run(control, argc - 1, argv + 1);
    if (is_completing)
        return CONTROL_DONE;
    if (argc > 1)
        refuse_choice(group, choices, count, argv[1]);
    else
        message_print("%s%sa command is missing (see stampctl %s%s--help)", group, *group ? ": " : "", group,
                      ns);
    return CONTROL_WRONG;
}
