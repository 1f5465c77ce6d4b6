#include "edge/fcgi.h"
