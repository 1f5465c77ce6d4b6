/* module_document: the struct stampd_document of an application's try, for module_document.c and
 * module.c. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_DOCUMENT_H
#define STAMPD_OPERATION_MODULE_MODULE_DOCUMENT_H

#include "model/document/draft.h"
#include "stampd.h"

struct stampd_document {
    struct stampd_call *call;
    struct stampd_document *next;
    const char *document_class, *id;
    struct draft *draft; /* NULL: it could not be loaded */
    bool may_change;     /* requested at tolerance 0 */
};

#endif
