#include "operation/access.h"
