/* nginx_objects: the locations of nginx that pass a download on: to an object store, one for each store, and
 * to the decrypter of files of encrypted namespaces. */
#ifndef STAMPD_CONTROL_NGINX_NGINX_OBJECTS_H
#define STAMPD_CONTROL_NGINX_NGINX_OBJECTS_H

#include "control/control.h"
#include "control/nginx/site.h"

/* In the arena; NULL: the stores cannot be read, which is reported. */
const char *nginx_objects(struct control *control, const struct site *site);

#endif
