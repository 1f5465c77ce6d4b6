#include "operation/call.h"
