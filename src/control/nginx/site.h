/* site: the public side of the configuration that `stampctl nginx` writes: addresses, names, plain HTTP, own
 * files. */
#ifndef STAMPD_CONTROL_NGINX_SITE_H
#define STAMPD_CONTROL_NGINX_SITE_H

#include "control/control.h"

struct site {
    struct option_words listen, http, names; /* addresses and ports; a port alone means all addresses */
    const char *acme, *root, *console, *doc, *include; /* NULL: none */
    int64_t hsts_s;                                    /* 0: none */
    int64_t local_port;                                /* of HTTP without TLS on the loopback; 0: none */
    bool is_proxied;                                   /* connections begin with a PROXY protocol header */
};

/* The options of the site. */
#define SITE_LINES(site)                                                                                     \
    {.name = "listen",                                                                                       \
     .argument = "ADDRESS:PORT",                                                                             \
     .help = "Listen here for HTTPS (default: 443); a port alone: on all addresses, IPv4 and IPv6.  May be " \
             "repeated.",                                                                                    \
     .words = &(site)->listen},                                                                              \
        {.name = "http",                                                                                     \
         .argument = "ADDRESS:PORT",                                                                         \
         .help = "Listen here for HTTP, which redirects to HTTPS (default: none, 80 with --acme).  May be "  \
                 "repeated.",                                                                                \
         .words = &(site)->http},                                                                            \
        OPTION_TEXT("acme", "FOLDER", &(site)->acme, "Serve /.well-known/acme-challenge/ from FOLDER."),     \
        OPTION_NUMBER("hsts", "SECONDS", &(site)->hsts_s, 1, 315360000,                                      \
                      "Make browsers use HTTPS only, for this long."),                                       \
        OPTION_TEXT("root", "FOLDER", &(site)->root,                                                         \
                    "Serve files from FOLDER at every path that is not a namespace's."),                     \
        OPTION_TEXT("console", "FOLDER", &(site)->console,                                                   \
                    "Serve the administrator's page in FOLDER at /console/ (default: it is not served)."),   \
        OPTION_TEXT("doc", "FOLDER", &(site)->doc,                                                           \
                    "Serve the documentation in FOLDER at /doc/ (default: it is not served)."),              \
        {.name = "include",                                                                                  \
         .argument = "FILES",                                                                                \
         .help = "Include your own directives for the public server, as /etc/nginx/stampd.d/*.conf.",        \
         .text = &(site)->include},                                                                          \
    {                                                                                                        \
        .name = "name", .argument = "HOST",                                                                  \
        .help = "Set the name of the server (default: any).  May be repeated.", .words = &(site)->names      \
    }

/* The directives `listen` of some addresses, each with `more`, a line each; "" for none. */
const char *site_listen(struct arena *arena, const struct option_words *addresses, const char *more);
/* The same for the listener without TLS, which only this host reaches; "" without it. */
const char *site_local(struct arena *arena, const struct site *site);
/* The names of the site, separated by blanks. */
const char *site_names(struct arena *arena, const struct site *site);
/* The header that keeps browsers on HTTPS, one line indented by `indent`; "" without it. */
const char *site_hsts(struct arena *arena, const struct site *site, const char *indent);
/* ":8443": the port of its first address; "" when it is that of HTTPS. */
const char *site_port(struct arena *arena, const struct site *site);

#endif
