#include "oar/interop/paddle/write.h"

#include <algorithm>
#include <set>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/paddle/model.h"
#include "oar/interop/paddle/writer.h"
#include "oar/interop/program_call.h"
#include "oar/ir/region.h"

namespace oar::paddle {

std::string output_name(size_t i) { return format("fetch_name_{}", i); }

// ---- ops -----------------------------------------------------------------------------------------

FileId Writer::new_value(const FileType& type) {
  model_.values.push_back({type, ""});
  return static_cast<FileId>(model_.values.size());
}

FileNode& Writer::append(FileNode node) {
  return frames_.back().block.nodes.emplace_back(std::move(node));
}

std::vector<FileId> Writer::add_once(FileNode node, const std::vector<FileType>& types,
                                     bool is_list) {
  std::string key = node.op;
  for (const FileOperand& operand : node.operands)
    for (const FileId id : operand.ids) key += format(" {}", id);
  const auto [first, last] = frames_.back().added.equal_range(key);
  const auto same = std::find_if(first, last, [&](const auto& entry) {
    const FileNode& other = entry.second;
    return other.operands == node.operands && other.attributes == node.attributes &&
           other.lists == std::vector<bool>(is_list ? 1 : types.size(), is_list);
  });
  std::vector<FileId> made;
  if (same != last) {
    for (const std::vector<FileId>& ids : same->second.results)
      made.insert(made.end(), ids.begin(), ids.end());
    return made;
  }
  for (const FileType& type : types) made.push_back(new_value(type));
  if (is_list) node.results.push_back(made);
  for (size_t i = 0; !is_list && i < made.size(); ++i) node.results.push_back({made[i]});
  node.lists.assign(node.results.size(), is_list);
  frames_.back().added.emplace(std::move(key), node);
  append(std::move(node));
  return made;
}

std::vector<FileId> Writer::add(std::string_view op, std::vector<FileOperand> operands,
                                const std::vector<FileType>& types, FileAttributes attributes) {
  return add_once({std::string(op), std::move(operands), {}, {}, std::move(attributes), {}}, types,
                  false);
}

FileId Writer::add(std::string_view op, std::vector<FileOperand> operands, const FileType& type,
                   FileAttributes attributes) {
  return add(op, std::move(operands), std::vector<FileType>{type}, std::move(attributes))[0];
}

std::vector<FileId> Writer::add_list(std::string_view op, std::vector<FileOperand> operands,
                                     const std::vector<FileType>& types,
                                     FileAttributes attributes) {
  return add_once({std::string(op), std::move(operands), {}, {}, std::move(attributes), {}}, types,
                  true);
}

FileId Writer::parameter(const Tensor& tensor, std::string_view stem) {
  std::string name(stem);
  for (int i = 1; model_.parameters.contains(name); ++i) name = format("{}_{}", stem, i);
  const FileId id = new_value(file_type({tensor.dtype(), tensor.shape(), {}, {}}));
  model_.values.back().name = name;
  model_.parameter_ids.push_back(id);
  model_.parameters.emplace(name, tensor);
  return id;
}

FileId Writer::number(double value, DType dtype) {
  const auto [found, is_new] = numbers_.try_emplace(format("{} {:.17g}", name_of(dtype), value));
  if (is_new)
    found->second = parameter(Tensor::from_vector(std::vector{value}, Shape{1}, dtype), "number");
  return found->second;
}

// ---- sizes ---------------------------------------------------------------------------------------

const Writer::Source* Writer::source_of(Dim symbol) const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)
    if (const auto found = frame->sources.find(symbol.word()); found != frame->sources.end())
      return &found->second;
  return nullptr;
}

bool Writer::knows(Dim d) const {
  for (const DimTerm& term : terms_of(d))
    for (const DimFactor& f : term.factors)
      if (f.kind == DimFactor::Symbol ? !source_of(f.self) : !knows(f.left) || !knows(f.right))
        return false;
  return true;
}

struct Writer::SizeNodes {
  Writer& writer;
  const FileType type{DType::Int64, {1}};

  FileId size(Dim d) { return writer.size(d); }
  FileId number(int64_t value) { return writer.number(static_cast<double>(value), DType::Int64); }
  FileId symbol(Dim d) {
    const Source& source = *writer.source_of(d);
    const auto rank = static_cast<int64_t>(writer.type_of(source.value).shape.size());
    const FileId shape = writer.add("shape", {source.value}, {DType::Int32, {rank}});
    const FileId one = writer.add(
        "slice",
        {shape, FileOperand::constant("starts", {source.axis}),
         FileOperand::constant("ends", {source.axis + 1})},
        {DType::Int32, {1}},
        {longs_of("axes", {0}), longs_of("infer_flags", {1}), longs_of("decrease_axis", {})});
    return writer.add("cast", {one}, type, {dtype_of("dtype", DType::Int64)});
  }
  FileId add(FileId a, FileId b) { return writer.add("add", {a, b}, type); }
  FileId multiply(FileId a, FileId b) { return writer.add("multiply", {a, b}, type); }
  FileId quotient(FileId a, FileId b) { return writer.add("floor_divide", {a, b}, type); }
  FileId remainder(FileId a, FileId b) { return writer.add("remainder", {a, b}, type); }
  FileId least(FileId a, FileId b) { return writer.add("minimum", {a, b}, type); }
  FileId most(FileId a, FileId b) { return writer.add("maximum", {a, b}, type); }
};

FileId Writer::size(Dim d) {
  if (d.is_known()) return number(static_cast<double>(d.value()), DType::Int64);
  for (const Frame& frame : frames_)
    if (const auto found = frame.sizes.find(d.word()); found != frame.sizes.end())
      return found->second;
  user_check(knows(d), ErrorKind::Unsupported, "the size {} cannot be computed in Paddle's model.",
             d.str());
  SizeNodes nodes{*this};
  const FileId made = computed_size(d, nodes);
  return frames_.back().sizes[d.word()] = made;
}

FileOperand Writer::sizes(std::string_view attribute, Dims dims) {
  List known;
  std::vector<FileId> parts;
  for (const Dim d : dims) known.push_back(d.is_known() ? d.value() : -1);
  if (std::none_of(dims.begin(), dims.end(), [](Dim d) { return d.is_symbolic(); }))
    return FileOperand::constant(attribute, known);
  for (const Dim d : dims) parts.push_back(size(d));
  const FileType type{DType::Int64, {static_cast<int64_t>(dims.size())}};
  if (parts.size() == 1) return parts[0];
  return add("concat", {FileOperand::list(parts), FileOperand::constant("axis", 0, DType::Int32)},
             type);
}

// ---- values of the program -------------------------------------------------------------------------

FileType Writer::file_type(const ValueType& type) {
  FileType made{type.dtype, {}};
  for (const Dim d : type.shape) made.shape.push_back(d.is_symbolic() ? -1 : d.value());
  return made;
}

const Tensor* Writer::constant_of(ValueId value) const {
  for (const Constant& c : program().constants)
    if (c.value == value) return &c.tensor;
  return nullptr;
}

// Constants become parameters when something reads them first.
FileId Writer::id_of(ValueId value) {
  Frame& frame = frames_.back();
  if (const auto found = frame.ids.find(value); found != frame.ids.end()) return found->second;
  const Tensor* constant = constant_of(value);
  internal_check(constant != nullptr, "the value {} is read before it is made",
                 program().label(value));
  return frame.ids[value] = parameter(*constant, program().label(value).substr(1));
}

void Writer::define(ValueId value, FileId id) {
  Frame& frame = frames_.back();
  frame.ids[value] = id;
  const Shape& shape = program().type_of(value).shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_known()) continue;
    const std::vector<DimTerm> terms = terms_of(shape[i]);
    const bool is_symbol = terms.size() == 1 && terms[0].coefficient == 1 &&
                           terms[0].factors.size() == 1 &&
                           terms[0].factors[0].kind == DimFactor::Symbol;
    if (is_symbol && !source_of(shape[i]))
      frame.sources.emplace(shape[i].word(), Source{id, static_cast<int64_t>(i)});
  }
}

bool Writer::only_broadcast(ValueId value) const {
  std::set<ValueId> small;  // results that may keep the sizes of their operands
  for (const Instruction& call : program().body.instructions)
    if (find_writer(call.op->name())->stays_small) small.insert(call.results[0]);
  for (const ValueId output : program().outputs)
    if (output == value) return false;
  for (const Instruction& call : program().body.instructions) {
    bool reads = false, carried = false;
    for_each_operand(call, [&](ValueId id) {
      reads |= id == value;
      carried |=
          !small.contains(id) && program().type_of(id).shape == program().type_of(value).shape;
    });
    if (reads && !(find_writer(call.op->name())->broadcasts && carried)) return false;
  }
  return true;
}

void Writer::write_body(const Program& program, const std::vector<FileId>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) define(program.inputs[i], inputs[i]);
  for (const Instruction& call : program.body.instructions)
    find_writer(call.op->name())->write(Written(*this, program, call));
}

FileBlock Writer::region(const Program& inner, const std::vector<FileId>& inputs) {
  frames_.push_back({&inner, {}, {}, {}, {}, {}});
  write_body(inner, inputs);
  std::vector<FileId> results;
  for (const ValueId id : inner.outputs) results.push_back(id_of(id));
  FileBlock made = std::move(frames_.back().block);
  frames_.pop_back();
  made.results = std::move(results);
  return made;
}

std::vector<FileId> Writer::inlined(const Program& inner, const std::vector<FileId>& inputs) {
  FileBlock block = region(inner, inputs);
  for (FileNode& node : block.nodes) append(std::move(node));
  return block.results;
}

WrittenModel Writer::run() {
  const Program& program = this->program();
  for (const ValueId input : program.inputs) {
    const FileId id = new_value(type_of_value(input));
    model_.values.back().name = program.label(input).substr(1);
    model_.inputs.push_back(id);
  }
  write_body(program, model_.inputs);
  std::set<FileId> given;
  for (const ValueId output : program.outputs) {
    FileId id = id_of(output);
    while (!given.insert(id).second) id = add("assign", {id}, type_of(id));
    model_.outputs.push_back(id);
  }
  if (model_.parameters.empty()) number(0, DType::Float32);  // Paddle reads no empty file
  model_.main = std::move(frames_.back().block);
  return std::move(model_);
}

// ---- a call --------------------------------------------------------------------------------------

std::vector<FileId> Written::all_in(std::string_view parameter) const {
  std::vector<FileId> all;
  for (const ValueId id : values(parameter)) all.push_back(writer.id_of(id));
  return all;
}

FileId Written::reshaped(FileId x, const List& shape) const {
  FileType type{writer.type_of(x).dtype, shape};
  return add("reshape", {x, FileOperand::constant("shape", shape)}, type);
}
FileId Written::transposed(FileId x, const List& perm) const {
  const FileType from = writer.type_of(x);
  FileType type{from.dtype, {}};
  for (const int64_t axis : perm) type.shape.push_back(from.shape.at(static_cast<size_t>(axis)));
  return add("transpose", {x}, type, {ints_of("perm", perm)});
}
FileId Written::scaled(FileId x, double by, double bias) const {
  return add("scale", {x, FileOperand::constant("scale", by, DType::Float32)}, writer.type_of(x),
             {float_of("bias", bias), flag_of("bias_after_scale", true)});
}
FileId Written::cast(FileId x, DType dtype) const {
  return add("cast", {x}, {dtype, writer.type_of(x).shape}, {dtype_of("dtype", dtype)});
}

const OpWriter* find_writer(std::string_view op) {
  for (const auto table :
       {elementwise_writers(), network_writers(), shape_writers(), reduction_writers(),
        selection_writers(), recurrent_writers(), control_writers()})
    for (const OpWriter& w : table)
      if (w.op == op) return &w;
  return nullptr;
}

// ---- files ---------------------------------------------------------------------------------------

FileFormat format_of(const std::string& path) {
  if (path.ends_with(".json")) return FileFormat::Pir;
  if (path.ends_with(".pdmodel")) return FileFormat::Legacy;
  fail(ErrorKind::InvalidArgument,
       "the path {} ends neither with .json (Paddle 3) nor with .pdmodel (also Paddle 2).", path);
}

Files write_model(const Program& program, FileFormat file_format) {
  const Program plain = for_writing(program, "Paddle", [](const ProgramCall& call) {
    const OpWriter* writer = find_writer(call.call.op->name());
    return writer && (!writer->accepts || writer->accepts(call));
  });
  const WrittenModel model = Writer(plain).run();
  Files files;
  files.program = file_format == FileFormat::Pir ? pir_text(model) : legacy_program(model);
  for (const auto& [name, tensor] : model.parameters) append_record(files.parameters, tensor);
  return files;
}

}  // namespace oar::paddle
