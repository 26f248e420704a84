#include "oar/interop/pytorch/torchscript/archive.h"

#include <algorithm>
#include <optional>
#include <set>

#include "oar/base/error.h"
#include "oar/interop/pytorch/tensor_pickle.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 100;
constexpr size_t kMostSource = size_t{1} << 26;
constexpr std::string_view kCode = "code/";
constexpr const char* kAdmitted =
    "Archives of TorchScript hold tensors, numbers, texts, containers, and objects of their own code.";

[[noreturn]] void damaged(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "the TorchScript archive is damaged: {}.", what);
}

// The folder that everything is in: the archive's own name. Packages of modules have constants too, and no module of their own.
std::optional<std::string> root_of(const ZipFile& zip) {
  constexpr std::string_view kMark = "constants.pkl";
  for (const ZipFile::Entry& entry : zip.entries()) {
    if (entry.name != kMark && !entry.name.ends_with("/constants.pkl")) continue;
    std::string root = entry.name.substr(0, entry.name.size() - kMark.size());
    if (zip.find(root + "data.pkl")) return root;
  }
  return std::nullopt;
}

// ---- pickles -----------------------------------------------------------------------------------

constexpr std::string_view kLists[] = {
    "torch.jit._pickle.build_intlist", "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_boollist", "torch.jit._pickle.build_tensorlist"};

bool builds_list(std::string_view name) {
  return std::find(std::begin(kLists), std::end(kLists), name) != std::end(kLists);
}

class ScriptPickle : public TensorPickle {
 public:
  ScriptPickle(std::string_view pickle, const ZipFile& zip, const std::string& folder,
               Archive& archive)
      : TensorPickle(pickle, zip, folder, kAdmitted), archive_(archive) {}

  Value whole() { return value_of(run(), 0); }

 private:
  bool knows(std::string_view name) const override {
    return TensorPickle::knows(name) || builds_list(name) || name.starts_with("__torch__.") ||
           name == "torch.jit._pickle.restore_type_tag" || name == "torch.device";
  }

  void call(const std::string& name, const std::vector<ItemPtr>& given) override {
    if ((builds_list(name) || name == "torch.jit._pickle.restore_type_tag") && !given.empty()) {
      again(given[0]);
    } else if (name == "torch.device" && !given.empty() && given[0]->kind == Item::Text) {
      push(Item::Text).text = given[0]->text;
    } else if (name.starts_with("__torch__.")) {  // a tuple with named parts
      Item& made = push(Item::Tuple);
      made.items = given;
      made.text = name;
    } else {
      TensorPickle::call(name, given);
    }
  }

  void create(const std::string& name, const std::vector<ItemPtr>&) override {
    if (name.starts_with("__torch__.torch.classes."))
      refused(format("an object of the class '{}', which is no TorchScript", name.substr(10, 80)));
    push(Item::Object).text = name;
  }

  void build(const Item& state, Item& object) override {
    if (object.kind != Item::Object) return TensorPickle::build(state, object);
    const Class* made = archive_.class_of(object.text);
    if (made && made->method("__setstate__"))
      refused(format("an object of '{}', whose code restores it", object.text.substr(0, 80)));
    if (state.kind != Item::Dict) refused("an object whose state is no dictionary");
    object.items = state.items;
  }

  // Objects may be in several places, and in circles: a box each.
  Value value_of(const ItemPtr& item, int depth) {
    if (depth > kDeepest) damaged("containers are nested too deeply");
    const bool container = item->kind == Item::List || item->kind == Item::Tuple ||
                           item->kind == Item::Dict || item->kind == Item::Object;
    if (!container) return plain(*item);
    if (const auto found = boxes_.find(item.get()); found != boxes_.end()) return found->second;
    const Value::Kind kind = item->kind == Item::List    ? Value::List
                             : item->kind == Item::Tuple ? Value::Tuple
                             : item->kind == Item::Dict  ? Value::Dict
                                                         : Value::Object;
    Value made = archive_.heap->make(kind);
    made.box->kept = true;
    boxes_[item.get()] = made;
    fill(*made.box, kind, *item, depth);
    archive_.heap->grow(item->items.size());
    return made;
  }

  void fill(Box& box, Value::Kind kind, const Item& item, int depth) {
    if (kind == Value::List || kind == Value::Tuple) {
      box.type = item.text;
      for (const ItemPtr& one : item.items) box.items.push_back(value_of(one, depth + 1));
      return;
    }
    box.type = kind == Value::Object ? item.text : "";
    for (size_t i = 0; i + 1 < item.items.size(); i += 2) {
      Value content = value_of(item.items[i + 1], depth + 1);
      if (kind == Value::Object) {
        if (item.items[i]->kind != Item::Text) damaged("an attribute has no name");
        box.attributes[item.items[i]->text] = std::move(content);
      } else {
        box.keys.push_back(value_of(item.items[i], depth + 1));
        box.items.push_back(std::move(content));
      }
    }
  }

  Value plain(const Item& item) {
    switch (item.kind) {
      case Item::None:
        return {};
      case Item::Bool:
        return Value::flag(item.integer != 0);
      case Item::Int:
        return Value::of(item.integer);
      case Item::Real:
        return Value::of(item.real);
      case Item::Text:
        return Value::of(item.text);
      case Item::Array:
        if (!item.array.defined()) damaged("a tensor without content");
        return item.array;
      default:
        refused("a value of a kind that TorchScript does not have");
    }
  }

  Archive& archive_;
  std::map<const Item*, Value> boxes_;
};

// ---- files -------------------------------------------------------------------------------------

std::string text_in(const ZipFile& zip, const std::string& name) {
  const ZipFile::Entry* entry = zip.find(name);
  if (!entry) damaged(format("it has no '{}'", name));
  return zip.content(*entry);
}

void read_code(const ZipFile& zip, const std::string& root, Archive& archive) {
  size_t all = 0;
  for (const ZipFile::Entry& entry : zip.entries()) {
    if (!entry.name.starts_with(root + std::string(kCode)) || !entry.name.ends_with(".py"))
      continue;
    all += entry.size;
    if (all > kMostSource) damaged("its code is too long");
    archive.files.push_back(
        parse_source(zip.content(entry), entry.name.substr(root.size() + kCode.size())));
  }
}

// "__torch__/torch/nn.py" becomes "__torch__.torch.nn.".
std::string prefix_of(const SourceFile& file) {
  std::string made = file.path.substr(0, file.path.size() - 3) + ".";
  std::replace(made.begin(), made.end(), '/', '.');
  return made;
}

// Walks a module's tensors: each object once.
class Collector {
 public:
  Collector(const Archive& archive, std::vector<Archive::Weight>& found)
      : archive_(archive), found_(found) {}

  void add(const std::string& name, const Value& value, bool in_state, int depth) {
    if (depth > kDeepest) return;
    if (value.is_tensor()) found_.push_back({name, value.tensor, in_state});
    if (!value.box || !seen_.insert(value.box).second) return;
    const std::string before = name.empty() ? "" : name + ".";
    for (size_t i = 0; i < value.box->items.size(); ++i)
      add(before + std::to_string(i), value.box->items[i], false, depth + 1);
    const Class* described = archive_.class_of(value.box->type);
    for (const bool tensors :
         {true, false})  // a tensor that is in a list, too, has the name of the attribute
      for (const auto& [key, attribute] : value.box->attributes)
        if (attribute.is_tensor() == tensors)
          add(before + key, attribute, listed(described, key), depth + 1);
  }

 private:
  static bool listed(const Class* described, const std::string& key) {
    if (!described || !described->lists_buffers) return true;
    for (const auto* names : {&described->parameters, &described->buffers})
      if (std::find(names->begin(), names->end(), key) != names->end()) return true;
    return false;
  }

  const Archive& archive_;
  std::vector<Archive::Weight>& found_;
  std::set<const Box*> seen_;
};

// Copies boxes, what is shared or in a circle as it is.
class Copier {
 public:
  Copier(Heap& heap, const Archive::OfTensor& of_tensor) : heap_(heap), of_tensor_(of_tensor) {}

  Value copy(const Value& value, int depth = 0) {
    user_check(depth <= kDeepest, ErrorKind::Unsupported,
               "containers of the module are nested too deeply.");
    if (value.is_tensor()) return of_tensor_(value.tensor);
    if (!value.box) return value;
    if (const auto found = made_.find(value.box); found != made_.end()) return found->second;
    const Value made = heap_.make(value.kind);
    made_[value.box] = made;
    heap_.grow(value.box->items.size());
    Box& box = *made.box;
    box.kept = true;
    box.type = value.box->type;
    box.keys = value.box->keys;
    for (const Value& item : value.box->items) box.items.push_back(copy(item, depth + 1));
    for (const auto& [name, attribute] : value.box->attributes)
      box.attributes[name] = copy(attribute, depth + 1);
    return made;
  }

 private:
  Heap& heap_;
  const Archive::OfTensor& of_tensor_;
  std::map<const Box*, Value> made_;
};

}  // namespace

Archive::Copy Archive::copy(Heap& to, const OfTensor& of_tensor) const {
  Copier copier(to, of_tensor);
  Copy made;
  made.module = copier.copy(module);
  for (const Value& constant : constants) made.constants.push_back(copier.copy(constant));
  return made;
}

void Archive::replace(const Copy& changed) {
  auto next = std::make_unique<Heap>();
  const OfTensor same = [](const Tensor& tensor) { return Value(tensor); };
  Copier copier(*next, same);
  module = copier.copy(changed.module);
  for (size_t i = 0; i < constants.size(); ++i) constants[i] = copier.copy(changed.constants[i]);
  heap = std::move(next);
}

const Class* Archive::class_of(std::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : found->second;
}
const Function* Archive::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

void Archive::index() {
  for (const SourceFile& file : files) {
    const std::string prefix = prefix_of(file);
    for (const Class& one : file.classes) classes_.emplace(prefix + one.name, &one);
    for (const Function& one : file.functions) functions_.emplace(prefix + one.name, &one);
  }
}

std::vector<Archive::Weight> Archive::weights() const {
  std::vector<Weight> found;
  Collector collector(*this, found);
  collector.add("", module, false, 0);
  for (size_t i = 0; i < constants.size(); ++i)
    collector.add(format("constants.{}", i), constants[i], false, 0);
  return found;
}

bool is_script_archive(const ZipFile& zip) { return root_of(zip).has_value(); }

std::unique_ptr<Archive> read_script(const ZipFile& zip) {
  const std::string root = root_of(zip).value_or("");
  auto archive = std::make_unique<Archive>();
  read_code(zip, root, *archive);
  archive->index();
  const std::string constants = text_in(zip, root + "constants.pkl"),
                    module = text_in(zip, root + "data.pkl");
  const Value listed = ScriptPickle(constants, zip, root + "constants/", *archive).whole();
  if (!listed.is_list()) damaged("its constants are no tuple");
  archive->constants = listed.box->items;
  archive->module = ScriptPickle(module, zip, root + "data/", *archive).whole();
  if (archive->module.kind != Value::Object) damaged("it holds no module");
  if (!archive->class_of(archive->module.box->type))
    damaged(format("it has no code of '{}'", archive->module.box->type));
  return archive;
}

}  // namespace oar::pytorch
