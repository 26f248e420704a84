// The legacy format: ProgramDesc, a message of Protocol Buffers.
#include <algorithm>

#include "oar/base/error.h"
#include "oar/interop/paddle/legacy_names.h"
#include "oar/interop/paddle/model.h"
#include "oar/interop/protobuf.h"

namespace oar::paddle {
namespace {

constexpr int kDeepest = 16;  // blocks inside blocks

struct NamedList {
  std::string name;
  std::vector<std::string> values;
};

// An op as the file has it.
struct LegacyNode {
  std::string type;
  std::vector<NamedList> inputs, outputs;
  std::vector<Attribute> attributes;
  std::vector<NamedList> variables;  // attributes that are variables
  std::vector<int64_t> blocks;
};

struct Variable {
  std::string name;
  DType dtype = DType::Float32;
  int64_t number = 5;  // of its dtype
  std::vector<int64_t> shape;
  bool is_tensor = false, persistable = false;
};

struct LegacyBlock {
  std::vector<LegacyNode> nodes;
  std::vector<Variable> variables;
};

NamedList parse_named(std::string_view message) {
  NamedList list;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) list.name = r.text();
    if (r.field() == 2) list.values.push_back(r.text());
  }
  return list;
}

double parse_scalar(std::string_view message) {
  double value = 0;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 2 || r.field() == 3) value = static_cast<double>(r.integer());
    if (r.field() == 4) value = r.float64();
  }
  return value;
}

void parse_attribute(std::string_view message, LegacyNode& node) {
  enum Kind : int64_t { Ints = 3, Floats = 4, Bools = 7, Longs = 11, Doubles = 12, Scalars = 17 };
  Attribute a;
  NamedList variables;
  std::vector<float> floats;
  int64_t kind = 0;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        a.name = r.text();
        break;
      case 2:
        kind = r.integer();
        break;
      case 3:
      case 10:
      case 13:
        a.integer = r.integer();
        break;
      case 4:
        a.number = static_cast<double>(r.float32());
        break;
      case 5:
        a.text = r.text();
        break;
      case 6:
      case 11:
      case 15:
        r.append(a.integers);
        break;
      case 7:
        r.append(floats);
        break;
      case 12:
      case 14:
        r.append(node.blocks);
        break;
      case 16:
        r.append(a.numbers);
        break;
      case 17:
      case 18:
        variables.values.push_back(r.text());
        break;
      case 19:
        a.number = r.float64();
        break;
      case 20:
        a.number = parse_scalar(r.bytes());
        break;
      case 21:
        a.numbers.push_back(parse_scalar(r.bytes()));
        break;
      default:
        break;
    }
  }
  a.numbers.insert(a.numbers.end(), floats.begin(), floats.end());
  a.numbers.insert(a.numbers.end(), a.integers.begin(), a.integers.end());
  for (const int64_t list : {Ints, Floats, Bools, Longs, Doubles, Scalars})
    a.is_list |= kind == list;
  if (!variables.values.empty()) {
    variables.name = a.name;
    node.variables.push_back(std::move(variables));
  } else {
    node.attributes.push_back(std::move(a));
  }
}

LegacyNode parse_node(std::string_view message) {
  LegacyNode node;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) node.inputs.push_back(parse_named(r.bytes()));
    if (r.field() == 2) node.outputs.push_back(parse_named(r.bytes()));
    if (r.field() == 3) node.type = r.text();
    if (r.field() == 4) parse_attribute(r.bytes(), node);
  }
  return node;
}

// TensorDesc{data_type = 1, dims = 2} inside of a LoDTensorDesc inside of a VarType.
void parse_type(std::string_view message, Variable& variable) {
  constexpr int64_t kDenseTensor = 7;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) variable.is_tensor = r.integer() == kDenseTensor;
    if (r.field() != 3) continue;
    for (ProtoReader dense(r.bytes()); dense.next();) {
      if (dense.field() != 1) continue;
      for (ProtoReader tensor(dense.bytes()); tensor.next();) {
        if (tensor.field() == 1) variable.number = tensor.integer();
        if (tensor.field() == 2) tensor.append(variable.shape);
      }
    }
  }
}

LegacyBlock parse_block(std::string_view message) {
  LegacyBlock block;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 4) block.nodes.push_back(parse_node(r.bytes()));
    if (r.field() != 3) continue;
    Variable& v = block.variables.emplace_back();
    for (ProtoReader part(r.bytes()); part.next();) {
      if (part.field() == 1) v.name = part.text();
      if (part.field() == 2) parse_type(part.bytes(), v);
      if (part.field() == 3) v.persistable = part.integer() != 0;
    }
  }
  return block;
}

const NamedList* find(const std::vector<NamedList>& lists, std::string_view name) {
  for (const NamedList& list : lists)
    if (list.name == name && !list.values.empty()) return &list;
  return nullptr;
}

// The names of "A|*B" that the op has.
Slot slot_of(std::string_view alternatives, const std::vector<NamedList>& lists,
             const std::vector<NamedList>& variables) {
  Slot slot;
  for (std::string_view name : words_of(alternatives, '|')) {
    const bool is_list = name.front() == '*';
    if (is_list) name.remove_prefix(1);
    const NamedList* found = find(lists, name);
    if (!found) found = find(variables, name);
    if (!found) {
      slot.is_list = slot.is_list || (is_list && alternatives.front() == '*');
      continue;
    }
    slot.names = found->values;
    slot.is_list = is_list || found->values.size() > 1;
    break;
  }
  // The mark of a variable that is left out.
  if (!slot.is_list && slot.names == std::vector<std::string>{"@EMPTY@"}) slot.names.clear();
  return slot;
}

class Converter {
 public:
  Converter(std::vector<LegacyBlock> blocks, ModelFile& model)
      : blocks_(std::move(blocks)), model_(model) {}

  void run() {
    user_check(!blocks_.empty(), ErrorKind::InvalidArgument, "the program has no blocks.");
    model_.main = convert(0, 0);
    for (LegacyNode& node : blocks_[0].nodes) add_port(node);
    for (const Variable& v : blocks_[0].variables)
      if (v.persistable && v.is_tensor && v.name != "feed" && v.name != "fetch")
        model_.parameters.push_back({v.name, v.name, dtype_of(v.number), v.shape});
  }

 private:
  Block convert(size_t index, int depth) {
    user_check(index < blocks_.size() && depth < kDeepest, ErrorKind::InvalidArgument,
               "the program refers to a block {} that it does not have, or blocks nest too deeply.",
               index);
    Block block;
    for (const LegacyNode& node : blocks_[index].nodes)
      if (node.type != "feed" && node.type != "fetch") block.nodes.push_back(convert(node, depth));
    return block;
  }

  Node convert(const LegacyNode& legacy, int depth) {
    Node node;
    node.written = legacy.type;
    const LegacyOp* names = find_legacy(legacy.type);
    node.op = names ? std::string(names->op) : "";
    node.attributes = legacy.attributes;
    for (const int64_t block : legacy.blocks)
      node.blocks.push_back(convert(static_cast<size_t>(block), depth + 1));
    if (!names) {  // reported with all others; its results help to name it
      for (const NamedList& list : legacy.outputs) node.outputs.push_back({list.values, true});
      return node;
    }
    for (const std::string_view pair : words_of(names->attributes)) {
      const std::vector<std::string_view> both = words_of(pair, '=');
      for (Attribute& a : node.attributes)
        if (a.name == both.at(0)) a.name = both.at(1);
    }
    for (const std::string_view alternatives : words_of(names->inputs))
      node.inputs.push_back(slot_of(alternatives, legacy.inputs, legacy.variables));
    for (const std::string_view name : words_of(names->outputs))
      node.outputs.push_back(slot_of(name, legacy.outputs, {}));
    return node;
  }

  void add_port(const LegacyNode& node) {
    const bool is_feed = node.type == "feed";
    if (!is_feed && node.type != "fetch") return;
    const NamedList* list = is_feed ? find(node.outputs, "Out") : find(node.inputs, "X");
    user_check(list, ErrorKind::InvalidArgument, "the program's '{}' has no variable.", node.type);
    const std::string& name = list->values.front();
    Port port{name, name, DType::Float32, {}};
    for (const Variable& v : blocks_[0].variables) {
      if (v.name != name) continue;
      if (is_feed) port.dtype = dtype_of(v.number);
      port.shape = v.shape;
    }
    auto& ports = is_feed ? model_.inputs : model_.outputs;
    auto& columns = is_feed ? input_columns_ : output_columns_;
    int64_t column = static_cast<int64_t>(ports.size());
    for (const Attribute& a : node.attributes)
      if (a.name == "col" && a.integer) column = *a.integer;
    const auto place = std::upper_bound(columns.begin(), columns.end(), column) - columns.begin();
    columns.insert(columns.begin() + place, column);
    ports.insert(ports.begin() + place, std::move(port));
  }

  std::vector<LegacyBlock> blocks_;
  ModelFile& model_;
  std::vector<int64_t> input_columns_, output_columns_;
};

}  // namespace

bool is_legacy_program(std::string_view file) {
  // Field 1, a block, whose own field 1 is its index, 0.
  try {
    ProtoReader r(file);
    if (!r.next() || r.field() != 1) return false;
    ProtoReader block(r.bytes());
    return block.next() && block.field() == 1 && block.integer() == 0;
  } catch (const Error&) {
    return false;
  }
}

ModelFile parse_legacy(std::string_view file) {
  std::vector<LegacyBlock> blocks;
  for (ProtoReader r(file); r.next();)
    if (r.field() == 1) blocks.push_back(parse_block(r.bytes()));
  ModelFile model;
  model.legacy = true;
  Converter(std::move(blocks), model).run();
  return model;
}

}  // namespace oar::paddle
