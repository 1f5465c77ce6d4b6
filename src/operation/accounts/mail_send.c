/* mail_send: see the header. */
#include "operation/accounts/mail_send.h"

#include <string.h>

#include "base/log.h"
#include "base/secret.h"
#include "edge/http.h"

enum { PROBLEM_BYTES = 600, CONNECT_TIMEOUT_MS = 5000 };

static bool mail_send_is_loopback(const char *server)
{
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
           (strncmp(host, "localhost", 9) == 0 && (!host[9] || host[9] == ':'));
}

static struct http *get_client(void)
{
    static struct http *client;
    if (!client)
        client = http_open(&(struct http_options){.parallel = 1, .connect_timeout_ms = CONNECT_TIMEOUT_MS});
    return client;
}

static void mail_send_judge(struct arena *arena, const struct http_result *result,
                            struct mail_outcome *outcome_r)
{
    *outcome_r = (struct mail_outcome){.verdict = MAIL_TAKEN};
    if (result->status)
        return;
    log_often(LOG_LEVEL_WARNING, result->reason, "mail server: %s: %s", result->reason, result->problem);
    outcome_r->verdict = result->refusal ? MAIL_REFUSED : MAIL_LATER;
    outcome_r->words =
        result->refusal ? arena_printf(arena, "The mail server answers %d.", result->refusal)
                        : arena_printf(arena, "No mail was accepted by the mail server: %s.", result->reason);
}

void mail_send(const struct settings *settings, struct arena *arena, const char *from, const char *to,
               struct bytes text, struct mail_outcome *outcome_r)
{
    const char *const receivers[] = {to, NULL};
    char problem[PROBLEM_BYTES];
    struct secret password = {0};
    struct http_result result;
    if (*settings->mail_password_file &&
        !secret_read(&password, "mail_password_file", settings->mail_password_file, problem,
                     sizeof problem)) {
        log_error("%s", problem);
        *outcome_r = (struct mail_outcome){.verdict = MAIL_LATER, .words = "mail_password_file is unusable."};
        return;
    }
    const struct http_mail mail = {
        .server = settings->mail_server,
        .from = from,
        .to = receivers,
        .user = *settings->mail_user ? settings->mail_user : NULL,
        .password = password.text ? password.text : "",
        .needs_tls = settings->mail_tls == SETTING_ON || !mail_send_is_loopback(settings->mail_server),
        .ca_file = *settings->mail_ca_file ? settings->mail_ca_file : NULL,
        .text = text,
        .timeout_ms = settings->mail_timeout_s * 1000,
    };
    http_send_mail(get_client(), &mail);
    while (!http_receive(get_client(), mail.timeout_ms, &result))
        ; /* libcurl ends it at its timeout */
    secret_erase(&password);
    mail_send_judge(arena, &result, outcome_r);
}
