// What is known about a variable before a run: its value if it depends on constants alone, its
// elements as sizes if they are computed from sizes.
#pragma once

#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/builder.h"

namespace OAR_API oar {

// The part of the program that computes t; none if it reads an input or a state, or draws
// random numbers.
std::optional<Program> constant_part(Builder& builder, const Tensor& t);
std::optional<Program> constant_part(Capture& capture, const Tensor& t);

// The elements of the result of such a part, as expressions of sizes; none if it does anything
// else with them than arithmetic and rearranging.
std::optional<std::vector<Dim>> as_sizes(const Program& part);

}  // namespace oar
