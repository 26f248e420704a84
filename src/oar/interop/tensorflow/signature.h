// Which tensors of a graph are the inputs and outputs of the model.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "oar/interop/tensorflow/import.h"
#include "oar/interop/tensorflow/run.h"

namespace oar::tensorflow {

// What a file says about one of them.
struct Described {
  std::string tensor;  // "node:0"
  OpenShape shape;
};
struct Signature {
  std::map<std::string, Described> inputs, outputs;
};

// Fills inputs and outputs: those that are wanted, else the signature's, else those that the graph's ends suggest.
void choose_ends(Network& network, const Signature& signature, const Wanted& wanted);
interop::GraphModel model_of(const std::shared_ptr<const Network>& network);

}  // namespace oar::tensorflow
