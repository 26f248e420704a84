// A device with a compiler: it takes parts of programs that add and multiply tensors of one shape, and computes each
// element in one go. What it does not take runs by its kernels.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "oar/device/abi.h"

namespace {

std::atomic<int64_t> g_compiled{0}, g_runs{0}, g_live{0};

// ---- Kernels.

float* data(const oar_tensor& t) { return static_cast<float*>(t.data); }

int64_t place(const oar_tensor& t, int64_t i) {
  int64_t at = 0;
  for (int axis = t.ndim; axis-- > 0; i /= t.shape[axis]) at += i % t.shape[axis] * t.strides[axis];
  return at;
}

const char* floats_only(const oar_kernel_call* call) {
  for (int32_t i = 0; i < call->input_count; ++i)
    if (call->inputs[i].tag == OAR_TAG_TENSOR && call->inputs[i].tensor->dtype != OAR_FLOAT32)
      return "float32 only";
  return call->outputs[0]->dtype == OAR_FLOAT32 ? nullptr : "float32 only";
}

template <class F>
int32_t each(oar_kernel_call* call, F f) {
  const oar_tensor& out = *call->outputs[0];
  for (int64_t i = 0; i < out.numel; ++i) data(out)[place(out, i)] = f(i);
  return OAR_OK;
}
float load(const oar_kernel_call* call, int input, int64_t i) {
  const oar_tensor& t = *call->inputs[input].tensor;
  return data(t)[place(t, i)];
}

int32_t add(oar_kernel_call* call) {
  return each(call, [=](int64_t i) { return load(call, 0, i) + load(call, 1, i); });
}
int32_t multiply(oar_kernel_call* call) {
  return each(call, [=](int64_t i) { return load(call, 0, i) * load(call, 1, i); });
}
int32_t assign(oar_kernel_call* call) {
  return each(call, [=](int64_t i) { return load(call, 0, i); });
}
int32_t copy_into(oar_kernel_call* call) {
  return each(call, [=](int64_t i) { return load(call, 1, i); });
}
int32_t sum(oar_kernel_call* call) {
  const oar_tensor& x = *call->inputs[0].tensor;
  if (call->outputs[0]->numel != 1) return OAR_UNSUPPORTED;
  float total = 0;
  for (int64_t i = 0; i < x.numel; ++i) total += data(x)[place(x, i)];
  data(*call->outputs[0])[0] = total;
  return OAR_OK;
}

const oar_kernel kKernels[] = {
    {"add", 1, "compiling:plain", floats_only, add},
    {"multiply", 1, "compiling:plain", floats_only, multiply},
    {"assign", 1, "compiling:plain", floats_only, assign},
    {"copy_into", 1, "compiling:plain", floats_only, copy_into},
    {"sum", 1, "compiling:plain", floats_only, sum},
};

const char* supports(const char* op, uint32_t version) {
  for (const oar_kernel& kernel : kKernels)
    if (std::strcmp(kernel.op, op) == 0 && kernel.op_version == version) return nullptr;
  return "the device knows a handful of ops";
}

// ---- The compiler. A program is a header, one line for each call, and a brace:
//
//   program cluster(%x: float32[4], %y: float32[4]) -> (%3: float32[4]) {
//     %2 = add(%x, %y) : float32[4]
//     %3 = multiply(%2, %y) : float32[4]
//   }

struct Step {
  bool multiplies;
  size_t left, right;  // registers
};

struct Code {
  oar_cluster cluster{};
  std::vector<Step> steps;      // each fills the register after the inputs and the steps before it
  std::vector<size_t> results;  // registers
};

int32_t run_code(oar_kernel_call* call) {
  const Code& code = *static_cast<const Code*>(call->context);
  const oar_value& inputs = call->inputs[0];
  std::vector<float> registers(static_cast<size_t>(inputs.count) + code.steps.size());
  const int64_t numel = call->outputs[0]->numel;
  for (int64_t i = 0; i < numel; ++i) {
    size_t next = 0;
    for (int32_t k = 0; k < inputs.count; ++k)
      registers[next++] = data(*inputs.tensors[k])[place(*inputs.tensors[k], i)];
    for (const Step& s : code.steps) {
      const float a = registers[s.left], b = registers[s.right];
      registers[next++] = s.multiplies ? a * b : a + b;
    }
    for (int32_t k = 0; k < call->output_count; ++k)
      data(*call->outputs[k])[i] = registers[code.results[static_cast<size_t>(k)]];
  }
  ++g_runs;
  return OAR_OK;
}

void destroy_code(void* context) {
  delete static_cast<Code*>(context);
  --g_live;
}

using Registers = std::unordered_map<std::string, size_t>;

// The names that begin with % in a piece of text, in order.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1))
    names.push_back(text.substr(at, text.find_first_of(":,) ", at) - at));
  return names;
}

bool same_shapes(const oar_cluster_source& source) {
  const oar_tensor& like = *source.outputs[0];
  const auto is_like = [&](const oar_tensor& t) {
    return t.dtype == OAR_FLOAT32 && t.ndim == like.ndim &&
           std::memcmp(t.shape, like.shape, sizeof(int64_t) * static_cast<size_t>(t.ndim)) == 0;
  };
  for (int32_t i = 0; i < source.input_count; ++i)
    if (!is_like(*source.inputs[i])) return false;
  for (int32_t i = 0; i < source.output_count; ++i)
    if (!is_like(*source.outputs[i])) return false;
  return true;
}

const oar_cluster* compile_cluster(int32_t, const oar_cluster_source* source, const char** why) {
  *why = "only sums and products of tensors of one shape are compiled";
  if (source->output_count == 0 || !same_shapes(*source)) return nullptr;
  auto code = std::make_unique<Code>();
  Registers registers;
  std::istringstream lines(source->text);
  std::string header, line;
  std::getline(lines, header);
  const size_t arrow = header.find("->");
  for (const std::string& name : names_in(header.substr(0, arrow)))
    registers.emplace(name, registers.size());
  while (std::getline(lines, line) && line.find('}') == std::string::npos) {
    const size_t equals = line.find(" = "), open = line.find('(');
    if (equals == std::string::npos || open == std::string::npos) return nullptr;
    const std::string op = line.substr(equals + 3, open - equals - 3);
    const std::vector<std::string> names = names_in(line);
    if ((op != "add" && op != "multiply") || names.size() != 3) return nullptr;
    code->steps.push_back({op == "multiply", registers.at(names[1]), registers.at(names[2])});
    registers.emplace(names[0], registers.size());
  }
  for (const std::string& name : names_in(header.substr(arrow)))
    code->results.push_back(registers.at(name));
  code->cluster = {sizeof(oar_cluster), code.get(), run_code, destroy_code};
  ++g_compiled;
  ++g_live;
  return &code.release()->cluster;
}

}  // namespace

extern "C" {

int64_t oar_compiling_count(int what) {
  return what == 0 ? g_compiled : what == 1 ? g_runs : g_live;
}

const oar_device_api* oar_device_init(const oar_host_api*, const char**) {
  static oar_device_api device{};
  device.struct_size = sizeof(device);
  device.abi_version = OAR_ABI_VERSION;
  device.type_name = "compiling";
  device.allocate = [](int32_t, size_t bytes, oar_stream*) { return std::malloc(bytes + 1); };
  device.free = [](int32_t, void* block, size_t, oar_stream*) { std::free(block); };
  device.copy = [](int32_t, void* to, const void* from, size_t bytes, oar_copy_kind, oar_stream*) {
    std::memcpy(to, from, bytes);
    return int32_t{OAR_OK};
  };
  device.supports = supports;
  device.kernels = kKernels;
  device.kernel_count = static_cast<int32_t>(sizeof(kKernels) / sizeof(kKernels[0]));
  device.kernel_size = sizeof(oar_kernel);
  device.compile_cluster = compile_cluster;
  return &device;
}

}  // extern "C"
