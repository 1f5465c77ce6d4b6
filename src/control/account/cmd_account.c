/* cmd_account: `stampctl account`: the accounts of a namespace, through the operation `accounts` of a running
 * server, so that each change holds at once in all its processes. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "control/answer.h"
#include "control/documents/target.h"
#include "control/message.h"
#include "edge/json/json.h"
#include "model/account/account.h"

enum { REQUEST_MS = 60 * 1000, ROLES_ROOM = 200 };

/* A command under way, and its options. */
struct account_command {
    struct control *control;
    const struct command *command;
    struct target target;
    const char *url, *name; /* of the server, of the account */
    bool is_id, is_json, is_end, is_address;
    const char *address, *prefix;
    struct option_words roles;
};

#define ACCOUNT_LINES(account) TARGET_SERVER_LINES(&(account)->target), TARGET_CONFIG_LINE((account)->control)
/* clang-format off */
#define ACCOUNT_JSON_LINE(account)                                                                           \
    OPTION_FLAG("json", &(account)->is_json, "Print each account as the server writes it, as JSON.")
#define ACCOUNT_ID_LINE(account)                                                                             \
    OPTION_FLAG("id", &(account)->is_id, "NAME is the id of an account, which need not have a name.")
/* clang-format on */

static bool account_begin(struct account_command *account, const struct option_line *lines, size_t count,
                          int argc, char **argv)
{
    char **words = options_read(account->control, account->command, lines, count, argc, argv);
    if (!words)
        return false;
    account->url = words[0];
    account->name = words[1];
    account->control->status = CONTROL_WRONG;
    return target_is_right(&account->target, account->command->name);
}

/* --- requests --- */

/* Runs the operation with `"member":wish`; on failure reports why.  `out_r`: the member `out`. */
static bool account_run(const struct account_command *account, const char *operation, const char *member,
                        struct bytes wish, const struct json **out_r)
{
    struct arena *arena = account->control->arena;
    struct http_options options = target_http(&account->target);
    struct http_result result;
    struct server_answer answer;
    struct json *root;
    struct bytes key;
    struct builder body = {0};
    if (!target_read_key(&account->target, account->control, &key))
        return false;
    options.parallel = 1;
    struct http *http = http_open(&options);
    target_begin_body(&body, key);
    json_add_string(&body, bytes_of(member));
    builder_add_text(&body, ":");
    builder_add_bytes(&body, wish);
    builder_add_text(&body, "}}");
    http_run(http,
             &(struct http_request){.method = "POST",
                                    .url = target_url(&account->target, arena, account->url, operation),
                                    .content_type = "application/json",
                                    .body = builder_bytes(&body),
                                    .timeout_ms = REQUEST_MS},
             &result);
    bool is_done = answer_read(arena, &result, &answer) == ANSWER_DONE;
    struct bytes text = arena_keep(arena, result.body);
    explicit_bzero(body.data, body.size); /* it may have a password */
    builder_free(&body);
    http_close(http);
    if (is_done && json_is_tree(arena, text, 16, 8, &root))
        *out_r = json_member(root, "out");
    else if (is_done)
        answer.words = "the answer is no JSON";
    if (!is_done || !*out_r)
        message_print("%s: %s%s%s", account->command->name, answer.code, *answer.code ? " " : "",
                      answer.words);
    return is_done && *out_r;
}

static bool account_ask(const struct account_command *account, const char *member, struct bytes wish,
                        const struct json **out_r)
{
    return account_run(account, "accounts", member, wish, out_r);
}

static struct bytes quoted(struct arena *arena, struct bytes text)
{
    struct builder quote = {0};
    json_add_string(&quote, text);
    return builder_take(&quote, arena);
}

/* The account of the command's name or id; reports it when there is none. */
static bool account_find_named(const struct account_command *account, const struct json **found_r)
{
    *found_r = NULL;
    return account_ask(account, account->is_id ? "get" : "find",
                       quoted(account->control->arena, bytes_of(account->name)), found_r);
}

static struct bytes text_of(const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member && member->value.data ? member->value : BYTES("");
}

/* {"account":…<more>}, sent as the member `act`. */
static bool account_act(const struct account_command *account, const char *act, struct bytes more,
                        const struct json **out_r)
{
    const struct json *found;
    struct builder wish = {0};
    *out_r = NULL;
    if (!account_find_named(account, &found))
        return false;
    json_add_text(&wish, "{\"account\":", text_of(found, "account"));
    builder_add_bytes(&wish, more);
    builder_add_text(&wish, "}");
    return account_ask(account, act, builder_take(&wish, account->control->arena), out_r);
}

/* --- a password, from standard input --- */

/* The first line; the terminal does not show what is typed.  Reports a password that is too short or long. */
static bool read_password(const struct account_command *account, struct bytes *password_r)
{
    static char line[ACCOUNT_PASSWORD_MOST + 2];
    struct termios shown, hidden;
    bool is_terminal = tcgetattr(STDIN_FILENO, &shown) == 0;
    if (is_terminal) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        /* It drops what was typed, so the request comes after it. */
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
        fprintf(stderr, "Password: ");
    }
    bool is_read = fgets(line, sizeof line, stdin) != NULL;
    if (is_terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &shown);
        fprintf(stderr, "\n");
    }
    size_t size = is_read ? strcspn(line, "\r\n") : 0;
    *password_r = (struct bytes){line, size};
    bool is_right = size >= ACCOUNT_PASSWORD_LEAST && size <= ACCOUNT_PASSWORD_MOST;
    if (!is_right)
        message_print("%s: a password of %d to %d bytes is expected on standard input",
                      account->command->name, ACCOUNT_PASSWORD_LEAST, ACCOUNT_PASSWORD_MOST);
    return is_right;
}

/* --- printing --- */

static void print_json(const struct json *value)
{
    printf("%.*s\n", (int)value->text.size, value->text.data);
}

/* Texts of the server's users, so that no control character reaches the terminal. */
static const char *shown(struct arena *arena, struct bytes text)
{
    char *copy = arena_copy(arena, text.data ? text.data : "", text.size);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '\x7f')
            *at = ' ';
    return copy;
}

static const char *roles_of(struct arena *arena, const struct json *account)
{
    const struct json *roles = json_member(account, "roles");
    struct builder text = {0};
    for (const struct json *role = roles ? roles->first : NULL; role && text.size < ROLES_ROOM;
         role = role->next) {
        if (text.size)
            builder_add_text(&text, ",");
        builder_add_bytes(&text, role->value);
    }
    return builder_take(&text, arena).data;
}

static void print_row(struct arena *arena, const struct json *account)
{
    printf("%-22s  %15s  %-8s  %-24s  %-20s  %s\n", shown(arena, text_of(account, "account")),
           shown(arena, text_of(account, "created")), json_member(account, "disabled") ? "disabled" : "on",
           shown(arena, text_of(account, "name")), roles_of(arena, account),
           shown(arena, text_of(account, "address")));
}

static void print_heads(void)
{
    printf("%-22s  %-15s  %-8s  %-24s  %-20s  %s\n", "ID", "CREATED", "STATE", "NAME", "ROLES", "ADDRESS");
}

static int print_account(const struct account_command *account, const struct json *found)
{
    if (account->is_json) {
        print_json(found);
    } else {
        print_heads();
        print_row(account->control->arena, found);
    }
    return CONTROL_DONE;
}

/* --- the commands --- */

/* A page; `cursor` is replaced by that of the next one, NO_BYTES at the end. */
static bool list_page(const struct account_command *account, struct bytes *cursor)
{
    struct arena *arena = account->control->arena;
    struct builder wish = {0};
    const struct json *out = NULL;
    builder_add_text(&wish, "{\"limit\":100");
    if (account->prefix)
        json_add_text(&wish, ",\"name\":", bytes_of(account->prefix));
    if (cursor->data)
        json_add_text(&wish, ",\"cursor\":", *cursor);
    builder_add_text(&wish, "}");
    if (!account_ask(account, "list", builder_take(&wish, arena), &out))
        return false;
    const struct json *all = json_member(out, "accounts"), *next = json_member(out, "cursor");
    for (const struct json *one = all ? all->first : NULL; one; one = one->next) {
        if (account->is_json)
            print_json(one);
        else
            print_row(arena, one);
    }
    *cursor = next ? next->value : NO_BYTES;
    return true;
}

static int account_list(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "account list", "URL", "List the accounts of a namespace.",
        "With --name, those whose name begins so, in the order of names; without, all, in the order of ids,\n"
        "also those without a name.\n");
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    struct bytes cursor = NO_BYTES;
    const struct option_line lines[] = {
        OPTION_TEXT("name", "TEXT", &account.prefix, "List those whose name begins so."),
        ACCOUNT_JSON_LINE(&account), ACCOUNT_LINES(&account)};
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!account.is_json)
        print_heads();
    do {
        if (!list_page(&account, &cursor))
            return CONTROL_FAILED;
    } while (cursor.data);
    return CONTROL_DONE;
}

static int account_show(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("account show", "URL NAME", "Show an account, found by its name or id.", NULL);
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {ACCOUNT_ID_LINE(&account), ACCOUNT_JSON_LINE(&account),
                                        ACCOUNT_LINES(&account)};
    const struct json *found;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    return account_find_named(&account, &found) ? print_account(&account, found) : CONTROL_FAILED;
}

static struct bytes account_wish_new(const struct account_command *account, struct bytes password)
{
    struct builder wish = {0};
    json_add_text(&wish, "{\"name\":", bytes_of(account->name));
    json_add_text(&wish, ",\"password\":", password);
    if (account->address)
        json_add_text(&wish, ",\"address\":", bytes_of(account->address));
    builder_add_text(&wish, ",\"roles\":[");
    for (int i = 0; i < account->roles.count; i++) {
        if (i)
            builder_add_text(&wish, ",");
        json_add_string(&wish, bytes_of(account->roles.words[i]));
    }
    builder_add_text(&wish, "]}");
    return builder_take(&wish, account->control->arena);
}

static int account_create(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("account create", "URL NAME", "Create an account with a name and a password.",
                "The password is the first line of standard input.\n");
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        OPTION_TEXT("address", "ADDRESS", &account.address, "Its mail address, not confirmed."),
        OPTION_WORDS("role", "ROLE", &account.roles, "Give it this role.  May be repeated."),
        ACCOUNT_JSON_LINE(&account), ACCOUNT_LINES(&account)};
    const struct json *made = NULL;
    struct bytes password;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!read_password(&account, &password) ||
        !account_ask(&account, "create", account_wish_new(&account, password), &made))
        return CONTROL_FAILED;
    return print_account(&account, made);
}

static int account_password(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "account password", "URL NAME", "Set the password of an account, which ends all its sessions.",
        "The password is the first line of standard input.\n");
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {ACCOUNT_ID_LINE(&account), ACCOUNT_LINES(&account)};
    struct builder more = {0};
    const struct json *out;
    struct bytes password;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!read_password(&account, &password))
        return CONTROL_FAILED;
    json_add_text(&more, ",\"password\":", password);
    if (!account_act(&account, "set", builder_take(&more, control->arena), &out))
        return CONTROL_FAILED;
    printf("%s: the password is set, all sessions have ended\n", account.name);
    return CONTROL_DONE;
}

static int set_disabled(struct control *control, const struct command *command, bool is_disabled, int argc,
                        char **argv)
{
    struct account_command account = {.control = control, .command = command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {ACCOUNT_ID_LINE(&account), ACCOUNT_LINES(&account)};
    const struct json *out;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!account_act(&account, "set",
                     is_disabled ? BYTES(",\"disabled\":true") : BYTES(",\"disabled\":false"), &out))
        return CONTROL_FAILED;
    printf("%s: %s\n", account.name, is_disabled ? "disabled" : "enabled");
    return CONTROL_DONE;
}

static int account_disable(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "account disable", "URL NAME", "Let an account neither sign in nor use its sessions and keys.",
        "Its sessions and service keys are refused at once, and again valid after `account enable` unless\n"
        "`account sessions --end` ends them.\n");
    return set_disabled(control, &command, true, argc, argv);
}

static int account_enable(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("account enable", "URL NAME", "Let a disabled account sign in again.", NULL);
    return set_disabled(control, &command, false, argc, argv);
}

static void print_sessions(const struct account_command *account, const struct json *found)
{
    struct arena *arena = account->control->arena;
    const struct json *sessions = json_member(found, "sessions");
    if (!account->is_json)
        printf("%-16s  %-7s  %-15s  %-15s  %s\n", "SESSION", "KIND", "CREATED", "EXPIRES", "DEVICE");
    for (const struct json *one = sessions ? sessions->first : NULL; one; one = one->next) {
        if (account->is_json) {
            print_json(one);
            continue;
        }
        struct bytes expires = text_of(one, "expires");
        printf("%-16s  %-7s  %15s  %15s  %s\n", shown(arena, text_of(one, "session")),
               json_member(one, "service") ? "key" : "session", shown(arena, text_of(one, "created")),
               expires.size ? shown(arena, expires) : "never", shown(arena, text_of(one, "device")));
    }
}

static int account_sessions(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "account sessions", "URL NAME", "List or end the sessions and service keys of an account.", NULL);
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        OPTION_FLAG("end", &account.is_end, "End them all."), ACCOUNT_ID_LINE(&account),
        OPTION_FLAG("json", &account.is_json, "Print each session as the server writes it, as JSON."),
        ACCOUNT_LINES(&account)};
    const struct json *out;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (account.is_end && account_act(&account, "revoke", NO_BYTES, &out))
        printf("%s: %s ended\n", account.name, shown(control->arena, text_of(out, "ended")));
    else if (account.is_end || !account_find_named(&account, &out))
        return CONTROL_FAILED;
    else
        print_sessions(&account, out);
    return CONTROL_DONE;
}

static int account_whois(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "account whois", "URL NAME",
        "Print the id of the account with this name, as the operation whois returns it.",
        "Disabled accounts, and those that do not want to be found, are not found: see `account show`.\n");
    struct account_command account = {.control = control, .command = &command, .target = TARGET_DEFAULT};
    const struct option_line lines[] = {
        OPTION_FLAG("address", &account.is_address, "NAME is a confirmed mail address."),
        ACCOUNT_LINES(&account)};
    const struct json *out = NULL;
    if (!account_begin(&account, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!account_run(&account, "whois", account.is_address ? "address" : "name",
                     quoted(control->arena, bytes_of(account.name)), &out))
        return CONTROL_FAILED;
    if (!text_of(out, "account").size)
        return message_end(CONTROL_FAILED, "%s: nobody is found by this %s", command.name,
                           account.is_address ? "address" : "name");
    printf("%s\n", shown(control->arena, text_of(out, "account")));
    return CONTROL_DONE;
}

int control_account(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"list", "List accounts, by the beginning of their names.", account_list},
        {"show", "Show an account.", account_show},
        {"create", "Create an account.", account_create},
        {"password", "Set the password of an account.", account_password},
        {"disable", "Let an account do nothing any more.", account_disable},
        {"enable", "Let a disabled account sign in again.", account_enable},
        {"sessions", "List or end the sessions of an account.", account_sessions},
        {"whois", "Print the id of the account with a name.", account_whois},
    };
    static const char details[] = "Administer the accounts of a namespace, through a running server.\n";
    return options_choose("account", details, choices, COUNT_OF(choices), control, argc, argv);
}
