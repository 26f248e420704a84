// The networks that a reader runs, whatever their file format.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace ocr {

// A network with one input and one output that count.
class Network {
 public:
  Network() = default;
  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // A contiguous tensor. Several threads may call it at once.
  virtual Tensor run(const Tensor& input) const = 0;
  // Texts that the file holds beside the graph.
  virtual const std::map<std::string, std::string>& notes() const = 0;
};

// The network of a file, by its name: `.onnx`.
std::shared_ptr<const Network> load_network(const std::string& path);
// Whether load_network knows files with this name.
bool is_network_file(const std::string& path);

}  // namespace ocr
}  // namespace oar
