#include "oar/interop/pytorch/state_dict.h"

#include <algorithm>

#include "oar/base/error.h"
#include "oar/formats/pickle_machine.h"
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

const StorageType* storage_type(std::string_view name) {
  for (const StorageType& one : kStorages)
    if (one.name == name) return &one;
  return nullptr;
}

class StateReader : public PickleMachine {
 public:
  StateReader(std::string_view pickle, const ZipFile& zip, std::string folder)
      : PickleMachine(pickle, "State dicts hold tensors by name."),
        zip_(zip),
        folder_(std::move(folder)) {}

  NamedTensors whole() {
    NamedTensors named;
    const ItemPtr state = run();
    if (state->kind != Item::Dict) refused("something else than a dictionary");
    for (size_t i = 0; i + 1 < state->items.size(); i += 2)
      if (state->items[i]->kind == Item::Text && state->items[i + 1]->kind == Item::Array)
        named[state->items[i]->text] = state->items[i + 1]->array;
    return named;
  }

 private:
  bool knows(std::string_view name) const override {
    return storage_type(name) ||
           std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
  }

  void call(const std::string& name, const std::vector<ItemPtr>& given) override {
    if (name == "collections.OrderedDict" && given.empty()) {
      push(Item::Dict);
    } else if (name == "torch._utils._rebuild_tensor_v2" && given.size() >= 4) {
      push_tensor(*given[0], *given[1], *given[2], *given[3]);
    } else if (name == "torch._utils._rebuild_parameter" && !given.empty() &&
               given[0]->kind == Item::Array) {
      push(Item::Array).array = given[0]->array;
    } else {
      refused(format("a call of '{}' with other arguments", name));
    }
  }

  // Attributes of a dictionary, such as the versions of modules.
  void build(const Item&, Item& object) override {
    if (object.kind != Item::Dict) refused("an object with a state");
  }

  // ("storage", its type, its name, the device, its size)
  void refer(const Item& id) override {
    const auto& parts = id.items;
    if (id.kind != Item::Tuple || parts.size() < 3 || parts[1]->kind != Item::Name ||
        parts[2]->kind != Item::Text || !storage_type(parts[1]->text))
      damaged("a reference is no storage");
    Item& made = push(Item::Storage);
    made.dtype = storage_type(parts[1]->text)->dtype;
    made.text = parts[2]->text;
  }

  std::vector<int64_t> integers(const Item& tuple) const {
    std::vector<int64_t> all;
    if (tuple.kind != Item::Tuple) damaged("a tensor without its shape");
    for (const ItemPtr& item : tuple.items) {
      if (item->kind != Item::Int) damaged("a tensor of a shape that is none");
      all.push_back(item->integer);
    }
    return all;
  }

  void push_tensor(const Item& storage, const Item& offset, const Item& sizes,
                   const Item& strides) {
    if (storage.kind != Item::Storage || offset.kind != Item::Int)
      damaged("a tensor without its storage");
    const std::string path = folder_ + "data/" + storage.text;
    if (!storages_.contains(path)) {
      const ZipFile::Entry* entry = zip_.find(path);
      if (!entry) damaged(format("there is no '{}'", path));
      storages_[path] = zip_.content(*entry);
    }
    push(Item::Array).array = tensor_in(
        storages_[path], {*storage.dtype, integers(sizes), integers(strides), offset.integer});
  }

  const ZipFile& zip_;
  const std::string folder_;
  std::map<std::string, std::string> storages_;
};

}  // namespace

NamedTensors saved_tensors(const ZipFile& zip) {
  constexpr std::string_view kPickle = "/data.pkl";
  for (const ZipFile::Entry& entry : zip.entries())
    if (entry.name.ends_with(kPickle)) {
      const std::string folder = entry.name.substr(0, entry.name.size() - kPickle.size() + 1);
      const std::string pickle = zip.content(entry);
      return StateReader(pickle, zip, folder).whole();
    }
  fail(ErrorKind::InvalidArgument, "the archive has no tensors: there is no data.pkl.");
}

}  // namespace oar::pytorch
