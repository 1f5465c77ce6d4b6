/* attachment: a document's attachment as a resource (attachments.md): GET answers with a head that lets nginx
 * send the file; PUT stores the body as a file and names it in the document; DELETE removes the name. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_H

#include "operation/attempt.h"

enum fault attachment_get_work(struct attempt *attempt);
enum fault attachment_put_work(struct attempt *attempt);
enum fault attachment_delete_work(struct attempt *attempt);
enum fault attachment_put_afterwork(struct attempt *attempt);
enum fault attachment_delete_afterwork(struct attempt *attempt);

#endif
