// Numbers among attributes that look like the words of symbolic sizes: a Scalar is never a size.
#include <limits>

#include "capture_util.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// The words of the first symbols are the least integers; with a symbol registered, one of them names it.
Dim symbol() {
  static const Dim n = Dim::symbol("N", 3);
  return n;
}

Program round_trip(const Program& program) {
  const std::string text = to_text(program);
  Program parsed = parse_program(text);
  EXPECT_EQ(to_text(parsed), text);
  return parsed;
}

TEST(IrScalar, LeastIntegersAreNumbersInEveryAttribute) {
  for (const int64_t n : {kLeast, kLeast + 1, symbol().word(), -(int64_t{1} << 62) - 1}) {
    const std::string text = format(
        "program f<N ~ 3>(%x: int64[N]) -> (%1: int64[N], %2: int64[N], %3: int64[2], %4: int64[N, N]) {{\n"
        "  %1 = full(shape=[N], fill_value={0}, dtype=int64) : int64[N]\n"
        "  %2 = clip(%x, min={0}, max=None) : int64[N]\n"
        "  %3 = range(start={0}, end={1}, step=2048, dtype=int64) : int64[2]\n"
        "  %4 = diag(%x, offset=0, padding_value={0}) : int64[N, N]\n"
        "}}\n",
        n, n + 4096);
    const Program program = round_trip(parse_program(text));
    EXPECT_EQ(to_text(program), text);
    const Tensor x = Tensor::from_vector<int64_t>({5, kLeast, 7}, Shape{3}, DType::Int64);
    const Tensors got = Executor(program).run({{x}});
    EXPECT_EQ(got[0].to_vector<int64_t>(), (std::vector<int64_t>{n, n, n}));
    EXPECT_EQ(got[1].to_vector<int64_t>(), (std::vector<int64_t>{5, n, 7}));
    EXPECT_EQ(got[3].to_vector<int64_t>()[1], n);
  }
}

TEST(IrScalar, CapturedNumbersStayNumbers) {
  for (const int64_t n : {kLeast, symbol().word()})
    expect_captures(
        [&](const Tensors& in) {
          return Tensors{clip(in[0], Scalar(n), std::nullopt),
                         full(in[0].dims(), Scalar(n), DType::Int64)};
        },
        {{DType::Int64, {symbol()}, "x"}},
        {{Tensor::from_vector<int64_t>({1, -9, 3}, Shape{3}, DType::Int64)},
         {Tensor::from_vector<int64_t>({4}, Shape{1}, DType::Int64)}});
}

TEST(IrScalar, ConstantsHaveAllIntegers) {
  const Program program = round_trip(
      parse_program(format("program f(%x: int64[]) -> (%1: int64[]) {{\n"
                           "  const %c: int64[] = {}\n  %1 = add(%x, %c) : int64[]\n}}\n",
                           kLeast)));
  const Tensor one = Tensor::from_vector<int64_t>({1}, Shape(), DType::Int64);
  EXPECT_EQ(Executor(program).run({{one}})[0].to_vector<int64_t>()[0], kLeast + 1);
}

// A size is one where the schema says int.
TEST(IrScalar, SizesAreStillSizes) {
  const Program program = parse_program(
      "program f<N ~ 3>(%x: float32[N]) -> (%1) {\n"
      "%1 = full(shape=[N, 2], fill_value=1.0, dtype=float32) : float32[N, 2]\n}");
  const Instruction& call = program.body.instructions[0];
  EXPECT_TRUE(has_symbolic_attributes(*call.op, call.attributes.args()));
  EXPECT_NE(error_of([] {
              parse_program(
                  "program f(%x: float32[2]) -> (%1) {\n"
                  "%1 = reshape(%x, shape=[-9223372036854775808]) : float32[2]\n}");
            }).find("too large"),
            std::string::npos);
}

}  // namespace
}  // namespace oar
