// HDF5 files in memory: groups, attributes and arrays, as h5py writes them for Keras.
//
//   const Hdf5File file(bytes);
//   const auto group = file.root().find("model_weights");
//   const std::vector<std::string> names = group->texts("layer_names").value();
//
// A file may be hostile: nothing is read beyond its end, and what is unpacked is no larger than the file can hold. Old and new
// groups, plain, compact and chunked arrays, deflated and shuffled. Files of `libver="latest"` are an error where they differ.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

struct Hdf5Bytes;
struct Hdf5Message;

// A group or an array.
class Hdf5Node {
 public:
  // Null if it has no member of this name, which may be a path.
  std::optional<Hdf5Node> find(std::string_view path) const;
  // Of a group, in the order of the file, which is that of the names for groups of the old kind.
  std::vector<std::string> names() const;
  bool is_array() const;

  // An attribute of one or more texts; nothing if there is none of this name.
  std::optional<std::vector<std::string>> texts(std::string_view attribute) const;
  // An array of numbers.
  Tensor tensor() const;

 private:
  friend class Hdf5File;
  Hdf5Node(std::shared_ptr<const Hdf5Bytes> bytes, uint64_t place);
  const std::map<std::string, uint64_t>& members() const;
  std::optional<std::string_view> message(int type) const;

  std::shared_ptr<const Hdf5Bytes> bytes_;
  std::shared_ptr<const std::vector<Hdf5Message>> messages_;
  mutable std::shared_ptr<const std::map<std::string, uint64_t>> members_;
};

class Hdf5File {
 public:
  // The bytes must outlive this and its nodes.
  explicit Hdf5File(std::string_view file);

  Hdf5Node root() const;

 private:
  std::shared_ptr<const Hdf5Bytes> bytes_;
  uint64_t root_ = 0;
};

bool is_hdf5(std::string_view file);

}  // namespace oar
