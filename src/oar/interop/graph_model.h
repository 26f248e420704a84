// A model that runs, whatever its format, and what the importers of graphs share: a run of the nodes that is captured.
//
//   GraphCapture graph;
//   Value x = graph.input("data", like);
//   Value y = graph.call("Convolution 'conv1'", {x, weight}, [&] { return conv(…); })[0];
//   Program program = graph.finish({y});
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"
#include "oar/interop/guess.h"
#include "oar/ir/program.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace interop {

// A value of a graph. What does not depend on an input is known, and can be a shape, an axis and so on.
struct Value {
  Tensor tensor;
  bool known = false;
};

class GraphCapture {
 public:
  GraphCapture();

  Value input(const std::string& name, const Tensor& like);
  // A weight: a state of the program, under this name.
  static Value constant(const std::string& name, const Tensor& tensor);
  // The results of a node. It runs at once if all of its inputs are known, unless it is `always` captured. `what` names
  // the node in errors.
  std::vector<Value> call(const std::string& what, const std::vector<Value>& inputs,
                          const std::function<std::vector<Tensor>()>& convert, bool always = false);
  Program finish(const std::vector<Value>& outputs);

 private:
  Capture capture_;
};

// An input, as far as the file describes it.
struct Port {
  std::string name;
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> shape;  // -1: open
  std::vector<std::string> open_sizes;        // what the file calls them, by axis; empty: nothing

  DType likely_dtype() const { return dtype.value_or(DType::Float32); }
  // … or "x_0", the first size of x.
  std::string size_name(size_t axis) const;
  std::string str() const;  // "image: float32[batch, 3, 224, 224]"
};

// A program for some inputs of a model.
struct Imported {
  Imported(Program p) : program(std::move(p)) {}
  Program program;
  // Inputs that decide on shapes, by their places among the model's: constants here, which the program does not take.
  std::map<size_t, Tensor> constant;
  std::string results;  // see Results
};

// What a run gives. Where outputs are lists of tensors, their tensors come one after the other, and `arrangement` says in JSON how they
// make up the outputs: [{"tensor": true}, [{"tensor": true}, {"tensor": true}], null]. It is empty if all outputs are tensors.
struct Results {
  Results(std::vector<Tensor> given = {}, std::string how = {})
      : tensors(std::move(given)), arrangement(std::move(how)) {}
  std::vector<Tensor> tensors;
  std::string arrangement;
};

// A model that runs. One of another framework is imported when it first runs; inputs that do not fit a program that it has get one of
// their own. The 64 made last are kept.
class GraphModel {
 public:
  // The program for inputs like these.
  using Import = std::function<Imported(const std::vector<Tensor>& like)>;
  // The results for these inputs, node after node: for models of which no program can be made.
  using Steps = std::function<Results(const std::vector<Tensor>& inputs)>;
  GraphModel(std::vector<Port> inputs, std::vector<std::string> outputs, Import import,
             Steps steps = {});
  // A model that is a program already, and checks its inputs itself.
  struct Whole {
    Steps run;
    std::function<Program()> program;
  };
  GraphModel(std::vector<Port> inputs, std::vector<std::string> outputs, Whole whole);

  // Where only a run tells how many outputs there are, and what they are called: those of the newest.
  void name_outputs(std::function<std::vector<std::string>()> names);
  // Where inputs may be more than tensors: the model for arguments of this structure, as JSON: {"args": [{"tensor": true}, 3, null],
  // "kwargs": {}}. Lists, {"tuple": […]} and {"dict": [[key, value], …]} hold others. Its inputs are the tensors.
  using Arrange = std::function<GraphModel(std::string_view arguments)>;
  void take_more_than_tensors(Arrange arrange);
  void came_from(FileKind kind, std::string path);

  const std::vector<Port>& inputs() const;
  std::vector<std::string> outputs() const;
  // In the order of inputs() and outputs(). Several threads may call it at once.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  Results run_arranged(const std::vector<Tensor>& inputs) const;
  // The program for inputs like these; of Oar's own files as it is there, before any pass.
  Program program(const std::vector<Tensor>& inputs) const;

  bool takes_more_than_tensors() const;
  GraphModel arranged(std::string_view arguments) const;

  // The file that load_model opened; of an unknown kind and without a path if there was none.
  FileKind kind() const;
  const std::string& path() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

// An error that lists all of them, unless there are none.
void refuse_unknown(const std::vector<std::string>& unknown, std::string_view kind);

}  // namespace interop
}  // namespace oar
