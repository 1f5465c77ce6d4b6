#include "edge/json.h"
