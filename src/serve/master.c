#include "serve/master.h"
