#include "oar/interop/pytorch/tensor_pickle.h"

#include <algorithm>

#include "oar/base/error.h"
#include "oar/interop/pytorch/tensors.h"

namespace oar::pytorch {
namespace {

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr StorageType kStorages[] = {
    {"torch.FloatStorage", DType::Float32},
    {"torch.DoubleStorage", DType::Float64},
    {"torch.HalfStorage", DType::Float16},
    {"torch.BFloat16Storage", DType::BFloat16},
    {"torch.LongStorage", DType::Int64},
    {"torch.IntStorage", DType::Int32},
    {"torch.ShortStorage", DType::Int16},
    {"torch.CharStorage", DType::Int8},
    {"torch.ByteStorage", DType::UInt8},
    {"torch.BoolStorage", DType::Bool},
    {"torch.ComplexFloatStorage", DType::Complex64},
    {"torch.ComplexDoubleStorage", DType::Complex128},
};
constexpr std::string_view kFunctions[] = {"collections.OrderedDict",
                                           "torch._utils._rebuild_tensor_v2",
                                           "torch._utils._rebuild_parameter"};
// What Oar has no tensors for. They are known, so that the error can say what they are.
constexpr std::pair<std::string_view, const char*> kForeign[] = {
    {"torch._utils._rebuild_qtensor", "a quantised tensor"},
    {"torch._utils._rebuild_sparse_tensor", "a sparse tensor"},
    {"torch._utils._rebuild_sparse_csr_tensor", "a sparse tensor"},
    {"torch.QInt8Storage", "a quantised tensor (qint8)"},
    {"torch.QUInt8Storage", "a quantised tensor (quint8)"},
    {"torch.QInt32Storage", "a quantised tensor (qint32)"},
    {"torch.QUInt4x2Storage", "a quantised tensor (quint4x2)"},
    {"torch.QUInt2x4Storage", "a quantised tensor (quint2x4)"},
    {"torch.ComplexHalfStorage", "a tensor of half complex numbers"},
};

const StorageType* storage_type(std::string_view name) {
  for (const StorageType& one : kStorages)
    if (one.name == name) return &one;
  return nullptr;
}
const char* foreign(std::string_view name) {
  for (const auto& [known, what] : kForeign)
    if (known == name) return what;
  return nullptr;
}

}  // namespace

bool TensorPickle::knows(std::string_view name) const {
  return storage_type(name) || foreign(name) ||
         std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

void TensorPickle::call(const std::string& name, const std::vector<ItemPtr>& given) {
  if (name == "collections.OrderedDict" && given.empty()) {
    push(Item::Dict);
  } else if (name == "torch._utils._rebuild_tensor_v2" && given.size() >= 4) {
    push_tensor(*given[0], *given[1], *given[2], *given[3]);
  } else if (name == "torch._utils._rebuild_parameter" && !given.empty() &&
             given[0]->kind == Item::Array) {
    push(Item::Array).array = given[0]->array;
  } else if (const char* what = foreign(name)) {
    refused(what);
  } else {
    refused(format("a call of '{}' with other arguments", name));
  }
}

void TensorPickle::build(const Item&, Item& object) {
  if (object.kind != Item::Dict) refused("an object with a state");
}

// ("storage", its type, its name, the device, its size)
void TensorPickle::refer(const Item& id) {
  const auto& parts = id.items;
  if (id.kind == Item::Tuple && parts.size() > 1 && parts[1]->kind == Item::Name)
    if (const char* what = foreign(parts[1]->text)) refused(what);
  if (id.kind != Item::Tuple || parts.size() < 3 || parts[1]->kind != Item::Name ||
      parts[2]->kind != Item::Text || !storage_type(parts[1]->text))
    damaged("a reference is no storage");
  Item& made = push(Item::Storage);
  made.dtype = storage_type(parts[1]->text)->dtype;
  made.text = parts[2]->text;
}

std::vector<int64_t> TensorPickle::integers(const Item& tuple) const {
  std::vector<int64_t> all;
  if (tuple.kind != Item::Tuple) damaged("a tensor without its shape");
  for (const ItemPtr& item : tuple.items) {
    if (item->kind != Item::Int) damaged("a tensor of a shape that is none");
    all.push_back(item->integer);
  }
  return all;
}

void TensorPickle::push_tensor(const Item& storage, const Item& offset, const Item& sizes,
                               const Item& strides) {
  if (storage.kind != Item::Storage || offset.kind != Item::Int)
    damaged("a tensor without its storage");
  const Part part{storage.text, *storage.dtype, integers(sizes), integers(strides), offset.integer};
  Tensor& made = made_[part];
  if (!made.defined()) {
    const std::string path = folder_ + part.storage;
    if (!storages_.contains(path)) {
      const ZipFile::Entry* entry = zip_.find(path);
      if (!entry) damaged(format("there is no '{}'", path));
      storages_[path] = zip_.content(*entry);
    }
    made = tensor_in(storages_[path], {part.dtype, part.sizes, part.strides, part.offset});
  }
  push(Item::Array).array = made;
}

}  // namespace oar::pytorch
