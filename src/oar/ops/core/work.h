// How long a call takes, guessed from its sizes: good for choosing between ways to run it, not for more.
#pragma once

#include "oar/ops/core/registry.h"

namespace oar {

// Nanoseconds on one thread of a processor of these years. Sizes are known.
double guessed_time(const Op& op, Args args, TensorList results);

// May a library's kernel give other bits on another number of threads? Found by trying: it cuts long sums by threads in
// gradients of convolutions and in products whose left factor is transposed. Our own kernels never do.
bool sums_by_threads(const Op& op, Args args);

}  // namespace oar
