// Any source and any pickle as an archive of TorchScript: either an Error, or a model that runs.
#include <cstdio>
#include <cstdlib>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/interop/pytorch/import.h"
#include "parsers.h"
#include "zip_seed.h"

namespace {

// The parts of an input, whose checksums would hide them from mutations: source, module, constants.
constexpr std::string_view kBetween = "\n----\n";

// Numbers of many digits ask for loops and tensors that take long, not for a check that is missing.
bool has_large_number(std::string_view source) {
  size_t digits = 0;
  for (const char c : source) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return false;
}

void run(std::string_view file, bool steps) {
  const oar::pytorch::Model model = oar::pytorch::read_model(file);
  std::vector<oar::Tensor> inputs;
  for (const auto& port : model.graph.inputs())
    inputs.push_back(oar::Tensor::from_vector(std::vector<double>(port.dtype ? 1 : 6, 2.0),
                                              port.dtype ? oar::Shape{} : oar::Shape{2, 3},
                                              port.dtype.value_or(oar::DType::Float32)));
  if (steps)
    model.graph.run(inputs);
  else
    model.graph.program(inputs);
}

std::string archive_of(std::string_view source, std::string_view module,
                       std::string_view constants) {
  return fuzz::zipped({{"n/data.pkl", std::string(module)},
                       {"n/code/__torch__.py", std::string(source)},
                       {"n/constants.pkl", std::string(constants)},
                       {"n/data/0", std::string(24, '\1')},
                       {"n/constants/0", std::string(8, '\1')}});
}

void read_parts(std::string_view input) {
  const size_t first = input.find(kBetween);
  if (first == std::string_view::npos) return;
  const std::string_view source = input.substr(0, first),
                         rest = input.substr(first + kBetween.size());
  const size_t second = rest.find(kBetween);
  if (second == std::string_view::npos || has_large_number(source)) return;
  const std::string file =
      archive_of(source, rest.substr(0, second), rest.substr(second + kBetween.size()));
  // A loop may have no end, which a program that unrolls it notices sooner.
  run(file, source.find("while") == std::string_view::npos);
}

// ---- seeds -------------------------------------------------------------------------------------

constexpr char kSource[] = R"(class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  count : int
  child : __torch__.Child
  __annotations__["0"] = __torch__.Child
  size : Final[int] = 2
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int,
    mask: Optional[Tensor]=None) -> Tuple[Tensor, Dict[str, Tensor], int]:
    _0 = __torch__.double
    child = self.child
    weight = self.weight
    y = torch.linear((child).forward(x, ), weight, CONSTANTS.c0)
    parts = annotate(List[Tensor], [])
    for i in range(n):
      if torch.eq(torch.remainder(i, 2), 0):
        y0 = torch.add(y, i, alpha=2)
      else:
        y0 = torch.mul_(torch.clone(y), 0.5)
      _1 = torch.append(parts, y0)
    if torch.__is__(mask, None):
      z = torch.cat(parts, 0)
    else:
      z = unchecked_cast(Tensor, mask)
    a, b, = (torch.slice(torch.slice(z), 1, 0, 2), torch.select(z, 0, -1))
    sizes = [torch.size(a, 0), -1]
    text = torch.format("{} of {}", n, sizes)
    if torch.lt(torch.len(text), 0):
      ops.prim.RaiseException(text, "builtins.ValueError")
    else:
      pass
    found = {"a": torch.view(a, sizes), "b": _0(b, )}
    k = 3
    while torch.gt(k, 1):
      k = torch.sub(k, 1)
    return (found["a"], found, torch.floordiv(k, 2) if True else 0)
class Child(Module):
  __parameters__ = []
  __buffers__ = []
  seen : List[int]
  def forward(self: __torch__.Child,
    x: Tensor) -> Tensor:
    seen = self.seen
    return torch.relu(torch.to(x, ops.prim.dtype(x)))
def double(x: Tensor,
    by: float=2.) -> Tensor:
  return torch.mul(x, by)
)";

constexpr char kSteps[] = R"(class Net(Module):
  weight : Tensor
  count : int
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    count = self.count
    self.count = torch.add(count, 1)
    if bool(torch.gt(torch.sum(x), 0.)):
      y = torch.masked_select(x, torch.gt(x, 1))
    else:
      y = torch.neg(x)
    weight = self.weight
    return torch.add(torch.sum(y), torch.add_(weight, 1))
)";

std::string text(const std::string& t) { return "X" + fuzz::number(t.size(), 4) + t; }
std::string tensor(const std::string& count, const std::string& sizes, const std::string& strides) {
  using namespace std::string_literals;
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + count + "tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\0("s + sizes + "t(" + strides +
         "t\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string seed(const char* source, bool child) {
  using namespace std::string_literals;
  std::string module = "\x80\2c__torch__\nNet\nq\0)\x81}("s + text("weight") + "q\1" +
                       tensor("K\6", "K\2K\3", "K\3K\1") + text("count") + "K\3";
  if (child)
    module += text("child") + "c__torch__\nChild\n)\x81}(" + text("seen") +
              "ctorch.jit._pickle\nbuild_intlist\n](K\1K\2e\x85R" + "ub";
  module += "ub.";
  const std::string constants = "\x80\2(" + tensor("K\2", "K\2", "K\1") + "t.";
  return source + std::string(kBetween) + module + std::string(kBetween) + constants;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view input(exact.data(), exact.size());
  expect_error_or_nothing([&] { read_parts(input); });
  expect_error_or_nothing([&] { run(input, false); });
  return 0;
}

std::vector<std::string> seeds() {
  const std::string flow = seed(kSource, true), steps = seed(kSteps, false);
  read_parts(flow);  // they are good: an error here ends the program
  read_parts(steps);
  std::vector<std::string> pool(192, flow);
  pool.resize(256, steps);
  pool.resize(264, archive_of(kSteps, "\x80\2N.", "\x80\2)."));
  return pool;
}

std::vector<std::string> dictionary() {
  return {"self",
          "(self).forward(x, )",
          "self.count = ",
          "torch.add(",
          "torch.view(x, [",
          "ops.prim.",
          "__torch__.",
          "CONSTANTS.c0",
          "annotate(int, ",
          "unchecked_cast(Tensor, ",
          "torch._set_item(",
          "torch.append(parts, ",
          "torch.pop(",
          "torch.slice(",
          "torch.reshape(x, [-1, 0])",
          "torch.copy_(x, ",
          "getattr(self, \"child\")",
          "    ",
          "  def f(",
          "if True:\n",
          "else:\n",
          "for i in range(3):\n",
          "with self:\n",
          "return ",
          "None",
          "[x, [x, [",
          "{\"a\": ",
          ")R",
          "q\1",
          "h\1",
          "\x85",
          "K\1"};
}
