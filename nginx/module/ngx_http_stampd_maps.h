/* ngx_http_stampd_maps: usual values of some maps of nginx's configuration, without their expressions. */
#ifndef NGX_HTTP_STAMPD_MAPS_H
#define NGX_HTTP_STAMPD_MAPS_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* After the configuration is read and before nginx resolves the names of variables.  Does nothing when the
 * configuration lacks the variable that numbers its maps: they may be others. */
ngx_int_t ngx_http_stampd_maps_take(ngx_conf_t *cf);

#endif
