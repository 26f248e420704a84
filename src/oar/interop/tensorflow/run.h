// A graph that runs, node after node: either once, as a program is made, or with plain tensors where the sizes of results depend
// on what the graph computes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "oar/interop/graph_model.h"
#include "oar/interop/tensorflow/call.h"
#include "oar/interop/tensorflow/checkpoint.h"

namespace oar::tensorflow {

// An output of a node of the main graph.
struct Place {
  std::string node;
  size_t output = 0;

  std::string str() const { return output == 0 ? node : node + ":" + std::to_string(output); }
  bool operator<(const Place& other) const {
    return std::tie(node, output) < std::tie(other.node, other.output);
  }
};
Place place_of(const std::string& name);  // "node", "node:1"

struct Entry {
  interop::Port port;
  Place place;
};

// What all runs of a model share.
struct Network {
  GraphDef graph;
  std::vector<Entry> inputs, outputs;
  std::map<std::string, Tensor> variables;

  // A constant is turned once, whatever asks for it.
  Tensor turned(const Tensor& constant, const std::vector<int64_t>& order) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<const void*, std::vector<int64_t>>, std::pair<Tensor, Tensor>> turned_;
};

Program program_for(const Network& network, const std::vector<Tensor>& like);
std::vector<Tensor> run_steps(const Network& network, const std::vector<Tensor>& inputs);
// Runs a node that assigns the variables of a checkpoint.
void restore(Network& network, const std::string& node, Checkpoint& checkpoint);

// An error that lists the operators, in what the outputs need, that no table has.
void check_operators(const Network& network);

}  // namespace oar::tensorflow
