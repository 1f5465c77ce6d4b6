#include "serve/response.h"
