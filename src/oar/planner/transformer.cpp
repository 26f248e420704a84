#include "oar/planner/transformer.h"

#include <functional>
#include <map>

#include "oar/autograd/engine.h"
#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/compiler/capture/builder.h"
#include "oar/formats/json_reader.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::planner {
namespace {

Transformer completed(Transformer m) {
  if (m.key_heads == 0) m.key_heads = m.heads;
  if (m.head_width == 0) m.head_width = m.heads > 0 ? m.hidden / m.heads : 0;
  if (m.inner == 0) m.inner = 4 * m.hidden;
  if (m.expert_inner == 0) m.expert_inner = m.inner;
  const std::pair<const char*, int64_t> sizes[] = {
      {"layers", m.layers},         {"hidden", m.hidden},
      {"heads", m.heads},           {"key_heads", m.key_heads},
      {"head_width", m.head_width}, {"inner_width", m.inner},
      {"vocabulary", m.vocabulary}, {"sequence", m.sequence},
      {"batch", m.batch},           {"expert_choices", m.expert_choices}};
  for (const auto& [name, size] : sizes)
    user_check(size > 0 && size < (int64_t{1} << 31), ErrorKind::InvalidArgument,
               "the model's {} is {}.\nhint: It must be above 0 and below 2^31.", name, size);
  user_check(m.layers <= 4096, ErrorKind::InvalidArgument,
             "the model has {} layers; at most 4096 are planned.", m.layers);
  user_check(m.heads % m.key_heads == 0, ErrorKind::InvalidArgument,
             "{} heads cannot share {} heads of keys.\nhint: key_heads must divide heads.", m.heads,
             m.key_heads);
  const int64_t tokens = m.batch * m.sequence * m.expert_choices;
  user_check(m.experts >= 0 && (m.experts == 0 || tokens % m.experts == 0),
             ErrorKind::InvalidArgument,
             "{} tokens, of which each takes {} experts, cannot be dealt out to {} experts.\nhint: "
             "batch * sequence * expert_choices must be a multiple of experts.",
             m.batch * m.sequence, m.expert_choices, m.experts);
  return m;
}

// The inputs of the captured function in the order in which the model first asks for its weights. It runs twice: once to learn the
// weights' shapes, then on tensors of the capture.
class Weights {
 public:
  explicit Weights(DType dtype) : dtype_(dtype) {}

  Tensor operator()(const std::string& name, const Shape& shape) {
    if (given_.empty()) {
      specs_.push_back({dtype_, shape, name});
      Tensor t = Tensor::meta(shape, dtype_);
      return t;
    }
    internal_check(at_ < given_.size(), "more weights than before");
    return given_[at_++];
  }
  void give(std::vector<Tensor> tensors) {
    given_ = std::move(tensors);
    at_ = 0;
  }
  const std::vector<InputSpec>& specs() const { return specs_; }

 private:
  DType dtype_;
  std::vector<InputSpec> specs_;
  std::vector<Tensor> given_;
  size_t at_ = 0;
};

class Model {
 public:
  Model(const Transformer& sizes, Weights& weight) : m_(sizes), weight_(weight) {}

  Tensor loss(const Tensor& tokens, const Tensor& labels) {
    Tensor x = embedding(tokens, weight_("embedding", {m_.vocabulary, m_.hidden}));
    for (int64_t i = 0; i < m_.layers; ++i) x = layer(x, i);
    x = norm(x, "final");
    const Tensor logits = matmul(x, weight_("head", {m_.hidden, m_.vocabulary}));
    return cross_entropy(cast(logits, DType::Float32), unsqueeze(labels, {-1}));
  }

 private:
  Tensor layer(const Tensor& x, int64_t i) {
    const std::string name = format("layer{}.", i);
    const Tensor y = x + attended(norm(x, name + "norm1"), name);
    const Tensor z = norm(y, name + "norm2");
    const bool mixture = m_.experts > 0 && i >= m_.dense_layers;
    return y + (mixture ? mixed(z, name) : unit(z, name, m_.inner));
  }

  Tensor norm(const Tensor& x, const std::string& name) {
    const Tensor scale = weight_(name + ".scale", {m_.hidden});
    if (m_.gated) return rms_norm(x, {m_.hidden}, scale);
    return layer_norm(x, {m_.hidden}, scale, weight_(name + ".shift", {m_.hidden}));
  }

  Tensor linear_of(const Tensor& x, const std::string& name, int64_t from, int64_t to) {
    const Tensor y = matmul(x, weight_(name, {from, to}));
    return m_.gated ? y : y + weight_(name + ".bias", {to});
  }

  Tensor attended(const Tensor& x, const std::string& name) {
    const int64_t d = m_.head_width;
    const auto heads = [&](const char* what, int64_t count) {
      const Tensor y = linear_of(x, name + what, m_.hidden, count * d);
      return reshape(y, {x.dim(0), m_.sequence, count, d});
    };
    const Tensor q = heads("query", m_.heads), k = heads("key", m_.key_heads),
                 v = heads("value", m_.key_heads);
    const auto [out, log_sum] =
        attention(q, k, v, {}, {}, 1 / std::sqrt(static_cast<double>(d)), 0.0, true);
    return linear_of(reshape(out, {x.dim(0), m_.sequence, m_.heads * d}), name + "out",
                     m_.heads * d, m_.hidden);
  }

  Tensor unit(const Tensor& x, const std::string& name, int64_t inner) {
    if (!m_.gated)
      return linear_of(gelu(linear_of(x, name + "up", m_.hidden, inner), true), name + "down",
                       inner, m_.hidden);
    const Tensor gate = linear_of(x, name + "gate", m_.hidden, inner);
    const Tensor up = linear_of(x, name + "up", m_.hidden, inner);
    return linear_of(silu(gate) * up, name + "down", inner, m_.hidden);
  }

  // Of the shared expert and those that the tokens take.
  Tensor mixed(const Tensor& x, const std::string& name) {
    const Tensor scores = softmax(matmul(x, weight_(name + "router", {m_.hidden, m_.experts})), -1);
    const Tensor weights = std::get<0>(topk(scores, m_.expert_choices, -1));
    const Tensor copies =
        broadcast_to(unsqueeze(x, {2}), {x.dim(0), m_.sequence, m_.expert_choices, m_.hidden});
    const Tensor dealt = transpose(reshape(copies, {-1, m_.experts, m_.hidden}), {1, 0, 2});
    const auto expert = [&](const Tensor& t, const char* what, int64_t from, int64_t to) {
      return matmul(t, weight_(name + what, {m_.experts, from, to}));
    };
    const Tensor gate = expert(dealt, "experts.gate", m_.hidden, m_.expert_inner);
    const Tensor up = expert(dealt, "experts.up", m_.hidden, m_.expert_inner);
    const Tensor made = expert(silu(gate) * up, "experts.down", m_.expert_inner, m_.hidden);
    const Tensor back =
        reshape(transpose(made, {1, 0, 2}), {x.dim(0), m_.sequence, m_.expert_choices, m_.hidden});
    return sum(back * unsqueeze(weights, {-1}), IntArgs{2}) +
           unit(x, name + "shared.", m_.expert_inner);
  }

  const Transformer& m_;
  Weights& weight_;
};

// Turns the inputs from the given one on into states, which become the outputs from the second one on.
void make_states(Program& program, size_t data_inputs) {
  for (size_t i = data_inputs; i < program.inputs.size(); ++i) {
    const ValueId id = program.inputs[i];
    const ValueType& type = program.type_of(id);
    const ValueId written = program.outputs[1 + i - data_inputs];
    program.states.push_back(
        {id, Tensor::meta(type.shape, type.dtype), written == id ? kNoValue : written});
  }
  program.inputs.resize(data_inputs);
  program.outputs.resize(1);
}

using Readers = std::map<std::string, std::function<void(JsonReader&)>>;

void read_fields(JsonReader& json, const Readers& readers, std::string_view what) {
  std::vector<std::string> known;
  for (const auto& [name, read] : readers) known.push_back(name);
  json.object([&](const std::string& key) {
    const auto found = readers.find(key);
    if (found == readers.end()) {
      const std::string near = nearest_name(key, known);
      fail(ErrorKind::InvalidArgument, "a {} has no \"{}\"{}\nhint: It may have {}.", what, key,
           near.empty() ? "." : format("; did you mean \"{}\"?", near), join(known, ", "));
    }
    found->second(json);
  });
}

auto into(int64_t& to) {
  return [&to](JsonReader& json) { to = json.unsigned_integer(); };
}
auto into(bool& to) {
  return [&to](JsonReader& json) { to = json.boolean(); };
}
auto into(std::string& to) {
  return [&to](JsonReader& json) { to = json.string(); };
}

PublishedPlan parse_plan(JsonReader& json) {
  PublishedPlan p;
  const Readers readers = {{"name", into(p.name)},
                           {"tensor", into(p.tensor)},
                           {"data", into(p.data)},
                           {"pipeline", into(p.pipeline)},
                           {"interleave", into(p.interleave)},
                           {"micro_batch", into(p.micro_batch)},
                           {"recompute", into(p.recompute)},
                           {"zero",
                            [&](JsonReader& j) {
                              p.zero = static_cast<int>(std::min<int64_t>(j.unsigned_integer(), 9));
                            }},
                           {"seconds", [&](JsonReader& j) { p.seconds = j.number().value; }}};
  read_fields(json, readers, "plan");
  user_check(p.zero <= 3, ErrorKind::InvalidArgument,
             "the plan \"{}\" has the ZeRO stage {}.\nhint: Stages are 0 to 3.", p.name, p.zero);
  for (const int64_t size : {p.tensor, p.data, p.pipeline, p.interleave, p.micro_batch})
    user_check(size > 0 && size <= 1 << 20, ErrorKind::InvalidArgument,
               "the plan \"{}\" has a size of {}.\nhint: Sizes are from 1 to 2^20.", p.name, size);
  return p;
}

// A capture that computes nothing: even tensors made of numbers alone, which may be larger than this machine, are recorded.
Program recorded(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                 const std::string& name) {
  Builder builder(name);
  std::vector<Tensor> outputs;
  {
    const Capture::Scope scope(builder);
    std::vector<Tensor> symbolic;
    for (const InputSpec& spec : inputs) symbolic.push_back(builder.input(spec));
    outputs = function(symbolic);
  }
  return builder.finish(std::move(outputs));
}

}  // namespace

Program training_step(const Transformer& model) {
  const Transformer m = completed(model);
  const DType dtype = m.half ? DType::BFloat16 : DType::Float32;
  // Open, so that nothing of the batch's size is ever computed; the planner takes the hint.
  const Dim batch = Dim::symbol("batch", m.batch, 1);
  const InputSpec data[] = {{DType::Int64, {batch, m.sequence}, "tokens"},
                            {DType::Int64, {batch, m.sequence}, "labels"}};
  Weights weights(dtype);
  {
    const NoGrad off;
    Model(m, weights)
        .loss(Tensor::meta(data[0].shape, DType::Int64), Tensor::meta(data[1].shape, DType::Int64));
  }
  std::vector<InputSpec> specs(std::begin(data), std::end(data));
  const size_t count = weights.specs().size(), lists = m.half ? 4 : 3;
  for (size_t list = 0; list < lists; ++list)
    for (InputSpec spec : weights.specs()) {
      static const char* const kSuffixes[] = {"", ".moment1", ".moment2", ".master"};
      spec.name += kSuffixes[list];
      spec.dtype = list == 0 ? dtype : DType::Float32;
      spec.stop_gradient = list != 0;
      specs.push_back(std::move(spec));
    }
  specs.push_back({DType::Float32, {}, "steps"});
  Program program = recorded(
      [&](const std::vector<Tensor>& in) {
        const auto list = [&](size_t k) {
          const auto first = in.begin() + static_cast<std::ptrdiff_t>(2 + k * count);
          return std::vector<Tensor>(first, first + static_cast<std::ptrdiff_t>(count));
        };
        const std::vector<Tensor> params = list(0),
                                  masters = m.half ? list(3) : std::vector<Tensor>();
        weights.give(params);
        const Tensor loss = Model(m, weights).loss(in[0], in[1]);
        const std::vector<Tensor> grads = grad({&loss, 1}, params);
        const NoGrad off;
        adamw_(params, grads, list(1), list(2), literal(1e-4), in.back(), 0.9, 0.95, 1e-8, 0.1,
               masters);
        std::vector<Tensor> out{loss};
        out.insert(out.end(), in.begin() + 2, in.end());
        return out;
      },
      specs, m.name);
  make_states(program, 2);
  return program;
}

ModelFile parse_model(std::string_view text) {
  ModelFile file;
  Transformer& m = file.model;
  std::string kind = "transformer";
  const Readers readers = {
      {"kind", into(kind)},
      {"name", into(m.name)},
      {"layers", into(m.layers)},
      {"hidden", into(m.hidden)},
      {"heads", into(m.heads)},
      {"key_heads", into(m.key_heads)},
      {"head_width", into(m.head_width)},
      {"inner_width", into(m.inner)},
      {"vocabulary", into(m.vocabulary)},
      {"sequence", into(m.sequence)},
      {"batch", into(m.batch)},
      {"gated", into(m.gated)},
      {"half", into(m.half)},
      {"experts", into(m.experts)},
      {"expert_choices", into(m.expert_choices)},
      {"expert_inner", into(m.expert_inner)},
      {"dense_layers", into(m.dense_layers)},
      {"plans", [&](JsonReader& j) { j.array([&] { file.plans.push_back(parse_plan(j)); }); }}};
  JsonReader json(text);
  read_fields(json, readers, "model");
  json.end();
  user_check(kind == "transformer", ErrorKind::InvalidArgument,
             "the model is of the kind \"{}\".\nhint: The only kind is \"transformer\"; save other "
             "models as programs.",
             kind);
  m = completed(m);
  return file;
}

}  // namespace oar::planner
