#include "document/stamp.h"
