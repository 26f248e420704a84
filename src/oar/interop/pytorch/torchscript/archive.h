// An archive of torch.jit.save: the module with its tensors, the constants of its code, and the code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/formats/safetensors.h"
#include "oar/formats/zip.h"
#include "oar/interop/pytorch/torchscript/source.h"
#include "oar/interop/pytorch/value.h"

namespace oar::pytorch {

struct Archive {
  std::unique_ptr<Heap> heap = std::make_unique<Heap>();
  Value module;
  std::vector<Value> constants;
  std::vector<SourceFile> files;

  // By their full names, such as "__torch__.torch.nn.modules.linear.Linear"; null if there is none.
  const Class* class_of(std::string_view name) const;
  const Function* function(std::string_view name) const;
  void index();

  // A tensor, and where in the module it is.
  struct Weight {
    std::string name;
    Tensor tensor;
    bool in_state = false;  // a parameter or a buffer
  };
  // Those of the module, and of the code's constants.
  std::vector<Weight> weights() const;

  // The module and the constants for one run, which may change them: boxes of that run's heap.
  struct Copy {
    Value module;
    std::vector<Value> constants;
  };
  using OfTensor = std::function<Value(const Tensor&)>;
  Copy copy(Heap& heap, const OfTensor& of_tensor) const;
  // What a run made of them.
  void replace(const Copy& changed);

 private:
  std::map<std::string, const Class*, std::less<>> classes_;
  std::map<std::string, const Function*, std::less<>> functions_;
};

bool is_script_archive(const ZipFile& zip);
std::unique_ptr<Archive> read_script(const ZipFile& zip);

}  // namespace oar::pytorch
