/* client_build: is the client outdated?  It may send the header X-Stampd-Build, in one of these forms:
 *
 * | value | the client was made for |
 * | --- | --- |
 * | BUILD | this build of the server: the setting `build` |
 * | BUILD+NUMBER | the same, and at least this build of the namespace, as ping returns it in `build` |
 * | +NUMBER | at least this build of the namespace, whatever the server's |
 *
 * A server without the setting does not compare its own.  The number is the last part after a '+' if it has
 * digits only. */
#ifndef STAMPD_OPERATION_SYNC_CLIENT_BUILD_H
#define STAMPD_OPERATION_SYNC_CLIENT_BUILD_H

#include "base/settings.h"
#include "operation/reply.h"

/* FAULT_DBUILD: another build of the server.  Recorded in the reply. */
MUST_USE enum fault client_build_check_server(const struct settings *settings, struct call *call,
                                              struct reply *reply);
/* FAULT_DBUILD: an older build of the namespace.  Valid after access_enter.  Recorded in the reply. */
MUST_USE enum fault client_build_check_namespace(const struct settings *settings, struct call *call,
                                                 struct reply *reply);

#endif
