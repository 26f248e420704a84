// The format of Paddle 3: PIR as JSON.
#include <algorithm>
#include <limits>

#include "oar/base/error.h"
#include "oar/interop/json_value.h"
#include "oar/interop/paddle/model.h"

namespace oar::paddle {
namespace {

constexpr int64_t kNewestVersion = 4;

struct Name {
  std::string_view name;
  DType dtype;
};
constexpr Name kDTypes[] = {
    {"t_bool", DType::Bool},         {"t_ui8", DType::UInt8},
    {"t_i8", DType::Int8},           {"t_i16", DType::Int16},
    {"t_i32", DType::Int32},         {"t_i64", DType::Int64},
    {"t_index", DType::Int64},       {"t_f16", DType::Float16},
    {"t_bf16", DType::BFloat16},     {"t_f32", DType::Float32},
    {"t_f64", DType::Float64},       {"t_c64", DType::Complex64},
    {"t_c128", DType::Complex128},   {"t_f8e4m3fn", DType::Float8E4M3FN},
    {"t_f8e5m2", DType::Float8E5M2},
};

std::string value_name(const JsonValue& id) {
  const int64_t number = id.integer();
  return number == 0 ? "" : format("%{}", number);
}

// "0.t_f32" is t_f32 of the dialect 0.
std::string_view without_dialect(const std::string& name) {
  return std::string_view(name).substr(name.find('.') + 1);
}

DType scalar_type(const JsonValue& type) {
  const std::string_view name = without_dialect(type.at("#").text());
  for (const Name& n : kDTypes)
    if (n.name == name) return n.dtype;
  fail(ErrorKind::Unsupported,
       "the model has values of Paddle's type '{}', which Oar does not have.", name);
}

void read_type(const JsonValue& type, DType& dtype, std::vector<int64_t>& shape) {
  user_check(without_dialect(type.at("#").text()) == "t_dtensor", ErrorKind::Unsupported,
             "a parameter or an input is of the type '{}'; only dense tensors are read.",
             type.at("#").text());
  const JsonValue::List& parts = type.at("D").list();
  user_check(parts.size() >= 2, ErrorKind::InvalidArgument,
             "the file is damaged: the type of a tensor is incomplete.");
  dtype = scalar_type(parts[0]);
  for (const JsonValue& size : parts[1].list()) shape.push_back(size.integer());
}

double special(const std::string& text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return text.starts_with('-') ? -std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::infinity();
}

// {"#": kind, "D": value}; elements of lists are such objects or plain numbers.
void read_value(const JsonValue& value, Attribute& a, bool in_list) {
  if (value.is_flag() || value.is_number()) {
    const bool whole =
        value.is_flag() ||
        value.number() ==
            static_cast<double>(static_cast<int64_t>(std::clamp(value.number(), -9e18, 9e18)));
    double number = value.is_flag() ? value.flag() : value.number();
    int64_t integer = 0;
    if (value.is_flag()) {
      integer = value.flag();
    } else if (value.has_integer()) {
      integer = value.integer();
    } else if (whole) {
      integer = static_cast<int64_t>(std::clamp(number, -9e18, 9e18));
    }
    if (in_list) {
      a.numbers.push_back(number);
      a.integers.push_back(integer);
    } else {
      a.number = number;
      if (whole) a.integer = integer;
    }
  } else if (value.is_text()) {
    if (in_list) return;
    a.text = value.text();
    a.dtype = dtype_from_name(value.text());
  } else if (value.is_list()) {
    a.is_list = true;
    for (const JsonValue& element : value.list()) read_value(element, a, true);
  } else if (value.is_object()) {
    const JsonValue* kind = value.find("#");
    const JsonValue* content = value.find("D");
    const JsonValue* named = value.find("VD");
    if (named && in_list) {
      a.numbers.push_back(special(named->text()));
      a.integers.push_back(0);
    } else if (named) {
      a.number = special(named->text());
    } else if (content && kind && without_dialect(kind->text()) == "a_scalar") {
      const JsonValue::List& both = content->list();
      if (both.size() > 1) read_value(both[1], a, in_list);
    } else if (content) {
      read_value(*content, a, in_list);
    }
  }
}

Attribute read_attribute(const JsonValue& entry) {
  Attribute a;
  a.name = entry.at("N").text();
  read_value(entry.at("AT"), a, false);
  return a;
}

class Reader {
 public:
  explicit Reader(ModelFile& model) : model_(model) {}

  Block read_region(const JsonValue& region) {
    const JsonValue::List& blocks = region.at("blocks").list();
    user_check(blocks.size() == 1, ErrorKind::Unsupported,
               "a region of the program has {} blocks; only one is read.", blocks.size());
    return read_block(blocks[0]);
  }

  void finish() {
    std::stable_sort(fetches_.begin(), fetches_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [column, port] : fetches_) model_.outputs.push_back(std::move(port));
  }

 private:
  Block read_block(const JsonValue& content) {
    Block block;
    if (const JsonValue* arguments = content.find("args"))
      for (const JsonValue& argument : arguments->list())
        block.arguments.push_back(value_name(argument.at("#")));
    for (const JsonValue& op : content.at("ops").list()) {
      const std::string& name = op.at("#").text();
      if (name == "p")
        add_parameter(op);
      else
        add_op(name, op, block);
    }
    return block;
  }

  void add_parameter(const JsonValue& op) {
    const JsonValue::List& attributes = op.at("A").list();
    user_check(attributes.size() >= 4, ErrorKind::InvalidArgument,
               "the file is damaged: a parameter has no name.");
    const JsonValue& result = op.at("O");
    Parameter p;
    p.name = attributes[3].text();
    p.value = value_name(result.at("%"));
    const JsonValue* others = op.find("OA");
    read_type(result.at("TT"), p.dtype, p.shape);
    const bool persistable = !others || others->list().empty() || others->list()[0].flag();
    if (persistable) model_.parameters.push_back(std::move(p));
  }

  void add_op(const std::string& name, const JsonValue& op, Block& block) {
    Node node;
    node.written = name.starts_with("1.")   ? "pd_op." + name.substr(2)
                   : name.starts_with("0.") ? "builtin." + name.substr(2)
                   : name.starts_with("2.") ? "cf." + name.substr(2)
                                            : name;
    const bool known_dialect = node.written != name;
    node.op = known_dialect ? std::string(without_dialect(name)) : "";
    if (name == "0.split") node.op = "vector_split";
    if (name == "0.slice") node.op = "slice_list";
    if (node.op.size() > 1 && node.op.ends_with('_')) node.op.pop_back();
    for (const JsonValue& entry : op.at("A").list())
      node.attributes.push_back(read_attribute(entry));
    if (const JsonValue* inputs = op.find("I"))
      for (const JsonValue& input : inputs->list()) node.inputs.push_back(slot(input));
    for (const JsonValue& output : op.at("O").list()) node.outputs.push_back(slot(output));
    if (const JsonValue* regions = op.find("regions"))
      for (const JsonValue& region : regions->list()) node.blocks.push_back(read_region(region));
    if (node.op == "data")
      add_input(node, op);
    else if (node.op == "fetch")
      add_output(node);
    else
      block.nodes.push_back(std::move(node));
  }

  static Slot slot(const JsonValue& value) {
    const std::string name = value_name(value.at("%"));
    return name.empty() ? Slot{} : Slot{{name}, false};
  }

  void add_input(const Node& node, const JsonValue& op) {
    const Attribute* name = node.find("name");
    user_check(name && name->text && node.outputs.size() == 1 && !node.outputs[0].names.empty(),
               ErrorKind::InvalidArgument, "the file is damaged: an input has no name.");
    Port port{*name->text, node.outputs[0].names[0], DType::Float32, {}};
    read_type(op.at("O").list().at(0).at("TT"), port.dtype, port.shape);
    model_.inputs.push_back(std::move(port));
  }

  void add_output(const Node& node) {
    user_check(node.inputs.size() == 1 && !node.inputs[0].names.empty(), ErrorKind::InvalidArgument,
               "the file is damaged: an output has no value.");
    const Attribute *name = node.find("name"), *column = node.find("col");
    Port port{name && name->text ? *name->text : format("fetch_name_{}", fetches_.size()),
              node.inputs[0].names[0],
              DType::Float32,
              {}};
    const int64_t at =
        column && column->integer ? *column->integer : static_cast<int64_t>(fetches_.size());
    fetches_.emplace_back(at, std::move(port));
  }

  ModelFile& model_;
  std::vector<std::pair<int64_t, Port>> fetches_;
};

}  // namespace

bool is_pir_program(std::string_view file) {
  const std::string_view start = file.substr(0, 256);
  return start.starts_with('{') && start.find("\"base_code\"") != std::string_view::npos &&
         start.find("\"pir\"") != std::string_view::npos;
}

ModelFile parse_pir(std::string_view file) {
  const JsonValue json = JsonValue::parse(file);
  const JsonValue& base = json.at("base_code");
  user_check(base.at("magic").text() == "pir", ErrorKind::InvalidArgument,
             "the file is JSON, but no program of Paddle.");
  const int64_t version = base.at("version").integer();
  user_check(version >= 0 && version <= kNewestVersion, ErrorKind::Unsupported,
             "the program has version {} of Paddle's format; Oar reads versions up to {}.", version,
             kNewestVersion);
  const JsonValue::List& regions = json.at("program").at("regions").list();
  user_check(regions.size() == 1, ErrorKind::InvalidArgument,
             "the program has {} regions instead of one.", regions.size());
  ModelFile model;
  Reader reader(model);
  model.main = reader.read_region(regions[0]);
  reader.finish();
  return model;
}

// ---- both formats --------------------------------------------------------------------------------

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::string Node::str() const {
  for (const Slot& slot : outputs)
    if (!slot.names.empty()) return format("{} of '{}'", written, slot.names[0]);
  return written;
}

ModelFile parse_model(std::string_view program, std::string_view parameters) {
  const bool pir = is_pir_program(program);
  user_check(pir || is_legacy_program(program), ErrorKind::InvalidArgument,
             "the file is no program of Paddle: neither a ProgramDesc (.pdmodel) nor PIR (.json).");
  ModelFile model = pir ? parse_pir(program) : parse_legacy(program);
  bind_parameters(model, parameters);
  return model;
}

}  // namespace oar::paddle
