// The legacy format: ProgramDesc, a message of Protocol Buffers. Constants are attributes there, and blocks assign to variables
// outside of them.
#include <algorithm>
#include <limits>
#include <set>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/paddle/legacy_names.h"
#include "oar/interop/paddle/model.h"
#include "oar/interop/paddle/written.h"
#include "oar/interop/proto_writer.h"

namespace oar::paddle {
namespace {

constexpr int64_t kVersion = 2006000;  // of the Paddle whose ops these are

// The numbers of AttributeProto's and VarType's types.
enum AttributeType : int64_t {
  kInt = 0,
  kFloat = 1,
  kText = 2,
  kInts = 3,
  kFloats = 4,
  kFlag = 6,
  kBlock = 8,
  kLong = 9,
  kLongs = 11
};
enum VariableType : int64_t { kTensor = 7, kFeedList = 9, kFetchList = 10, kScopes = 11 };

struct Named {
  std::string name;
  std::vector<std::string> variables;
};

class Attributes {
 public:
  void add(std::string_view name, const FileNumber& value) {
    if (!names_.insert(std::string(name)).second) return;
    ProtoWriter made;
    made.text(1, name);
    std::visit([&](const auto& v) { add_value(made, v); }, value);
    messages_.push_back(std::move(made));
  }
  void add_block(std::string_view name, size_t block) {
    ProtoWriter made;
    made.text(1, name);
    made.integer(2, kBlock);
    made.integer(12, static_cast<int64_t>(block));
    messages_.push_back(std::move(made));
  }
  const std::vector<ProtoWriter>& messages() const { return messages_; }

 private:
  static void add_value(ProtoWriter& made, bool v) {
    made.integer(2, kFlag);
    made.integer(10, v);
  }
  static void add_value(ProtoWriter& made, int32_t v) {
    made.integer(2, kInt);
    made.integer(3, v);
  }
  static void add_value(ProtoWriter& made, int64_t v) {
    made.integer(2, kLong);
    made.integer(13, v);
  }
  static void add_value(ProtoWriter& made, float v) {
    made.integer(2, kFloat);
    made.float32(4, v);
  }
  static void add_value(ProtoWriter& made, const std::string& v) {
    made.integer(2, kText);
    made.text(5, v);
  }
  static void add_value(ProtoWriter& made, DType v) {
    add_value(made, static_cast<int32_t>(number_of(v)));
  }
  static void add_value(ProtoWriter& made, const std::vector<int32_t>& v) {
    made.integer(2, kInts);
    for (const int32_t each : v) made.integer(6, each);
  }
  static void add_value(ProtoWriter& made, const std::vector<int64_t>& v) {
    made.integer(2, kLongs);
    for (const int64_t each : v) made.integer(15, each);
  }
  static void add_value(ProtoWriter& made, const std::vector<float>& v) {
    made.integer(2, kFloats);
    for (const float each : v) made.float32(7, each);
  }

  std::set<std::string> names_;
  std::vector<ProtoWriter> messages_;
};

ProtoWriter proto_of(const Named& list) {
  ProtoWriter made;
  made.text(1, list.name);
  for (const std::string& variable : list.variables) made.text(2, variable);
  return made;
}

// What the definitions of legacy ops have besides, with the values that mean nothing special.
struct Extra {
  std::string_view prefix, name;
  FileNumber value;
};
const Extra kExtras[] = {
    {"elementwise_", "axis", int32_t{-1}},
    {"fill_constant", "force_cpu", false},
    {"reduce_", "reduce_all", false},
    {"expand_v2", "shape", std::vector<int32_t>()},
    {"hard_swish", "threshold", 6.0F},
    {"hard_swish", "scale", 6.0F},
    {"hard_swish", "offset", 3.0F},
    {"relu6", "threshold", 6.0F},
    {"swish", "beta", 1.0F},
};

class LegacyWriter {
 public:
  explicit LegacyWriter(const WrittenModel& model) : model_(model) {
    for (const WrittenModel::Value& v : model.values)
      if (!v.name.empty()) taken_.insert(v.name);
    for (size_t i = 0; i < model.outputs.size(); ++i) taken_.insert(output_name(i));
  }

  std::string run() {
    blocks_.emplace_back();
    Block& main = blocks_[0];
    main.variables.push_back(variable("feed", kFeedList, true));
    main.variables.push_back(variable("fetch", kFetchList, true));
    for (const FileId id : model_.parameter_ids) declare(0, id, true);
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      declare(0, model_.inputs[i]);
      Attributes attributes;
      attributes.add("col", static_cast<int32_t>(i));
      add(0, "feed", {{"X", {"feed"}}}, {{"Out", {name_of(model_.inputs[i])}}}, attributes);
    }
    for (const FileNode& node : model_.main.nodes) add(0, node);
    for (size_t i = 0; i < model_.outputs.size(); ++i) add_output(i);
    ProtoWriter program;
    for (size_t i = 0; i < blocks_.size(); ++i) program.message(1, proto_of(i));
    ProtoWriter version;
    version.integer(1, kVersion);
    program.message(4, version);
    return program.take();
  }

 private:
  struct Block {
    int64_t parent = -1;
    std::vector<ProtoWriter> variables, ops;
  };

  const std::string& name_of(FileId id) {
    const auto [found, is_new] = names_.try_emplace(id, model_.value(id).name);
    if (is_new && found->second.empty()) found->second = fresh("value");
    return found->second;
  }
  std::string fresh(std::string_view stem) {
    std::string name;
    do name = format("{}_{}", stem, next_++);
    while (!taken_.insert(name).second);
    return name;
  }

  ProtoWriter proto_of(size_t index) const {
    const Block& block = blocks_[index];
    ProtoWriter made;
    made.integer(1, static_cast<int64_t>(index));
    made.integer(2, block.parent);
    for (const ProtoWriter& v : block.variables) made.message(3, v);
    for (const ProtoWriter& op : block.ops) made.message(4, op);
    return made;
  }

  static ProtoWriter variable(std::string_view name, VariableType kind, bool persistable,
                              const FileType* type = nullptr) {
    ProtoWriter described, made;
    described.integer(1, kind);
    if (type) {
      ProtoWriter tensor, dense;
      tensor.integer(1, number_of(type->dtype));
      for (const int64_t size : type->shape) tensor.integer(2, size);
      dense.message(1, tensor);
      dense.integer(2, 0);
      described.message(3, dense);
    }
    made.text(1, name);
    made.message(2, described);
    made.integer(3, persistable);
    return made;
  }
  void declare(size_t block, FileId id, bool persistable = false) {
    blocks_[block].variables.push_back(
        variable(name_of(id), kTensor, persistable, &model_.value(id).type));
  }

  void add(size_t block, std::string_view op, const std::vector<Named>& inputs,
           const std::vector<Named>& outputs, const Attributes& attributes) {
    ProtoWriter made;
    for (const Named& list : inputs) made.message(1, oar::paddle::proto_of(list));
    for (const Named& list : outputs) made.message(2, oar::paddle::proto_of(list));
    made.text(3, op);
    for (const ProtoWriter& a : attributes.messages()) made.message(4, a);
    blocks_[block].ops.push_back(std::move(made));
  }
  void assign(size_t block, const std::string& from, const std::string& to) {
    add(block, "assign", {{"X", {from}}}, {{"Out", {to}}}, {});
  }

  // Readers call an output by the name of its variable.
  void add_output(size_t i) {
    const std::string name = output_name(i);
    blocks_[0].variables.push_back(
        variable(name, kTensor, false, &model_.value(model_.outputs[i]).type));
    assign(0, name_of(model_.outputs[i]), name);
    Attributes attributes;
    attributes.add("col", static_cast<int32_t>(i));
    add(0, "fetch", {{"X", {name}}}, {{"Out", {"fetch"}}}, attributes);
  }

  void add(size_t block, const FileNode& node) {
    for (const std::vector<FileId>& ids : node.results)
      for (const FileId id : ids) declare(block, id);
    if (node.op == "if") return add_if(block, node);
    if (node.op == "while") return add_while(block, node);
    const bool triangle = node.op == "tril" || node.op == "triu";
    const LegacyOp* names = legacy_of(triangle ? "tril_triu" : node.op);
    internal_check(names != nullptr, "no legacy op is {}", node.op);
    std::vector<Named> inputs, outputs;
    Attributes attributes;
    const std::vector<std::string_view> slots = words_of(names->inputs);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const FileOperand& operand = node.operands[i];
      if (operand.is_constant()) {
        add_constant(*names, operand, attributes);
        continue;
      }
      internal_check(i < slots.size(), "{} has no operand {}", names->name, i);
      std::string_view slot = slots[i].substr(0, slots[i].find('|'));
      if (slot.front() == '*') slot.remove_prefix(1);
      const bool left_out = !operand.is_list && operand.ids[0] == 0;  // but named
      inputs.push_back(
          {std::string(slot), left_out ? std::vector<std::string>() : names_of(operand.ids)});
    }
    const std::vector<std::string_view> made = words_of(names->outputs);
    for (size_t i = 0; i < node.results.size(); ++i) {
      internal_check(i < made.size(), "{} has no result {}", names->name, i);
      std::string_view slot = made[i];
      if (slot.front() == '*') slot.remove_prefix(1);
      outputs.push_back({std::string(slot), names_of(node.results[i])});
    }
    for (const FileAttribute& a : node.attributes)
      attributes.add(legacy_name(*names, a.name), narrowed(a.value));
    if (triangle) attributes.add("lower", node.op == "tril");
    add_extras(*names, node, attributes);
    add(block, names->name, inputs, outputs, attributes);
  }

  std::vector<std::string> names_of(const std::vector<FileId>& ids) {
    std::vector<std::string> all;
    for (const FileId id : ids) all.push_back(name_of(id));
    return all;
  }

  static std::string legacy_name(const LegacyOp& op, std::string_view attribute) {
    for (const std::string_view pair : words_of(op.attributes)) {
      const std::vector<std::string_view> both = words_of(pair, '=');
      if (both.at(1) == attribute) return std::string(both.at(0));
    }
    return std::string(attribute);
  }
  // Lists of integers are of 32 bits there.
  static FileNumber narrowed(const FileNumber& value) {
    const auto* longs = std::get_if<std::vector<int64_t>>(&value);
    if (!longs) return value;
    std::vector<int32_t> ints;
    for (const int64_t v : *longs)
      ints.push_back(static_cast<int32_t>(std::clamp<int64_t>(
          v, -std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max())));
    return ints;
  }
  static void add_constant(const LegacyOp& op, const FileOperand& operand, Attributes& into) {
    const std::string name = legacy_name(op, operand.attribute);
    if (!operand.is_number) {
      into.add(name, narrowed(operand.integers));
    } else if (is_integral(operand.dtype)) {
      into.add(name, static_cast<int32_t>(operand.number));
    } else {
      into.add(name, static_cast<float>(operand.number));
    }
    if (op.name == "fill_constant" && operand.is_number)
      into.add("str_value", format("{:.17g}", operand.number));
  }
  void add_extras(const LegacyOp& op, const FileNode& node, Attributes& into) const {
    for (const Extra& extra : kExtras)
      if (op.name.starts_with(extra.prefix)) into.add(extra.name, extra.value);
    if (op.name == "cast")
      into.add("in_dtype", model_.value(node.operands.at(0).ids.at(0)).type.dtype);
    if (op.name == "strided_slice") {
      const auto& axes = std::get<std::vector<int32_t>>(node.attributes.at(0).value);
      into.add("infer_flags", std::vector<int32_t>(axes.size(), 1));
      into.add("decrease_axis", std::vector<int32_t>());
    }
  }

  // ---- branches and loops -------------------------------------------------------------------------

  size_t new_block(size_t parent) {
    blocks_.emplace_back().parent = static_cast<int64_t>(parent);
    return blocks_.size() - 1;
  }
  std::string scopes(size_t block) {
    std::string name = fresh("scopes");
    blocks_[block].variables.push_back(variable(name, kScopes, false));
    return name;
  }
  std::string temporary(size_t block, const FileType& type) {
    std::string name = fresh("value");
    blocks_[block].variables.push_back(variable(name, kTensor, false, &type));
    return name;
  }
  static void collect_read(const FileBlock& block, std::set<FileId>& made, std::set<FileId>& read) {
    for (const FileNode& node : block.nodes) {
      for (const FileOperand& operand : node.operands)
        if (!operand.is_constant())
          for (const FileId id : operand.ids)
            if (id > 0) read.insert(id);
      for (const auto& ids : node.results) made.insert(ids.begin(), ids.end());
      for (const FileBlock& inner : node.blocks) {
        made.insert(inner.arguments.begin(), inner.arguments.end());
        collect_read(inner, made, read);
      }
    }
    read.insert(block.results.begin(), block.results.end());
  }
  // Names of what a block reads from outside.
  std::vector<std::string> captured(const FileBlock& block) {
    std::set<FileId> made(block.arguments.begin(), block.arguments.end()), read;
    collect_read(block, made, read);
    std::vector<std::string> all;
    for (const FileId id : read)
      if (!made.contains(id)) all.push_back(name_of(id));
    return all;
  }

  // Two blocks, of which one runs, and a choice between their results.
  void add_if(size_t block, const FileNode& node) {
    const std::string yes = name_of(node.operands[0].ids[0]);
    const FileType flag{DType::Bool, model_.value(node.operands[0].ids[0]).type.shape};
    const std::string no = temporary(block, flag);
    add(block, "logical_not", {{"X", {yes}}}, {{"Out", {no}}}, {});
    std::vector<std::vector<std::string>> results(2);
    for (const size_t side : {0, 1}) {
      const FileBlock& branch = node.blocks[side];
      const size_t inner = new_block(block);
      for (const FileId id : branch.results)
        results[side].push_back(temporary(block, model_.value(id).type));
      for (const FileNode& each : branch.nodes) add(inner, each);
      for (size_t i = 0; i < branch.results.size(); ++i)
        assign(inner, name_of(branch.results[i]), results[side][i]);
      Attributes attributes;
      attributes.add_block("sub_block", inner);
      attributes.add("is_scalar_condition", true);
      add(block, "conditional_block",
          {{"Cond", {side == 0 ? yes : no}}, {"Input", captured(branch)}},
          {{"Out", results[side]}, {"Scope", {scopes(block)}}}, attributes);
    }
    const std::string mask = temporary(block, {DType::Int32, flag.shape});
    Attributes to_mask;
    to_mask.add("in_dtype", DType::Bool);
    to_mask.add("out_dtype", DType::Int32);
    add(block, "cast", {{"X", {yes}}}, {{"Out", {mask}}}, to_mask);
    for (size_t i = 0; i < node.results.size(); ++i)
      add(block, "select_input", {{"X", {results[1][i], results[0][i]}}, {"Mask", {mask}}},
          {{"Out", {name_of(node.results[i][0])}}}, {});
  }

  // The arguments of the block are variables outside of it, which its end assigns.
  void add_while(size_t block, const FileNode& node) {
    const FileBlock& body = node.blocks[0];
    const std::string condition = temporary(block, {DType::Bool, {1}});
    assign(block, name_of(node.operands[0].ids[0]), condition);
    std::vector<std::string> variables;
    for (size_t i = 0; i < body.arguments.size(); ++i) {
      declare(block, body.arguments[i]);
      variables.push_back(name_of(body.arguments[i]));
      assign(block, name_of(node.operands[i + 1].ids[0]), variables[i]);
    }
    const size_t inner = new_block(block);
    for (const FileNode& each : body.nodes) add(inner, each);
    std::vector<std::string> next;  // all are computed before one is assigned
    for (size_t i = 1; i < body.results.size(); ++i) {
      next.push_back(temporary(inner, model_.value(body.results[i]).type));
      assign(inner, name_of(body.results[i]), next.back());
    }
    for (size_t i = 0; i < next.size(); ++i) assign(inner, next[i], variables[i]);
    assign(inner, name_of(body.results[0]), condition);
    Attributes attributes;
    attributes.add_block("sub_block", inner);
    attributes.add("is_test", true);
    std::vector<std::string> inputs = captured(body);
    inputs.insert(inputs.end(), variables.begin(), variables.end());
    std::vector<std::string> outputs = variables;
    outputs.push_back(condition);
    add(block, "while", {{"X", inputs}, {"Condition", {condition}}},
        {{"Out", outputs}, {"StepScopes", {scopes(block)}}}, attributes);
    for (size_t i = 0; i < node.results.size(); ++i)
      assign(block, variables[i], name_of(node.results[i][0]));
  }

  const WrittenModel& model_;
  std::vector<Block> blocks_;
  std::map<FileId, std::string> names_;
  std::set<std::string> taken_{"feed", "fetch"};
  int64_t next_ = 0;
};

}  // namespace

std::string legacy_program(const WrittenModel& model) { return LegacyWriter(model).run(); }

}  // namespace oar::paddle
