#ifndef STAMPD_EDGE_FCGI_H
#define STAMPD_EDGE_FCGI_H

#endif
