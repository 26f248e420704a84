// What nearly every kernel of the CPU includes, precompiled.
#include <algorithm>
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/loops/copy.h"
