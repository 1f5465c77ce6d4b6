#ifndef STAMPD_EDGE_HTTP_H
#define STAMPD_EDGE_HTTP_H

#endif
