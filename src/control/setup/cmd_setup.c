/* cmd_setup: `stampctl setup` runs the script nginx/setup, which does what an administrator would do by hand.
 */
#include "control/control.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "control/message.h"
#include "control/nginx/site.h"

enum { WORDS_MOST = 256 };

struct setup_words {
    const char *words[WORDS_MOST + 1]; /* ends with NULL */
    size_t count;
};

static void setup_add(struct setup_words *words, const char *word)
{
    assert(words->count < WORDS_MOST);
    words->words[words->count++] = word;
}

/* An option of `stampctl nginx`, if it has a value. */
static void setup_add_option(struct setup_words *words, const char *option, const char *value)
{
    if (!value)
        return;
    setup_add(words, option);
    setup_add(words, value);
}

static void setup_add_all(struct setup_words *words, const char *option, const struct option_words *values)
{
    for (int i = 0; i < values->count; i++)
        setup_add_option(words, option, values->words[i]);
}

static void setup_add_site(struct setup_words *words, struct arena *arena, const struct site *site)
{
    setup_add_all(words, "--name", &site->names);
    setup_add_all(words, "--listen", &site->listen);
    setup_add_all(words, "--http", &site->http);
    setup_add_option(words, "--acme", site->acme);
    setup_add_option(words, "--include", site->include);
    setup_add_option(words, "--root", site->root);
    setup_add_option(words, "--console", site->console);
    setup_add_option(words, "--doc", site->doc);
    if (site->hsts_s)
        setup_add_option(words, "--hsts", arena_printf(arena, "%lld", (long long)site->hsts_s));
}

static bool is_host(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    return *word && *word != '-' && !word[strspn(word, letters)];
}

/* Replaces this process by the script. */
static int setup_execute(const struct setup_words *words)
{
    execvp("sh", (char *const *)(uintptr_t)words->words);
    return message_end(CONTROL_FAILED, "setup: sh: %s", strerror(errno));
}

int control_setup(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "setup", "HOST", "Set up stampd with nginx and PostgreSQL on this host, for the name HOST.",
        "Makes keys, settings, PostgreSQL's roles, the namespace z, a certificate and nginx's configuration, "
        "and\n"
        "starts the services.  What is there stays as it is, so that the command may run again: after an\n"
        "upgrade, which it completes without a failed request, or for another certificate.  Prints each "
        "command\n"
        "that it runs.\n");
    const char *database = "host=/run/postgresql user=stampd", *nginx = "/etc/nginx/nginx.conf";
    const char *certificate = NULL, *key = NULL;
    bool is_dry = false;
    struct site site = {.acme = "/var/www/acme", .include = "/etc/nginx/stampd.d/*.conf"};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("dry-run", &is_dry, "Print the commands, and run none."),
        OPTION_TEXT("database", "CONNINFO", &database,
                    "Write this setting (default: host=/run/postgresql user=stampd)."),
        OPTION_TEXT("certificate", "FILE", &certificate,
                    "Use this certificate (default: that of certbot, or a new one signed by itself)."),
        OPTION_TEXT("key", "FILE", &key, "Use this key of the certificate."),
        OPTION_TEXT("nginx", "FILE", &nginx,
                    "Write nginx's configuration to FILE (default: /etc/nginx/nginx.conf)."),
        SITE_LINES(&site),
    };
    char **arguments = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!arguments)
        return control->status;
    if (!certificate != !key)
        return message_end(CONTROL_WRONG, "setup: --certificate and --key are expected together");
    const char *host = arguments[0];
    if (!is_host(host))
        return message_end(CONTROL_WRONG, "setup: HOST %s: expected letters, digits, dots and hyphens", host);
    struct setup_words words = {0};
    const char *script =
        arena_printf(control->arena, "%s/setup",
                     control_directory(control->arena, "STAMPD_NGINX", "nginx", STAMPD_NGINX_DIRECTORY));
    char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    const char *const first[] = {"sh",
                                 script,
                                 self,
                                 control->config,
                                 database,
                                 nginx,
                                 certificate ? certificate : "",
                                 key ? key : "",
                                 is_dry ? "yes" : "no",
                                 site.acme,
                                 host,
                                 "--name",
                                 host};
    for (size_t i = 0; i < COUNT_OF(first); i++)
        setup_add(&words, first[i]);
    setup_add_site(&words, control->arena, &site);
    return setup_execute(&words);
}
