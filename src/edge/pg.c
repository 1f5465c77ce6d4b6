#include "edge/pg.h"
