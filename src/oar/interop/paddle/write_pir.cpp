// PIR as JSON. Constants are ops of their own there, and lists of values are values.
#include <cmath>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/json_reader.h"
#include "oar/interop/paddle/written.h"

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

std::string text_of(const FileType& type) {
  for (const Name& n : kTypes)
    if (n.dtype == type.dtype)
      return format(R"({{"#":"0.t_dtensor","D":[{{"#":"0.{}"}},[{}],"NCHW",[],0]}})", n.name,
                    join(type.shape, ","));
  fail(ErrorKind::Unsupported, "Paddle's programs have no tensors of {}.", name_of(type.dtype));
}

std::string number_of(std::string_view kind, double value) {
  if (std::isfinite(value)) {
    std::string text = format("{:.17g}", value);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return format(R"({{"#":"{}","D":{}}})", kind, text);
  }
  const char* name = std::isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF";
  return format(R"({{"#":"{}","VD":"{}"}})", kind, name);
}

std::string content_of(bool v) {
  return format(R"({{"#":"0.a_bool","D":{}}})", v ? "true" : "false");
}
std::string content_of(int32_t v) { return format(R"({{"#":"0.a_i32","D":{}}})", v); }
std::string content_of(int64_t v) { return format(R"({{"#":"0.a_i64","D":{}}})", v); }
std::string content_of(float v) { return number_of("0.a_f32", static_cast<double>(v)); }
std::string content_of(const std::string& v) {
  return format(R"({{"#":"0.a_str","D":{}}})", json_quoted(v));
}
std::string content_of(DType v) {
  return format(R"({{"#":"1.a_dtype","D":{}}})", json_quoted(name_of(v)));
}
template <class T>
std::string content_of(const std::vector<T>& list) {
  std::vector<std::string> all;
  for (const T v : list) all.push_back(content_of(v));
  return R"({"#":"0.a_array","D":[)" + join(all, ",") + "]}";
}

std::string attribute(std::string_view name, std::string_view content) {
  return format(R"({{"N":{},"AT":{}}})", json_quoted(name), content);
}
// A flag for each result, which is set.
std::string flags(std::string_view name, size_t count) {
  std::vector<std::string> all(count, content_of(true));
  return attribute(name, R"({"#":"0.a_array","D":[)" + join(all, ",") + "]}");
}
std::string place(int kind) {
  return format(R"({{"N":"place","AT":{{"#":"1.a_place","D":[{},0,""]}}}})", kind);
}
std::string int_array(const std::vector<int64_t>& values) {
  return format(R"({{"#":"1.a_intarray","D":[{}]}})", join(values, ","));
}

class PirWriter {
 public:
  explicit PirWriter(const WrittenModel& model)
      : model_(model), next_(static_cast<FileId>(model.values.size()) + 1) {}

  std::string run() {
    std::vector<std::string> ops;
    for (const FileId id : model_.parameter_ids) ops.push_back(parameter(id));
    for (const FileId id : model_.inputs) ops.push_back(input(id));
    for (const FileNode& node : model_.main.nodes) add(node, ops);
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
      const FileId id = model_.outputs[i];
      ops.push_back(op("1.fetch", {id}, {text_of(model_.value(id).type)}, {next_++},
                       {attribute("name", content_of(output_name(i))),
                        attribute("col", content_of(static_cast<int32_t>(i)))}));
    }
    return R"({"base_code":{"magic":"pir","trainable":true,"version":1},"program":{"regions":[)" +
           region(0, {}, ops) + "]}}";
  }

 private:
  std::string region(size_t number, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& ops) {
    return format(R"({{"#":"region_{}","blocks":[{{"#":"block_{}","args":[{}],"ops":[{}]}}]}})",
                  number, number, join(arguments, ","), join(ops, ","));
  }

  std::string parameter(FileId id) {
    const WrittenModel::Value& value = model_.value(id);
    return format(
        R"({{"#":"p","A":[0,1,1,{}],"DA":[],"O":{{"%":{},"TT":{}}},"OA":[1,1,0],"QA":[]}})",
        json_quoted(value.name), id, text_of(value.type));
  }
  std::string input(FileId id) {
    const WrittenModel::Value& value = model_.value(id);
    return op(
        "1.data", {}, {text_of(value.type)}, {id},
        {attribute("name", content_of(value.name)), attribute("shape", int_array(value.type.shape)),
         attribute("dtype", content_of(value.type.dtype)), place(0)});
  }

  // The number of a value in the file: those of arguments of blocks are negative.
  FileId number(FileId id) const {
    const auto argument = arguments_.find(id);
    return argument == arguments_.end() ? id : argument->second;
  }

  std::string op(std::string_view name, const std::vector<FileId>& operands,
                 const std::vector<std::string>& types, const std::vector<FileId>& results,
                 const std::vector<std::string>& attributes, std::string_view regions = {}) {
    std::vector<std::string> in, out;
    for (const FileId id : operands) in.push_back(format(R"({{"%":{}}})", number(id)));
    for (size_t i = 0; i < types.size(); ++i)
      out.push_back(format(R"({{"%":{},"TT":{}}})", results[i], types[i]));
    std::string inner = regions.empty() ? "" : format(R"(,"regions":[{}])", regions);
    return format(R"({{"#":"{}","A":[{}],"I":[{}],"O":[{}],"OA":[{}]{}}})", name,
                  join(attributes, ","), join(in, ","), join(out, ","),
                  flags("stop_gradient", types.size()), inner);
  }

  std::string list_type(const std::vector<FileId>& ids) const {
    std::vector<std::string> all;
    for (const FileId id : ids) all.push_back(text_of(model_.value(id).type));
    return R"({"#":"0.t_vec","D":[)" + join(all, ",") + "]}";
  }

  FileId constant(const FileOperand& operand, std::vector<std::string>& ops) {
    if (operand.is_number) {
      ops.push_back(op("1.full", {}, {text_of({operand.dtype, {1}})}, {next_},
                       {attribute("shape", int_array({1})),
                        attribute("value", number_of("0.a_f64", operand.number)),
                        attribute("dtype", content_of(operand.dtype)), place(1)}));
      return next_++;
    }
    const auto count = static_cast<int64_t>(operand.integers.size());
    ops.push_back(op("1.full_int_array", {}, {text_of({DType::Int64, {count}})}, {next_},
                     {attribute("value", content_of(operand.integers)),
                      attribute("dtype", content_of(DType::Int64)), place(1)}));
    return next_++;
  }

  FileId operand(const FileOperand& operand, std::vector<std::string>& ops) {
    if (operand.is_constant()) return constant(operand, ops);
    if (!operand.is_list) return operand.ids[0];
    ops.push_back(op("0.combine", operand.ids, {list_type(operand.ids)}, {next_}, {}));
    return next_++;
  }

  std::string block_of(const FileBlock& block) {
    const size_t number = ++regions_;
    std::vector<std::string> arguments, ops;
    for (const FileId id : block.arguments) {
      arguments_[id] = -static_cast<FileId>(arguments_.size()) - 1;
      arguments.push_back(
          format(R"({{"#":{},"TT":{}}})", arguments_[id], text_of(model_.value(id).type)));
    }
    for (const FileNode& node : block.nodes) add(node, ops);
    ops.push_back(op("2.yield", block.results, {}, {}, {}));
    return region(number, arguments, ops);
  }

  void add(const FileNode& node, std::vector<std::string>& ops) {
    std::vector<FileId> in, out;
    std::vector<std::string> types, attributes, regions;
    for (const FileOperand& each : node.operands) in.push_back(operand(each, ops));
    for (size_t i = 0; i < node.results.size(); ++i) {
      out.push_back(node.lists[i] ? next_++ : node.results[i][0]);
      types.push_back(node.lists[i] ? list_type(node.results[i])
                                    : text_of(model_.value(out.back()).type));
    }
    for (const FileAttribute& a : node.attributes)
      attributes.push_back(
          attribute(a.name, std::visit([](const auto& v) { return content_of(v); }, a.value)));
    for (const FileBlock& block : node.blocks) regions.push_back(block_of(block));
    ops.push_back(op("1." + node.op, in, types, out, attributes, join(regions, ",")));
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (!node.lists[i]) continue;
      std::vector<std::string> parts;
      for (const FileId id : node.results[i]) parts.push_back(text_of(model_.value(id).type));
      ops.push_back(op("0.split", {out[i]}, parts, node.results[i], {}));
    }
  }

  const WrittenModel& model_;
  FileId next_;
  size_t regions_ = 0;
  std::map<FileId, FileId> arguments_;
};

}  // namespace

std::string pir_text(const WrittenModel& model) { return PirWriter(model).run(); }

}  // namespace oar::paddle
