// Pickles of PyTorch's archives: tensors whose storages are files of the archive, and plain containers. What else a pickle may name is
// up to the kind of archive.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oar/formats/pickle_machine.h"
#include "oar/formats/zip.h"

namespace oar::pytorch {

class TensorPickle : public PickleMachine {
 public:
  // `folder` has the storages, and ends with a slash.
  TensorPickle(std::string_view pickle, const ZipFile& zip, std::string folder,
               const char* admitted)
      : PickleMachine(pickle, admitted), zip_(zip), folder_(std::move(folder)) {}

 protected:
  bool knows(std::string_view name) const override;
  void call(const std::string& name, const std::vector<ItemPtr>& given) override;
  // Attributes of a dictionary, such as the versions of modules, are not read.
  void build(const Item& state, Item& object) override;
  void refer(const Item& id) override;

 private:
  std::vector<int64_t> integers(const Item& tuple) const;
  void push_tensor(const Item& storage, const Item& offset, const Item& sizes, const Item& strides);

  struct Part {
    std::string storage;
    DType dtype = DType::Float32;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
    auto operator<=>(const Part&) const = default;
  };

  const ZipFile& zip_;
  const std::string folder_;
  std::map<std::string, std::string> storages_;
  std::map<Part, Tensor> made_;  // the same part of a storage is one tensor
};

}  // namespace oar::pytorch
