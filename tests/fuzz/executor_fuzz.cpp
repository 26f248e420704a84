// Random programs: what the verifier lets through runs without harm, whatever its types, attributes and
// operands say. Programs are put together from random calls, and their texts are changed.
#include <exception>
#include <map>

#include "hostile.h"
#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/compiler/executor.h"
#include "oar/device/generator.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/reduction.h"
#include "survey.h"

namespace fuzz {
namespace {

using namespace oar;
using Tensors = std::vector<Tensor>;

constexpr int64_t kMostInputBytes = 1 << 16;

// ---- programs from calls -----------------------------------------------------------------------

class Builder {
 public:
  explicit Builder(Random& random) : random_(random) {}

  Program run() {
    for (size_t n = 1 + random_.below(5); n > 0; --n) {
      const Op& op = *random_.pick(callable_ops());
      const Frame frame = random_call(random_, op);
      add(op, frame.args());
    }
    for (size_t i = 0; i < program_.values.size(); ++i)
      if (random_.chance(0.7)) program_.outputs.push_back(static_cast<ValueId>(i));
    program_.collect_symbols();
    return std::move(program_);
  }

 private:
  ValueId value_like(const Tensor& t) {
    if (!t.defined()) return kNoValue;
    if (!program_.values.empty() && random_.chance(0.3))
      return static_cast<ValueId>(random_.below(program_.values.size()));
    const ValueId id = program_.add_value({t.dtype(), t.shape(), Device{}});
    program_.inputs.push_back(id);
    return id;
  }

  // A call whose inference fails is left out: the verifier would say the same.
  void add(const Op& op, Args args) {
    Instruction made;
    made.op = &op;
    for (size_t i = 0; i < args.size(); ++i) {
      const Parameter& p = op.schema().parameters[i];
      Operand& operand = made.operands.emplace_back();
      made.attributes.push(p.is_tensor() ? Value() : args[i]);
      if (!p.is_tensor()) continue;
      operand.kind = p.list ? Operand::List : Operand::One;
      if (!p.list) operand.ids.push_back(value_like(args[i].as_tensor()));
      if (args[i].is_tensors())
        for (const Tensor& t : args[i].as_tensors()) operand.ids.push_back(value_like(t));
    }
    describe("inference of " + describe_call(op, args));
    Metas metas;
    try {
      metas = types_of(made);
    } catch (const Error&) {
      return;
    }
    for (TensorMeta& m : metas) {
      for (Dim& d : m.shape)
        if (m.data_dependent) d = Dim::symbol("u" + std::to_string(symbols_++), 1);
      made.results.push_back(program_.add_value({m.dtype, m.shape, Device{}}));
    }
    program_.body.instructions.push_back(std::move(made));
  }

  Metas types_of(const Instruction& call) const {
    const Frame frame = with_operands(call.attributes.clone(), call, [&](size_t, ValueId id) {
      const ValueType& type = program_.type_of(id);
      return Tensor::meta(type.shape, type.dtype, type.device);
    });
    Metas metas = infer_results(*call.op, frame.args());
    if (!is_update(*call.op)) return metas;
    metas.clear();
    for_each_updated(call, [&](ValueId id) {
      metas.push_back({program_.type_of(id).dtype, program_.type_of(id).shape, false});
    });
    return metas;
  }

  Random& random_;
  Program program_;
  int symbols_ = 0;
};

// Programs with regions, which random calls do not give.
const std::vector<std::string>& texts_with_regions() {
  static const std::vector<std::string> texts = [] {
    const std::vector<InputSpec> specs = {{DType::Float32, {3, 4}}, {DType::Float32, {3, 4}}};
    const auto branches = [](const Tensors& x) {
      return cond(
          greater_than(sum(x[0]), Tensor::scalar(0.0, DType::Float32)),
          [&] { return Tensors{x[0] * x[1], x[0]}; }, [&] { return Tensors{exp(x[1]), x[1]}; });
    };
    const auto rows = [](const Tensors& x) {
      const auto body = [](const Tensors& v) { return Tensors{v[0] * v[1] + v[0], v[0]}; };
      return scan(body, {sum(x[0], IntVector{0})}, {x[1]});
    };
    return std::vector<std::string>{to_text(capture(branches, specs)),
                                    to_text(capture(rows, specs))};
  }();
  return texts;
}

// ---- texts -------------------------------------------------------------------------------------

struct Token {
  size_t at, length;
};

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + (text[i] == '%' || text[i] == '-' ? 1 : 0);
    while (end < text.size() && part(text[end])) ++end;
    if (end > i && part(text[end - 1])) tokens.push_back({i, end - i});
    i = std::max(end, i + 1);
  }
  return tokens;
}

std::string in_place_of(const std::string& word, const std::string& text,
                        const std::vector<Token>& tokens, Random& random) {
  const auto another_label = [&] {
    for (int tries = 0; tries < 50; ++tries) {
      const Token& t = random.pick(tokens);
      if (text[t.at] == '%') return text.substr(t.at, t.length);
    }
    return std::string("%0");
  };
  if (word[0] == '%') return random.chance(0.9) ? another_label() : "None";
  if (std::isdigit(static_cast<unsigned char>(word.back())) && !std::isalpha(word[0]))
    return random.chance(0.9) ? std::to_string(random_integer(random)) : "B";
  if (dtype_from_name(word)) return oar::name_of(random_dtype(random));
  if (Registry::get().find(word)) return random.pick(callable_ops())->name();
  static const std::vector<std::string> others = {"None", "True", "False", "inf", "nan",   "B",
                                                  "0",    "1",    "-1",    "[]",  "[1, 2]"};
  return random.pick(others);
}

std::string changed(std::string text, Random& random) {
  for (size_t times = 1 + random.below(3); times > 0; --times) {
    const std::vector<Token> tokens = tokens_of(text);
    if (tokens.empty()) return text;
    const Token token = random.pick(tokens);
    const std::string word = text.substr(token.at, token.length);
    // A type occurs in several places; changing all of them leaves more programs sound.
    const std::string other = in_place_of(word, text, tokens, random);
    const bool everywhere = random.chance(0.4) && word[0] != '%';
    for (size_t i = tokens.size(); i-- > 0;) {
      const Token& t = tokens[i];
      const bool same = text.compare(t.at, t.length, word) == 0;
      if (t.at == token.at || (everywhere && same)) text.replace(t.at, t.length, other);
    }
  }
  return text;
}

// ---- runs --------------------------------------------------------------------------------------

Shape known_shape(const Shape& shape, std::map<std::string, int64_t>& sizes, Random& random) {
  Shape known = shape;
  for (Dim& d : known)
    if (d.is_symbolic()) {
      const auto at = sizes.emplace(d.str(), static_cast<int64_t>(1 + random.below(4))).first;
      d = at->second;
    }
  return known;
}

// False where an input would be too large to make.
bool make_inputs(const Program& program, Random& random, Tensors& inputs) {
  std::map<std::string, int64_t> sizes;
  for (ValueId id : program.inputs) {
    const ValueType& type = program.type_of(id);
    const Shape shape = known_shape(type.shape, sizes, random);
    int64_t bytes = byte_count(1, type.dtype);
    for (Dim d : shape)
      if (d.word() < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(d.word(), 1), &bytes) ||
          bytes > kMostInputBytes)
        return false;
    inputs.push_back(random_tensor(random, shape, type.dtype));
  }
  return true;
}

void read(const Tensors& results) {
  for (const Tensor& t : results)
    if (t.defined() && t.is_dense() && t->numel < 100000) t.to_vector<std::complex<double>>();
}

void run(Program program, Random& random) {
  Tensors inputs;
  const bool made = make_inputs(program, random, inputs);
  const bool open = !program.symbols.empty();
  const Executor executor(std::move(program));
  if (!made && !open) executor.instance_at_known_sizes();
  if (!made) return;
  read(executor.interpret(inputs));
  for (int times = 0; times < 2; ++times) read(executor.run(inputs));
}

std::string random_text(Random& random) {
  if (random.chance(0.1)) return changed(random.pick(texts_with_regions()), random);
  const std::string text = to_text(Builder(random).run());
  return random.chance(0.6) ? text : changed(text, random);
}

std::string attempt(uint64_t seed, uint64_t number) {
  Random random(seed, number);
  generator::seed(number);
  bool parsed = false;
  try {
    const std::string text = random_text(random);
    describe(text);
    Program program = parse_program(text);
    parsed = true;
    run(std::move(program), random);
    count("runs");
  } catch (const Error& error) {
    count(parsed ? "refused in the run" : "refused by the verifier");
    if (error.kind() == ErrorKind::Internal) return error.what();
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
  return {};
}

}  // namespace
}  // namespace fuzz

int main(int argc, char** argv) {
  oar::set_flag("memory_limit_mb", "256");
  oar::set_flag("cache_allocator", "0");
  fuzz::texts_with_regions();
  return fuzz::survey(argc, argv, "Random programs, verified and run.", fuzz::attempt);
}
