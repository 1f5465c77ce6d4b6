#include "edge/http.h"
