#include "edge/segment.h"
