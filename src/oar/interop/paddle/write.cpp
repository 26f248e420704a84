#include "oar/interop/paddle/write.h"

#include <cmath>
#include <set>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/json_reader.h"
#include "oar/interop/paddle/model.h"
#include "oar/interop/paddle/writer.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar::paddle {
namespace {

struct Name {
  DType dtype;
  const char* name;
};
constexpr Name kTypes[] = {
    {DType::Bool, "t_bool"},   {DType::UInt8, "t_ui8"},     {DType::Int8, "t_i8"},
    {DType::Int16, "t_i16"},   {DType::Int32, "t_i32"},     {DType::Int64, "t_i64"},
    {DType::Float16, "t_f16"}, {DType::BFloat16, "t_bf16"}, {DType::Float32, "t_f32"},
    {DType::Float64, "t_f64"}, {DType::Complex64, "t_c64"}, {DType::Complex128, "t_c128"},
};

std::string written(const PirType& type) {
  if (!type.list.empty()) {
    std::vector<std::string> all;
    for (const PirType& each : type.list) all.push_back(written(each));
    return R"({"#":"0.t_vec","D":[)" + join(all, ",") + "]}";
  }
  for (const Name& n : kTypes)
    if (n.dtype == type.dtype)
      return format(R"({{"#":"0.t_dtensor","D":[{{"#":"0.{}"}},[{}],"NCHW",[],0]}})", n.name,
                    join(type.shape, ","));
  fail(ErrorKind::Unsupported, "Paddle's programs have no tensors of {}.", name_of(type.dtype));
}

std::string attribute(std::string_view name, std::string_view kind, std::string_view value) {
  return format(R"({{"N":{},"AT":{{"#":"{}","D":{}}}}})", json_quoted(name), kind, value);
}

std::string real(double value) {
  std::string text = format("{:.17g}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string float_content(std::string_view name, std::string_view kind, double value) {
  if (std::isfinite(value)) return attribute(name, kind, real(value));
  return format(R"({{"N":{},"AT":{{"#":"{}","VD":"{}"}}}})", json_quoted(name), kind,
                std::isnan(value) ? "NaN"
                : value > 0       ? "INF"
                                  : "-INF");
}

// "stop_gradient" and the like: a flag for each result.
std::string flags(std::string_view name, size_t count) {
  std::vector<std::string> all(count, R"({"#":"0.a_bool","D":true})");
  return attribute(name, "0.a_array", "[" + join(all, ",") + "]");
}

const char* kPlace = R"({"N":"place","AT":{"#":"1.a_place","D":[1,0,""]}})";

void append_record(std::string& file, const Tensor& given) {
  const Tensor t = assign(given);  // without gaps
  std::string described = {8, static_cast<char>(number_of(t.dtype()))};
  for (const Dim d : t.dims()) {
    described += static_cast<char>(16);
    for (auto size = static_cast<uint64_t>(d.value());; size >>= 7) {
      described += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
      if (size <= 0x7f) break;
    }
  }
  file.append(16, '\0');  // versions, and no levels of sequences
  const auto length = static_cast<int32_t>(described.size());
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  file += described;
  file.append(t.data<const char>(), static_cast<size_t>(t.numel().value()) * size_of(t.dtype()));
}

}  // namespace

std::string flag_attribute(std::string_view name, bool value) {
  return attribute(name, "0.a_bool", value ? "true" : "false");
}
std::string int_attribute(std::string_view name, int64_t value) {
  return attribute(name, "0.a_i32", format("{}", value));
}
std::string long_attribute(std::string_view name, int64_t value) {
  return attribute(name, "0.a_i64", format("{}", value));
}
std::string float_attribute(std::string_view name, double value) {
  return float_content(name, "0.a_f32", static_cast<double>(static_cast<float>(value)));
}
std::string text_attribute(std::string_view name, std::string_view value) {
  return attribute(name, "0.a_str", json_quoted(value));
}
std::string ints_attribute(std::string_view name, Ints values) {
  std::vector<std::string> all;
  for (const int64_t v : values) all.push_back(format(R"({{"#":"0.a_i32","D":{}}})", v));
  return attribute(name, "0.a_array", "[" + join(all, ",") + "]");
}
std::string dtype_attribute(std::string_view name, DType value) {
  return attribute(name, "1.a_dtype", json_quoted(name_of(value)));
}

// ---- a call --------------------------------------------------------------------------------------

size_t Written::place(std::string_view parameter) const {
  const auto& parameters = call_.op->schema().parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == parameter) return i;
  internal_check(false, "the op {} has no parameter {}", call_.op->name(), parameter);
  return 0;
}
ValueId Written::value(std::string_view parameter) const {
  const Operand& operand = call_.operands[place(parameter)];
  return operand.ids.empty() ? kNoValue : operand.ids[0];
}
std::vector<ValueId> Written::values(std::string_view parameter) const {
  const auto& ids = call_.operands[place(parameter)].ids;
  return {ids.begin(), ids.end()};
}
std::vector<PirId> Written::operands(std::string_view parameter) const {
  std::vector<PirId> all;
  for (const ValueId id : values(parameter)) all.push_back(writer.id_of(id));
  return all;
}
const Value& Written::attribute(std::string_view parameter) const {
  return call_.attributes[place(parameter)];
}
std::vector<int64_t> Written::list(std::string_view parameter) const {
  const Value& value = attribute(parameter);
  if (value.is_none()) return {};
  std::vector<int64_t> all;
  for (const Dim d : value.as_dim_list()) {
    if (d.is_symbolic()) refuse(format("its {} depends on open sizes", parameter));
    all.push_back(d.value());
  }
  return all;
}
void Written::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "a call of {} cannot be written for Paddle: {}.", call_.op->name(),
       why);
}

// ---- the model -----------------------------------------------------------------------------------

PirType Writer::type_of(ValueId value) const {
  const ValueType& type = program_.type_of(value);
  PirType made{type.dtype, {}};
  for (const Dim d : type.shape) made.shape.push_back(d.is_symbolic() ? -1 : d.value());
  return made;
}

bool Writer::only_broadcast(ValueId value) const {
  std::set<ValueId> small;  // results that may keep the sizes of their operands
  for (const Instruction& call : program_.body.instructions)
    if (find_writer(call.op->name())->stays_small) small.insert(call.results[0]);
  for (const ValueId output : program_.outputs)
    if (output == value) return false;
  for (const Instruction& call : program_.body.instructions) {
    bool reads = false, carried = false;
    for_each_operand(call, [&](ValueId id) {
      reads |= id == value;
      carried |= !small.contains(id) && program_.type_of(id).shape == program_.type_of(value).shape;
    });
    if (reads && !(find_writer(call.op->name())->broadcasts && carried)) return false;
  }
  return true;
}

PirId Writer::add(std::string_view op, const std::vector<PirId>& operands, const PirType& type,
                  const std::vector<std::string>& attributes) {
  return add(op, operands, std::vector<PirType>{type}, attributes)[0];
}

std::vector<PirId> Writer::add(std::string_view op, const std::vector<PirId>& operands,
                               const std::vector<PirType>& types,
                               const std::vector<std::string>& attributes) {
  std::vector<std::string> in, out;
  std::vector<PirId> results;
  for (const PirId id : operands) in.push_back(format(R"({{"%":{}}})", id));
  for (const PirType& type : types) {
    results.push_back(next_++);
    out.push_back(format(R"({{"%":{},"TT":{}}})", results.back(), written(type)));
  }
  if (!ops_.empty()) ops_ += ',';
  ops_ += format(R"({{"#":"{}","A":[{}],"I":[{}],"O":[{}],"OA":[{}]}})", op, join(attributes, ","),
                 join(in, ","), join(out, ","), flags("stop_gradient", types.size()));
  return results;
}

PirId Writer::integers(Ints values) {
  std::vector<std::string> all;
  for (const int64_t v : values) all.push_back(format(R"({{"#":"0.a_i64","D":{}}})", v));
  return add("1.full_int_array", {}, {DType::Int64, {static_cast<int64_t>(values.size())}},
             {attribute("value", "0.a_array", "[" + join(all, ",") + "]"),
              dtype_attribute("dtype", DType::Int64), kPlace});
}

PirId Writer::number(double value, DType dtype) {
  return add("1.full", {}, {dtype, {1}},
             {attribute("shape", "1.a_intarray", "[1]"), float_content("value", "0.a_f64", value),
              dtype_attribute("dtype", dtype), kPlace});
}

void Writer::check_ops() const {
  std::set<std::string> unknown;
  for (const Instruction& call : program_.body.instructions)
    if (!find_writer(call.op->name())) unknown.insert(call.op->name());
  user_check(unknown.empty(), ErrorKind::Unsupported,
             "the program has ops that cannot be written for Paddle yet: {}.",
             join(std::vector<std::string>(unknown.begin(), unknown.end()), ", "));
}

void Writer::add_parameter(const Tensor& tensor, ValueId value) {
  std::string name = program_.label(value).substr(1);
  while (parameters_.contains(name)) name += "_";
  parameters_.emplace(name, tensor);
  ids_[value] = next_;
  if (!ops_.empty()) ops_ += ',';
  ops_ +=
      format(R"({{"#":"p","A":[0,1,1,{}],"DA":[],"O":{{"%":{},"TT":{}}},"OA":[1,1,0],"QA":[]}})",
             json_quoted(name), next_++, written(type_of(value)));
}

void Writer::add_input(ValueId value) {
  const PirType type = type_of(value);
  ids_[value] = add("1.data", {}, type,
                    {text_attribute("name", program_.label(value).substr(1)),
                     attribute("shape", "1.a_intarray", "[" + join(type.shape, ",") + "]"),
                     dtype_attribute("dtype", type.dtype),
                     R"({"N":"place","AT":{"#":"1.a_place","D":[0,0,""]}})"});
}

void Writer::add_output(ValueId value, size_t column) {
  add("1.fetch", {id_of(value)}, type_of(value),
      {text_attribute("name", format("fetch_name_{}", column)),
       int_attribute("col", static_cast<int64_t>(column))});
}

Files Writer::run() {
  for (const State& state : program_.states)
    user_check(
        state.written == kNoValue, ErrorKind::Unsupported,
        "the program changes its states, as training does.\nhint: Call eval() on the layer first.");
  check_ops();
  for (const State& state : program_.states) add_parameter(state.tensor, state.value);
  for (const Constant& constant : program_.constants)
    add_parameter(constant.tensor, constant.value);
  for (const ValueId input : program_.inputs) add_input(input);
  for (const Instruction& call : program_.body.instructions) {
    const OpWriter& by = *find_writer(call.op->name());
    by.write(Written(*this, call), by.pir.empty() ? by.op : by.pir);
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) add_output(program_.outputs[i], i);
  Files files;
  files.program =
      R"({"base_code":{"magic":"pir","trainable":true,"version":1},"program":{"regions":[{"#":"region_0","blocks":[{"#":"block_0","args":[],"ops":[)" +
      ops_ + "]}]}]}}";
  for (const auto& [name, tensor] : parameters_) append_record(files.parameters, tensor);
  return files;
}

Files write_model(const Program& program) { return Writer(program).run(); }

}  // namespace oar::paddle
