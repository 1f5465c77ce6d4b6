#include "serve/request.h"
