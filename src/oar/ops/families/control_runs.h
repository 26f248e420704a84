// How the loops and branches of `control.cpp` run.
#pragma once

#include "oar/ops/families/control_rules.h"
#include "oar/ops/gen/control.h"

namespace oar {

Made run_switch(const args::switch_case& a);
Made run_while(const args::while_loop& a);
Made run_scan(const args::scan& a);

// The shape of one t per iteration.
Shape stacked_shape(const Tensor& t, Dim rounds);

}  // namespace oar
