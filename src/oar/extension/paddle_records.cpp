#include "oar/extension/paddle_records.h"

#include <algorithm>
#include <mutex>

#include "oar/base/fork_mutex.h"
#include "oar/base/string_util.h"
#include "oar/extension/paddle/op_builder.h"
#include "oar/ops/core/dispatcher.h"

namespace paddle::detail {
namespace {
oar::ForkMutex& g_mutex = *new oar::ForkMutex;  // outlives static destructors
std::vector<std::shared_ptr<OpRecord>>& announced() {
  static auto* list = new std::vector<std::shared_ptr<OpRecord>>;
  return *list;
}
}  // namespace

void announce(std::shared_ptr<OpRecord> record) noexcept {
  std::lock_guard lock(g_mutex);
  announced().push_back(std::move(record));
}

std::vector<std::shared_ptr<OpRecord>> take() {
  std::lock_guard lock(g_mutex);
  return std::exchange(announced(), {});
}
}  // namespace paddle::detail

namespace oar::extension {
namespace {

using paddle::detail::OpRecord;
using Record = std::shared_ptr<OpRecord>;

// "X@VECTOR@GRAD" is the gradient of the list X.
struct Name {
  explicit Name(const std::string& text) : bare(text) {
    list = take("@VECTOR");
    optional = take("@OPTIONAL");
    for (const char c : bare) schema += static_cast<char>(std::tolower(c));
    for (const auto& [mark, word] : {std::pair{"@grad", "_grad"}, std::pair{"@new", "_new"}})
      for (size_t at; (at = schema.find(mark)) != std::string::npos;)
        schema.replace(at, std::string_view(mark).size(), word);
  }
  std::string bare;    // without the marks of lists and optional ones
  std::string schema;  // as a parameter is called
  bool list, optional;

 private:
  bool take(std::string_view mark) {
    const size_t at = bare.find(mark);
    if (at == std::string::npos) return false;
    bare.erase(at, mark.size());
    return true;
  }
};

std::vector<Name> names(const std::vector<std::string>& texts) {
  std::vector<Name> list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

int find(const std::vector<Name>& list, const std::string& bare) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].bare == bare) return static_cast<int>(i);
  return -1;
}

std::string registered_name(const OpRecord& r) {
  return r.name + (r.order == 0 ? "" : r.order == 1 ? "_grad" : "_grad_grad");
}

struct Attribute {
  std::string name, type;
};

Attribute parse_attribute(const std::string& text) {
  const size_t colon = text.find(':');
  user_check(
      colon != std::string::npos, ErrorKind::InvalidArgument,
      "the attribute '{}' has no type.\nhint: Write \"name: type\", such as \"scale: float\".",
      text);
  const auto strip = [](std::string part) {
    std::erase_if(part, [](char c) { return c == ' ' || c == '\t'; });
    return part;
  };
  const std::string name = strip(text.substr(0, colon)), type = strip(text.substr(colon + 1));
  static const std::pair<const char*, const char*> kTypes[] = {
      {"bool", "bool"},
      {"int", "int"},
      {"int64_t", "int"},
      {"float", "float"},
      {"double", "float"},
      {"std::string", "str"},
      {"std::vector<int>", "int[]"},
      {"std::vector<int64_t>", "int[]"},
      {"std::vector<float>", "float[]"},
      {"std::vector<double>", "float[]"},
  };
  for (const auto& [cpp, schema] : kTypes)
    if (type == cpp) return {name, schema};
  fail(ErrorKind::Unsupported,
       "the attribute '{}' has type {}, which ops do not take.\nhint: Use bool, int, int64_t, "
       "float, double, std::string, or a std::vector of int, int64_t, float or double.",
       name, type);
}

// The schema, and the types of the parameters for the check of the kernel's signature.
struct Signature {
  std::string schema;
  std::vector<std::string> types;
  std::vector<Attribute> attributes;
};

Signature signature_of(const OpRecord& r) {
  Signature s;
  std::vector<std::string> parameters;
  for (const Name& n : names(r.inputs)) {
    s.types.push_back(n.optional ? "Tensor?" : n.list ? "Tensor[]" : "Tensor");
    const char* type = n.list && n.optional ? "Tensor[]?" : s.types.back().c_str();
    parameters.push_back(format("{} {}", type, n.schema));
  }
  for (const std::string& text : r.attributes) {
    s.attributes.push_back(parse_attribute(text));
    s.types.push_back(s.attributes.back().type);
    parameters.push_back(s.attributes.back().type + " " + s.attributes.back().name);
  }
  std::vector<std::string> results;
  for (const Name& n : names(r.outputs))
    results.push_back(format("{} {}", n.list ? "Tensor[]" : "Tensor", n.schema));
  user_check(!results.empty(), ErrorKind::InvalidArgument, "Outputs names nothing.");
  const bool has_list = std::any_of(r.outputs.begin(), r.outputs.end(),
                                    [](const std::string& o) { return Name(o).list; });
  user_check(!has_list || results.size() == 1, ErrorKind::Unsupported,
             "an output that is a list must be the only one.");
  s.schema = format("{}({}) -> {}", registered_name(r), join(parameters, ", "),
                    has_list ? std::string("Tensor[]") : "(" + join(results, ", ") + ")");
  return s;
}

void check_kernel(const OpRecord& r, const Signature& s) {
  user_check(static_cast<bool>(r.kernel), ErrorKind::InvalidArgument,
             "the op has no kernel.\nhint: Call SetKernelFn(PD_KERNEL(function)).");
  user_check(r.kernel.types == s.types, ErrorKind::InvalidArgument,
             "the kernel function takes ({}), but Inputs and Attrs say ({}).",
             join(r.kernel.types, ", "), join(s.types, ", "));
}

// Which outputs are written parameters.
void plan_writes(const OpRecord& r) {
  const std::vector<Name> inputs = names(r.inputs), outputs = names(r.outputs);
  paddle::detail::KernelPlan plan;
  for (const auto& [from, to] : r.written) {
    const int input = find(inputs, Name(from).bare), output = find(outputs, Name(to).bare);
    user_check(input >= 0 && output >= 0, ErrorKind::InvalidArgument,
               "SetInplaceMap maps '{}' to '{}', which are not an input and an output.", from, to);
    user_check(!Name(from).list && !Name(from).optional, ErrorKind::Unsupported,
               "SetInplaceMap maps the list or optional input '{}'.\nhint: Return a new tensor.",
               from);
    plan.kept.emplace_back(static_cast<size_t>(input), static_cast<size_t>(output));
  }
  std::sort(plan.kept.begin(), plan.kept.end());
  user_check(r.kernel.plan->kept.empty() || r.kernel.plan->kept == plan.kept,
             ErrorKind::InvalidArgument,
             "its kernel function serves another op with another SetInplaceMap.");
  *r.kernel.plan = plan;
}

// ---- Inference

// Sizes as the user's function sees them. Symbols of a capture are replaced by numbers.
class SizedCall : public paddle::detail::Call {
 public:
  SizedCall(Args args, std::span<const std::pair<Dim, int64_t>> symbols)
      : Call(args), symbols_(symbols) {}
  std::vector<int64_t> sizes(const Tensor& t) const override {
    std::vector<int64_t> list;
    for (const Dim d : t.dims()) list.push_back(d.is_known() ? d.word() : d.evaluate(symbols_));
    return list;
  }

 private:
  std::span<const std::pair<Dim, int64_t>> symbols_;
};

using Symbols = std::vector<std::pair<Dim, int64_t>>;

std::vector<Dim> symbolic_sizes(Args args) {
  std::vector<Dim> found;
  for_each_tensor(args, [&](const Tensor& t) {
    for (const Dim d : t.dims())
      if (d.is_symbolic() && std::find(found.begin(), found.end(), d) == found.end())
        found.push_back(d);
  });
  return found;
}

Symbols symbols_of(const std::vector<Dim>& sizes) {
  Symbols symbols;
  for (const Dim d : sizes)
    for (const Dim s : d.symbols())
      if (std::none_of(symbols.begin(), symbols.end(), [&](auto& p) { return p.first == s; }))
        symbols.emplace_back(s, s.hint());
  return symbols;
}

// The function knows numbers only. It is called twice with different numbers for the symbols:
// a result that equals a size of an operand both times is that size, one that stays is a number.
std::optional<std::vector<Shape>> traced_shapes(const OpRecord& r, Args args,
                                                const std::vector<Dim>& sizes) {
  std::vector<Shape> shapes;
  paddle::detail::Shapes asked[2];
  Symbols symbols[2] = {symbols_of(sizes), symbols_of(sizes)};
  for (size_t k = 0; k < symbols[0].size(); ++k) {
    symbols[0][k].second = 1009 + 26 * static_cast<int64_t>(k);
    symbols[1][k].second = 7919 + 82 * static_cast<int64_t>(k);
  }
  try {
    for (int k = 0; k < 2; ++k) asked[k] = r.infer_shape.call(SizedCall(args, symbols[k]));
  } catch (const std::exception&) {
    return std::nullopt;  // it rejects the second set of sizes
  }
  if (asked[0].size() != asked[1].size()) return std::nullopt;
  for (size_t i = 0; i < asked[0].size(); ++i) {
    if (asked[0][i].size() != asked[1][i].size()) return std::nullopt;
    Shape& shape = shapes.emplace_back();
    for (size_t a = 0; a < asked[0][i].size(); ++a) {
      const int64_t first = asked[0][i][a], second = asked[1][i][a];
      const auto follows = [&](Dim d) {
        return d.evaluate(symbols[0]) == first && d.evaluate(symbols[1]) == second;
      };
      const auto found = std::find_if(sizes.begin(), sizes.end(), follows);
      if (first != second && found == sizes.end()) return std::nullopt;
      shape.push_back(first == second ? Dim(first) : *found);
    }
  }
  return shapes;
}

std::vector<Shape> inferred_shapes(const OpRecord& r, Args args) {
  const std::vector<Dim> sizes = symbolic_sizes(args);
  if (!sizes.empty())
    if (auto traced = traced_shapes(r, args, sizes)) return *traced;
  const Symbols symbols = symbols_of(sizes);
  // The program is then for these sizes only, and checks them.
  for (const auto& [symbol, hint] : symbols)
    user_check(same(symbol, Dim(hint)), ErrorKind::Unsupported,
               "SetInferShapeFn's function computes with the open size {}.\nhint: Capture with "
               "known sizes.",
               symbol.str());
  std::vector<Shape> shapes;
  for (const std::vector<int64_t>& s : r.infer_shape.call(SizedCall(args, symbols))) {
    for (const int64_t size : s)
      user_check(size >= 0, ErrorKind::Unsupported,
                 "SetInferShapeFn's function returned the shape {}: sizes must follow from sizes.",
                 to_string(Ints(s)));
    shapes.emplace_back(Ints(s));
  }
  return shapes;
}

// By default a result has the type of the operand it belongs to: the gradient of x that of x, and the
// result of an op with one operand that of the operand.
const Value& likeness(const OpRecord& r, size_t output, Args args) {
  const std::vector<Name> inputs = names(r.inputs);
  const std::string bare = Name(r.outputs[output]).bare;
  for (const auto& [from, to] : r.written)
    if (Name(to).bare == bare) return args[static_cast<size_t>(find(inputs, Name(from).bare))];
  for (const std::string_view mark : {"@GRAD", "@NEW"})
    if (bare.ends_with(mark))
      if (const int i = find(inputs, bare.substr(0, bare.size() - mark.size())); i >= 0)
        return args[static_cast<size_t>(i)];
  return args[0];
}

bool has_likeness(const OpRecord& r) {
  if (r.inputs.size() == 1) return true;
  const std::vector<Name> inputs = names(r.inputs);
  return std::all_of(r.outputs.begin(), r.outputs.end(), [&](const std::string& output) {
    const std::string bare = Name(output).bare;
    for (const auto& [from, to] : r.written)
      if (Name(to).bare == bare) return true;
    for (const std::string_view mark : {"@GRAD", "@NEW"})
      if (bare.ends_with(mark) && find(inputs, bare.substr(0, bare.size() - mark.size())) >= 0)
        return true;
    return false;
  });
}

Metas inferred(const OpRecord& r, Args args) {
  Metas metas;
  if (r.infer_shape) {
    for (Shape& shape : inferred_shapes(r, args))
      metas.push_back({DType::Float32, std::move(shape), false});
  } else {
    for (size_t k = 0; k < r.outputs.size(); ++k)
      for_each_tensor({&likeness(r, k, args), 1},
                      [&](const Tensor& t) { metas.push_back({t.dtype(), t.shape(), false}); });
  }
  if (r.infer_dtype) {
    const paddle::detail::DataTypes types = r.infer_dtype.call(paddle::detail::Call(args));
    user_check(types.size() == metas.size(), ErrorKind::InvalidArgument,
               "SetInferDtypeFn's function returned {} dtypes for {} outputs.", types.size(),
               metas.size());
    for (size_t i = 0; i < types.size(); ++i) metas[i].dtype = static_cast<DType>(types[i]);
  } else if (r.infer_shape) {
    for (size_t i = 0; i < metas.size(); ++i) {
      const Value& like = likeness(r, std::min(i, r.outputs.size() - 1), args);
      for_each_tensor({&like, 1}, [&](const Tensor& t) { metas[i].dtype = t.dtype(); });
    }
  }
  const bool list = Name(r.outputs[0]).list;
  user_check(list || metas.size() == r.outputs.size(), ErrorKind::InvalidArgument,
             "SetInferShapeFn's function returned {} shapes for {} outputs.", metas.size(),
             r.outputs.size());
  return metas;
}

// ---- Derivatives

// Where an input of the gradient's op comes from.
struct Source {
  enum From { Argument, Output, Cotangent } from;
  size_t index;
};

class Backward {
 public:
  Backward(const OpRecord& forward, const OpRecord& backward) : op_(registered_name(backward)) {
    const std::vector<Name> inputs = names(forward.inputs), outputs = names(forward.outputs);
    const OpScope scope(op_.c_str());
    for (const Name& n : names(backward.inputs)) sources_.push_back(source(n, inputs, outputs));
    for (const std::string& text : backward.attributes) {
      const std::string name = parse_attribute(text).name;
      size_t at = inputs.size();
      for (const std::string& other : forward.attributes) {
        if (parse_attribute(other).name == name) break;
        ++at;
      }
      user_check(at < inputs.size() + forward.attributes.size(), ErrorKind::InvalidArgument,
                 "it has the attribute '{}', which {} does not have.", name,
                 registered_name(forward));
      sources_.push_back({Source::Argument, at});
    }
    const std::vector<Name> made = names(backward.outputs);
    for (const Name& n : inputs) {
      const int grad = find(made, n.bare + "@GRAD");
      results_.push_back(grad >= 0 ? grad : find(made, n.bare + "@NEW"));
    }
    operands_ = inputs.size();
  }

  const std::string& saves() const { return saves_; }

  Grads operator()(const VjpCall& call) const {
    Frame frame;
    for (const Source& s : sources_) frame.push(value(s, call));
    const Outputs made = dispatch(Registry::get().at(op_), frame.args());
    Grads grads;
    for (size_t i = 0; i < operands_; ++i) {
      if (call.args[i].is_tensors() && results_[i] >= 0)  // then it is the only result
        for (const Tensor& t : made) grads.push_back(t);
      else if (call.args[i].is_tensors())
        for (size_t k = 0; k < call.args[i].as_tensors().size(); ++k) grads.push_back(Tensor());
      else
        grads.push_back(results_[i] < 0 ? Tensor() : made[static_cast<size_t>(results_[i])]);
    }
    return grads;
  }

 private:
  Source source(const Name& n, const std::vector<Name>& inputs, const std::vector<Name>& outputs) {
    if (const int i = find(inputs, n.bare); i >= 0) {
      saves_ += inputs[static_cast<size_t>(i)].schema + " ";
      return {Source::Argument, static_cast<size_t>(i)};
    }
    if (const int i = find(outputs, n.bare); i >= 0) {
      saves_ += (outputs[0].list ? "out" : outputs[static_cast<size_t>(i)].schema) + " ";
      return {Source::Output, static_cast<size_t>(i)};
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].bare + "@GRAD" == n.bare) return {Source::Cotangent, i};
    fail(ErrorKind::InvalidArgument,
         "its input '{}' is not an input, output or gradient of an output of the op it belongs to.",
         n.bare);
  }

  static Value value(const Source& s, const VjpCall& call) {
    if (s.from == Source::Argument) return call.args[s.index];
    const TensorList list = s.from == Source::Output ? call.outputs : call.cotangents;
    return Value(list[s.index]);
  }

  std::string op_, saves_;
  std::vector<Source> sources_;
  std::vector<int> results_;  // per operand, -1 for none
  size_t operands_ = 0;
};

Addition addition(const Record& r, const std::vector<Record>& all) {
  const std::string name = registered_name(*r);
  const OpScope scope(name.c_str());
  const Signature signature = signature_of(*r);
  check_kernel(*r, signature);
  plan_writes(*r);
  r->schema = signature.schema;
  Addition made;
  made.def.brief = "";
  if (r->infer_shape || has_likeness(*r)) {
    made.def.infer = [r](const Args& args) { return inferred(*r, args); };
    made.kernel = r->kernel.entry;
  } else {
    // Without inference it runs eagerly, and a capture says what is missing.
    made.def.decompose = [r](const Args& args) -> Made {
      user_check(!(dispatch_key(args) & kRecording), ErrorKind::Unsupported,
                 "{} has no derivative.\nhint: Describe it with PD_BUILD_DOUBLE_GRAD_OP.",
                 registered_name(*r));
      Made outputs;
      for (const paddle::Tensor& t : r->kernel.call(paddle::detail::Call(args)))
        outputs.push_back(t.native());
      return outputs;
    };
  }
  // As in Paddle an op without a gradient is a constant to autograd; the end of a chain is an error.
  if (r->order == 0) made.def.traits = Trait::NoGrad;
  if (r->order > 0) made.def.vjp = Unsupported{"it is the last derivative that the library has"};
  for (const Record& other : all) {
    if (other->name != r->name || other->order != r->order + 1) continue;
    const Backward backward(*r, *other);
    r->saves = backward.saves();
    made.def.vjp = [backward](const VjpCall& call) -> Grads { return backward(call); };
    made.def.traits = Trait::None;
  }
  made.def.schema = r->schema.c_str();  // the registry copies texts
  made.def.saves = r->saves.c_str();
  if (r->order > 0) return made;
  made.python = r->name;
  if (!r->written.empty()) {
    const auto& [parameter, output] = r->kernel.plan->kept[0];
    user_check(r->outputs.size() == 1 && parameter == 0 && output == 0, ErrorKind::Unsupported,
               "SetInplaceMap of an op may map the first input to its only output.");
    made.def.traits = made.def.traits | Trait::HasInplace;
    made.writes = true;
  }
  return made;
}

}  // namespace

std::vector<Addition> take_paddle_records() {
  const std::vector<Record> all = paddle::detail::take();
  std::vector<Addition> additions;
  for (const Record& r : all) additions.push_back(addition(r, all));
  return additions;
}

}  // namespace oar::extension
